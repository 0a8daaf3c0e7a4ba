//! The last two samples of every container and node, and the use that follows from them. Scrapes are
//! applied node by node; a node whose scrape failed keeps its samples until they are too old.

use crate::scrape::Scrape;
use jiff::{SignedDuration, Timestamp};
use parking_lot::{RwLock, RwLockReadGuard};
use samples::Samples;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

mod node;
mod pair;
mod places;
mod samples;
#[cfg(test)]
mod tests;

/// Namespace and name of a pod.
pub type PodKey = (Arc<str>, Arc<str>);

/// Tells the time by which samples age.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Mean use in the window that ends at `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The end of the window, by the node's clock.
    pub time: Timestamp,
    /// How long it is.
    pub window: Duration,
    /// CPU in billionths of a core.
    pub cpu_nanos: u64,
    /// Memory at the end.
    pub memory_bytes: u64,
}

/// Mean use of a pod's containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodUsed {
    /// The end of the window of the container that was read the longest ago.
    pub time: Timestamp,
    /// How long that window is.
    pub window: Duration,
    /// By the containers' names.
    pub containers: SmallVec<[(Arc<str>, Used); 1]>,
}

/// What a scrape changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Whether anything is known that was not known before.
    pub news: bool,
    /// The pods of which there are new samples.
    pub pods: Vec<PodKey>,
}

/// How a store judges samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How far apart the scrapes of one node are.
    pub resolution: Duration,
    /// How long after it arrived a sample is used.
    pub max_age: Duration,
}

/// The last two samples of everything; readers and the scraper share it.
#[derive(Debug)]
pub struct Store {
    samples: RwLock<Samples>,
    resolution_ms: i64,
    max_age_ms: i64,
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl Store {
    /// An empty store.
    #[must_use]
    pub fn new(limits: Limits) -> Store {
        let (resolution_ms, max_age_ms) = (millis(limits.resolution), millis(limits.max_age));
        Store { samples: RwLock::default(), resolution_ms, max_age_ms }
    }

    /// Takes in a scrape of one node. Pods that it does not mention are gone, unless parts of it could
    /// not be read; then they stay until they are too old.
    pub fn apply(&self, node: &str, scrape: &Scrape, scraped: Timestamp) -> Applied {
        let moment = node::Moment {
            scraped_ms: scraped.as_millisecond(),
            resolution_ms: self.resolution_ms,
            max_age_ms: self.max_age_ms,
        };
        self.samples.write().apply(node, scrape, moment)
    }

    /// Forgets a node that left, with its pods.
    pub fn remove(&self, node: &str) {
        self.samples.write().remove(node);
    }

    /// For several reads of the same state; scrapes wait meanwhile.
    #[must_use]
    pub fn read(&self, now: Timestamp) -> View<'_> {
        let (now_ms, max_age_ms) = (now.as_millisecond(), self.max_age_ms);
        View { samples: self.samples.read(), now_ms, max_age_ms }
    }

    /// Mean use of a node.
    #[must_use]
    pub fn node(&self, name: &str, now: Timestamp) -> Option<Used> {
        self.read(now).node(name)
    }

    /// Mean use of a pod.
    #[must_use]
    pub fn pod(&self, key: &PodKey, now: Timestamp) -> Option<PodUsed> {
        self.read(now).pod(&key.0, &key.1)
    }

    /// How many nodes it has samples of.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.samples.read().nodes().count()
    }

    /// How many pods it has samples of.
    #[must_use]
    pub fn pods(&self) -> usize {
        self.samples.read().pods()
    }

    /// How long ago the node with the oldest samples had new ones; nothing if there are no nodes.
    #[must_use]
    pub fn oldest(&self, now: Timestamp) -> Option<SignedDuration> {
        let samples = self.samples.read();
        let oldest = samples.nodes().map(|node| node.news_ms).min()?;
        Some(SignedDuration::from_millis(now.as_millisecond().saturating_sub(oldest)))
    }
}

/// What a store holds at one moment.
pub struct View<'a> {
    samples: RwLockReadGuard<'a, Samples>,
    now_ms: i64,
    max_age_ms: i64,
}

impl View<'_> {
    /// Mean use of a node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Used> {
        self.samples.node(name)?.pair.used(self.now_ms, self.max_age_ms)
    }

    /// Mean use of a pod. Nothing if one of its containers is unknown: a part would look like less.
    #[must_use]
    pub fn pod(&self, namespace: &str, name: &str) -> Option<PodUsed> {
        let found = self.samples.containers(namespace, name)?;
        let mut containers: SmallVec<[(Arc<str>, Used); 1]> = SmallVec::with_capacity(found.len());
        for container in found {
            let used = container.pair.used(self.now_ms, self.max_age_ms)?;
            containers.push((Arc::clone(&container.name), used));
        }
        let oldest = containers.iter().map(|(_, used)| used).min_by_key(|used| used.time)?;
        let (time, window) = (oldest.time, oldest.window);
        Some(PodUsed { time, window, containers })
    }

    /// Visits each pod of a namespace that has a known use, in no order.
    pub fn pods_in(&self, namespace: &str, mut visit: impl FnMut(&Arc<str>, PodUsed)) {
        for name in self.samples.names_in(namespace) {
            if let Some(used) = self.pod(namespace, name) {
                visit(name, used);
            }
        }
    }
}
