//! What the API answers from: which pods and nodes there are, and somebody who knows what they use.

use crate::answer::{Answering, Query, Refusal, selects};
use crate::directory::{Directory, NodeEntry, PodEntry};
use crate::store::{Clock, PodKey, PodUsed, Store, Used};
use podscale_api::Labels;
use std::future::ready;
use std::sync::Arc;

/// Knows what pods and nodes use.
pub trait UsageProvider: Send + Sync {
    /// Whether it keeps samples itself: while it has none of any node, it cannot answer.
    fn keeps_samples(&self) -> bool;

    /// What each of these pods uses, in their order; nothing for one that is not known. They are all those
    /// of the namespace that are wanted, or of all namespaces.
    fn pods<'a>(
        &'a self,
        namespace: Option<&'a str>,
        pods: &'a [PodEntry],
    ) -> Answering<'a, Vec<Option<PodUsed>>>;

    /// What each of these nodes uses, in their order; nothing for one that is not known.
    fn nodes<'a>(&'a self, nodes: &'a [NodeEntry]) -> Answering<'a, Vec<Option<Used>>>;
}

/// The samples of kubelets that are scraped.
struct Scraped {
    store: Arc<Store>,
    /// The time by which samples become too old.
    clock: Clock,
}

impl UsageProvider for Scraped {
    fn keeps_samples(&self) -> bool {
        true
    }

    fn pods<'a>(
        &'a self,
        _: Option<&'a str>,
        pods: &'a [PodEntry],
    ) -> Answering<'a, Vec<Option<PodUsed>>> {
        let store = self.store.read((self.clock)());
        let used = pods.iter().map(|((namespace, name), _)| store.pod(namespace, name)).collect();
        Box::pin(ready(Ok(used)))
    }

    fn nodes<'a>(&'a self, nodes: &'a [NodeEntry]) -> Answering<'a, Vec<Option<Used>>> {
        let store = self.store.read((self.clock)());
        let used = nodes.iter().map(|(name, _)| store.node(name)).collect();
        Box::pin(ready(Ok(used)))
    }
}

/// What is used, with the labels of what uses it.
#[derive(Clone)]
pub struct Source {
    /// What is used.
    pub usage: Arc<dyn UsageProvider>,
    /// The labels.
    pub directory: Arc<Directory>,
}

/// A pod that has metrics.
pub(crate) struct FoundPod {
    pub key: PodKey,
    pub labels: Arc<Labels>,
    pub used: PodUsed,
}

/// A node that has metrics.
pub(crate) struct FoundNode {
    pub name: Arc<str>,
    pub labels: Labels,
    pub used: Used,
}

impl Source {
    /// What kubelets said that are scraped; samples become too old by this clock.
    #[must_use]
    pub fn scraped(store: Arc<Store>, directory: Arc<Directory>, clock: Clock) -> Source {
        Source { usage: Arc::new(Scraped { store, clock }), directory }
    }

    /// Whether it can answer: nodes are known, and what one of them uses, or whoever is asked for it answers.
    pub async fn can_answer(&self) -> bool {
        let nodes = self.directory.nodes();
        if nodes.is_empty() {
            return false;
        }
        let found = self.found_nodes(nodes).await;
        found.is_ok_and(|found| !found.is_empty() || !self.usage.keeps_samples())
    }

    pub(crate) async fn pods(
        &self,
        namespace: Option<&str>,
        query: &Query,
    ) -> Result<Vec<FoundPod>, Refusal> {
        let (selector, fields) = (query.selector("labelSelector")?, query.fields()?);
        let mut pods = self.directory.pods(namespace);
        pods.retain(|(key, labels)| {
            fields.match_object(&key.0, &key.1) && selects(&selector, labels)
        });
        self.found_pods(namespace, pods).await
    }

    async fn found_pods(
        &self,
        namespace: Option<&str>,
        pods: Vec<PodEntry>,
    ) -> Result<Vec<FoundPod>, Refusal> {
        let used = self.usage.pods(namespace, &pods).await?;
        let found = |((key, labels), used): (PodEntry, Option<PodUsed>)| {
            Some(FoundPod { key, labels, used: used? })
        };
        Ok(pods.into_iter().zip(used).filter_map(found).collect())
    }

    pub(crate) async fn pod(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<FoundPod>, Refusal> {
        let key: PodKey = (namespace.into(), name.into());
        let Some(labels) = self.directory.pod(&key) else { return Ok(None) };
        Ok(self.found_pods(Some(namespace), vec![(key, labels)]).await?.pop())
    }

    pub(crate) async fn node(&self, name: &str) -> Result<Option<FoundNode>, Refusal> {
        let Some(labels) = self.directory.node(name) else { return Ok(None) };
        Ok(self.found_nodes(vec![(name.into(), labels)]).await?.pop())
    }

    pub(crate) async fn nodes(&self, query: &Query) -> Result<Vec<FoundNode>, Refusal> {
        let (selector, fields) = (query.selector("labelSelector")?, query.fields()?);
        let mut nodes = self.directory.nodes();
        nodes.retain(|(name, labels)| fields.match_object("", name) && selects(&selector, labels));
        self.found_nodes(nodes).await
    }

    async fn found_nodes(&self, nodes: Vec<NodeEntry>) -> Result<Vec<FoundNode>, Refusal> {
        let used = self.usage.nodes(&nodes).await?;
        let found = |((name, labels), used): (NodeEntry, Option<Used>)| {
            Some(FoundNode { name, labels, used: used? })
        };
        Ok(nodes.into_iter().zip(used).filter_map(found).collect())
    }
}
