//! Follows the pods and nodes of the cluster: the labels of both, and whom to scrape.

use crate::nodes::pod::WirePod;
use futures::StreamExt;
use kube::Client;
use kube::api::Api;
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use podscale_api::Labels;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, follow};
use podscale_metrics::directory::Directory;
use podscale_metrics::scraper::fleet::Fleet;
use podscale_metrics::store::PodKey;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use tracing::{debug, warn};

/// Keeps up with the pods of the cluster.
pub(super) async fn follow_pods(directory: Arc<Directory>, client: Client) {
    let pods: Api<WirePod> = Api::all(client);
    let mut events = pin!(watcher(pods, watcher::Config::default()).default_backoff());
    let mut listed: BTreeMap<PodKey, Labels> = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(pod)) => listed.extend(entry(&pod)),
            Ok(Event::InitDone) => directory.replace_pods(std::mem::take(&mut listed)),
            Ok(Event::Apply(pod)) => {
                if let Some((key, labels)) = entry(&pod) {
                    directory.apply_pod(key, labels);
                }
            }
            Ok(Event::Delete(pod)) => {
                if let Some((key, _)) = entry(&pod) {
                    directory.remove_pod(&key);
                }
            }
            Err(error) => warn!(%error, "watching pods for metrics"),
        }
    }
}

fn entry(pod: &WirePod) -> Option<(PodKey, Labels)> {
    let meta = &pod.metadata;
    let key = (meta.namespace.as_deref()?.into(), meta.name.as_deref()?.into());
    Some((key, labels(meta.labels.as_ref())))
}

fn labels(map: Option<&BTreeMap<String, String>>) -> Labels {
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str())).collect()
}

/// Keeps up with the nodes of the cluster.
pub(super) async fn follow_nodes(fleet: Arc<Fleet>, client: Client) {
    let instruments: Instruments = Arc::new(());
    let apply = |change| match change {
        Change::All(nodes) => {
            for node in fleet.replace(&nodes) {
                debug!(node, "no address to reach its kubelet at");
            }
        }
        Change::Applied(node) => {
            fleet.apply(&node);
        }
        Change::Deleted(node) => fleet.remove(&node.metadata.name),
    };
    follow(&client, "/api/v1/nodes", "nodes", Presence::Always, &instruments, apply).await;
}
