//! What the program counts and measures about itself, in the text form that Prometheus reads:
//! Kubernetes' own names for the autoscaling controller, and `podscale_*` for the rest.
//!
//! Counting allocates nothing once a combination of labels has been seen, and takes no lock that is
//! held while text is made, except for a moment.

mod decisions;
mod process;
mod requests;

pub(crate) use decisions::Computation;
use decisions::Decisions;
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use requests::Requests;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How the text that [`Metrics::text`] gives is announced.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How late a decision may be: from what nobody notices to several periods.
const LATENESS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
/// How long a request may take: up to its deadline.
const REQUEST_SECONDS: [f64; 11] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

/// Labels whose values are all known beforehand.
type Labels<const N: usize> = [(&'static str, &'static str); N];

/// What is counted and measured. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    decisions: Decisions,
    requests: Requests,
    due_lag: Histogram,
    queue: Gauge,
    leader: Gauge,
    disagreements: Counter,
    comparisons: Family<Labels<1>, Counter>,
    sources: Family<Labels<2>, Counter>,
    source_seconds: Family<Labels<1>, Histogram, Buckets>,
    caches: Family<Labels<1>, Gauge>,
    recorded: Counter,
    record_drops: Counter,
    record_failures: Counter,
    telemetry_losses: Family<Labels<1>, Counter>,
    sizes: Mutex<Vec<Size>>,
}

/// Something whose size is asked for only when somebody wants to see it.
struct Size {
    gauge: Gauge,
    ask: Box<dyn Fn() -> usize + Send + Sync>,
}

/// A way to make histograms of certain bounds.
#[derive(Clone, Copy)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Everything at zero.
    #[must_use]
    pub fn new() -> Metrics {
        let mut registry = Registry::default();
        let decisions = Decisions::register(&mut registry);
        process::register(&mut registry);
        let own = registry.sub_registry_with_prefix("podscale");
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        own.register("build", "The program", version);
        let requests = Requests::register(own);
        let due_lag = Histogram::new(LATENESS);
        let help = "By how much a decision began after it was due, in seconds";
        own.register("due_lag_seconds", help, due_lag.clone());
        let source_seconds = Family::new_with_constructor(Buckets(&REQUEST_SECONDS));
        let help = "How long a source of metrics took to answer one call, in seconds";
        own.register("source_request_duration_seconds", help, source_seconds.clone());
        let inner = Inner {
            decisions,
            requests,
            due_lag,
            queue: registered(
                own,
                "queue_depth",
                "Autoscalers that are due and wait for their turn",
            ),
            leader: registered(own, "leader", "Whether this replica leads: 1 or 0"),
            disagreements: registered(
                own,
                "disagreements",
                "Dry run: sizes that another controller wrote and this one would not have",
            ),
            comparisons: registered(
                own,
                "comparisons",
                "Dry run: choices of another controller, and whether this one would have made them",
            ),
            sources: registered(own, "source_requests", "Calls of sources of metrics by outcome"),
            source_seconds,
            caches: registered(own, "cache_objects", "Objects held in memory"),
            recorded: registered(own, "recorded_steps", "Decisions written to recordings"),
            record_drops: registered(
                own,
                "recording_dropped_steps",
                "Decisions not recorded because the disk was too slow",
            ),
            record_failures: registered(
                own,
                "recording_failures",
                "Writes of recordings that failed",
            ),
            telemetry_losses: registered(
                own,
                "telemetry_lost",
                "Spans, log lines and reports of metrics that no collector took",
            ),
            sizes: Mutex::default(),
            registry,
        };
        Metrics(Arc::new(inner))
    }

    /// Everything, in the text form of OpenMetrics.
    #[must_use]
    pub fn text(&self) -> String {
        for size in &*self.0.sizes.lock() {
            size.gauge.set(i64::try_from((size.ask)()).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        // Writing into memory does not fail.
        let _ = encode(&mut text, &self.0.registry);
        text
    }

    /// A decision began, so long after it was due.
    pub fn due(&self, late: Duration) {
        self.0.due_lag.observe(late.as_secs_f64());
    }

    /// Shows how many autoscalers are due; asked for when somebody looks.
    pub fn show_queue(&self, ask: impl Fn() -> usize + Send + Sync + 'static) {
        self.show(self.0.queue.clone(), ask);
    }

    /// Shows how many objects a cache holds; asked for when somebody looks.
    pub fn show_cache(&self, name: &'static str, ask: impl Fn() -> usize + Send + Sync + 'static) {
        self.show(self.0.caches.get_or_create_owned(&[("cache", name)]), ask);
    }

    fn show(&self, gauge: Gauge, ask: impl Fn() -> usize + Send + Sync + 'static) {
        self.0.sizes.lock().push(Size { gauge, ask: Box::new(ask) });
    }

    /// This replica leads, or does not.
    pub fn leads(&self, leads: bool) {
        self.0.leader.set(i64::from(leads));
    }

    /// Dry run: a choice of another controller was compared with ours: `agreed`, `disagreed` or
    /// `unknown`.
    pub(crate) fn compared(&self, outcome: &'static str) {
        self.0.comparisons.get_or_create(&[("outcome", outcome)]).inc();
        if outcome == "disagreed" {
            self.0.disagreements.inc();
        }
    }

    /// A source of metrics was asked, and answered well or not.
    pub(crate) fn source_answered(&self, source: &'static str, well: bool, took: Duration) {
        let outcome = if well { "ok" } else { "error" };
        self.0.sources.get_or_create(&[("source", source), ("outcome", outcome)]).inc();
        let seconds = &self.0.source_seconds;
        seconds.get_or_create(&[("source", source)]).observe(took.as_secs_f64());
    }

    /// Decisions were written to recordings.
    pub fn recorded(&self, steps: u64) {
        self.0.recorded.inc_by(steps);
    }

    /// A decision was not recorded because the queue was full.
    pub fn record_dropped(&self) {
        self.0.record_drops.inc();
    }

    /// So many items of traces, logs or metrics did not reach their collector.
    pub fn telemetry_lost(&self, signal: &'static str, count: u64) {
        if count > 0 {
            self.0.telemetry_losses.get_or_create(&[("signal", signal)]).inc_by(count);
        }
    }

    /// A recording could not be written.
    pub fn record_failed(&self) {
        self.0.record_failures.inc();
    }
}

/// A new metric under a name.
fn registered<M>(registry: &mut Registry, name: &str, help: &str) -> M
where
    M: prometheus_client::registry::Metric + Clone + Default,
{
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

#[cfg(test)]
mod tests;
