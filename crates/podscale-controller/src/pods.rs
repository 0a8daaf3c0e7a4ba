//! The pods of the cluster, by namespace, name and label, so that a selector meets few of them.

use parking_lot::RwLock;
use podscale_api::labels::Labels;
use podscale_api::pod::Pod;
use podscale_api::selector::Selector;
use podscale_client::watch::Change;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// All pods; shared by all who watch and decide.
#[derive(Default)]
pub(crate) struct Pods(RwLock<HashMap<Box<str>, ByLabel>>);

impl Pods {
    /// The pods of a namespace that a selector picks, by name.
    pub(crate) fn select(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Pod>> {
        let pods = self.0.read();
        pods.get(namespace).map(|pods| pods.select(selector)).unwrap_or_default()
    }

    /// A pod by its name.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<Arc<Pod>> {
        self.0.read().get(namespace)?.get(name)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.read().values().map(ByLabel::len).sum()
    }

    /// Takes in a change.
    pub(crate) fn apply(&self, change: Change<Pod>) {
        let mut namespaces = self.0.write();
        match change {
            Change::All(all) => {
                namespaces.clear();
                all.into_iter().for_each(|pod| insert(&mut namespaces, pod));
            }
            Change::Applied(pod) => insert(&mut namespaces, pod),
            Change::Deleted(pod) => {
                if let Some(known) = namespaces.get_mut(&pod.metadata.namespace) {
                    known.remove(&pod.metadata.name);
                    if known.is_empty() {
                        namespaces.remove(&pod.metadata.namespace);
                    }
                }
            }
        }
    }
}

fn insert(namespaces: &mut HashMap<Box<str>, ByLabel>, pod: Pod) {
    match namespaces.get_mut(&pod.metadata.namespace) {
        Some(known) => known.insert(pod),
        None => {
            let known = namespaces.entry(pod.metadata.namespace.clone()).or_default();
            known.insert(pod);
        }
    }
}

/// A label with its value as one number. Two that share a number only make a selector look at a
/// few pods too many.
pub(crate) fn label_number(key: &str, value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (key, value).hash(&mut hasher);
    hasher.finish()
}

/// The labels that a selector demands with exactly one value, as numbers.
pub(crate) fn demanded(selector: &Selector) -> impl Iterator<Item = u64> {
    selector.requirements().iter().filter_map(|requirement| {
        let key = requirement.key();
        Some(label_number(key, selector.exact_value(key)?))
    })
}

/// The pods of one namespace, found by name or by label.
#[derive(Default)]
struct ByLabel {
    slots: Vec<Option<Arc<Pod>>>,
    free: Vec<u32>,
    by_name: HashMap<Box<str>, u32>,
    by_label: HashMap<u64, Vec<u32>>,
}

impl ByLabel {
    /// Takes in a pod, in the place of one of the same name.
    fn insert(&mut self, pod: Pod) {
        if let Some(slot) = self.by_name.get(&pod.metadata.name).copied() {
            let place = self.slots.get_mut(slot as usize);
            let Some(place) = place else { return };
            let before = place.replace(Arc::new(pod));
            let now = place.clone();
            if let (Some(before), Some(now)) = (before, now)
                && before.metadata.labels != now.metadata.labels
            {
                self.unlist(&before.metadata.labels, slot);
                self.list(&now.metadata.labels, slot);
            }
            return;
        }
        let pod = Arc::new(pod);
        let slot = self.free.pop().unwrap_or(u32::try_from(self.slots.len()).unwrap_or(u32::MAX));
        self.by_name.insert(pod.metadata.name.clone(), slot);
        self.list(&pod.metadata.labels, slot);
        match self.slots.get_mut(slot as usize) {
            Some(place) => *place = Some(pod),
            None => self.slots.push(Some(pod)),
        }
    }

    /// The pod of a name.
    fn get(&self, name: &str) -> Option<Arc<Pod>> {
        self.slots.get(*self.by_name.get(name)? as usize)?.clone()
    }

    /// Takes out the pod of a name.
    fn remove(&mut self, name: &str) {
        let Some(slot) = self.by_name.remove(name) else { return };
        if let Some(pod) = self.slots.get_mut(slot as usize).and_then(Option::take) {
            self.unlist(&pod.metadata.labels, slot);
            self.free.push(slot);
        }
    }

