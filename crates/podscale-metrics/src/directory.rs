//! Which pods and nodes there are, with their labels: what selectors pick samples by.

use crate::interned::Interned;
use crate::store::PodKey;
use parking_lot::RwLock;
use podscale_api::Labels;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A pod with its labels.
pub type PodEntry = (PodKey, Arc<Labels>);

/// A node with its labels.
pub type NodeEntry = (Arc<str>, Labels);

/// The labels of pods and nodes, for selectors and for answers.
#[derive(Debug, Default)]
pub struct Directory {
    pods: RwLock<Pods>,
    nodes: RwLock<BTreeMap<Arc<str>, Labels>>,
}

/// The pods of a workload have the same namespace and mostly the same labels.
#[derive(Debug, Default)]
struct Pods {
    known: BTreeMap<PodKey, Arc<Labels>>,
    namespaces: Interned<str>,
    labels: Interned<Labels>,
}

impl Pods {
    fn insert(&mut self, (namespace, name): PodKey, labels: Labels) {
        let key = (self.namespaces.intern(&namespace), name);
        self.known.insert(key, self.labels.intern(labels));
    }
}

impl Directory {
    /// The pods of a namespace, or of all, by namespace and name.
    #[must_use]
    pub fn pods(&self, namespace: Option<&str>) -> Vec<PodEntry> {
        let pods = &self.pods.read().known;
        let entry = |(key, labels): (&PodKey, &Arc<Labels>)| (key.clone(), Arc::clone(labels));
        match namespace {
            None => pods.iter().map(entry).collect(),
            Some(namespace) => {
                let first: PodKey = (namespace.into(), "".into());
                let in_it = |(key, _): &(&PodKey, &Arc<Labels>)| *key.0 == *namespace;
                pods.range(first..).take_while(in_it).map(entry).collect()
            }
        }
    }

    /// The labels of a pod.
    #[must_use]
    pub fn pod(&self, key: &PodKey) -> Option<Arc<Labels>> {
        self.pods.read().known.get(key).cloned()
    }

    /// The nodes, by name.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeEntry> {
        let nodes = self.nodes.read();
        nodes.iter().map(|(name, labels)| (Arc::clone(name), labels.clone())).collect()
    }

    /// Puts these in the place of all pods.
    pub fn replace_pods(&self, pods: impl IntoIterator<Item = (PodKey, Labels)>) {
        let mut new = Pods::default();
        pods.into_iter().for_each(|(key, labels)| new.insert(key, labels));
        *self.pods.write() = new;
    }

    /// Takes in a pod that is new or has changed.
    pub fn apply_pod(&self, key: PodKey, labels: Labels) {
        self.pods.write().insert(key, labels);
    }

    /// Drops a pod that is gone.
    pub fn remove_pod(&self, key: &PodKey) {
        self.pods.write().known.remove(key);
    }

    /// The labels of a node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Labels> {
        self.nodes.read().get(name).cloned()
    }

    /// Puts these in the place of all nodes.
    pub fn replace_nodes(&self, nodes: BTreeMap<Arc<str>, Labels>) {
        *self.nodes.write() = nodes;
    }

    /// Takes in a node that is new or has changed.
    pub fn apply_node(&self, name: &str, labels: Labels) {
        let mut nodes = self.nodes.write();
        match nodes.get_mut(name) {
            Some(known) => *known = labels,
            None => drop(nodes.insert(name.into(), labels)),
        }
    }

    /// Drops a node that is gone.
    pub fn remove_node(&self, name: &str) {
        self.nodes.write().remove(name);
    }
}
