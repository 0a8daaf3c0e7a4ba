//! The real Prometheus, and a small exporter that it scrapes every second.

use super::load::Load;
use crate::plane::ControlPlane;
use crate::process::{Process, free_ports};
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::State;
use axum::http::Request;
use axum::routing::get;
use kube::{Client, Config};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const PROGRAM: &str = "prometheus";

/// Whether it is installed, or why the tests with it cannot run.
pub fn possible() -> Result<()> {
    let mut version = Command::new(PROGRAM);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let status =
        version.status().context("prometheus is not installed (Debian's package of it)")?;
    ensure!(status.success(), "prometheus does not run: {status}");
    Ok(())
}

/// A running Prometheus and what it scrapes.
pub struct Prometheus {
    /// Where it is.
    pub url: String,
    exporter: JoinHandle<()>,
    arguments: [String; 3],
    folder: PathBuf,
    process: Option<Process>,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.exporter.abort();
    }
}

impl Prometheus {
    /// Starts it on loopback, where it scrapes what the workloads have to do.
    pub async fn start(plane: &ControlPlane, load: Arc<Load>) -> Result<Prometheus> {
        let router = Router::new().route("/metrics", get(exposition)).with_state(load);
        Prometheus::start_at("127.0.0.1", plane.folder(), router).await
    }

    /// Starts it at an address, where it scrapes the `/metrics` of a router, and waits until it is ready.
    pub async fn start_at(host: &str, folder: &Path, router: Router) -> Result<Prometheus> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let target = listener.local_addr()?.to_string();
        let exporter = tokio::spawn(async move {
            // It ends with Prometheus.
            let _ = axum::serve(listener, router).await;
        });
        let settings = folder.join("prometheus.yml");
        let config = json!({"global": {"scrape_interval": "1s"}, "scrape_configs": [
            {"job_name": "test", "static_configs": [{"targets": [target]}]}]});
        std::fs::write(&settings, config.to_string())?;
        let [port] = free_ports()?;
        let arguments = [
            format!("--config.file={}", settings.display()),
            format!("--storage.tsdb.path={}", folder.join("prometheus").display()),
            format!("--web.listen-address={host}:{port}"),
        ];
        let (url, folder) = (format!("http://{host}:{port}"), folder.to_owned());
        let mut prometheus = Prometheus { url, exporter, arguments, folder, process: None };
        prometheus.start_again().await?;
        Ok(prometheus)
    }

    /// Ends it without asking.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it with what it had before, and waits until it is ready.
    pub async fn start_again(&mut self) -> Result<()> {
        let program = Path::new(PROGRAM);
        let mut process = Process::start(PROGRAM, program, &self.arguments, &self.folder)?;
        let client = Client::try_from(Config::new(self.url.parse()?))?;
        let ready = async || match Request::get("/-/ready").body(Vec::new()) {
            Ok(request) => client.request_text(request).await.is_ok(),
            Err(_) => false,
        };
        process.until_ready(ready).await?;
        self.process = Some(process);
        Ok(())
    }
}

async fn exposition(State(load): State<Arc<Load>>) -> String {
    let namespace = load.namespace();
    let mut text = format!(
        "shop_hits{{namespace=\"{namespace}\",service=\"front\"}} {}\n\
         shop_queue{{namespace=\"{namespace}\",queue=\"mail\"}} {}\n\
         shop_queue{{namespace=\"{namespace}\",queue=\"other\"}} 1000\n",
        load.total("hits"),
        load.total("queue")
    );
    text += "shop_node_cores{node=\"node-1\"} 2\nshop_node_bytes{node=\"node-1\"} 1073741824\n";
    for (pod, cores) in load.shares("cpu") {
        let labels = format!("{{namespace=\"{namespace}\",pod=\"{pod}\",container=\"app\"}}");
        text += &format!("shop_cores{labels} {cores}\nshop_bytes{labels} 67108864\n");
    }
    // Series by name and labels: those of another view and of another namespace are not meant.
    for (pod, share) in load.shares("named") {
        let place = format!("kubernetes_namespace=\"{namespace}\",kubernetes_pod_name=\"{pod}\"");
        text += &format!("shop_qps{{{place},view=\"default\"}} {share}\n");
        text += &format!("shop_qps{{{place},view=\"other\"}} 1000\n");
        let place = format!("kubernetes_namespace=\"other\",kubernetes_pod_name=\"{pod}\"");
        text += &format!("shop_qps{{{place},view=\"default\"}} 1000\n");
    }
    for (pod, share) in load.shares("rps") {
        text += &format!("shop_rps{{namespace=\"{namespace}\",pod=\"{pod}\"}} {share}\n");
    }
    text
}
