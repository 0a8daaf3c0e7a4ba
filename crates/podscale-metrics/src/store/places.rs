//! On which nodes each pod was found.

use std::collections::HashMap;
use std::sync::Arc;

/// On which nodes, by their numbers, a pod was found; nearly always one.
#[derive(Debug)]
enum Place {
    On(u32),
    OnSeveral(Vec<u32>),
}

/// Where pods are, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Places(HashMap<Arc<str>, HashMap<Arc<str>, Place>>);

impl Places {
    /// The nodes of a pod.
    pub(super) fn nodes(&self, namespace: &str, name: &str) -> &[u32] {
        match self.0.get(namespace).and_then(|pods| pods.get(name)) {
            Some(Place::On(node)) => std::slice::from_ref(node),
            Some(Place::OnSeveral(nodes)) => nodes,
            None => &[],
        }
    }

    /// The names of the pods of a namespace.
    pub(super) fn names(&self, namespace: &str) -> impl Iterator<Item = &Arc<str>> {
        self.0.get(namespace).into_iter().flat_map(HashMap::keys)
    }

    /// How many pods there are.
    pub(super) fn len(&self) -> usize {
        self.0.values().map(HashMap::len).sum()
    }

    /// A pod was found on a node.
    pub(super) fn insert(&mut self, namespace: &Arc<str>, name: &Arc<str>, node: u32) {
        let pods = match self.0.get_mut(namespace) {
            Some(pods) => pods,
            None => self.0.entry(Arc::clone(namespace)).or_default(),
        };
        match pods.get_mut(name) {
            None => {
                pods.insert(Arc::clone(name), Place::On(node));
            }
            Some(Place::On(known)) if *known == node => {}
            Some(place) => {
                let mut nodes = match place {
                    Place::On(known) => vec![*known],
                    Place::OnSeveral(nodes) => std::mem::take(nodes),
                };
                if !nodes.contains(&node) {
                    nodes.push(node);
                }
                *place = Place::OnSeveral(nodes);
            }
        }
    }

    /// A pod is not on a node any more.
    pub(super) fn remove(&mut self, namespace: &str, name: &str, node: u32) {
        let Some(pods) = self.0.get_mut(namespace) else { return };
        let left = match pods.get_mut(name) {
            Some(Place::OnSeveral(nodes)) => {
                nodes.retain(|known| *known != node);
                match nodes.as_slice() {
                    [] => None,
                    [only] => Some(Place::On(*only)),
                    _ => return,
                }
            }
            Some(Place::On(known)) if *known == node => None,
            _ => return,
        };
        match (left, pods.get_mut(name)) {
            (Some(left), Some(place)) => *place = left,
            _ => {
                pods.remove(name);
            }
        }
        if pods.is_empty() {
            self.0.remove(namespace);
        } else if pods.len() < pods.capacity() / 4 {
            pods.shrink_to_fit();
        }
    }
}
