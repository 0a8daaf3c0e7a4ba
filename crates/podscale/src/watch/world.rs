//! What is known of the cluster: the autoscalers, in the form that deciding needs, and the pods.

use super::Change;
use super::labelled::ByLabel;
use parking_lot::RwLock;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::pod::Pod;
use podscale_api::selector::Selector;
use podscale_api::translate;
use podscale_core::Autoscaler;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// The namespace and the name of an autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object.
    #[must_use]
    pub fn of(hpa: &HorizontalPodAutoscaler) -> Key {
        Key {
            namespace: hpa.metadata.namespace.as_str().into(),
            name: hpa.metadata.name.as_str().into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An autoscaler as it is stored, and what it means.
#[derive(Clone, Debug)]
pub struct Known {
    /// The object.
    pub hpa: HorizontalPodAutoscaler,
    /// What its spec means, in the form that is decided on.
    pub autoscaler: Arc<Autoscaler>,
}

/// What a change of autoscalers calls for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// Those that are new or whose spec has changed: to be decided at once.
    pub due: Vec<Key>,
    /// Those that are new here, but were decided before: to be decided within a period.
    pub known: Vec<Key>,
    /// Those that are gone.
    pub gone: Vec<Key>,
}

/// What is known of the cluster; shared by all who watch and decide.
#[derive(Default)]
pub struct World {
    autoscalers: RwLock<HashMap<Key, Arc<Known>>>,
    pods: RwLock<HashMap<Box<str>, ByLabel>>,
}

impl World {
    /// An autoscaler as it is known.
    #[must_use]
    pub fn autoscaler(&self, key: &Key) -> Option<Arc<Known>> {
        self.autoscalers.read().get(key).cloned()
    }

    /// The pods of a namespace that a selector picks, by name.
    #[must_use]
    pub fn pods(&self, namespace: &str, selector: &Selector) -> Vec<Arc<Pod>> {
        let pods = self.pods.read();
        pods.get(namespace).map(|pods| pods.select(selector)).unwrap_or_default()
    }

    /// How many autoscalers are known.
    #[must_use]
    pub fn count_autoscalers(&self) -> usize {
        self.autoscalers.read().len()
    }

    /// How many pods are known.
    #[must_use]
    pub fn count_pods(&self) -> usize {
        self.pods.read().values().map(ByLabel::len).sum()
    }

    /// Takes in a change of the autoscalers.
    pub fn take_autoscalers(&self, change: Change<HorizontalPodAutoscaler>) -> Called {
        let mut called = Called::default();
        let mut known = self.autoscalers.write();
        match change {
            Change::All(all) => {
                let there: HashSet<Key> = all.iter().map(Key::of).collect();
                called.gone = known.keys().filter(|key| !there.contains(key)).cloned().collect();
                for key in &called.gone {
                    known.remove(key);
                }
                for hpa in all {
                    let observed = hpa.status.as_ref().and_then(|s| s.observed_generation);
                    let decided = observed == Some(hpa.metadata.generation);
                    let is_new = !known.contains_key(&Key::of(&hpa));
                    let called =
                        if decided && is_new { &mut called.known } else { &mut called.due };
                    called.extend(put(&mut known, hpa));
                }
            }
            Change::Applied(hpa) => called.due.extend(put(&mut known, hpa)),
            Change::Deleted(hpa) => {
                let key = Key::of(&hpa);
                known.remove(&key);
                called.gone.push(key);
            }
        }
        called
    }

    /// Takes in an autoscaler whose status was just written, if nothing newer is known.
    pub fn wrote(&self, hpa: HorizontalPodAutoscaler) {
        let mut known = self.autoscalers.write();
        // An object that is gone must not come back by an answer that was on its way.
        if known.contains_key(&Key::of(&hpa)) {
            put(&mut known, hpa);
        }
    }

    /// Takes in a change of the pods.
    pub fn take_pods(&self, change: Change<Pod>) {
        let mut namespaces = self.pods.write();
        match change {
            Change::All(all) => {
                namespaces.clear();
                all.into_iter().for_each(|pod| put_pod(&mut namespaces, pod));
            }
            Change::Applied(pod) => put_pod(&mut namespaces, pod),
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

fn put_pod(namespaces: &mut HashMap<Box<str>, ByLabel>, pod: Pod) {
    match namespaces.get_mut(&pod.metadata.namespace) {
        Some(known) => known.insert(pod),
        None => {
            let known = namespaces.entry(pod.metadata.namespace.clone()).or_default();
            known.insert(pod);
        }
    }
}

/// Stores an object unless a newer version of it is known; its key if it must be decided at once.
fn put(known: &mut HashMap<Key, Arc<Known>>, mut hpa: HorizontalPodAutoscaler) -> Option<Key> {
    trim(&mut hpa);
    let key = Key::of(&hpa);
    let before = known.get(&key).filter(|before| before.hpa.metadata.uid == hpa.metadata.uid);
    if let Some(before) = before
        && is_older(&hpa.metadata.resource_version, &before.hpa.metadata.resource_version)
    {
        return None;
    }
    // A new generation of an equal spec is to be told as one that was looked at.
    let same = before.filter(|before| {
        before.hpa.metadata.generation == hpa.metadata.generation && before.hpa.spec == hpa.spec
    });
    let due = same.is_none();
    let autoscaler = match same {
        Some(same) => Arc::clone(&same.autoscaler),
        None => Arc::new(translate::autoscaler(&hpa)),
    };
    known.insert(key.clone(), Arc::new(Known { hpa, autoscaler }));
    due.then_some(key)
}

/// Leaves only who wrote the status.
fn trim(hpa: &mut HorizontalPodAutoscaler) {
    let writers = &mut hpa.metadata.writers;
    writers.retain(|writer| &*writer.subresource == "status");
    writers.shrink_to_fit();
}

/// Whether a version is certainly older than another of the same object.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hpa(name: &str, uid: &str, version: &str, max: i32) -> HorizontalPodAutoscaler {
        let mut hpa = HorizontalPodAutoscaler::default();
        hpa.metadata.name = name.into();
        hpa.metadata.namespace = "shop".into();
        hpa.metadata.uid = uid.into();
        hpa.metadata.resource_version = version.into();
        hpa.spec.max_replicas = max;
        hpa
    }

    fn texts(called: &Called) -> String {
        let names = |keys: &[Key]| keys.iter().map(Key::to_string).collect::<Vec<_>>().join(",");
        format!("due {} gone {}", names(&called.due), names(&called.gone))
    }

    #[test]
    fn only_new_and_changed_specs_are_due() {
        let world = World::default();
        let steps = [
            ("all are new", Change::All(vec![hpa("a", "1", "5", 3)]), "due shop/a gone "),
            ("a status", Change::Applied(hpa("a", "1", "6", 3)), "due  gone "),
            ("a spec", Change::Applied(hpa("a", "1", "7", 4)), "due shop/a gone "),
            ("late news", Change::Applied(hpa("a", "1", "6", 3)), "due  gone "),
            ("made anew", Change::Applied(hpa("a", "2", "9", 4)), "due shop/a gone "),
            ("another", Change::All(vec![hpa("b", "3", "10", 1)]), "due shop/b gone shop/a"),
            ("deleted", Change::Deleted(hpa("b", "3", "11", 1)), "due  gone shop/b"),
        ];
        for (what, change, expected) in steps {
            assert_eq!(texts(&world.take_autoscalers(change)), expected, "{what}");
        }
        world.wrote(hpa("b", "3", "12", 1));
        let key = Key { namespace: "shop".into(), name: "b".into() };
        assert!(world.autoscaler(&key).is_none(), "what is gone stays gone");
    }

    #[test]
    fn pods_are_kept_by_namespace() {
        let pod = |namespace: &str, name: &str| {
            let mut pod = Pod::default();
            pod.metadata.namespace = namespace.into();
            pod.metadata.name = name.into();
            pod
        };
        let names = |world: &World, namespace: &str| -> String {
            let pods = world.pods(namespace, &Selector::everything());
            pods.iter().map(|pod| pod.metadata.name.to_string()).collect()
        };
        let world = World::default();
        world.take_pods(Change::All(vec![pod("x", "b"), pod("x", "a"), pod("y", "c")]));
        assert_eq!(names(&world, "x"), "ab");
        world.take_pods(Change::Applied(pod("x", "d")));
        world.take_pods(Change::Deleted(pod("x", "a")));
        world.take_pods(Change::Deleted(pod("y", "c")));
        assert_eq!((names(&world, "x").as_str(), names(&world, "y").as_str()), ("bd", ""));
        world.take_pods(Change::All(vec![pod("y", "c")]));
        assert_eq!((names(&world, "x").as_str(), names(&world, "y").as_str()), ("", "c"));
    }
}
