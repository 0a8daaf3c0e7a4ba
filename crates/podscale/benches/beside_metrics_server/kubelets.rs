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
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The address of the first node; the second byte keeps it apart from what else listens on this machine.
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 100, 0, 1);
/// How many may wait to be accepted: all of a program's first connections come within seconds.
const BACKLOG: u32 = 4096;

/// The address of a node.
pub fn address(node: usize) -> IpAddr {
    let number = u32::try_from(node).unwrap_or_default();
    IpAddr::V4(Ipv4Addr::from_bits(FIRST.to_bits() + number))
}

fn node_at(address: IpAddr) -> Option<usize> {
    let IpAddr::V4(address) = address else { return None };
    usize::try_from(address.to_bits().checked_sub(FIRST.to_bits())?).ok()
}

/// A container, and what it has used so far.
pub struct Container {
    pub namespace: String,
    pub pod: String,
    pub cpu_seconds: f64,
    pub memory_bytes: f64,
}

/// Says what the containers of a node have used until a time in milliseconds.
pub type Usage = Arc<dyn Fn(usize, i64) -> Vec<Container> + Send + Sync>;

/// How many questions were answered, by the name that each program gives itself.
type Answered = Mutex<BTreeMap<String, u64>>;

struct Shared {
    usage: Usage,
    answered: Answered,
}

/// Running kubelets; they end, with all connections, when this is dropped.
pub struct Kubelets {
    pub port: u16,
    shared: Arc<Shared>,
    _serving: JoinSet<()>,
}

impl Kubelets {
    pub async fn start(authority: &Authority, usage: Usage) -> Result<Kubelets> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((Ipv4Addr::UNSPECIFIED, 0).into())?;
        let listener = socket.listen(BACKLOG)?;
        let port = listener.local_addr()?.port();
        let acceptor = authority.sign("kubelet", &["127.0.0.1"])?.acceptor()?;
        let shared = Arc::new(Shared { usage, answered: Answered::default() });
        let router =
            Router::new().route("/metrics/resource", get(answer)).with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, acceptor.clone(), router.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Kubelets { port, shared, _serving: serving })
    }

    /// How many questions of a program they have answered.
    pub fn answered(&self, program: &str) -> u64 {
        self.shared.answered.lock().get(program).copied().unwrap_or_default()
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, router: Router) {
    let Some(node) = stream.local_addr().ok().and_then(|address| node_at(address.ip())) else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = TowerToHyperService::new(router.layer(Extension(node)));
    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    // A client that goes away is no matter.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    Extension(node): Extension<usize>,
    headers: HeaderMap,
) -> impl IntoResponse {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
    let program = agent.and_then(|agent| agent.split('/').next()).unwrap_or_default();
    *shared.answered.lock().entry(program.to_owned()).or_default() += 1;
    let millis = Timestamp::now().as_millisecond();
    let text = exposition(&(shared.usage)(node, millis), millis);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

/// What a kubelet says of its node and pods, in the order of a real one.
fn exposition(containers: &[Container], millis: i64) -> String {
    let labels = |of: &Container| format!("namespace=\"{}\",pod=\"{}\"}} ", of.namespace, of.pod);
    let labels: Vec<String> = containers.iter().map(labels).collect();
    let mut text = String::with_capacity(32 * 1024);
    let head = |text: &mut String, name: &str, kind: &str| {
        let _ = writeln!(text, "# HELP {name} [STABLE] What the simulation says");
        let _ = writeln!(text, "# TYPE {name} {kind}");
    };
    let family = |text: &mut String, name: &str, kind: &str, value: fn(&Container) -> f64| {
        head(text, name, kind);
        let first = if name.starts_with("pod") { "{" } else { "{container=\"app\"," };
        for (container, labels) in containers.iter().zip(&labels) {
            [name, first, labels.as_str()].iter().for_each(|part| text.push_str(part));
            let _ = writeln!(text, "{} {millis}", value(container));
        }
    };
    let cpu = |of: &Container| of.cpu_seconds;
    let memory = |of: &Container| of.memory_bytes;
    family(&mut text, "container_cpu_usage_seconds_total", "counter", cpu);
    family(&mut text, "container_memory_working_set_bytes", "gauge", memory);
    family(&mut text, "container_start_time_seconds", "gauge", |_| 1.7e9);
    let sum = |of: fn(&Container) -> f64| containers.iter().map(of).sum::<f64>();
    head(&mut text, "node_cpu_usage_seconds_total", "counter");
    let _ = writeln!(text, "node_cpu_usage_seconds_total {} {millis}", sum(cpu));
    head(&mut text, "node_memory_working_set_bytes", "gauge");
    let _ = writeln!(text, "node_memory_working_set_bytes {} {millis}", sum(memory));
    family(&mut text, "pod_cpu_usage_seconds_total", "counter", cpu);
    family(&mut text, "pod_memory_working_set_bytes", "gauge", memory);
    head(&mut text, "resource_scrape_error", "gauge");
    text.push_str("resource_scrape_error 0\n");
    text
}
