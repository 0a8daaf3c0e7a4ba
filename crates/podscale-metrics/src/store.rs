//! The last two samples of every container and node, and the use that follows from them.

use crate::exposition::{LineError, Sample, samples};
use jiff::{SignedDuration, Timestamp};
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

#[cfg(test)]
mod tests;

/// How old a new container must be before its first sample is compared with zero at its start.
const MIN_CONTAINER_AGE: SignedDuration = SignedDuration::from_secs(10);

/// One reading of a container or node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Reading {
    time_ms: Option<i64>,
    /// When the container was started; 0 if unknown.
    start_seconds: f64,
    cpu_seconds: Option<f64>,
    memory_bytes: Option<f64>,
}

/// What one scrape of one node found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scrape {
    node: Reading,
    pods: BTreeMap<PodKey, BTreeMap<Box<str>, Reading>>,
    malformed: Option<Malformed>,
}

/// Lines of a scrape that are not exposition text. Each costs its own sample only.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{lines} malformed lines were skipped, the first is {first}")]
pub struct Malformed {
    /// How many there are.
    pub lines: usize,
    /// The first of them.
    pub first: LineError,
}

/// Namespace and name of a pod.
pub type PodKey = (Arc<str>, Arc<str>);

impl Scrape {
    /// Reads a kubelet's `/metrics/resource`. Lines that are malformed are skipped and counted.
    #[must_use]
    pub fn read(text: &str) -> Scrape {
        let mut scrape = Scrape::default();
        for sample in samples(text) {
            match sample {
                Ok(sample) => scrape.add(&sample),
                Err(error) => scrape.skip(error),
            }
        }
        scrape
    }

    /// The lines that were skipped, if there were any.
    #[must_use]
    pub fn malformed(&self) -> Option<&Malformed> {
        self.malformed.as_ref()
    }

    fn skip(&mut self, error: LineError) {
        match &mut self.malformed {
            Some(malformed) => malformed.lines += 1,
            None => self.malformed = Some(Malformed { lines: 1, first: error }),
        }
    }

    fn add(&mut self, sample: &Sample<'_>) {
        match sample.name {
            "node_cpu_usage_seconds_total" => {
                self.node.cpu_seconds = Some(sample.value);
                self.node.time_ms = sample.time_ms;
            }
            "node_memory_working_set_bytes" => self.node.memory_bytes = Some(sample.value),
            "container_cpu_usage_seconds_total" => {
                if let Some(reading) = self.container(sample) {
                    reading.cpu_seconds = Some(sample.value);
                    reading.time_ms = sample.time_ms;
                }
            }
            "container_memory_working_set_bytes" => {
                if let Some(reading) = self.container(sample) {
                    reading.memory_bytes = Some(sample.value);
                }
            }
            "container_start_time_seconds" => {
                if let Some(reading) = self.container(sample) {
                    reading.start_seconds = sample.value;
                }
            }
            _ => {}
        }
    }

    fn container(&mut self, sample: &Sample<'_>) -> Option<&mut Reading> {
        let [mut namespace, mut pod, mut container] = [const { None }; 3];
        for (name, value) in sample.labels.iter() {
            match name {
                "namespace" => namespace = Some(value),
                "pod" => pod = Some(value),
                "container" => container = Some(value),
                _ => {}
            }
        }
        let key = (namespace?.as_ref().into(), pod?.as_ref().into());
        Some(self.pods.entry(key).or_default().entry(container?.as_ref().into()).or_default())
    }
}

/// A complete reading.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    time: Timestamp,
    start_seconds: f64,
    cpu_seconds: f64,
    memory_bytes: f64,
}

impl Point {
    fn of(reading: &Reading, scraped: Timestamp) -> Option<Point> {
        let time = match reading.time_ms {
            Some(time_ms) => Timestamp::from_millisecond(time_ms).ok()?,
            None => scraped,
        };
        let memory_bytes = reading.memory_bytes?;
        let start_seconds = reading.start_seconds;
        Some(Point { time, start_seconds, cpu_seconds: reading.cpu_seconds?, memory_bytes })
    }
}

/// The last point and the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    last: Point,
    before: Option<Point>,
}

impl Pair {
    /// The pair after a further point.
    fn next(old: Option<&Pair>, new: Point, resolution: SignedDuration) -> Pair {
        match old {
            Some(old) if old.last.start_seconds == new.start_seconds => {
                if new.time > old.last.time {
                    Pair { last: new, before: Some(old.last) }
                } else {
                    // The kubelet has nothing newer yet.
                    *old
                }
            }
            Some(_) | None => Pair { last: new, before: new.at_start(resolution) },
        }
    }

