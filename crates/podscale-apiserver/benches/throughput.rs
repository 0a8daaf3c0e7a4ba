//! How much the server does in a second, next to a real API server on the same machine:
//! `cargo bench -p podscale-apiserver --bench throughput`. Both are asked the same
//! things over TLS by the same client, one after the other. The real one is left out if
//! `e2e/controlplane/build etcd kube-apiserver` has not been run.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark may fail anywhere")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its table is for people")]

#[path = "throughput/many.rs"]
mod many;
#[path = "throughput/real.rs"]
mod real;
#[path = "throughput/work.rs"]
mod work;

use std::net::{Ipv4Addr, SocketAddr};

use kube::config::{KubeConfigOptions, Kubeconfig};
use podscale_apiserver::{ApiServer, Certificates, Config};
use serde_json::json;

use work::Figures;

const TOKEN: &str = "benchmark";

#[tokio::main]
async fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let brief = !std::env::args().any(|argument| argument == "--bench");
    let scale = if brief { work::Scale::BRIEF } else { work::Scale::FULL };

    let certificates = Certificates::generate(&["127.0.0.1"]).unwrap();
    let server = ApiServer::new(Config { token: Some(TOKEN.to_owned()), ..Config::default() });
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = server.serve(address, Some(&certificates)).await.unwrap();
    let client = client(embedded_kubeconfig(&serving.url(), &certificates)).await;
    let embedded = work::measure(&client, scale).await;
    serving.stop().await;

    let real = match real::Server::start() {
        Ok(server) => {
            let client = self::client(server.kubeconfig()).await;
            Some(work::measure(&client, scale).await)
        }
        Err(why) => {
            eprintln!("!! LEFT OUT: no real API server to compare with ({why})");
            None
        }
    };
    print(&embedded, real.as_ref());
    many::measure(scale.many).await.print();
}

fn embedded_kubeconfig(url: &str, certificates: &Certificates) -> Kubeconfig {
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": {
            "server": url, "certificate-authority-data": certificates.authority_data() } }],
        "users": [{ "name": "u", "user": { "token": TOKEN } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
    });
    serde_json::from_value(kubeconfig).unwrap()
}

async fn client(kubeconfig: Kubeconfig) -> kube::Client {
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

fn print(embedded: &Figures, real: Option<&Figures>) {
    println!("| | embedded | kube-apiserver and etcd |");
    println!("|---|---:|---:|");
    for (name, unit, value) in work::ROWS {
        let show = |figures: &Figures| format!("{:.0} {unit}", value(figures));
        let other = real.map_or_else(|| "not measured".to_owned(), show);
        println!("| {name} | {} | {other} |", show(embedded));
    }
}
