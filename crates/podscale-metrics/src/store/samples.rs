//! All nodes with their samples, and the way from a pod to its node.

use super::Applied;
use super::node::{Container, Moment, Node, Pod};
use super::places::Places;
use crate::interned::Interned;
use crate::scrape::Scrape;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// All nodes with their samples.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Those of namespaces and containers: there are few different ones.
    names: Interned<str>,
    places: Places,
    numbers: HashMap<Arc<str>, u32>,
    /// By number.
    slots: Vec<Option<Node>>,
    free: Vec<u32>,
}

impl Samples {
    /// Takes in a scrape of one node.
    pub(super) fn apply(&mut self, name: &str, scrape: &Scrape, moment: Moment) -> Applied {
        let number = self.number(name, moment);
        let mut old = None;
        let Some(Some(node)) = self.slots.get_mut(number as usize) else {
            return Applied::default();
        };
        let (news, pods) = node.apply(scrape, moment, &mut self.names, &mut old);
        if let Some(old) = old {
            relocate(&mut self.places, &old, &node.pods, number);
        }
        Applied { news, pods }
    }

    /// Forgets a node and its pods.
    pub(super) fn remove(&mut self, name: &str) {
        let Some(number) = self.numbers.remove(name) else { return };
        if let Some(node) = self.slots.get_mut(number as usize).and_then(Option::take) {
            relocate(&mut self.places, &node.pods, &[], number);
        }
        self.free.push(number);
    }

    fn number(&mut self, name: &str, moment: Moment) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let last = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let number = self.free.pop().unwrap_or(last);
        self.numbers.insert(name.into(), number);
        let node = Some(Node::new(moment));
        match self.slots.get_mut(number as usize) {
            Some(slot) => *slot = node,
            None => self.slots.push(node),
        }
        number
    }

    /// A node by its name.
    pub(super) fn node(&self, name: &str) -> Option<&Node> {
        self.at(*self.numbers.get(name)?)
    }

    fn at(&self, number: u32) -> Option<&Node> {
        self.slots.get(number as usize)?.as_ref()
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.slots.iter().flatten()
    }

    /// How many pods there are.
    pub(super) fn pods(&self) -> usize {
        self.places.len()
    }

    /// The names of the pods of a namespace.
    pub(super) fn names_in(&self, namespace: &str) -> impl Iterator<Item = &Arc<str>> {
        self.places.names(namespace)
    }

    /// The containers of a pod. Where several nodes have a pod of that name, it is the one whose
    /// containers were started last: the others are what is left of it there.
    pub(super) fn containers(&self, namespace: &str, name: &str) -> Option<&[Container]> {
        let nodes = self.places.nodes(namespace, name).iter();
        let found = nodes.filter_map(|node| self.at(*node)?.containers(namespace, name));
        found.max_by(|a, b| newest(a).partial_cmp(&newest(b)).unwrap_or(Ordering::Equal))
    }
}

fn newest(containers: &[Container]) -> (f64, i64) {
    let all = containers.iter().map(|container| container.pair.newness());
    all.fold((0.0, i64::MIN), |(start, time), (s, t)| (start.max(s), time.max(t)))
}

/// Notes which pods came to a node and which left it; both lists are in order.
fn relocate(places: &mut Places, old: &[Pod], new: &[Pod], node: u32) {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => (&old.namespace, &old.name).cmp(&(&new.namespace, &new.name)),
        };
        if order.is_le()
            && let Some(old) = old.next()
            && order.is_lt()
        {
            places.remove(&old.namespace, &old.name, node);
        }
        if order.is_ge()
            && let Some(new) = new.next()
            && order.is_gt()
        {
            places.insert(&new.namespace, &new.name, node);
        }
    }
}
