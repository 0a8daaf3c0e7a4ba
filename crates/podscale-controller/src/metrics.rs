//! What the program counts and measures about itself: under Kubernetes' own names for the autoscaling
//! controller, and `podscale_*` for the rest.
//!
//! Counting allocates nothing once a combination of labels has been seen, and waits for a reader only
//! where a combination is new.

mod decisions;
mod instruments;
mod kubelets;
mod process;
pub(crate) mod registry;
mod requests;
mod rules;
mod serving;
mod text;
mod triggers;

use decisions::Decisions;
pub(crate) use decisions::{Computation, Object};
use instruments::{Counter, Family, Gauge, Histogram};
use kubelets::KubeletMetrics;
use parking_lot::Mutex;
use registry::{Registry, Visitor};
use requests::Requests;
use rules::RuleMetrics;
use serving::Serving;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use text::Text;
use triggers::TriggerMetrics;
pub(crate) use triggers::{ObjectReport, OwnerKind, TriggerReport, TriggersReport};

/// How the text that [`Metrics::text`] gives is announced.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How late a decision may be: from what nobody notices to several periods.
const LATENESS_SECONDS: [f64; 12] =
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
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
    rules: RuleMetrics,
    due_lag: Histogram,
    queue: Gauge,
    leader: Gauge,
    disagreements: Counter,
    comparisons: Family<Labels<1>, Counter>,
    sources: SourceMetrics,
    serving: Serving,
    kubelets: KubeletMetrics,
    caches: Family<Labels<1>, Gauge>,
    recorder: RecorderMetrics,
    telemetry_losses: Family<Labels<1>, Counter>,
    triggers: TriggerMetrics,
    sizes: Mutex<Vec<Size>>,
}

/// What is counted and measured of the sources of metrics.
struct SourceMetrics {
    requests: Family<Labels<2>, Counter>,
    seconds: Family<Labels<1>, Histogram>,
}

impl SourceMetrics {
    fn register(registry: &mut Registry) -> SourceMetrics {
        SourceMetrics {
            requests: registry.family(
                "podscale_source_requests",
                "Calls of sources of metrics by outcome",
                Counter::default,
            ),
            seconds: registry.family(
                "podscale_source_request_duration_seconds",
                "How long a source of metrics took to answer one call, in seconds",
                || Histogram::new(&REQUEST_SECONDS),
            ),
        }
    }
}

/// What the recorder counts.
struct RecorderMetrics {
    steps: Counter,
    dropped_steps: Counter,
    failures: Counter,
}

impl RecorderMetrics {
    fn register(registry: &mut Registry) -> RecorderMetrics {
        let mut counter = |name, help| registry.metric(name, help, Counter::default());
        RecorderMetrics {
            steps: counter("podscale_recorded_steps", "Decisions written to recordings"),
            dropped_steps: counter(
                "podscale_recording_dropped_steps",
                "Decisions not recorded because the disk was too slow",
            ),
            failures: counter("podscale_recording_failures", "Writes of recordings that failed"),
        }
    }
}

/// Something whose size is asked for only when metrics are read.
struct Size {
    gauge: Gauge,
    ask: Box<dyn Fn() -> usize + Send + Sync>,
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
        registry.info("podscale_build", "The program", ("version", env!("CARGO_PKG_VERSION")));
        let requests = Requests::register(&mut registry);
        let due_lag = registry.metric(
            "podscale_due_lag_seconds",
            "By how much a decision began after it was due, in seconds",
            Histogram::new(&LATENESS_SECONDS),
        );
        let inner = Inner {
            decisions,
            requests,
            rules: RuleMetrics::register(&mut registry),
            due_lag,
            queue: registry.metric(
                "podscale_queue_depth",
                "Autoscalers that are due and wait for a worker",
                Gauge::default(),
            ),
            leader: registry.metric(
                "podscale_leader",
                "Whether this replica leads: 1 or 0",
                Gauge::default(),
            ),
            disagreements: registry.metric(
                "podscale_disagreements",
                "Dry run: sizes that another controller wrote and this one would not have",
                Counter::default(),
            ),
            comparisons: registry.family(
                "podscale_comparisons",
                "Dry run: choices of another controller, and whether this one would have made them",
                Counter::default,
            ),
            sources: SourceMetrics::register(&mut registry),
            serving: Serving::register(&mut registry),
            kubelets: KubeletMetrics::register(&mut registry),
            caches: registry.family(
                "podscale_cache_objects",
                "Objects held in memory",
                Gauge::default,
            ),
            recorder: RecorderMetrics::register(&mut registry),
            telemetry_losses: registry.family(
                "podscale_telemetry_lost",
                "Spans, log lines and reports of metrics that no collector accepted",
                Counter::default,
            ),
            triggers: TriggerMetrics::register(&mut registry),
            sizes: Mutex::default(),
            registry,
        };
        Metrics(Arc::new(inner))
    }

    /// Everything, in the text form of OpenMetrics.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = Text::default();
        self.visit(&mut text);
        text.finish()
    }

    /// Visits every value.
    pub(crate) fn visit(&self, visitor: &mut dyn Visitor) {
        for size in &*self.0.sizes.lock() {
            size.gauge.set_count((size.ask)());
        }
        self.0.registry.visit(visitor);
    }

    /// A decision began, so long after it was due.
    pub fn due(&self, late: Duration) {
        self.0.due_lag.observe(late);
    }

    /// Shows how many autoscalers are due; asked for when metrics are read.
    pub fn show_queue(&self, ask: impl Fn() -> usize + Send + Sync + 'static) {
        self.show(self.0.queue.clone(), ask);
    }

    /// Shows how many objects a cache holds; asked for when metrics are read.
    pub fn show_cache(&self, name: &'static str, ask: impl Fn() -> usize + Send + Sync + 'static) {
        self.show(self.0.caches.with(&[("cache", name)]), ask);
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
        self.0.comparisons.with(&[("outcome", outcome)]).increment();
        if outcome == "disagreed" {
            self.0.disagreements.increment();
        }
    }

    /// A source of metrics was asked, and answered well or not.
    pub(crate) fn source_answered(&self, source: &'static str, well: bool, took: Duration) {
        let outcome = if well { "ok" } else { "error" };
        let sources = &self.0.sources;
        sources.requests.with(&[("source", source), ("outcome", outcome)]).increment();
        sources.seconds.with(&[("source", source)]).observe(took);
    }

    /// Decisions were written to recordings.
    pub fn recorded(&self, steps: u64) {
        self.0.recorder.steps.add(steps);
    }

    /// A decision was not recorded because the queue was full.
    pub fn record_dropped(&self) {
        self.0.recorder.dropped_steps.increment();
    }

    /// So many items of traces, logs or metrics did not reach their collector.
    pub fn telemetry_lost(&self, signal: &'static str, count: u64) {
        if count > 0 {
            self.0.telemetry_losses.with(&[("signal", signal)]).add(count);
        }
    }

    /// A recording could not be written.
    pub fn record_failed(&self) {
        self.0.recorder.failures.increment();
    }
}

#[cfg(test)]
mod tests;
