//! Simulated nodes: each registers itself, sends heartbeats, lives the pods that are placed on it
//! and answers on its own loopback address as a kubelet does.
//!
//! All nodes of a process share one watch and one task; they know nothing but an API server, a
//! clock, and what the load model says was used.

use crate::call::CallError;
use kube::Client;
use listen::Bound;
use podscale_client::clock::Clock;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinSet;

pub mod address;
pub mod control;
mod driver;
mod events;
pub mod exposition;
pub mod http;
pub mod lifecycle;
mod listen;
pub mod pod;
mod register;
pub mod serve;
pub mod status;
pub mod summary;
pub mod table;
#[cfg(test)]
mod tests;
pub mod usage;

pub use lifecycle::Delays;
pub use listen::{KUBELET_PORT, KubeletPort};
pub use pod::Fault;
pub use serve::Identity;
pub use table::{PodView, Table};
pub use usage::Usage;

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
#[derive(Clone, Debug)]
pub struct NodesConfig {
    /// How many.
    pub count: usize,
    /// What their names begin with; a number from 1 follows.
    pub prefix: String,
    /// How large each is.
    pub size: NodeSize,
    /// The port of their kubelets.
    pub port: KubeletPort,
    /// How long the parts of a pod's life take.
    pub delays: Delays,
    /// Whether events of pods are recorded.
    pub events: bool,
    /// How their kubelets speak TLS; without, they speak in the clear only.
    pub identity: Option<Identity>,
}

impl Default for NodesConfig {
    fn default() -> NodesConfig {
        NodesConfig {
            count: 3,
            prefix: "node-".to_owned(),
            size: NodeSize::default(),
            port: KubeletPort::default(),
            delays: Delays::default(),
            events: true,
            identity: None,
        }
    }
}

impl NodesConfig {
    fn name(&self, index: usize) -> Arc<str> {
        format!("{}{}", self.prefix, index + 1).into()
    }
}

/// Why nodes could not be started, or did not take a command.
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
    /// A kubelet cannot have a certificate.
    #[error("no certificate for the kubelet of {node}: {source}")]
    Certificate {
        /// Whose kubelet.
        node: Arc<str>,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
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
    /// Where its kubelet listens.
    pub kubelet: SocketAddr,
    /// How large it is.
    pub size: NodeSize,
    /// The block of its pods' addresses.
    pub pod_cidr: String,
    running: AtomicBool,
}

impl NodeInfo {
    fn new(config: &NodesConfig, index: usize, kubelet: SocketAddr) -> NodeInfo {
        NodeInfo {
            name: config.name(index),
            index,
            kubelet,
            size: config.size,
            pod_cidr: address::Block::of(index).cidr(),
            running: AtomicBool::new(true),
        }
    }

    /// Whether it works at all.
    #[must_use]
    pub fn running(&self) -> bool {
        self.running.load(Ordering::Acquire)
    }
}

/// What the nodes' task can be asked to do.
enum Command {
    /// Make a pod misbehave, or stop doing so.
    Fault { namespace: String, name: String, fault: Option<Fault>, done: oneshot::Sender<bool> },
    /// Enqueue the pods of a node now.
    Enqueue { node: Arc<str> },
}

/// Running nodes; they end when this is dropped.
pub struct Nodes {
    control: NodesControl,
    usage: Arc<Usage>,
    table: Arc<Table>,
    tasks: JoinSet<()>,
    /// Where kubelets listen instead of where they were to.
    notice: Option<String>,
}

/// Sends the nodes commands; cheap to clone.
#[derive(Clone)]
pub struct NodesControl {
    nodes: Arc<[Arc<NodeInfo>]>,
    commands: mpsc::Sender<Command>,
    beat_now: Arc<Notify>,
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
        let bound = listen_all(config)?;
        let notice = listen::notice(&bound);
        let (table, usage) = (Arc::new(Table::default()), Arc::new(Usage::default()));
        let mut tasks = JoinSet::new();
        let mut nodes = Vec::with_capacity(bound.len());
        for (index, Bound { listener, address, .. }) in bound.into_iter().enumerate() {
            let node = Arc::new(NodeInfo::new(config, index, address));
            nodes.push(Arc::clone(&node));
            table.add_node(&node.name);
            let (table, usage, started) = (Arc::clone(&table), Arc::clone(&usage), clock.now());
            let kubelet = Arc::new(http::Kubelet { node, table, usage, started });
            let server = serve::Server::new(kubelet, config.identity.as_ref())?;
            tasks.spawn(server.run(listener));
        }
        register::register(&client, &clock, &nodes).await?;
        let beat_now = Arc::new(Notify::new());
        let beats =
            register::heartbeats(client.clone(), clock, nodes.clone(), Arc::clone(&beat_now));
        tasks.spawn(beats);
        let (commands, received) = mpsc::channel(64);
        let events = events::EventSink::new(config.events.then(|| client.clone()));
        let delays = config.delays;
        let driver = driver::Driver::new(client, clock, delays, Arc::clone(&table), events, &nodes);
        tasks.spawn(driver.run(received));
        let control = NodesControl { nodes: nodes.into(), commands, beat_now };
        Ok(Nodes { control, usage, table, tasks, notice })
    }

    /// The pods of all nodes.
    #[must_use]
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    /// Where the load model records what was used.
    #[must_use]
    pub fn usage(&self) -> Arc<Usage> {
        Arc::clone(&self.usage)
    }

    /// Says in one line where kubelets listen instead, if any could not listen where it was to.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// A handle that sends the nodes commands.
    #[must_use]
    pub fn control(&self) -> NodesControl {
        self.control.clone()
    }

    /// Ends all nodes and waits until they have.
    pub async fn shutdown(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Listens for the kubelets of all nodes.
fn listen_all(config: &NodesConfig) -> Result<Vec<Bound>, NodesError> {
    let all = (0..config.count).map(|index| {
        listen::listen(index, config.port, &listen::bind).map_err(|(address, source)| {
            NodesError::Listen { node: config.name(index), address, source }
        })
    });
    all.collect()
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
        self.beat_now.notify_one();
        let command = Command::Enqueue { node: Arc::clone(&info.name) };
        self.commands.send(command).await.map_err(|_| NodesError::ShutDown)
    }
}
