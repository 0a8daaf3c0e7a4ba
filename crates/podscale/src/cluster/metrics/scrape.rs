//! Scrapes every node's kubelet at a fixed period, and knows the labels of pods and nodes.

use super::store::{PodKey, Scrape, Store};
use crate::clock::Clock;
use crate::cluster::nodes::pod::WirePod;
use crate::cluster::nodes::{CallError, KUBELET_PORT, call};
use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use parking_lot::RwLock;
use podscale_api::Labels;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tracing::{debug, warn};

/// How many kubelets are asked at once.
const MAX_REQUESTS: usize = 64;
/// The most text a kubelet may answer with.
const MAX_BYTES: usize = 64 << 20;
/// How long a kubelet may take to answer; time of the wall, since it is the network's.
const DEADLINE: Duration = Duration::from_secs(10);

/// Why a kubelet's metrics could not be had.
#[derive(Debug, Error)]
enum ScrapeError {
    #[error("no address to reach it at")]
    NoAddress,
    #[error("no answer within {} s", DEADLINE.as_secs())]
    Deadline,
    #[error("the request cannot be made: {0}")]
    Request(#[from] axum::http::Error),
    #[error("cannot be reached: {0}")]
    Connect(#[from] hyper_util::client::legacy::Error),
    #[error("answered {0}")]
    Refused(axum::http::StatusCode),
    #[error("the answer broke off: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    #[error("the answer is not text")]
    Text(#[from] std::str::Utf8Error),
    #[error("the answer cannot be read: {0}")]
    Line(#[from] super::exposition::LineError),
}

/// The labels of pods and nodes, for selectors and for answers.
#[derive(Debug, Default)]
pub struct Directory {
    pods: RwLock<BTreeMap<PodKey, Labels>>,
    nodes: RwLock<BTreeMap<Arc<str>, Labels>>,
}

impl Directory {
    /// The pods of a namespace, or of all, by namespace and name.
    #[must_use]
    pub fn pods(&self, namespace: Option<&str>) -> Vec<(PodKey, Labels)> {
        let pods = self.pods.read();
        let entry = |(key, labels): (&PodKey, &Labels)| (key.clone(), labels.clone());
        match namespace {
            None => pods.iter().map(entry).collect(),
            Some(namespace) => {
                let first: PodKey = (namespace.into(), "".into());
                let in_it = |(key, _): &(&PodKey, &Labels)| *key.0 == *namespace;
                pods.range(first..).take_while(in_it).map(entry).collect()
            }
        }
    }

    /// The labels of a pod.
    #[must_use]
    pub fn pod(&self, key: &PodKey) -> Option<Labels> {
        self.pods.read().get(key).cloned()
    }

    /// The nodes, by name.
    #[must_use]
    pub fn nodes(&self) -> Vec<(Arc<str>, Labels)> {
        let nodes = self.nodes.read();
        nodes.iter().map(|(name, labels)| (Arc::clone(name), labels.clone())).collect()
    }

    #[cfg(test)]
    pub(super) fn set(&self, pods: &[(&str, &str, &str)], nodes: &[&str]) {
        let pod = |&(namespace, name, app): &(&str, &str, &str)| {
            ((namespace.into(), name.into()), [("app", app)].into_iter().collect())
        };
        *self.pods.write() = pods.iter().map(pod).collect();
        *self.nodes.write() =
            nodes.iter().map(|name| ((*name).into(), Labels::default())).collect();
    }

    /// Keeps up with the pods of the cluster.
    pub(super) async fn follow_pods(self: Arc<Self>, client: Client) {
        let pods: Api<WirePod> = Api::all(client);
        let mut events = pin!(watcher(pods, watcher::Config::default()).default_backoff());
        let mut listed: BTreeMap<PodKey, Labels> = BTreeMap::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(pod)) => listed.extend(entry(&pod)),
                Ok(Event::InitDone) => *self.pods.write() = std::mem::take(&mut listed),
                Ok(Event::Apply(pod)) => self.pods.write().extend(entry(&pod)),
                Ok(Event::Delete(pod)) => {
                    if let Some((key, _)) = entry(&pod) {
                        self.pods.write().remove(&key);
                    }
                }
                Err(error) => warn!(%error, "watching pods for metrics"),
            }
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
        let http = HttpClient::builder(TokioExecutor::new()).build_http();
        let api: Api<Node> = Api::all(self.client.clone());
        loop {
            let begun = self.clock.now();
            match list_nodes(&api).await {
                Ok(nodes) => self.round(&http, nodes).await,
                Err(error) => warn!(%error, "the nodes to scrape are unknown"),
            }
            let taken = self.clock.now().duration_since(begun).try_into().unwrap_or(Duration::ZERO);
            self.clock.sleep(self.resolution.saturating_sub(taken)).await;
        }
    }

    async fn round(&self, http: &HttpClient<HttpConnector, Empty<Bytes>>, nodes: Vec<Target>) {
        *self.directory.nodes.write() =
            nodes.iter().map(|node| (Arc::clone(&node.name), node.labels.clone())).collect();
        let mut requests = Vec::with_capacity(nodes.len());
        for node in nodes {
            requests.push(scrape(http.clone(), node));
        }
        let mut requests = futures::stream::iter(requests).buffer_unordered(MAX_REQUESTS);
        let mut scrapes = Vec::new();
        while let Some((node, result)) = requests.next().await {
            match result {
                Ok(scrape) => scrapes.push((node, scrape)),
                Err(error) => debug!(%node, %error, "no metrics of the node's kubelet"),
            }
        }
        let scraped: Timestamp = self.clock.now();
        self.store.replace(scrapes, scraped);
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

async fn scrape(
    http: HttpClient<HttpConnector, Empty<Bytes>>,
    node: Target,
) -> (Arc<str>, Result<Scrape, ScrapeError>) {
    let result = match node.address {
        None => Err(ScrapeError::NoAddress),
        Some(address) => match tokio::time::timeout(DEADLINE, fetch(http, address)).await {
            Ok(result) => result,
            Err(_) => Err(ScrapeError::Deadline),
        },
    };
    (node.name, result)
}

async fn fetch(
    http: HttpClient<HttpConnector, Empty<Bytes>>,
    address: SocketAddr,
) -> Result<Scrape, ScrapeError> {
    let request = axum::http::Request::get(format!("http://{address}/metrics/resource"));
    let response = http.request(request.body(Empty::new())?).await?;
    if !response.status().is_success() {
        return Err(ScrapeError::Refused(response.status()));
    }
    let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
    let body = body.map_err(ScrapeError::Body)?.to_bytes();
    Ok(Scrape::read(std::str::from_utf8(&body)?)?)
}
