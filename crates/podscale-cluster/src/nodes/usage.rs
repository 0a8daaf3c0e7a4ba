//! What pods and nodes used, as the load model recorded it last and as it was some seconds before.

use jiff::Timestamp;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How far apart the two samples are, at least, that a rate is made from.
pub const RATE_WINDOW: Duration = Duration::from_secs(5);

/// What a container or node used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// CPU time since its start, in seconds.
    pub cpu_seconds_total: f64,
    /// Memory now.
    pub memory_bytes: f64,
}

/// What the containers of a pod used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSample {
    /// Which run of the containers this is of: how often they had been restarted.
    pub restarts: u32,
    /// One for each container, in the pod's order.
    pub containers: Vec<Used>,
}

/// What everything used at one time.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// When.
    pub time: Timestamp,
    /// By the pod's identity.
    pub pods: HashMap<Arc<str>, PodSample>,
    /// By the node's name.
    pub nodes: HashMap<Arc<str>, Used>,
}

/// The newest samples, and older ones to make rates from. Readers never wait for the model.
#[derive(Debug, Default)]
pub struct Usage {
    kept: RwLock<Kept>,
}

#[derive(Clone, Debug, Default)]
struct Kept {
    newest: Arc<Samples>,
    /// Becomes `older` once it is [`RATE_WINDOW`] old.
    marked: Arc<Samples>,
    older: Arc<Samples>,
}

/// Two samples of the same thing and the time between them.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The newest samples.
    pub newest: Arc<Samples>,
    /// Samples from before.
    pub older: Arc<Samples>,
}

/// Mean use over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Thousandths of a core.
    pub cpu_millis: f64,
    /// Mean of both samples.
    pub memory_bytes: f64,
}

impl Usage {
    /// Publishes new samples.
    pub fn publish(&self, samples: Samples) {
        let samples = Arc::new(samples);
        let mut kept = self.kept.write();
        if age(&kept.marked, &samples) >= RATE_WINDOW {
            kept.older = std::mem::replace(&mut kept.marked, Arc::clone(&samples));
        }
        kept.newest = samples;
    }

    /// The newest samples.
    #[must_use]
    pub fn newest(&self) -> Arc<Samples> {
        Arc::clone(&self.kept.read().newest)
    }

    /// The newest samples and those to compare them with.
    #[must_use]
    pub fn pair(&self) -> Pair {
        let kept = self.kept.read();
        Pair { newest: Arc::clone(&kept.newest), older: Arc::clone(&kept.older) }
    }
}

fn age(older: &Samples, newer: &Samples) -> Duration {
    newer.time.duration_since(older.time).try_into().unwrap_or(Duration::ZERO)
}

impl Pair {
    /// The time between the samples.
    #[must_use]
    pub fn window(&self) -> Duration {
        age(&self.older, &self.newest)
    }

    /// Mean use of each container of a pod; nothing unless both samples are of the same run.
    #[must_use]
    pub fn pod(&self, uid: &str) -> Option<Vec<Rate>> {
        let (newer, older) = (self.newest.pods.get(uid)?, self.older.pods.get(uid)?);
        if newer.restarts != older.restarts || newer.containers.len() != older.containers.len() {
            return None;
        }
        let containers = newer.containers.iter().zip(&older.containers);
        containers.map(|(newer, older)| self.rate(*newer, *older)).collect()
    }

    /// Mean use of a node.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<Rate> {
        self.rate(*self.newest.nodes.get(name)?, *self.older.nodes.get(name)?)
    }

    fn rate(&self, newer: Used, older: Used) -> Option<Rate> {
        let seconds = self.window().as_secs_f64();
        let cpu_seconds = newer.cpu_seconds_total - older.cpu_seconds_total;
        (seconds > 0.0 && cpu_seconds >= 0.0).then(|| Rate {
            cpu_millis: cpu_seconds / seconds * 1000.0,
            memory_bytes: f64::midpoint(newer.memory_bytes, older.memory_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(second: i64, restarts: u32, cpu: f64, memory: f64) -> Samples {
        let used = Used { cpu_seconds_total: cpu, memory_bytes: memory };
        Samples {
            time: Timestamp::from_second(1_000 + second).unwrap(),
            pods: HashMap::from([("u".into(), PodSample { restarts, containers: vec![used] })]),
            nodes: HashMap::from([("n".into(), used)]),
        }
    }

    #[test]
    fn rates_come_from_samples_at_least_five_seconds_apart() {
        let usage = Usage::default();
        assert_eq!(usage.pair().pod("u"), None);
        for second in 0..=12 {
            usage.publish(samples(second, 0, second as f64 * 0.25, 100.0 + second as f64));
            let pair = usage.pair();
            assert!(second < 5 || pair.pod("u").is_some(), "at {second}");
            if second >= 5 {
                assert!((5..10).contains(&pair.window().as_secs()), "{:?}", pair.window());
            }
        }
        let pair = usage.pair();
        let expected = Rate { cpu_millis: 250.0, memory_bytes: 108.5 };
        assert_eq!(pair.window(), Duration::from_secs(7));
        assert_eq!(pair.pod("u"), Some(vec![expected]));
        assert_eq!(pair.node("n"), Some(expected));
        assert_eq!(pair.pod("other"), None);
    }

    #[test]
    fn a_restart_needs_a_new_pair() {
        let usage = Usage::default();
        usage.publish(samples(0, 0, 5.0, 1.0));
        usage.publish(samples(6, 1, 0.5, 1.0));
        assert_eq!(usage.pair().pod("u"), None);
        assert_eq!(usage.pair().node("n"), None, "a counter that fell is no rate");
    }
}
