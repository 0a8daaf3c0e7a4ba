//! Decisions, counted under the names of Kubernetes' own controller, and by outcome.

use super::{Buckets, Labels, Metrics, registered};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

/// The bounds of Kubernetes' own histograms: from 1 ms, each twice the one before.
const SECONDS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 16.384,
];

/// The labels of one autoscaler's own series.
type OfObject = [(&'static str, Arc<str>); 2];

pub(super) struct Decisions {
    reconciliations: Family<Labels<2>, Counter>,
    reconciliation_seconds: Family<Labels<2>, Histogram, Buckets>,
    computations: Family<Labels<3>, Counter>,
    computation_seconds: Family<Labels<3>, Histogram, Buckets>,
    objects: Gauge,
    desired: Family<OfObject, Gauge>,
    outcomes: Family<Labels<1>, Counter>,
}

impl Decisions {
    pub(super) fn register(registry: &mut Registry) -> Decisions {
        let outcomes = registered(registry, "podscale_decisions", "Decisions by outcome");
        let registry = registry.sub_registry_with_prefix("horizontal_pod_autoscaler_controller");
        let seconds = |registry: &mut Registry, name: &str, help: &str| {
            let family = Family::new_with_constructor(Buckets(&SECONDS));
            registry.register(name, help, family.clone());
            family
        };
        let computation_seconds = Family::new_with_constructor(Buckets(&SECONDS));
        let help = "Seconds that one metric took to read and compare, by action and error";
        registry.register("metric_computation_duration_seconds", help, computation_seconds.clone());
        Decisions {
            reconciliations: registered(
                registry,
                "reconciliations",
                "Decisions by action (scale_up, scale_down, none) and error (spec, internal, none)",
            ),
            reconciliation_seconds: seconds(
                registry,
                "reconciliation_duration_seconds",
                "Seconds from the beginning of a decision until it was acted on",
            ),
            computations: registered(
                registry,
                "metric_computation",
                "Metrics compared with their targets, by action, error and type of the metric",
            ),
            computation_seconds,
            objects: registered(
                registry,
                "num_horizontal_pod_autoscalers",
                "Autoscalers that are managed",
            ),
            desired: registered(
                registry,
                "desired_replicas",
                "The size that each autoscaler wants for its target",
            ),
            outcomes,
        }
    }
}

/// One metric that was compared with its target.
pub(crate) struct Computation {
    /// `scale_up`, `scale_down` or `none`.
    pub(crate) action: &'static str,
    /// `spec`, `internal` or `none`.
    pub(crate) error: &'static str,
    /// The type of the metric.
    pub(crate) metric_type: &'static str,
    /// How long its source took.
    pub(crate) took: Duration,
}

impl Metrics {
    /// So many objects are managed.
    pub(crate) fn managed(&self, count: usize) {
        self.0.decisions.objects.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// An object was reconciled.
    pub(crate) fn reconciled(
        &self,
        action: &'static str,
        error: &'static str,
        outcome: &'static str,
        took: Duration,
    ) {
        let decisions = &self.0.decisions;
        let labels = [("action", action), ("error", error)];
        decisions.reconciliations.get_or_create(&labels).inc();
        decisions.reconciliation_seconds.get_or_create(&labels).observe(took.as_secs_f64());
        decisions.outcomes.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// A metric was compared with its target.
    pub(crate) fn computed(&self, computation: Computation) {
        let Computation { action, error, metric_type, took } = computation;
        let labels = [("action", action), ("error", error), ("metric_type", metric_type)];
        self.0.decisions.computations.get_or_create(&labels).inc();
        let seconds = &self.0.decisions.computation_seconds;
        seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// The size that an object wants for its target.
    pub(crate) fn desires(&self, namespace: &Arc<str>, name: &Arc<str>, replicas: i32) {
        let labels = of_object(namespace, name);
        self.0.decisions.desired.get_or_create(&labels).set(i64::from(replicas));
    }

    /// An object is gone.
    pub(crate) fn gone(&self, namespace: &Arc<str>, name: &Arc<str>) {
        self.0.decisions.desired.remove(&of_object(namespace, name));
    }
}

fn of_object(namespace: &Arc<str>, name: &Arc<str>) -> OfObject {
    [("namespace", Arc::clone(namespace)), ("hpa_name", Arc::clone(name))]
}
