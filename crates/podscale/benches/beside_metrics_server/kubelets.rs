//! Kubelets of many nodes in one listener: each node has a loopback address of its own, which tells whom
//! a connection is for.

use super::certificates::Authority;
use anyhow::Result;
use axum::Router;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use axum::routing::get;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// How many pods each node has.
pub const PODS: usize = 30;

/// The address of a node; the second byte keeps it apart from what else listens on this machine.
pub fn address(node: usize) -> IpAddr {
    let number = u32::try_from(node).unwrap_or_default();
    IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::new(127, 100, 0, 1).to_bits() + number))
}

/// How many questions were answered, by the name that each program gives itself.
type Answered = Mutex<BTreeMap<String, u64>>;

/// Running kubelets; they end when this is dropped.
pub struct Kubelets {
    pub port: u16,
    answered: Arc<Answered>,
    task: AbortHandle,
}

impl Drop for Kubelets {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Kubelets {
    pub async fn start(authority: &Authority) -> Result<Kubelets> {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await?;
        let port = listener.local_addr()?.port();
        let acceptor = authority.sign("kubelet", &["127.0.0.1"])?.acceptor()?;
        let answered = Arc::<Answered>::default();
        let router =
            Router::new().route("/metrics/resource", get(answer)).with_state(Arc::clone(&answered));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(local) = stream.local_addr() else { continue };
                let router = router.clone().layer(Extension(local.ip()));
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let builder =
                        hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let service = TowerToHyperService::new(router);
                    // A client that goes away is no matter.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(Kubelets { port, answered, task: task.abort_handle() })
    }

    /// How many questions of a program they have answered.
    pub fn answered(&self, program: &str) -> u64 {
        self.answered.lock().get(program).copied().unwrap_or_default()
    }
}

async fn answer(
    State(answered): State<Arc<Answered>>,
    Extension(node): Extension<IpAddr>,
    headers: HeaderMap,
) -> impl IntoResponse {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let program = agent.and_then(|agent| agent.split('/').next()).unwrap_or_default();
    *answered.lock().entry(program.to_owned()).or_default() += 1;
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics(node, Timestamp::now()))
}

/// What a kubelet says of its node and pods. Every pod burns a tenth of a core.
fn metrics(node: IpAddr, now: Timestamp) -> String {
    let millis = now.as_millisecond();
    #[expect(clippy::cast_precision_loss, reason = "good enough for a simulation")]
    let seconds = (millis % 100_000_000) as f64 / 1000.0;
    let burnt = seconds / 10.0;
    let mut text = String::with_capacity(24 * 1024);
    let labels = |pod: usize| {
        format!("namespace=\"shop-{}\",pod=\"web-{node}-7d4b9c6f5d-{pod:05}\"", pod % 5)
    };
    let mut family = |name: &str, kind: &str, container: bool, value: f64| {
        let _ = writeln!(text, "# HELP {name} [STABLE] What the simulation says.");
        let _ = writeln!(text, "# TYPE {name} {kind}");
        for pod in 0..PODS {
            let own = if container { "container=\"app\"," } else { "" };
            let _ = writeln!(text, "{name}{{{own}{}}} {value} {millis}", labels(pod));
        }
    };
    family("container_cpu_usage_seconds_total", "counter", true, burnt);
    family("container_memory_working_set_bytes", "gauge", true, 2.5e7);
    family("container_start_time_seconds", "gauge", true, 1.7e9);
    family("pod_cpu_usage_seconds_total", "counter", false, burnt + 0.01);
    family("pod_memory_working_set_bytes", "gauge", false, 2.6e7);
    let _ = writeln!(text, "# TYPE node_cpu_usage_seconds_total counter");
    let _ = writeln!(text, "node_cpu_usage_seconds_total {} {millis}", burnt * 40.0);
    let _ = writeln!(text, "# TYPE node_memory_working_set_bytes gauge");
    let _ = writeln!(text, "node_memory_working_set_bytes 8e9 {millis}");
    let _ = writeln!(text, "# TYPE resource_scrape_error gauge\nresource_scrape_error 0");
    text
}
