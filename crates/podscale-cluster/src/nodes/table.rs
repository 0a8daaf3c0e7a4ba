//! The pods of all nodes as anyone in the process may read them; only the nodes' own task writes.

use super::lifecycle::Life;
use super::pod::{Facts, Fault};
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A pod on a node.
#[derive(Clone, Debug)]
pub struct PodView {
    /// What was asked for.
    pub facts: Arc<Facts>,
    /// How far it has come.
    pub life: Life,
    /// Its address.
    pub ip: IpAddr,
    /// How it misbehaves now.
    pub fault: Option<Fault>,
    /// Whether it stands still because its node is stopped.
    pub stopped: bool,
}

impl PodView {
    /// Which run of the pod's containers this is.
    #[must_use]
    pub fn run(&self) -> Arc<str> {
        format!("{}/{}", self.facts.uid, self.life.restarts).into()
    }
}

type Key = (Arc<str>, Arc<str>);

/// The pods of all nodes.
#[derive(Debug, Default)]
pub struct Table {
    nodes: RwLock<HashMap<Arc<str>, BTreeMap<Key, PodView>>>,
    version: AtomicU64,
}

impl Table {
    /// A number that changes with every change of the table.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The pods of one node, by namespace and name.
    #[must_use]
    pub fn pods_on(&self, node: &str) -> Vec<PodView> {
        let nodes = self.nodes.read();
        nodes.get(node).map(|pods| pods.values().cloned().collect()).unwrap_or_default()
    }

    /// A pod of one node.
    #[must_use]
    pub fn pod(&self, node: &str, namespace: &str, name: &str) -> Option<PodView> {
        let nodes = self.nodes.read();
        nodes.get(node)?.get(&(namespace.into(), name.into())).cloned()
    }

    /// The pods of all nodes, ordered by node, namespace and name.
    #[must_use]
    pub fn all(&self) -> Vec<PodView> {
        let nodes = self.nodes.read();
        let mut names: Vec<&Arc<str>> = nodes.keys().collect();
        names.sort_unstable();
        names.into_iter().flat_map(|name| nodes[name].values().cloned()).collect()
    }

    /// The names of all nodes.
    #[must_use]
    pub fn nodes(&self) -> Vec<Arc<str>> {
        self.nodes.read().keys().cloned().collect()
    }

    pub(crate) fn add_node(&self, name: &Arc<str>) {
        self.nodes.write().entry(Arc::clone(name)).or_default();
        self.version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn put(&self, view: PodView) {
        let key = key(&view.facts);
        self.nodes.write().entry(Arc::clone(&view.facts.node)).or_default().insert(key, view);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Takes a pod out, unless another with its name has taken its place.
    pub(super) fn remove(&self, facts: &Facts) {
        let mut nodes = self.nodes.write();
        let Some(pods) = nodes.get_mut(&facts.node) else {
            return;
        };
        let key = key(facts);
        if pods.get(&key).is_some_and(|view| view.facts.uid == facts.uid) {
            pods.remove(&key);
            self.version.fetch_add(1, Ordering::Release);
        }
    }
}

fn key(facts: &Facts) -> Key {
    (Arc::clone(&facts.namespace), Arc::clone(&facts.name))
}
