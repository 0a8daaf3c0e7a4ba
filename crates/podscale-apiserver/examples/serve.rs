//! Serves an empty cluster's API on loopback: `cargo run --example serve [PORT [TOKEN]]`.
//! With a token it speaks TLS and writes a kubeconfig to the file named by `KUBECONFIG`.

#![allow(clippy::print_stderr, reason = "an example talks to whoever runs it")]

use std::net::{Ipv4Addr, SocketAddr};

use podscale_apiserver::{ApiServer, Certificates, Config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(8001), |port| port.parse())?;
    let token = arguments.next();
    let certificates = match &token {
        Some(_) => Some(Certificates::generate(&["localhost", "127.0.0.1"])?),
        None => None,
    };
    let server = ApiServer::new(Config { token: token.clone(), ..Config::default() });
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let serving = server.serve(address, certificates.as_ref()).await?;
    if let (Some(certificates), Some(token), Ok(path)) =
        (&certificates, &token, std::env::var("KUBECONFIG"))
    {
        std::fs::write(path, kubeconfig(&serving.url(), &certificates.authority_data(), token))?;
    }
    eprintln!("serving on {}", serving.url());
    tokio::signal::ctrl_c().await?;
    serving.stop().await;
    Ok(())
}

fn kubeconfig(url: &str, authority: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: podscale\n  cluster:\n    \
         server: {url}\n    certificate-authority-data: {authority}\nusers:\n- name: podscale\n  \
         user:\n    token: {token}\ncontexts:\n- name: podscale\n  context:\n    \
         cluster: podscale\n    user: podscale\ncurrent-context: podscale\n"
    )
}
