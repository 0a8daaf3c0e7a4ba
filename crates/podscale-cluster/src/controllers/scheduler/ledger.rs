//! What is on every node and what is still free there, and the choice of a node for a pod.

use super::requirements::{Amounts, PodRequirements};
use crate::controllers::pod::{Pod, labels_of};
use k8s_openapi::api::core::v1::{Node, Taint};
use std::collections::{BTreeMap, HashMap};

/// All nodes and what was placed on them.
#[derive(Debug, Default)]
pub struct Ledger {
    nodes: BTreeMap<String, Place>,
    /// By the pod's uid.
    placed: HashMap<String, Placement>,
}

#[derive(Debug)]
struct Placement {
    node: String,
    requirements: PodRequirements,
}

/// A node as the scheduler sees it.
#[derive(Debug, Default)]
struct Place {
    labels: BTreeMap<String, String>,
    taints: Vec<Taint>,
    unschedulable: bool,
    total: Amounts,
    used: Amounts,
    pods: i64,
    owners: HashMap<String, i64>,
    ports: HashMap<(String, i32), i64>,
}

impl Ledger {
    /// Takes in a node as it is now.
    pub fn set_node(&mut self, node: &Node) {
        let name = node.metadata.name.clone().unwrap_or_default();
        let spec = node.spec.as_ref();
        let status = node.status.as_ref();
        let total =
            status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref()));
        let known = self.nodes.contains_key(&name);
        let place = self.nodes.entry(name.clone()).or_default();
        place.labels.clone_from(labels_of(&node.metadata));
        place.taints = spec.and_then(|spec| spec.taints.clone()).unwrap_or_default();
        place.unschedulable = spec.and_then(|spec| spec.unschedulable) == Some(true);
        place.total = total.map(Amounts::read).unwrap_or_default();
        if !known {
            for placement in self.placed.values().filter(|placement| placement.node == name) {
                place.count(&placement.requirements, 1);
            }
        }
    }

    /// Forgets a node.
    pub fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// Takes in a pod as the watch shows it: on its node, or gone. A pod that was placed but is not
    /// shown on its node yet stays where it was placed.
    pub fn observe(&mut self, old: Option<&Pod>, new: Option<&Pod>) {
        match new {
            Some(pod) if pod.is_ended() => self.unplace(pod.uid()),
            Some(pod) => {
                if let Some(node) = pod.node() {
                    self.place(pod, node);
                }
            }
            None => {
                if let Some(pod) = old {
                    self.unplace(pod.uid());
                }
            }
        }
    }

    /// Notes that a pod is, or will be, on a node.
    pub fn place(&mut self, pod: &Pod, node: &str) {
        if self.placed.get(pod.uid()).is_some_and(|placement| placement.node == node) {
            return;
        }
        self.unplace(pod.uid());
        let requirements = PodRequirements::of(pod);
        if let Some(place) = self.nodes.get_mut(node) {
            place.count(&requirements, 1);
        }
        self.placed.insert(pod.uid().to_owned(), Placement { node: node.to_owned(), requirements });
    }

    /// Notes that a pod is on no node.
    pub fn unplace(&mut self, uid: &str) {
        let Some(placement) = self.placed.remove(uid) else { return };
        if let Some(place) = self.nodes.get_mut(&placement.node) {
            place.count(&placement.requirements, -1);
        }
    }

    /// The best node for these requirements, or why there is none.
    pub fn choose(&self, requirements: &PodRequirements) -> Result<&str, String> {
        let mut reasons = BTreeMap::new();
        let mut best: Option<(i64, &str)> = None;
        for (name, place) in &self.nodes {
            let misfits = place.misfits(name, requirements);
            if misfits.is_empty() {
                let score = place.score(requirements);
                if best.is_none_or(|(most, _)| score > most) {
                    best = Some((score, name));
                }
            }
            for misfit in misfits {
                *reasons.entry(misfit).or_insert(0_usize) += 1;
            }
        }
        best.map(|(_, name)| name).ok_or_else(|| self.refusal(&reasons))
    }

    fn refusal(&self, reasons: &BTreeMap<String, usize>) -> String {
        if self.nodes.is_empty() {
            return "no nodes available to schedule pods".into();
        }
        let mut parts: Vec<String> =
            reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        parts.sort();
        format!("0/{} nodes are available: {}.", self.nodes.len(), parts.join(", "))
    }
}

impl Place {
    fn count(&mut self, requirements: &PodRequirements, sign: i64) {
        self.used.add(&requirements.requests, sign);
        self.pods = self.pods.saturating_add(sign);
        if let Some(owner) = &requirements.owner {
            count(&mut self.owners, owner.clone(), sign);
        }
        for port in &requirements.ports {
            count(&mut self.ports, port.clone(), sign);
        }
    }

    /// Why the node will not do. What lies in the node's nature is reported alone: more room there would
    /// not help.
    fn misfits(&self, name: &str, requirements: &PodRequirements) -> Vec<String> {
        let refuses = |taint: &&Taint| {
            matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute")
                && !requirements.tolerates(taint)
        };
        if self.unschedulable {
            return vec!["node(s) were unschedulable".into()];
        }
        if !requirements.accepts(name, &self.labels) {
            return vec!["node(s) didn't match Pod's node affinity/selector".into()];
        }
        if self.taints.iter().any(|taint| refuses(&taint)) {
            return vec!["node(s) had untolerated taint(s)".into()];
        }
        if requirements.ports.iter().any(|port| self.ports.contains_key(port)) {
            let reason = "node(s) didn't have free ports for the requested pod ports";
            return vec![reason.into()];
        }
        let mut misfits = Vec::new();
        if self.pods >= self.total.get("pods") {
            misfits.push("Too many pods".into());
        }
        for (resource, amount) in requirements.requests.0.iter().filter(|(_, amount)| **amount > 0)
        {
            if amount.saturating_add(self.used.get(resource)) > self.total.get(resource) {
                misfits.push(format!("Insufficient {resource}"));
            }
        }
        misfits
    }

    /// Prefers nodes with much cpu and memory left, in thousandths, and those with few pods of the
    /// same owner, each of which weighs as much as a third of the node.
    fn score(&self, requirements: &PodRequirements) -> i64 {
        let left = |resource: &str| {
            let total = self.total.get(resource);
            let used = self.used.get(resource).saturating_add(requirements.requests.get(resource));
            if total <= 0 { 0 } else { total.saturating_sub(used).saturating_mul(1000) / total }
        };
        let alike = requirements.owner.as_ref().and_then(|owner| self.owners.get(owner)).copied();
        let crowding = alike.unwrap_or(0).saturating_mul(333);
        (left("cpu").saturating_add(left("memory")) / 2)
            .saturating_sub(crowding)
            .saturating_mul(1000)
            // Pods that ask for nothing are spread by number.
            .saturating_sub(self.pods)
    }
}

fn count<K: Clone + Eq + std::hash::Hash>(counts: &mut HashMap<K, i64>, key: K, sign: i64) {
    let count = counts.entry(key.clone()).or_insert(0);
    *count = count.saturating_add(sign);
    if *count <= 0 {
        counts.remove(&key);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
