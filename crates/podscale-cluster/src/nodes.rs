//! Simulated nodes: each registers itself, sends heartbeats, lives the pods that are placed on it
//! and answers on its own loopback address as a kubelet does.
//!
//! All nodes of a process share one watch and one task; they know nothing but an API server, a
//! clock, and what the load model says was used.

use kube::Client;
use podscale_client::clock::Clock;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

pub mod address;
mod call;
pub mod control;
mod driver;
mod events;
pub mod exposition;
pub mod http;
pub mod lifecycle;
pub mod pod;
mod register;
pub mod status;
pub mod summary;
pub mod table;
#[cfg(test)]
mod tests;
pub mod usage;

pub use call::CallError;
pub(crate) use call::call;
pub use lifecycle::Delays;
pub use pod::Fault;
pub use table::{PodView, Table};
pub use usage::Usage;

/// The port of kubelets.
pub const KUBELET_PORT: u16 = 10250;

/// How large a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeSize {
    /// CPU in thousandths of a core.
    pub cpu_millis: u32,
    /// Memory.
    pub memory_bytes: u64,
    /// How many pods it takes.
    pub pods: u32,
}

impl Default for NodeSize {
    fn default() -> NodeSize {
        NodeSize { cpu_millis: 8000, memory_bytes: 32 << 30, pods: 110 }
    }
}

/// Which nodes there are.
#[derive(Clone, Debug, PartialEq)]
pub struct NodesConfig {
    /// How many.
    pub count: usize,
    /// What their names begin with; a number from 1 follows.
    pub prefix: String,
    /// How large each is.
    pub size: NodeSize,
    /// The port of their kubelets; 0 takes any free one.
    pub port: u16,
    /// How long the parts of a pod's life take.
    pub delays: Delays,
    /// Whether events of pods are recorded.
    pub events: bool,
}

impl Default for NodesConfig {
    fn default() -> NodesConfig {
        NodesConfig {
            count: 3,
            prefix: "node-".to_owned(),
            size: NodeSize::default(),
            port: KUBELET_PORT,
            delays: Delays::default(),
            events: true,
        }
    }
}

/// Why nodes could not be started or told something.
#[derive(Debug, Error)]
pub enum NodesError {
    /// The address of a kubelet is taken or not allowed.
    #[error("cannot listen on {address} for the kubelet of {node}: {source}")]
    Listen {
        /// Whose kubelet.
        node: Arc<str>,
        /// Which address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// More nodes than there are addresses.
    #[error("{0} nodes are more than {max}", max = address::MAX_NODES)]
    TooMany(usize),
    /// The API server refused the nodes.
    #[error(transparent)]
    Call(#[from] CallError),
    /// There is no such node.
    #[error("there is no node {0:?}")]
    NoNode(String),
    /// There is no such pod on any node.
    #[error("there is no pod {0}/{1} on a simulated node")]
    NoPod(String, String),
    /// The nodes have been shut down.
    #[error("the nodes are shut down")]
    ShutDown,
}

/// One node.
#[derive(Debug)]
pub struct NodeInfo {
    /// Its name.
    pub name: Arc<str>,
    /// Its number among the nodes of this process, from 0.
    pub index: usize,
    /// Its own loopback address.
    pub address: IpAddr,
    /// How large it is.
    pub size: NodeSize,
    /// The block of its pods' addresses.
    pub pod_cidr: String,
    port: AtomicU16,
    running: AtomicBool,
}

impl NodeInfo {
    fn new(config: &NodesConfig, index: usize) -> NodeInfo {
        NodeInfo {
            name: format!("{}{}", config.prefix, index + 1).into(),
            index,
            address: address::node(index),
            size: config.size,
            pod_cidr: address::Block::of(index).cidr(),
            port: AtomicU16::new(config.port),
            running: AtomicBool::new(true),
        }
    }

    /// The port of its kubelet.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Acquire)
    }

    /// Whether it works at all.
    #[must_use]
    pub fn running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }
}

/// What the nodes' task can be told.
enum Command {
    /// Make a pod misbehave, or stop doing so.
    Fault { namespace: String, name: String, fault: Option<Fault>, done: oneshot::Sender<bool> },
    /// Go over the pods of a node again.
    Look { node: Arc<str> },
}

/// Running nodes; they end when this is dropped.
pub struct Nodes {
    control: NodesControl,
    usage: Arc<Usage>,
    table: Arc<Table>,
    tasks: JoinSet<()>,
}

