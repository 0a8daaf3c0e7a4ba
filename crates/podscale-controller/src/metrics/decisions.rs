//! Decisions, counted under the names of Kubernetes' own controller, and by outcome.

use super::instruments::{Counter, Family, Gauge, Histogram};
use super::registry::Registry;
use super::{Labels, Metrics};
use std::sync::Arc;
use std::time::Duration;

/// The bounds of Kubernetes' own histograms: from 1 ms, each twice the one before.
const DECISION_SECONDS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096,
    8.192, 16.384,
];

/// The labels of one HPA's own series, as Kubernetes' controller has them.
type OfHpa = [(&'static str, Arc<str>); 2];
/// The labels of the series of one autoscaler of another kind.
type OfObject = [(&'static str, Arc<str>); 3];

pub(super) struct Decisions {
    reconciliations: Family<Labels<2>, Counter>,
    reconciliation_seconds: Family<Labels<2>, Histogram>,
    computations: Family<Labels<3>, Counter>,
    computation_seconds: Family<Labels<3>, Histogram>,
    objects: Gauge,
    desired: Family<OfHpa, Gauge>,
    desired_of_others: Family<OfObject, Gauge>,
    outcomes: Family<Labels<2>, Counter>,
}

impl Decisions {
    pub(super) fn register(registry: &mut Registry) -> Decisions {
        let seconds = || Histogram::new(&DECISION_SECONDS);
        Decisions {
            outcomes: registry.family(
                "podscale_decisions",
                "Decisions by outcome and kind of the autoscaler",
                Counter::default,
            ),
            computation_seconds: registry.family(
                "horizontal_pod_autoscaler_controller_metric_computation_duration_seconds",
                "Seconds that one metric took to read and compare, by action and error",
                seconds,
            ),
            reconciliations: registry.family(
                "horizontal_pod_autoscaler_controller_reconciliations",
                "Decisions by action (scale_up, scale_down, none) and error (spec, internal, none)",
                Counter::default,
            ),
            reconciliation_seconds: registry.family(
                "horizontal_pod_autoscaler_controller_reconciliation_duration_seconds",
                "Seconds from the beginning of a decision until it was acted on",
                seconds,
            ),
            computations: registry.family(
                "horizontal_pod_autoscaler_controller_metric_computation",
                "Metrics compared with their targets, by action, error and type of the metric",
                Counter::default,
            ),
            objects: registry.metric(
                "horizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers",
                "Autoscalers that are managed",
                Gauge::default(),
            ),
            desired: registry.family(
                "horizontal_pod_autoscaler_controller_desired_replicas",
                "The size that each HorizontalPodAutoscaler wants for its target",
                Gauge::default,
            ),
            desired_of_others: registry.family(
                "podscale_desired_replicas",
                "The size that each autoscaler of another kind wants for its target",
                Gauge::default,
            ),
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
        self.0.decisions.objects.set_count(count);
    }

    /// An object was reconciled.
    pub(crate) fn reconciled(
        &self,
        action: &'static str,
        error: &'static str,
        outcome: &'static str,
        kind: &'static str,
        took: Duration,
    ) {
        let decisions = &self.0.decisions;
        let labels = [("action", action), ("error", error)];
        decisions.reconciliations.with(&labels).increment();
        decisions.reconciliation_seconds.with(&labels).observe(took);
        decisions.outcomes.with(&[("outcome", outcome), ("kind", kind)]).increment();
    }

    /// It was decided how many Jobs an object of this kind creates.
    pub(crate) fn jobs_decided(&self, outcome: &'static str, kind: &'static str) {
        self.0.decisions.outcomes.with(&[("outcome", outcome), ("kind", kind)]).increment();
    }

    /// A metric was compared with its target.
    pub(crate) fn computed(&self, computation: Computation) {
        let Computation { action, error, metric_type, took } = computation;
        let labels = [("action", action), ("error", error), ("metric_type", metric_type)];
        self.0.decisions.computations.with(&labels).increment();
        self.0.decisions.computation_seconds.with(&labels).observe(took);
    }

    /// The size that an object wants for its target.
    pub(crate) fn desires(&self, object: Object<'_>, replicas: i32) {
        let (decisions, replicas) = (&self.0.decisions, i64::from(replicas));
        match object.other_kind {
            None => decisions.desired.with(&object.as_hpa()).set(replicas),
            Some(kind) => decisions.desired_of_others.with(&object.of_kind(kind)).set(replicas),
        }
    }

    /// An object is gone.
    pub(crate) fn gone(&self, object: Object<'_>) {
        let decisions = &self.0.decisions;
        match object.other_kind {
            None => decisions.desired.remove(&object.as_hpa()),
            Some(kind) => decisions.desired_of_others.remove(&object.of_kind(kind)),
        }
    }
}

/// An autoscaler that has series of its own.
#[derive(Clone, Copy)]
pub(crate) struct Object<'a> {
    /// Its kind, if it is no HorizontalPodAutoscaler.
    pub(crate) other_kind: Option<&'static str>,
    /// Its namespace.
    pub(crate) namespace: &'a Arc<str>,
    /// Its name.
    pub(crate) name: &'a Arc<str>,
}

impl Object<'_> {
    fn as_hpa(self) -> OfHpa {
        [("namespace", Arc::clone(self.namespace)), ("hpa_name", Arc::clone(self.name))]
    }

    fn of_kind(self, kind: &'static str) -> OfObject {
        let (namespace, name) = (Arc::clone(self.namespace), Arc::clone(self.name));
        [("kind", kind.into()), ("namespace", namespace), ("name", name)]
    }
}
