//! Keeps a store of samples up to date: scrapes the kubelets of all nodes again and again, and follows
//! the labels of pods.

use crate::call::{CallError, call};
use crate::nodes::KUBELET_PORT;
use crate::nodes::pod::WirePod;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use podscale_api::Labels;
use podscale_client::clock::Clock;
use podscale_metrics::directory::Directory;
use podscale_metrics::kubelet::KubeletReader;
use podscale_metrics::store::{PodKey, Store};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, warn};

/// How many kubelets are read at once.
const MAX_REQUESTS: usize = 64;

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

/// Scrapes all kubelets into a store, again and again.
pub(super) struct Scraper {
    pub client: Client,
    pub clock: Clock,
    pub resolution: Duration,
    pub store: Arc<Store>,
    pub directory: Arc<Directory>,
}

impl Scraper {
    pub(super) async fn run(self) {
        let reader = KubeletReader::default();
        let api: Api<Node> = Api::all(self.client.clone());
        loop {
            let begun = self.clock.now();
            match list_nodes(&api).await {
                Ok(nodes) => self.round(&reader, nodes).await,
                Err(error) => warn!(%error, "the nodes to scrape are unknown"),
            }
            let taken = self.clock.now().duration_since(begun).try_into().unwrap_or(Duration::ZERO);
            self.clock.sleep(self.resolution.saturating_sub(taken)).await;
        }
    }

    async fn round(&self, reader: &KubeletReader, nodes: Vec<Target>) {
        let named = nodes.iter().map(|node| (Arc::clone(&node.name), node.labels.clone()));
        self.directory.replace_nodes(named.collect());
        let mut reads = Vec::with_capacity(nodes.len());
        for Target { name, address, .. } in nodes {
            let Some(address) = address else {
                debug!(node = %name, "no address to reach its kubelet at");
                continue;
            };
            let reader = reader.clone();
            reads.push(async move { (name, reader.read(address).await) });
        }
        let mut reads = futures::stream::iter(reads).buffer_unordered(MAX_REQUESTS);
        let mut scrapes = Vec::new();
        while let Some((node, result)) = reads.next().await {
            match result {
                Ok(scrape) => {
                    if let Some(malformed) = scrape.malformed() {
                        debug!(%node, %malformed, "metrics of the node's kubelet are incomplete");
                    }
                    scrapes.push((node, scrape));
                }
                Err(error) => debug!(%node, %error, "no metrics of the node's kubelet"),
            }
        }
        self.store.replace(scrapes, self.clock.now());
    }
}

/// A node to scrape.
struct Target {
    name: Arc<str>,
    labels: Labels,
    address: Option<SocketAddr>,
}

async fn list_nodes(api: &Api<Node>) -> Result<Vec<Target>, CallError> {
    let params = ListParams::default();
    let list = call(|| "listing nodes".to_owned(), api.list(&params));
    let targets = list.await?.items.into_iter().filter_map(|node| {
        let name = node.metadata.name.as_deref()?.into();
        let status = node.status.unwrap_or_default();
        let addresses = status.addresses.unwrap_or_default();
        let internal = addresses.iter().find(|address| address.type_ == "InternalIP");
        let ip = internal.and_then(|address| address.address.parse::<IpAddr>().ok());
        let endpoint = status.daemon_endpoints.and_then(|daemons| daemons.kubelet_endpoint);
        let port = endpoint.and_then(|endpoint| u16::try_from(endpoint.port).ok());
        let address = ip.map(|ip| SocketAddr::new(ip, port.unwrap_or(KUBELET_PORT)));
        Some(Target { name, labels: labels(node.metadata.labels.as_ref()), address })
    });
    Ok(targets.collect())
}