    /// How many there are.
    fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// What a selector picks, by name.
    fn select(&self, selector: &Selector) -> Vec<Arc<Pod>> {
        let none = Vec::new();
        let lists = demanded(selector).map(|label| self.by_label.get(&label).unwrap_or(&none));
        let picked = |pod: &&Arc<Pod>| selector.matches(|key| pod.metadata.labels.get(key));
        let mut found: Vec<Arc<Pod>> = match lists.min_by_key(|list| list.len()) {
            Some(shortest) => {
                let listed = shortest.iter().filter_map(|slot| self.slots.get(*slot as usize));
                listed.flatten().filter(picked).cloned().collect()
            }
            None => self.slots.iter().flatten().filter(picked).cloned().collect(),
        };
        found.sort_unstable_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
        found
    }

    fn list(&mut self, labels: &Labels, slot: u32) {
        for (key, value) in labels.iter() {
            self.by_label.entry(label_number(key, value)).or_default().push(slot);
        }
    }

    fn unlist(&mut self, labels: &Labels, slot: u32) {
        for (key, value) in labels.iter() {
            let label = label_number(key, value);
            let Some(list) = self.by_label.get_mut(&label) else { continue };
            if let Some(at) = list.iter().position(|listed| *listed == slot) {
                list.swap_remove(at);
            }
            if list.is_empty() {
                self.by_label.remove(&label);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, labels: &[(&str, &str)]) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = name.into();
        pod.metadata.labels = labels.iter().copied().collect();
        pod
    }

    #[test]
    fn finds_what_a_scan_of_all_would_find() {
        let mut pods = ByLabel::default();
        pods.insert(pod("c", &[("app", "web"), ("tier", "x")]));
        pods.insert(pod("a", &[("app", "web")]));
        pods.insert(pod("b", &[("app", "db"), ("tier", "x")]));
        pods.insert(pod("gone", &[("app", "web")]));
        pods.insert(pod("moved", &[("app", "web")]));
        pods.remove("gone");
        pods.remove("never");
        pods.insert(pod("moved", &[("app", "db")]));
        pods.insert(pod("d", &[]));
        let names = |selector: &str| {
            let selector = Selector::parse(selector).expect("a selector");
            let found = pods.select(&selector);
            found.iter().map(|pod| pod.metadata.name.to_string()).collect::<Vec<_>>().join(",")
        };
        for (selector, expected) in [
            ("app=web", "a,c"),
            ("app=web,tier=x", "c"),
            ("app in (db)", "b,moved"),
            ("app in (db,web)", "a,b,c,moved"),
            ("app!=web", "b,d,moved"),
            ("app=none", ""),
            ("!app", "d"),
        ] {
            assert_eq!(names(selector), expected, "{selector}");
        }
        assert_eq!((pods.len(), pods.is_empty()), (5, false));
        for name in ["a", "b", "c", "d", "moved"] {
            pods.remove(name);
        }
        assert!(pods.is_empty() && pods.by_label.is_empty());
    }

    #[test]
    fn they_are_kept_by_namespace() {
        let in_namespace = |namespace: &str, name: &str| {
            let mut pod = pod(name, &[]);
            pod.metadata.namespace = namespace.into();
            pod
        };
        let pods = Pods::default();
        let names = |namespace: &str| -> String {
            let pods = pods.select(namespace, &Selector::everything());
            pods.iter().map(|pod| pod.metadata.name.to_string()).collect()
        };
        pods.apply(Change::All(vec![
            in_namespace("x", "b"),
            in_namespace("x", "a"),
            in_namespace("y", "c"),
        ]));
        assert_eq!(names("x"), "ab");
        pods.apply(Change::Applied(in_namespace("x", "d")));
        pods.apply(Change::Deleted(in_namespace("x", "a")));
        pods.apply(Change::Deleted(in_namespace("y", "c")));
        assert_eq!((names("x").as_str(), names("y").as_str()), ("bd", ""));
        pods.apply(Change::All(vec![in_namespace("y", "c")]));
        assert_eq!((names("x").as_str(), names("y").as_str(), pods.len()), ("", "c", 1));
    }
}
