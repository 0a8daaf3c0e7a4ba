//! Which pods and nodes there are, with their labels: what selectors of the metrics APIs pick by.

use crate::metrics::Metrics;
use kube::Client;
use podscale_api::node::Node;
use podscale_api::pod::Pod;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, follow};
use podscale_metrics::directory::Directory;
use podscale_metrics::store::PodKey;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The pods and nodes of a cluster whose kubelets are not scraped; kept up to date while it lives.
pub struct Roster {
    /// Their labels.
    pub directory: Arc<Directory>,
    _tasks: JoinSet<()>,
}

impl Roster {
    /// Begins to follow them.
    #[must_use]
    pub fn start(client: &Client, metrics: &Metrics) -> Roster {
        let directory = Arc::new(Directory::default());
        let instruments: Instruments = Arc::new(metrics.clone());
        let mut tasks = JoinSet::new();
        let shared = || (client.clone(), Arc::clone(&instruments), Arc::clone(&directory));
        let (client, instruments, known) = shared();
        tasks.spawn(follow_pods(client, instruments, known));
        let (client, instruments, known) = shared();
        tasks.spawn(follow_nodes(client, instruments, known));
        Roster { directory, _tasks: tasks }
    }
}

/// Keeps up with the labels of pods.
pub(super) async fn follow_pods(
    client: Client,
    instruments: Instruments,
    directory: Arc<Directory>,
) {
    let key =
        |pod: &Pod| -> PodKey { ((*pod.metadata.namespace).into(), (*pod.metadata.name).into()) };
    let apply = |change: Change<Pod>| match change {
        Change::All(pods) => {
            let entry = |pod: Pod| (key(&pod), pod.metadata.labels);
            directory.replace_pods(pods.into_iter().map(entry).collect());
        }
        Change::Applied(pod) => directory.apply_pod(key(&pod), pod.metadata.labels),
        Change::Deleted(pod) => directory.remove_pod(&key(&pod)),
    };
    follow(&client, "/api/v1/pods", "pods", Presence::Always, &instruments, apply).await;
}

/// Keeps up with the labels of nodes.
async fn follow_nodes(client: Client, instruments: Instruments, directory: Arc<Directory>) {
    let apply = |change: Change<Node>| match change {
        Change::All(nodes) => {
            let entry = |node: Node| ((*node.metadata.name).into(), node.metadata.labels);
            directory.replace_nodes(nodes.into_iter().map(entry).collect());
        }
        Change::Applied(node) => directory.apply_node(&node.metadata.name, node.metadata.labels),
        Change::Deleted(node) => directory.remove_node(&node.metadata.name),
    };
    follow(&client, "/api/v1/nodes", "nodes", Presence::Always, &instruments, apply).await;
}
