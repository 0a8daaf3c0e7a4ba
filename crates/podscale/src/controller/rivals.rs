//! Which autoscalers pick the same pods: found by label, not by comparing all with all.

use crate::watch::labelled::{demanded, label_number};
use crate::watch::world::Key;
use parking_lot::Mutex;
use podscale_api::pod::Pod;
use podscale_api::selector::Selector;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The selectors of the targets of autoscalers, by namespace.
#[derive(Default)]
pub struct Rivals(Mutex<HashMap<Arc<str>, Namespace>>);

/// The selectors of one namespace.
#[derive(Default)]
struct Namespace {
    by_name: HashMap<Arc<str>, Listed>,
    by_label: HashMap<u64, BTreeSet<Arc<str>>>,
    /// Those whose selectors demand no label with one value.
    anywhere: BTreeSet<Arc<str>>,
}

struct Listed {
    selector: Arc<str>,
    label: Option<u64>,
}

impl Rivals {
    /// Notes an autoscaler's selector, and gives the names and selectors of the others in its
    /// namespace that may pick any of these pods, by name.
    pub fn of(&self, key: &Key, selector: &str, pods: &[Arc<Pod>]) -> Vec<(Arc<str>, Arc<str>)> {
        let mut namespaces = self.0.lock();
        let here = namespaces.entry(Arc::clone(&key.namespace)).or_default();
        here.note(&key.name, selector);
        let labels = pods.iter().flat_map(|pod| pod.metadata.labels.iter());
        let listed = labels.filter_map(|(k, v)| here.by_label.get(&label_number(k, v)));
        let mut names: BTreeSet<&Arc<str>> = listed.flatten().chain(&here.anywhere).collect();
        names.remove(&key.name);
        let found = |name: &Arc<str>| {
            Some((Arc::clone(name), Arc::clone(&here.by_name.get(name)?.selector)))
        };
        names.into_iter().filter_map(found).collect()
    }

    /// Forgets an autoscaler that is gone.
    pub fn forget(&self, key: &Key) {
        let mut namespaces = self.0.lock();
        if let Some(here) = namespaces.get_mut(&key.namespace) {
            here.forget(&key.name);
            if here.by_name.is_empty() {
                namespaces.remove(&key.namespace);
            }
        }
    }
}

impl Namespace {
    fn note(&mut self, name: &Arc<str>, selector: &str) {
        if self.by_name.get(name).is_some_and(|listed| *listed.selector == *selector) {
            return;
        }
        self.forget(name);
        // A selector that cannot be read picks nothing.
        let Ok(parsed) = Selector::parse(selector) else { return };
        let crowd = |label: &u64| self.by_label.get(label).map_or(0, BTreeSet::len);
        let label = demanded(&parsed).min_by_key(crowd);
        let list = match label {
            Some(label) => self.by_label.entry(label).or_default(),
            None => &mut self.anywhere,
        };
        list.insert(Arc::clone(name));
        self.by_name.insert(Arc::clone(name), Listed { selector: selector.into(), label });
    }

    fn forget(&mut self, name: &Arc<str>) {
        let Some(listed) = self.by_name.remove(name) else { return };
        match listed.label {
            None => {
                self.anywhere.remove(name);
            }
            Some(label) => {
                if let Some(list) = self.by_label.get_mut(&label) {
                    list.remove(name);
                    if list.is_empty() {
                        self.by_label.remove(&label);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_those_that_may_pick_the_pods_are_told() {
        let rivals = Rivals::default();
        let key = |name: &str| Key { namespace: "shop".into(), name: name.into() };
        let mut pod = Pod::default();
        pod.metadata.labels = [("app", "web"), ("tier", "x")].into_iter().collect();
        let pods = [Arc::new(pod)];
        let names = |own: &str, selector: &str| {
            let others = rivals.of(&key(own), selector, &pods);
            others.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>().join(",")
        };
        for (own, selector, expected) in [
            ("web", "app=web", ""),
            ("db", "app=db", "web"),
            ("x", "tier=x", "web"),
            ("all", "tier", "web,x"),
            ("web", "app=web", "all,x"),
            ("x", "tier=y", "all,web"),
            ("web", "app=web", "all"),
            ("bad", "a b c", "all,web"),
        ] {
            assert_eq!(names(own, selector), expected, "{own} {selector}");
        }
        rivals.forget(&key("all"));
        assert_eq!(names("web", "app=web"), "");
        ["web", "db", "x"].into_iter().for_each(|name| rivals.forget(&key(name)));
        assert!(rivals.0.lock().values().all(|here| here.by_name.is_empty()));
    }
}