    /// Mean use between the points; nothing if there is only one or they contradict.
    fn used(&self) -> Option<Used> {
        let before = self.before?;
        let window: Duration = self.last.time.duration_since(before.time).try_into().ok()?;
        let cpu_seconds = self.last.cpu_seconds - before.cpu_seconds;
        let sound = !window.is_zero() && cpu_seconds >= 0.0 && self.last.memory_bytes > 0.0;
        sound.then(|| Used {
            time: self.last.time,
            window,
            // Casts saturate.
            cpu_nanos: (cpu_seconds / window.as_secs_f64() * 1e9).round() as u64,
            memory_bytes: self.last.memory_bytes.round() as u64,
        })
    }
}

impl Point {
    /// Zero at the container's start, if that was neither too recently nor before the last scrape.
    fn at_start(&self, resolution: SignedDuration) -> Option<Point> {
        if self.start_seconds <= 0.0 || self.start_seconds > 1e12 {
            return None;
        }
        let start = Timestamp::from_microsecond((self.start_seconds * 1e6) as i64).ok()?;
        let age = self.time.duration_since(start);
        let fits = age >= MIN_CONTAINER_AGE && age < resolution;
        fits.then_some(Point { time: start, cpu_seconds: 0.0, ..*self })
    }
}

/// Mean use in the window that ends at `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// The end of the window.
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
    pub containers: Vec<(Box<str>, Used)>,
}

#[derive(Debug, Default)]
struct OfNode {
    node: Option<Pair>,
    pods: BTreeMap<PodKey, BTreeMap<Box<str>, Pair>>,
}

#[derive(Debug, Default)]
struct Samples {
    nodes: HashMap<Arc<str>, OfNode>,
    /// On which node each pod was found.
    places: HashMap<PodKey, Arc<str>>,
}

/// The last two samples of everything; readers and the scraper share it.
#[derive(Debug)]
pub struct Store {
    samples: RwLock<Samples>,
    resolution: SignedDuration,
}

impl Store {
    /// An empty store for scrapes that are so far apart.
    #[must_use]
    pub fn new(resolution: Duration) -> Store {
        let resolution = SignedDuration::try_from(resolution).unwrap_or(SignedDuration::MAX);
        Store { samples: RwLock::default(), resolution }
    }

    /// Takes the results of one round of scrapes: nodes that failed or were not tried are forgotten
    /// with all their pods.
    pub fn replace(&self, scrapes: Vec<(Arc<str>, Scrape)>, scraped: Timestamp) {
        let mut samples = self.samples.write();
        let mut old = std::mem::take(&mut *samples);
        for (name, scrape) in scrapes {
            let before = old.nodes.remove(&name).unwrap_or_default();
            let next = |old: Option<&Pair>, reading: &Reading| {
                let point = Point::of(reading, scraped)?;
                Some(Pair::next(old, point, self.resolution))
            };
            let mut of_node =
                OfNode { node: next(before.node.as_ref(), &scrape.node), pods: BTreeMap::new() };
            for (key, containers) in scrape.pods {
                let known = before.pods.get(&key);
                let mut pairs = BTreeMap::new();
                for (container, reading) in &containers {
                    let old = known.and_then(|known| known.get(container));
                    if let Some(pair) = next(old, reading) {
                        pairs.insert(container.clone(), pair);
                    }
                }
                // A container without data makes its pod unknown, not small.
                if pairs.len() == containers.len() {
                    samples.places.insert(key.clone(), Arc::clone(&name));
                    of_node.pods.insert(key, pairs);
                }
            }
            samples.nodes.insert(name, of_node);
        }
    }

    /// Mean use of a node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Used> {
        self.samples.read().nodes.get(name)?.node?.used()
    }

    /// Mean use of a pod.
    #[must_use]
    pub fn pod(&self, key: &PodKey) -> Option<PodUsed> {
        let samples = self.samples.read();
        let pairs = samples.nodes.get(samples.places.get(key)?)?.pods.get(key)?;
        let mut containers = Vec::with_capacity(pairs.len());
        for (name, pair) in pairs {
            containers.push((name.clone(), pair.used()?));
        }
        let oldest = containers.iter().map(|(_, used)| used).min_by_key(|used| used.time)?;
        let (time, window) = (oldest.time, oldest.window);
        Some(PodUsed { time, window, containers })
    }
}
