//! Which pods and nodes there are, with their labels: what selectors of the metrics APIs pick by.

use crate::metrics::Metrics;
use kube::Client;
use podscale_api::Labels;
use podscale_api::node::Node;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, Watched, follow};
use podscale_metrics::directory::Directory;
use podscale_metrics::store::PodKey;
use serde::Deserialize;
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

/// A pod without all that serving its metrics does not need.
#[derive(Deserialize)]
struct Labelled {
    metadata: LabelledMeta,
}

#[derive(Deserialize)]
struct LabelledMeta {
    namespace: Box<str>,
    name: Box<str>,
    labels: Option<Labels>,
}

impl Watched for Labelled {
    fn version(&self) -> Option<&str> {
        None
    }
}

impl Labelled {
    fn entry(self) -> (PodKey, Labels) {
        let LabelledMeta { namespace, name, labels } = self.metadata;
        ((namespace.into(), name.into()), labels.unwrap_or_default())
    }
}

/// Keeps up with the labels of pods.
pub(super) async fn follow_pods(
    client: Client,
    instruments: Instruments,
    directory: Arc<Directory>,
) {
    let apply = |change: Change<Labelled>| match change {
        Change::All(pods) => directory.replace_pods(pods.into_iter().map(Labelled::entry)),
        Change::Applied(pod) => {
            let (key, labels) = pod.entry();
            directory.apply_pod(key, labels);
        }
        Change::Deleted(pod) => directory.remove_pod(&pod.entry().0),
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
