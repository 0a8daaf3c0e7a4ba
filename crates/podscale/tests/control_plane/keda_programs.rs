//! The real KEDA: its operator and its metrics server, as `e2e/keda/build` provides them.

use super::aggregation;
use super::binaries;
use super::plane::ControlPlane;
use super::process::{Process, free_ports};
use anyhow::{Context, Result, ensure};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const EXTERNAL: (&str, &str) = ("external.metrics.k8s.io", "v1beta1");

/// The limits of its client and of its reconciles are for clusters where little changes at once.
const LIMITS: [&str; 2] = ["--kube-api-qps=500", "--kube-api-burst=1000"];

/// KEDA's programs while they run.
pub struct Keda {
    pub operator: Process,
    pub server: Process,
}

impl Keda {
    /// Starts both, and waits until the API server has found the metrics.
    pub async fn start(plane: &ControlPlane) -> Result<Keda> {
        let client = &plane.client;
        let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "keda"}});
        let params = PatchParams::apply("test").force();
        namespaces.patch("keda", &params, &Patch::Apply(&object)).await?;
        let keys = plane.folder().join("keda");
        std::fs::create_dir_all(&keys)?;
        let hosts = ["localhost", "127.0.0.1", &aggregation::host()];
        plane.authority.sign("keda", &hosts)?.write(&keys, "tls")?;
        std::fs::write(keys.join("ca.crt"), &plane.authority.pem)?;
        let [asked] = free_ports()?;
        let operator = start_operator(plane, &keys, asked).await?;
        let (server, port) = start_server(plane, &keys, asked).await?;
        aggregation::register(client, port, &plane.authority.pem, &[EXTERNAL]).await?;
        Ok(Keda { operator, server })
    }

    /// The ends of the logs.
    pub fn log_tail(&self) -> String {
        format!("{}\n{}", self.operator.log_tail(), self.server.log_tail())
    }
}

/// Starts the operator, which the metrics server asks on a port.
async fn start_operator(plane: &ControlPlane, keys: &Path, asked: u16) -> Result<Process> {
    let [metrics, health] = free_ports()?;
    let flags = [
        format!("--cert-dir={}", keys.display()),
        format!("--metrics-bind-address=127.0.0.1:{metrics}"),
        format!("--health-probe-bind-address=127.0.0.1:{health}"),
        format!("--metrics-service-bind-address=127.0.0.1:{asked}"),
    ];
    let mut operator = begin(plane, "operator", flags)?;
    operator.until_ready(async || listens(asked).await).await?;
    Ok(operator)
}

/// Starts the metrics server; also where it listens.
async fn start_server(plane: &ControlPlane, keys: &Path, asked: u16) -> Result<(Process, u16)> {
    let [port, metrics] = free_ports()?;
    let (keys, kubeconfig) = (keys.display(), plane.kubeconfig.display());
    let flags = [
        format!("--kubeconfig={kubeconfig}"),
        format!("--lister-kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--cert-dir={keys}"),
        format!("--tls-cert-file={keys}/tls.crt"),
        format!("--tls-private-key-file={keys}/tls.key"),
        format!("--metrics-service-address=localhost:{asked}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--port={metrics}"),
    ];
    let mut server = begin(plane, "adapter", flags)?;
    server.until_ready(async || listens(port).await).await?;
    Ok((server, port))
}

fn begin(
    plane: &ControlPlane,
    name: &str,
    flags: impl IntoIterator<Item = String>,
) -> Result<Process> {
    let program = folder().join("bin").join(name);
    ensure!(program.is_file(), "{} is missing; run e2e/keda/build", program.display());
    let environment = [
        format!("KUBECONFIG={}", plane.kubeconfig.display()),
        "KEDA_CLUSTER_OBJECT_NAMESPACE=keda".to_owned(),
        "POD_NAMESPACE=keda".to_owned(),
        "WATCH_NAMESPACE=".to_owned(),
        // A poll may take no longer than its period and this, which is too short on a busy machine.
        "KEDA_KUBERNETES_API_TIMEOUT=30s".to_owned(),
        "KEDA_SCALEDOBJECT_CTRL_MAX_RECONCILES=20".to_owned(),
        "KEDA_SCALEDJOB_CTRL_MAX_RECONCILES=20".to_owned(),
        program.display().to_string(),
    ];
    let limits = LIMITS.map(str::to_owned);
    let all = environment.into_iter().chain(limits).chain(flags);
    Process::start(&format!("keda-{name}"), Path::new("/usr/bin/env"), all, plane.folder())
}

async fn listens(port: u16) -> bool {
    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}

/// Where `e2e/keda/build` puts KEDA.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/keda")
}

/// KEDA's own definitions of its kinds.
pub fn definitions() -> PathBuf {
    folder().join("crds.yaml")
}

/// Applies a file of definitions, and waits until they are served.
pub fn define(plane: &ControlPlane, file: &Path) -> Result<()> {
    let file = file.to_str().context("UTF-8")?;
    for arguments in [
        &["apply", "--server-side", "--filename", file][..],
        &["wait", "--for=condition=Established", "--timeout=60s", "--filename", file],
    ] {
        let output = Command::new(binaries::folder()?.join("kubectl"))
            .arg(format!("--kubeconfig={}", plane.kubeconfig.display()))
            .arg(format!("--cache-dir={}", plane.folder().join("kubectl-cache").display()))
            .args(arguments)
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
