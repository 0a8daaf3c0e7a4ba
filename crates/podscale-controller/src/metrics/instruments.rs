//! What counts and measures: counters, gauges, histograms, and families of them by labels. Clones share
//! their values.

use super::registry::{Buckets, Kind, Label, Value};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Something that has a value at any time.
pub(super) trait Metric: Clone + Send + Sync + 'static {
    /// Its type.
    const KIND: Kind;

    /// Gives its value out.
    fn read(&self, visit: &mut dyn FnMut(Value<'_>));
}

/// A number that only grows.
#[derive(Clone, Default)]
pub(super) struct Counter(Arc<AtomicU64>);

impl Counter {
    pub(super) fn increment(&self) {
        self.add(1);
    }

    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

impl Metric for Counter {
    const KIND: Kind = Kind::Counter;

    fn read(&self, visit: &mut dyn FnMut(Value<'_>)) {
        let count = self.0.load(Ordering::Relaxed);
        visit(Value::Whole(i64::try_from(count).unwrap_or(i64::MAX)));
    }
}

/// A number that goes up and down.
#[derive(Clone, Default)]
pub(super) struct Gauge(Arc<AtomicI64>);

impl Gauge {
    pub(super) fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn set_count(&self, count: usize) {
        self.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

impl Metric for Gauge {
    const KIND: Kind = Kind::Gauge;

    fn read(&self, visit: &mut dyn FnMut(Value<'_>)) {
        visit(Value::Whole(self.0.load(Ordering::Relaxed)));
    }
}

/// Durations, counted in buckets of seconds.
#[derive(Clone)]
pub(super) struct Histogram {
    bounds: &'static [f64],
    state: Arc<Mutex<HistogramState>>,
}

#[derive(Clone)]
struct HistogramState {
    sum: f64,
    /// One for each bound, and one for what is above all of them.
    counts: Box<[u64]>,
}

impl Histogram {
    /// Nothing is counted yet; the bounds must rise.
    pub(super) fn new(bounds: &'static [f64]) -> Histogram {
        let counts = vec![0; bounds.len() + 1].into_boxed_slice();
        Histogram { bounds, state: Arc::new(Mutex::new(HistogramState { sum: 0.0, counts })) }
    }

    pub(super) fn observe(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = self.bounds.partition_point(|bound| *bound < seconds);
        let mut state = self.state.lock();
        state.sum += seconds;
        if let Some(count) = state.counts.get_mut(bucket) {
            *count += 1;
        }
    }
}

impl Metric for Histogram {
    const KIND: Kind = Kind::Histogram;

    fn read(&self, visit: &mut dyn FnMut(Value<'_>)) {
        // Whoever observes must not wait until text is written.
        let HistogramState { sum, counts } = self.state.lock().clone();
        visit(Value::Buckets(Buckets { bounds: self.bounds, counts: &counts, sum }));
    }
}

/// Labels by which the metrics of a family are told apart.
pub(super) trait LabelSet: Clone + Eq + Hash + Send + Sync + 'static {
    /// Gives the labels out.
    fn read(&self, visit: &mut dyn FnMut(&[Label<'_>]));
}

impl<V, const N: usize> LabelSet for [(&'static str, V); N]
where
    V: AsRef<str> + Clone + Eq + Hash + Send + Sync + 'static,
{
    fn read(&self, visit: &mut dyn FnMut(&[Label<'_>])) {
        visit(&self.each_ref().map(|(name, value)| (*name, value.as_ref())));
    }
}

/// Metrics of one name by their labels.
#[derive(Clone)]
pub(super) struct Family<L, M> {
    make: fn() -> M,
    members: Arc<RwLock<HashMap<L, M>>>,
}

impl<L: LabelSet, M: Metric> Family<L, M> {
    pub(super) fn new(make: fn() -> M) -> Family<L, M> {
        Family { make, members: Arc::default() }
    }

    /// The metric with these labels; allocates only if it is new.
    pub(super) fn with(&self, labels: &L) -> M {
        if let Some(metric) = self.members.read().get(labels) {
            return metric.clone();
        }
        self.members.write().entry(labels.clone()).or_insert_with(self.make).clone()
    }

    /// The metric with these labels is of no use any more.
    pub(super) fn remove(&self, labels: &L) {
        self.members.write().remove(labels);
    }

    /// Gives all metrics out.
    pub(super) fn read(&self, visit: &mut dyn FnMut(&[Label<'_>], Value<'_>)) {
        for (labels, metric) in &*self.members.read() {
            labels.read(&mut |labels| metric.read(&mut |value| visit(labels, value)));
        }
    }
}
