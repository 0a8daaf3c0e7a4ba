//! What a controller has written and its caches may not show yet. As long as they do not, the
//! controller must not count again, or it would create or delete twice.

use super::cache::{Cache, Key};
use super::pod::Pod;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use parking_lot::Mutex;
use std::collections::HashMap;

/// After so long the cache is believed whatever it shows.
const EXPIRY: SignedDuration = SignedDuration::from_mins(5);

/// The writes of one controller, by the object it wrote them for.
#[derive(Debug, Default)]
pub struct Written {
    by_owner: Mutex<HashMap<Key, Entry>>,
}

#[derive(Debug)]
struct Entry {
    /// The cache must have come this far.
    version: u64,
    /// These pods must be gone or terminating.
    deleted: HashMap<Key, Option<String>>,
    since: Timestamp,
}

impl Written {
    /// Notes a created or changed object, by its metadata in the API server's answer.
    pub fn wrote(&self, owner: &Key, meta: &ObjectMeta, now: Timestamp) {
        let version = meta.resource_version.as_deref().and_then(|version| version.parse().ok());
        let Some(version) = version else { return };
        let mut by_owner = self.by_owner.lock();
        let entry = by_owner.entry(owner.clone()).or_insert_with(|| Entry::new(now));
        entry.version = entry.version.max(version);
        entry.since = now;
    }

    /// Notes a deleted pod.
    pub fn deleted(&self, owner: &Key, pod: &ObjectMeta, now: Timestamp) {
        let key = Key {
            namespace: pod.namespace.clone().unwrap_or_default(),
            name: pod.name.clone().unwrap_or_default(),
        };
        let mut by_owner = self.by_owner.lock();
        let entry = by_owner.entry(owner.clone()).or_insert_with(|| Entry::new(now));
        entry.deleted.insert(key, pod.uid.clone());
        entry.since = now;
    }

    /// Whether the caches show everything written for this owner, or it was too long ago.
    pub fn is_seen(&self, owner: &Key, observed: u64, pods: &Cache<Pod>, now: Timestamp) -> bool {
        let mut by_owner = self.by_owner.lock();
        let Some(entry) = by_owner.get_mut(owner) else { return true };
        entry.deleted.retain(|key, uid| {
            pods.get(key).is_some_and(|pod| pod.metadata.uid == *uid && !pod.is_terminating())
        });
        let seen = observed >= entry.version && entry.deleted.is_empty();
        if seen || now.duration_since(entry.since) > EXPIRY {
            by_owner.remove(owner);
            return true;
        }
        false
    }

    /// Forgets an owner that is gone.
    pub fn forget(&self, owner: &Key) {
        self.by_owner.lock().remove(owner);
    }
}

impl Entry {
    fn new(now: Timestamp) -> Entry {
        Entry { version: 0, deleted: HashMap::new(), since: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, version: &str, ends: bool) -> Pod {
        let ends = ends.then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(json!({"metadata": {"namespace": "a", "name": name, "uid": name,
            "resourceVersion": version, "deletionTimestamp": ends}}))
        .unwrap()
    }

    #[test]
    fn waits_for_the_cache_but_not_for_ever() {
        let (written, pods, owner) = (Written::default(), Cache::new(vec![]), Key::new("a", "web"));
        let now = Timestamp::UNIX_EPOCH;
        let seen = |now| written.is_seen(&owner, pods.observed(), &pods, now);
        assert!(seen(now), "nothing written");
        written.wrote(&owner, &pod("x", "7", false).metadata, now);
        pods.apply(pod("y", "6", false));
        assert!(!seen(now), "creation not shown yet");
        pods.apply(pod("x", "7", false));
        assert!(seen(now), "creation shown");
        written.deleted(&owner, &pod("x", "7", false).metadata, now);
        assert!(!seen(now), "deletion not shown yet");
        pods.apply(pod("x", "8", true));
        assert!(seen(now), "pod terminates");
        written.deleted(&owner, &pod("y", "6", false).metadata, now);
        assert!(!seen(now + SignedDuration::from_mins(4)));
        assert!(seen(now + SignedDuration::from_mins(6)), "it has expired");
        written.deleted(&owner, &pod("y", "6", false).metadata, now);
        written.forget(&owner);
        assert!(seen(now), "owner is gone");
    }
}
