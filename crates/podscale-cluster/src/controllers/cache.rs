//! What a watch has shown so far: the objects of one kind, with indexes, and who wants to hear of
//! changes. One watch serves all controllers of the process.

use super::queue::{Queue, Shutdown, ended};
use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch as flag;

/// Names one object of a kind; objects of a namespace are neighbours in the order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace; empty for kinds that have none.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object by its names.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Key {
        Key { namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key of an object.
    #[must_use]
    pub fn of<K: Resource>(object: &K) -> Key {
        let meta = object.meta();
        Key {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

impl Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// Gives the value under which an index holds an object, if it holds it.
pub type Index<K> = fn(&K) -> Option<String>;

/// Hears of a change: what was there before and what is there now.
type Listener<K> = Box<dyn Fn(Option<&Arc<K>>, Option<&Arc<K>>) + Send + Sync>;

/// The objects of one kind; clones share them.
pub struct Cache<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    indexes: Vec<Index<K>>,
    state: RwLock<State<K>>,
    listeners: RwLock<Vec<Listener<K>>>,
    observed: AtomicU64,
    complete: flag::Sender<bool>,
}

struct State<K> {
    objects: BTreeMap<Key, Arc<K>>,
    indexed: Vec<HashMap<String, BTreeSet<Key>>>,
}

impl<K> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Cache { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Resource + Send + Sync + 'static> Cache<K> {
    /// An empty cache with these indexes.
    #[must_use]
    pub fn new(indexes: Vec<Index<K>>) -> Cache<K> {
        let indexed = indexes.iter().map(|_| HashMap::new()).collect();
        let state = RwLock::new(State { objects: BTreeMap::new(), indexed });
        let shared = Shared {
            indexes,
            state,
            listeners: RwLock::new(Vec::new()),
            observed: AtomicU64::new(0),
            complete: flag::channel(false).0,
        };
        Cache { shared: Arc::new(shared) }
    }

    /// Adds a listener, called in the order of changes after the cache shows them; it must be quick.
    pub fn listen(
        &self,
        listener: impl Fn(Option<&Arc<K>>, Option<&Arc<K>>) + Send + Sync + 'static,
    ) {
        self.shared.listeners.write().push(Box::new(listener));
    }

    /// Queues the key of every object that changes.
    pub fn queue_changes(&self, queue: &Queue<Key>) {
        let queue = queue.clone();
        self.listen(move |old, new| {
            if let Some(object) = new.or(old) {
                queue.add(Key::of(object.as_ref()));
            }
        });
    }

    /// The object of that key.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.shared.state.read().objects.get(key).cloned()
    }

    /// All objects in the order of their keys.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<K>> {
        self.shared.state.read().objects.values().cloned().collect()
    }

    /// The objects of a namespace in the order of their names.
    #[must_use]
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let state = self.shared.state.read();
        let from = Bound::Included(Key::new(namespace, ""));
        let neighbours = state.objects.range((from, Bound::Unbounded));
        let own = neighbours.take_while(|(key, _)| key.namespace == namespace);
        own.map(|(_, object)| Arc::clone(object)).collect()
    }

    /// The objects that an index (by its position) holds under a value.
    #[must_use]
    pub fn indexed(&self, index: usize, value: &str) -> Vec<Arc<K>> {
        let state = self.shared.state.read();
        let keys = state.indexed.get(index).and_then(|entries| entries.get(value));
        let objects = keys.into_iter().flatten().filter_map(|key| state.objects.get(key));
        objects.cloned().collect()
    }

    /// How many objects an index holds under a value.
    #[must_use]
    pub fn count(&self, index: usize, value: &str) -> usize {
        let state = self.shared.state.read();
        state.indexed.get(index).and_then(|entries| entries.get(value)).map_or(0, BTreeSet::len)
    }

    /// The newest resource version that the watch has shown.
    #[must_use]
    pub fn observed(&self) -> u64 {
        self.shared.observed.load(Ordering::Acquire)
    }

    /// Waits until the first list is complete.
    pub async fn complete(&self) {
        // The sender lives as long as `self`.
        let _ = self.shared.complete.subscribe().wait_for(|complete| *complete).await;
    }

    /// Takes in an object as the watch shows it.
    pub fn apply(&self, mut object: K) {
        object.meta_mut().managed_fields = None;
        self.observe(&object);
        let key = Key::of(&object);
        let object = Arc::new(object);
        let old = {
            let mut state = self.shared.state.write();
            let old = state.objects.insert(key.clone(), Arc::clone(&object));
            state.reindex(&self.shared.indexes, &key, old.as_deref(), Some(&object));
            old
        };
        self.notify(old.as_ref(), Some(&object));
    }

    /// Forgets an object.
    pub fn remove(&self, key: &Key) {
        let old = {
            let mut state = self.shared.state.write();
            let old = state.objects.remove(key);
            state.reindex(&self.shared.indexes, key, old.as_deref(), None);
            old
        };
        if old.is_some() {
            self.notify(old.as_ref(), None);
        }
    }

    fn retain(&self, kept: &BTreeSet<Key>) {
        let state = self.shared.state.read();
        let lost: Vec<Key> =
            state.objects.keys().filter(|key| !kept.contains(key)).cloned().collect();
        drop(state);
        for key in lost {
            self.remove(&key);
        }
    }

    fn observe(&self, object: &K) {
        let version = object.meta().resource_version.as_deref();
        if let Some(version) = version.and_then(|version| version.parse().ok()) {
            self.shared.observed.fetch_max(version, Ordering::AcqRel);
        }
    }

    fn notify(&self, old: Option<&Arc<K>>, new: Option<&Arc<K>>) {
        for listener in self.shared.listeners.read().iter() {
            listener(old, new);
        }
    }
}

