//! Decisions, counted under the names of Kubernetes' own controller, and by outcome.

use super::{Buckets, Labels, Meters, added};
use crate::controller::observer::{Decided, Observer};
use crate::dashboard::outcome;
use crate::watch::world::Key;
use podscale_core::model::Source;
use podscale_core::snapshot::ScaleError;
use podscale_core::{Decision, Snapshot, Step};
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
        let outcomes = added(registry, "podscale_decisions", "Decisions by outcome");
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
            reconciliations: added(
                registry,
                "reconciliations",
                "Decisions by action (scale_up, scale_down, none) and error (spec, internal, none)",
            ),
            reconciliation_seconds: seconds(
                registry,
                "reconciliation_duration_seconds",
                "Seconds from the beginning of a decision until it was acted on",
            ),
            computations: added(
                registry,
                "metric_computation",
                "Metrics compared with their targets, by action, error and type of the metric",
            ),
            computation_seconds,
            objects: added(
                registry,
                "num_horizontal_pod_autoscalers",
                "Autoscalers that are looked after",
            ),
            desired: added(
                registry,
                "desired_replicas",
                "The size that each autoscaler wants for its target",
            ),
            outcomes,
        }
    }
}

/// What went wrong, in Kubernetes' words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    Spec,
    Internal,
}

impl Trouble {
    const fn name(self) -> &'static str {
        match self {
            Trouble::None => "none",
            Trouble::Spec => "spec",
            Trouble::Internal => "internal",
        }
    }
}

/// Whether a size is more, less or the same, in Kubernetes' words.
fn action(from: i32, to: i32) -> &'static str {
    match to.cmp(&from) {
        std::cmp::Ordering::Greater => "scale_up",
        std::cmp::Ordering::Less => "scale_down",
        std::cmp::Ordering::Equal => "none",
    }
}

fn of_metric(snapshot: &Snapshot<'_>, metric: u32) -> (&'static str, Trouble) {
    let metric = snapshot.autoscaler.metrics.get(metric as usize);
    match metric.map(|metric| &*metric.source) {
        Some(Source::Resource { .. }) => ("Resource", Trouble::Internal),
        Some(Source::ContainerResource { .. }) => ("ContainerResource", Trouble::Internal),
        Some(Source::Pods(_)) => ("Pods", Trouble::Internal),
        Some(Source::Object { .. }) => ("Object", Trouble::Internal),
        Some(Source::External(_)) => ("External", Trouble::Internal),
        // A type that nobody knows is not repeated: anything could stand there.
        Some(Source::Unknown { .. }) | None => ("Unknown", Trouble::Spec),
    }
}

/// Of several failures the one that ended the pass counts, or else the first metric's.
fn trouble(snapshot: &Snapshot<'_>, decision: &Decision) -> Trouble {
    if decision.error.is_none() {
        return Trouble::None;
    }
    let unstored = decision.desired.is_some()
        && decision.events.iter().any(|event| event.reason == "FailedUpdateStatus");
    if unstored {
        return Trouble::Internal;
    }
    if let Err(ScaleError::ApiVersion(_)) = snapshot.scale {
        return Trouble::Spec;
    }
    let first = decision.steps.iter().find_map(|step| match step {
        Step::Invalid { metric, .. } => Some(of_metric(snapshot, metric).1),
        _ => None,
    });
    first.unwrap_or(Trouble::Internal)
}

impl Observer for Meters {
    fn decided(&self, decided: &Decided<'_>) {
        let Decided { key, snapshot, decision, took, .. } = decided;
        let meters = &self.0.decisions;
        let done = match (&decision.rescale, decision.rescaled_at) {
            (Some(rescale), Some(_)) => action(rescale.from, rescale.to),
            _ => "none",
        };
        let labels = [("action", done), ("error", trouble(snapshot, decision).name())];
        meters.reconciliations.get_or_create(&labels).inc();
        meters.reconciliation_seconds.get_or_create(&labels).observe(took.whole.as_secs_f64());
        for step in decision.steps.iter() {
            let (metric, action, trouble) = match step {
                Step::Proposal(proposal) => {
                    let current = snapshot.status.current_replicas;
                    (proposal.metric, action(current, proposal.replicas), Trouble::None)
                }
                Step::Invalid { metric, .. } => (metric, "none", of_metric(snapshot, metric).1),
                _ => continue,
            };
            let kind = of_metric(snapshot, metric).0;
            let labels = [("action", action), ("error", trouble.name()), ("metric_type", kind)];
            meters.computations.get_or_create(&labels).inc();
            let took = took.metrics.get(metric as usize).copied().unwrap_or(Duration::ZERO);
            meters.computation_seconds.get_or_create(&labels).observe(took.as_secs_f64());
        }
        if let Some(desired) = decision.desired {
            meters.desired.get_or_create(&of_object(key)).set(i64::from(desired));
        }
        let outcome = [("outcome", outcome(decision).word())];
        meters.outcomes.get_or_create(&outcome).inc();
    }

    fn gone(&self, key: &Key) {
        self.0.decisions.desired.remove(&of_object(key));
    }
}

impl Meters {
    /// So many autoscalers are looked after.
    pub fn looks_after(&self, count: usize) {
        self.0.decisions.objects.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

fn of_object(key: &Key) -> OfObject {
    [("namespace", Arc::clone(&key.namespace)), ("hpa_name", Arc::clone(&key.name))]
}
