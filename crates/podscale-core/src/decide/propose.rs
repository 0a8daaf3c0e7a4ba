//! Asks each metric how many replicas it wants; the largest answer wins.

use super::tolerance::Tolerances;
use super::{per_pod, set, total};
use crate::decision::{Decision, Event, MetricResults};
use crate::model::{Metric, MetricTarget, Source, Wording};
use crate::pod::Pod;
use crate::snapshot::{Reading, Scale, Snapshot};
use crate::status::{ConditionKind, Finding, Note};
use crate::steps::{Agreement, Proposal};
use crate::text::{self, MetricError, MetricFailure};

/// The winning size and the metric it comes from, or `None` if nothing may be scaled because
/// metrics are broken.
pub(super) fn propose(
    snapshot: &Snapshot<'_>,
    scale: Scale,
    pods: &[Pod],
    decision: &mut Decision,
) -> Option<(i32, usize)> {
    let autoscaler = snapshot.autoscaler;
    let mut winner: Option<(i32, usize)> = None;
    let mut first_failure: Option<Failure> = None;
    let mut invalid = 0u32;

    for (place, metric) in autoscaler.metrics.iter().enumerate() {
        match proposal(snapshot, scale, pods, metric, place) {
            Ok(proposal) => {
                // A proposal of zero gives way to any later one.
                if winner.is_none_or(|(best, _)| best == 0 || proposal.replicas > best) {
                    winner = Some((proposal.replicas, place));
                }
                decision.steps.metrics.push(Ok(proposal));
            }
            Err(error) => {
                invalid += 1;
                let namespace = &*autoscaler.namespace;
                let failure = MetricFailure { namespace, metric, error: &error };
                report_failure(&failure, Wording::Kubernetes, &mut first_failure, decision);
            }
        }
    }
    decision.metrics = MetricResults::Read;

    let of = autoscaler.metrics.len() as u32;
    let failure =
        first_failure.map(|(first, note)| (text::invalid_metrics(invalid, of, &first), note));
    match winner {
        Some((replicas, metric)) if invalid == 0 || replicas >= scale.spec_replicas => {
            let place = metric as u32;
            let finding = Finding::ValidMetric(place);
            set(snapshot, decision, ConditionKind::ScalingActive, true, finding);
            decision.error = failure.map(|(message, _)| message.into());
            decision.steps.agreement = Some(Agreement::Winner { metric: place, replicas, invalid });
            Some((replicas, metric))
        }
        _ => {
            let proposed = winner.map(|(replicas, _)| replicas);
            decision.steps.agreement = Some(Agreement::Blocked { invalid, of, proposed });
            block(snapshot, decision, failure);
            None
        }
    }
}

/// A failure in the words of the pass, and those of the condition that it may lead to.
pub(super) type Failure = (String, Note);

/// Notes that a metric failed. Only the first failure goes into the error and the condition.
#[cold]
pub(super) fn report_failure(
    failure: &MetricFailure<'_>,
    wording: Wording,
    first_failure: &mut Option<Failure>,
    decision: &mut Decision,
) {
    let inner = failure.inner();
    let reason = text::failure_reason(&failure.metric.source, wording);
    decision.events.push(Event::warning(reason, inner.as_str()));
    first_failure.get_or_insert_with(|| {
        let note = Note::text(reason, text::unable_to_compute(&inner));
        (failure.outer(), note)
    });
    decision.steps.metrics.push(Err(inner.into()));
}

/// Says that nothing may be scaled, and why.
#[cold]
pub(super) fn block(snapshot: &Snapshot<'_>, decision: &mut Decision, failure: Option<Failure>) {
    // No API server lets a spec without any metric pass; should there be one, it fails too.
    let (message, note) = failure.unwrap_or_else(|| {
        let note = Note::text("InvalidMetricSourceType", text::NO_METRICS);
        (text::NO_METRICS.to_owned(), note)
    });
    set(snapshot, decision, ConditionKind::ScalingActive, false, note);
    decision.compute_failed(snapshot, &message);
}

/// What one metric asks for.
fn proposal(
    snapshot: &Snapshot<'_>,
    scale: Scale,
    pods: &[Pod],
    metric: &Metric,
    place: usize,
) -> Result<Proposal, MetricError> {
    check(metric)?;
    let reading = match snapshot.readings.get(place) {
        Some(Reading::Failed(error)) => return Err(MetricError::Fetch(error.clone())),
        None | Some(Reading::Empty) => return Err(MetricError::NoneReturned),
        Some(reading) => reading,
    };
    let tolerances = || Tolerances::of(snapshot.autoscaler, snapshot.settings);
    match (reading, &*metric.source) {
        (
            Reading::PerPod(readings),
            Source::Resource { .. } | Source::ContainerResource { .. } | Source::Pods(_),
        ) => per_pod::propose(snapshot, scale, pods, metric, place, readings),
        (Reading::Total { value, .. }, Source::Object { .. } | Source::Prometheus(_)) => {
            total::propose(scale, pods, metric, place, *value, tolerances())
        }
        (Reading::Trigger { value, .. }, Source::Trigger(_)) => {
            total::propose(scale, pods, metric, place, *value, tolerances())
        }
        (Reading::Series { values, .. }, Source::External(_)) => {
            let sum = total::sum(values, metric.target);
            total::propose(scale, pods, metric, place, sum, tolerances())
        }
        // A reading of another shape than the source's is no reading.
        _ => Err(MetricError::NoneReturned),
    }
}

/// What is wrong with the metric itself, before anything is read.
pub(super) fn check(metric: &Metric) -> Result<(), MetricError> {
    let series = match &*metric.source {
        Source::Unknown { .. } => return Err(MetricError::UnknownSource),
        Source::Resource { .. }
        | Source::ContainerResource { .. }
        | Source::Prometheus(_)
        | Source::Trigger(_) => None,
        Source::Pods(series) | Source::Object { series, .. } => Some(series),
        // An external metric without a target is noticed before its selector is checked.
        Source::External(_) if metric.target == MetricTarget::Unset => None,
        Source::External(series) => Some(series),
    };
    if let Some(error) = series.and_then(|s| s.selector_error.clone()) {
        return Err(MetricError::Selector(error));
    }
    if metric.target == MetricTarget::Unset { Err(MetricError::NoTarget) } else { Ok(()) }
}