impl<K> State<K> {
    fn reindex(&mut self, indexes: &[Index<K>], key: &Key, old: Option<&K>, new: Option<&K>) {
        for (index, entries) in indexes.iter().zip(&mut self.indexed) {
            let (before, after) = (old.and_then(index), new.and_then(index));
            if before == after {
                continue;
            }
            if let Some(value) = before
                && let Some(keys) = entries.get_mut(&value)
            {
                keys.remove(key);
                if keys.is_empty() {
                    entries.remove(&value);
                }
            }
            if let Some(value) = after {
                entries.entry(value).or_default().insert(key.clone());
            }
        }
    }
}

impl<K> Cache<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Keeps the cache up to date by a watch until the shutdown.
    pub async fn feed(self, api: Api<K>, config: watcher::Config, mut shutdown: Shutdown) {
        let mut listed = BTreeSet::new();
        let mut events = Box::pin(watcher(api, config).default_backoff());
        loop {
            let event = tokio::select! {
                biased;
                () = ended(&mut shutdown) => return,
                event = events.next() => event,
            };
            match event {
                Some(Ok(watcher::Event::Init)) => listed.clear(),
                Some(Ok(watcher::Event::InitApply(object))) => {
                    listed.insert(Key::of(&object));
                    self.apply(object);
                }
                Some(Ok(watcher::Event::InitDone)) => {
                    self.retain(&std::mem::take(&mut listed));
                    self.shared.complete.send_replace(true);
                }
                Some(Ok(watcher::Event::Apply(object))) => self.apply(object),
                Some(Ok(watcher::Event::Delete(object))) => {
                    self.observe(&object);
                    self.remove(&Key::of(&object));
                }
                Some(Err(error)) => tracing::debug!(%error, "watch broke; it is started again"),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use parking_lot::Mutex;

    fn object(namespace: &str, name: &str, group: &str, version: &str) -> ConfigMap {
        let json = serde_json::json!({"metadata": {"namespace": namespace, "name": name,
            "resourceVersion": version, "labels": {"group": group}}});
        serde_json::from_value(json).unwrap()
    }

    fn group(object: &ConfigMap) -> Option<String> {
        object.metadata.labels.as_ref()?.get("group").cloned()
    }

    #[test]
    fn lists_by_namespace_and_index_and_tells_of_changes() {
        let cache = Cache::new(vec![group]);
        let notified = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&notified);
        cache.listen(move |old: Option<&Arc<ConfigMap>>, new| {
            let of = |object: Option<&Arc<ConfigMap>>| object.and_then(|object| group(object));
            log.lock().push((of(old), of(new)));
        });
        let names = |objects: Vec<Arc<ConfigMap>>| -> Vec<String> {
            objects.iter().map(|object| Key::of(object.as_ref()).to_string()).collect()
        };
        cache.apply(object("b", "one", "x", "7"));
        cache.apply(object("a", "two", "x", "5"));
        cache.apply(object("a", "one", "y", "6"));
        cache.apply(object("aa", "one", "y", "8"));
        assert_eq!(names(cache.in_namespace("a")), ["a/one", "a/two"]);
        assert_eq!(names(cache.indexed(0, "x")), ["a/two", "b/one"]);
        assert_eq!(cache.observed(), 8);
        cache.apply(object("a", "two", "y", "9"));
        assert_eq!(names(cache.indexed(0, "x")), ["b/one"]);
        assert_eq!(cache.count(0, "y"), 3);
        cache.retain(&BTreeSet::from([Key::new("a", "one")]));
        assert_eq!(names(cache.all()), ["a/one"]);
        assert_eq!(cache.count(0, "x"), 0);
        let notified = notified.lock();
        assert_eq!(notified[4], (Some("x".into()), Some("y".into())));
        assert_eq!(notified.iter().filter(|(_, new)| new.is_none()).count(), 3);
    }
}
