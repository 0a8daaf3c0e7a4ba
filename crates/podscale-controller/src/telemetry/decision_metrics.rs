//! Counts decisions under the names of Kubernetes' own controller, and by outcome.

use crate::controller::observer::{Decided, JobsDecided, Observer};
use crate::dialect::Key;
use crate::metrics::{Computation, Metrics, Object};
use podscale_core::model::Source;
use podscale_core::pass::WriteOutcome;
use podscale_core::snapshot::ScaleError;
use podscale_core::{Outcome, Snapshot, StatusWrite, Step};
use std::time::Duration;

/// The observer that counts.
pub struct DecisionMetrics(pub Metrics);

impl Observer for DecisionMetrics {
    fn decided(&self, decided: &Decided<'_>) {
        let (snapshot, decision, took) = (decided.snapshot, decided.decision(), decided.took);
        let done = match (&decision.rescale, decision.rescaled_at) {
            (Some(rescale), Some(_)) => action(rescale.from, rescale.to),
            _ => "none",
        };
        let error = failure(snapshot, decided.outcome).name();
        let (word, kind) = (decided.outcome_kind().word(), decided.key().kind.name);
        self.0.reconciled(done, error, word, kind, took.whole);
        for step in decision.steps.iter() {
            let (metric, action, failure) = match step {
                Step::Proposal(proposal) => {
                    let current = snapshot.status.current_replicas;
                    (proposal.metric, action(current, proposal.replicas), Failure::None)
                }
                Step::Invalid { metric, .. } => (metric, "none", of_metric(snapshot, metric).1),
                _ => continue,
            };
            let took = took.metrics.get(metric as usize).copied().unwrap_or(Duration::ZERO);
            let metric_type = of_metric(snapshot, metric).0;
            let error = failure.name();
            self.0.computed(Computation { action, error, metric_type, took });
        }
        if let Some(desired) = decision.desired {
            self.0.desires(object(decided.key()), desired);
        }
    }

    fn jobs_decided(&self, decided: &JobsDecided<'_>) {
        let (word, key) = (decided.outcome_kind().word(), decided.key);
        self.0.jobs_decided(word, key.kind.name);
        if let Some(counts) = decided.counts() {
            self.0.desires(object(key), counts.running.saturating_add(decided.wanted()));
        }
    }

    fn gone(&self, key: &Key) {
        self.0.gone(object(key));
    }
}

/// How series name an object.
fn object(key: &Key) -> Object<'_> {
    let other_kind = (!key.kind.is_native()).then_some(key.kind.name);
    Object { other_kind, namespace: &key.namespace, name: &key.name }
}

/// What went wrong, in Kubernetes' words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    None,
    Spec,
    Internal,
}

impl Failure {
    const fn name(self) -> &'static str {
        match self {
            Failure::None => "none",
            Failure::Spec => "spec",
            Failure::Internal => "internal",
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

fn of_metric(snapshot: &Snapshot<'_>, metric: u32) -> (&'static str, Failure) {
    let metric = snapshot.autoscaler.metrics.get(metric as usize);
    match metric.map(|metric| &*metric.source) {
        Some(source @ Source::Unknown { .. }) => (source.type_name(), Failure::Spec),
        Some(source) => (source.type_name(), Failure::Internal),
        None => ("Unknown", Failure::Spec),
    }
}

/// Of several failures the one that ended the pass counts, or else the first metric's.
fn failure(snapshot: &Snapshot<'_>, outcome: &Outcome) -> Failure {
    let decision = &outcome.decision;
    if decision.error.is_none() {
        return Failure::None;
    }
    let unstored = matches!(outcome.status, WriteOutcome::Ended(StatusWrite::Failed(_)));
    if unstored && decision.desired.is_some() {
        return Failure::Internal;
    }
    if let Err(ScaleError::ApiVersion(_)) = snapshot.scale {
        return Failure::Spec;
    }
    let first = decision.steps.iter().find_map(|step| match step {
        Step::Invalid { metric, .. } => Some(of_metric(snapshot, metric).1),
        _ => None,
    });
    first.unwrap_or(Failure::Internal)
}

#[cfg(test)]
mod tests;
