//! Which objects' targets select the same pods: found by label, not by comparing all with all.
//!
//! As upstream's controller does it, an object's selector is registered when its metrics are computed,
//! and the last good one stays until the object is gone.

use crate::controller::observer::OtherSelector;
use crate::dialect::Key;
use crate::pods::{demanded, label_number};
use podscale_api::pod::Pod;
use podscale_api::selector::Selector;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The selectors of the targets of objects, by namespace.
#[derive(Default)]
pub(super) struct Selectors(HashMap<Arc<str>, Namespace>);

/// The selectors of one namespace.
#[derive(Default)]
struct Namespace {
    by_key: HashMap<Key, Registered>,
    by_label: HashMap<u64, BTreeSet<Key>>,
    /// Those whose selectors demand no label with one value.
    anywhere: BTreeSet<Key>,
}

struct Registered {
    selector: Arc<str>,
    label: Option<u64>,
}

impl Selectors {
    /// Registers the selector of an object's target; one that cannot be parsed leaves the last one.
    pub(super) fn register(&mut self, key: &Key, selector: &str) {
        let here = self.0.get(&key.namespace).and_then(|here| here.by_key.get(key));
        if here.is_some_and(|registered| *registered.selector == *selector) {
            return;
        }
        let Ok(parsed) = Selector::parse(selector) else { return };
        self.remove(key);
        self.0.entry(Arc::clone(&key.namespace)).or_default().insert(key, selector, &parsed);
    }

    /// The other objects of the namespace whose selectors may pick any of these pods, by name.
    pub(super) fn overlap(&self, key: &Key, pods: &[Arc<Pod>]) -> Vec<OtherSelector> {
        let Some(here) = self.0.get(&key.namespace) else { return Vec::new() };
        let labels = pods.iter().flat_map(|pod| pod.metadata.labels.iter());
        let listed = labels.filter_map(|(k, v)| here.by_label.get(&label_number(k, v)));
        let mut others: BTreeSet<&Key> = listed.flatten().chain(&here.anywhere).collect();
        others.remove(key);
        let found = |other: &Key| {
            let selector = Arc::clone(&here.by_key.get(other)?.selector);
            Some(OtherSelector { kind: other.kind.name, name: Arc::clone(&other.name), selector })
        };
        others.into_iter().filter_map(found).collect()
    }

    /// Drops the selector of an object that is gone.
    pub(super) fn remove(&mut self, key: &Key) {
        if let Some(here) = self.0.get_mut(&key.namespace) {
            here.remove(key);
            if here.by_key.is_empty() {
                self.0.remove(&key.namespace);
            }
        }
    }
}

impl Namespace {
    fn insert(&mut self, key: &Key, selector: &str, parsed: &Selector) {
        let crowd = |label: &u64| self.by_label.get(label).map_or(0, BTreeSet::len);
        let label = demanded(parsed).min_by_key(crowd);
        let list = match label {
            Some(label) => self.by_label.entry(label).or_default(),
            None => &mut self.anywhere,
        };
        list.insert(key.clone());
        self.by_key.insert(key.clone(), Registered { selector: selector.into(), label });
    }

    fn remove(&mut self, key: &Key) {
        let Some(registered) = self.by_key.remove(key) else { return };
        let Some(label) = registered.label else {
            self.anywhere.remove(key);
            return;
        };
        if let Some(list) = self.by_label.get_mut(&label) {
            list.remove(key);
            if list.is_empty() {
                self.by_label.remove(&label);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::chpa::CHPA;
    use crate::dialect::hpa::HPA;

    #[test]
    fn only_those_that_may_pick_the_pods_are_found() {
        let mut selectors = Selectors::default();
        let key = |name: &str| Key { namespace: "shop".into(), name: name.into(), kind: &HPA };
        let mut pod = Pod::default();
        pod.metadata.labels = [("app", "web"), ("tier", "x")].into_iter().collect();
        let pods = [Arc::new(pod)];
        for (own, selector, expected) in [
            ("web", "app=web", ""),
            ("db", "app=db", "web"),
            ("x", "tier=x", "web"),
            ("all", "tier", "web,x"),
            ("web", "app=web", "all,x"),
            ("x", "tier=y", "all,web"),
            ("web", "app=web", "all"),
            ("web", "a b c", "all"),
            ("x", "tier=x", "all,web"),
        ] {
            selectors.register(&key(own), selector);
            let others = selectors.overlap(&key(own), &pods);
            let names: Vec<&str> = others.iter().map(|other| &*other.name).collect();
            assert_eq!(names.join(","), expected, "{own} {selector}");
        }
        let other = Key { kind: &CHPA, ..key("web") };
        selectors.register(&other, "app=web");
        let others = selectors.overlap(&key("x"), &pods);
        let kinds = others.iter().map(|other| (other.kind, &*other.name));
        let expected = [(HPA.name, "all"), (CHPA.name, "web"), (HPA.name, "web")];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
        selectors.remove(&other);
        for name in ["web", "db", "x", "all"] {
            selectors.remove(&key(name));
        }
        assert!(selectors.0.is_empty());
    }
}
