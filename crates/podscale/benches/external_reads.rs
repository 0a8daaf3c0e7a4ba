//! How many external metrics `podscale serve` answers for in a second on one core, from its cache: over TLS
//! and kept connections, with a service account's token and a real API server that reviews it. Prints one
//! table.
//!
//! `cargo bench -p podscale --bench external_reads -- [SECONDS]`; each row is measured for
//! 10 seconds unless another number is given. The program is bound to the first core (`taskset`); whoever
//! asks has the others.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
#![allow(dead_code, reason = "parts of the tests' control plane are not needed here")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "../tests/control_plane/binaries.rs"]
mod binaries;
#[path = "../tests/control_plane/certificates.rs"]
mod certificates;
#[path = "cost.rs"]
mod cost;
#[path = "../tests/control_plane/plane.rs"]
mod plane;
#[path = "../tests/control_plane/process.rs"]
mod process;
#[path = "external_reads/prometheus.rs"]
mod prometheus;
#[path = "external_reads/reader.rs"]
mod reader;

use anyhow::{Context, Result, ensure};
use axum::http::Request;
use cost::cpu_seconds;
use kube::Client;
use plane::ControlPlane;
use process::{Process, free_ports};
use prometheus::Prometheus;
use reader::{Load, Reader};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How many connections there are in each row.
const CONNECTIONS: [usize; 3] = [1, 16, 64];
/// How long they run before they are measured.
const WARM_UP: Duration = Duration::from_secs(3);
const ACCOUNT: &str = "reader";
const NAMESPACE: &str = "default";
const RULES: &str = r#"
externalRules:
- seriesQuery: queue_depth{namespace!=""}
  resources: {template: <<.Resource>>}
  name: {as: depth}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (queue)
"#;

fn main() -> Result<()> {
    let seconds = std::env::args().skip(1).find(|argument| argument != "--bench");
    let seconds = seconds.as_deref().unwrap_or("10").parse().context("a number of seconds")?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build()?;
    let folder = std::env::temp_dir().join(format!("podscale-bench-{}", std::process::id()));
    runtime.block_on(measure(&folder, Duration::from_secs(seconds)))?;
    // What the programs wrote is of no use any more.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

async fn measure(folder: &Path, measured: Duration) -> Result<()> {
    let plane = ControlPlane::start(folder).await?;
    let prometheus = Prometheus::start().await?;
    let token = allow_reading(&plane).await?;
    let (mut process, port) = start(&plane, &prometheus.url)?;
    let reader = Reader::new(port, &plane.authority.pem, &token)?;
    let ready = async || reader.read_once().await.is_ok();
    process.until_ready(ready).await?;
    println!(
        "| connections | reads/s | CPU µs per read | reads/s per core | half took | 99 % took \
         | queries of Prometheus/s |\n|---|---|---|---|---|---|---|"
    );
    for connections in CONNECTIONS {
        let load = Load::start(&reader, connections).await?;
        tokio::time::sleep(WARM_UP).await;
        load.forget();
        let (began, cpu, asked) = (Instant::now(), cpu_seconds(process.id())?, prometheus.asked());
        tokio::time::sleep(measured).await;
        let took = load.stop().await?;
        let seconds = began.elapsed().as_secs_f64();
        let cpu = cpu_seconds(process.id())? - cpu;
        let at = |percent: usize| {
            let took = took.get((took.len() * percent).div_ceil(100).saturating_sub(1));
            took.map(|took| took.as_secs_f64() * 1000.0).context("nothing was read")
        };
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (reads, asked) = (took.len() as f64, (prometheus.asked() - asked) as f64);
        println!(
            "| {connections} | {:.0} | {:.1} | {:.0} | {:.2} ms | {:.2} ms | {:.0} |",
            reads / seconds,
            cpu * 1e6 / reads,
            reads / cpu,
            at(50)?,
            at(99)?,
            asked / seconds
        );
    }
    let status = process.terminate().await?;
    ensure!(status.success(), "podscale serve ended with {status}: {}", process.log_tail());
    Ok(())
}

/// Binds the program to one core.
fn start(plane: &ControlPlane, prometheus: &str) -> Result<(Process, u16)> {
    let [port] = free_ports()?;
    let (folder, name) = (plane.folder(), "podscale");
    plane.authority.sign(name, &["127.0.0.1"])?.write(folder, name)?;
    let rules = folder.join("rules.yaml");
    std::fs::write(&rules, RULES)?;
    let (files, kubeconfig) = (folder.display(), plane.kubeconfig.display());
    let arguments = [
        "-c".to_owned(),
        "0".to_owned(),
        env!("CARGO_BIN_EXE_podscale").to_owned(),
        "serve".to_owned(),
        "--serve=external".to_owned(),
        format!("--kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={files}/{name}.crt"),
        format!("--tls-private-key-file={files}/{name}.key"),
        format!("--prometheus-url={prometheus}"),
        format!("--metric-rules={}", rules.display()),
    ];
    Ok((Process::start(name, Path::new("taskset"), arguments, folder)?, port))
}

/// An account that may read external metrics, and nothing else; its token.
async fn allow_reading(plane: &ControlPlane) -> Result<String> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let rule = json!({"apiGroups": ["external.metrics.k8s.io"], "resources": ["*"],
        "verbs": ["get", "list"]});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
        "name": ACCOUNT});
    let subject = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE});
    let metadata = json!({"name": ACCOUNT});
    let objects = [
        (format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), json!({"metadata": metadata})),
        (format!("{rbac}/clusterroles"), json!({"metadata": metadata, "rules": [rule]})),
        (
            format!("{rbac}/clusterrolebindings"),
            json!({"metadata": metadata, "roleRef": role, "subjects": [subject]}),
        ),
    ];
    for (path, object) in objects {
        create(&plane.client, &path, &object).await.context(path)?;
    }
    plane.token_of(NAMESPACE, ACCOUNT).await
}

async fn create(client: &Client, path: &str, object: &Value) -> Result<()> {
    let request = Request::post(path).header("content-type", "application/json");
    client.request::<Value>(request.body(serde_json::to_vec(object)?)?).await?;
    Ok(())
}