/// A way to tell the nodes something; cheap to clone.
#[derive(Clone)]
pub struct NodesControl {
    nodes: Arc<[Arc<NodeInfo>]>,
    commands: mpsc::Sender<Command>,
    hurry: Arc<Notify>,
}

impl Nodes {
    /// Registers the nodes and begins to live their pods.
    ///
    /// # Errors
    /// Says which address cannot be listened on, or what the API server refused.
    pub async fn start(
        client: Client,
        clock: Clock,
        config: &NodesConfig,
    ) -> Result<Nodes, NodesError> {
        if config.count > address::MAX_NODES {
            return Err(NodesError::TooMany(config.count));
        }
        let nodes: Vec<Arc<NodeInfo>> =
            (0..config.count).map(|index| Arc::new(NodeInfo::new(config, index))).collect();
        let (table, usage) = (Arc::new(Table::default()), Arc::new(Usage::default()));
        let mut tasks = JoinSet::new();
        for info in &nodes {
            table.add_node(&info.name);
            let kubelet = http::Kubelet {
                node: Arc::clone(info),
                table: Arc::clone(&table),
                usage: Arc::clone(&usage),
                started: clock.now(),
            };
            let listener = listen(info).await?;
            let router = http::router(Arc::new(kubelet));
            tasks.spawn(async move {
                // Serving only ends with the task.
                let _ = axum::serve(listener, router).await;
            });
        }
        register::register(&client, &clock, &nodes).await?;
        let hurry = Arc::new(Notify::new());
        let beats = register::heartbeats(client.clone(), clock, nodes.clone(), Arc::clone(&hurry));
        tasks.spawn(beats);
        let (commands, received) = mpsc::channel(64);
        let events = events::EventSink::new(config.events.then(|| client.clone()));
        let delays = config.delays;
        let driver = driver::Driver::new(client, clock, delays, Arc::clone(&table), events, &nodes);
        tasks.spawn(driver.run(received));
        let control = NodesControl { nodes: nodes.into(), commands, hurry };
        Ok(Nodes { control, usage, table, tasks })
    }

    /// The pods of all nodes.
    #[must_use]
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    /// Where the load model tells what was used.
    #[must_use]
    pub fn usage(&self) -> Arc<Usage> {
        Arc::clone(&self.usage)
    }

    /// A way to tell the nodes something.
    #[must_use]
    pub fn control(&self) -> NodesControl {
        self.control.clone()
    }

    /// Ends all nodes and waits until they have.
    pub async fn shutdown(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn listen(info: &NodeInfo) -> Result<TcpListener, NodesError> {
    let address = SocketAddr::new(info.address, info.port());
    let fail = |source| NodesError::Listen { node: Arc::clone(&info.name), address, source };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let port = listener.local_addr().map_err(fail)?.port();
    info.port.store(port, Ordering::Release);
    Ok(listener)
}

impl NodesControl {
    /// The nodes, by number.
    #[must_use]
    pub fn nodes(&self) -> &[Arc<NodeInfo>] {
        &self.nodes
    }

    /// Makes a pod misbehave whatever its annotation says, or leaves it to its annotation again.
    ///
    /// # Errors
    /// There is no such pod on these nodes, or they are shut down.
    pub async fn set_fault(
        &self,
        namespace: &str,
        name: &str,
        fault: Option<Fault>,
    ) -> Result<(), NodesError> {
        let (done, found) = oneshot::channel();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let command =
            Command::Fault { namespace: namespace.clone(), name: name.clone(), fault, done };
        self.commands.send(command).await.map_err(|_| NodesError::ShutDown)?;
        match found.await {
            Ok(true) => Ok(()),
            Ok(false) => Err(NodesError::NoPod(namespace, name)),
            Err(_) => Err(NodesError::ShutDown),
        }
    }

    /// Stops a node as a power cut would (no heartbeats, no answers, its pods stand still), or
    /// brings it back.
    ///
    /// # Errors
    /// There is no such node, or the nodes are shut down.
    pub async fn set_running(&self, node: &str, running: bool) -> Result<(), NodesError> {
        let info = self.nodes.iter().find(|info| *info.name == *node);
        let info = info.ok_or_else(|| NodesError::NoNode(node.to_owned()))?;
        info.running.store(running, Ordering::Release);
        self.hurry.notify_one();
        let command = Command::Look { node: Arc::clone(&info.name) };
        self.commands.send(command).await.map_err(|_| NodesError::ShutDown)
    }
}
