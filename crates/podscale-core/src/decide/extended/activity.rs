//! Whether a target is idle, and so gets its idle size.

use super::Context;
use super::ask::{Answers, total_of};
use crate::decision::Decision;
use crate::history::Memory;
use crate::model::{Metric, Milli, ScaleToZero};
use crate::steps::Activity;

/// What follows from the activity of a target.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Standing {
    /// Nothing: the metrics decide as usual.
    Usual,
    /// Something is active, so the target may not be idle.
    Awake,
    /// It cannot be known whether anything is active.
    Unknown,
    /// Nothing is active nor was for long: the target gets this size.
    Idle(i32),
}

/// Judges the activity of a target whose autoscaler lets it be idle.
pub(super) fn judge(
    context: &Context<'_>,
    answers: &Answers,
    memory: &mut Memory,
    decision: &mut Decision,
) -> Standing {
    let Some(zero) = context.extensions.scale_to_zero else {
        memory.last_active = None;
        return Standing::Usual;
    };
    let (activity, standing) = match found(context, answers) {
        // Nothing that could ever wake it: it is not put to sleep either.
        None => return Standing::Usual,
        Some(Found::Active(metric)) => {
            memory.last_active = Some(context.snapshot.now);
            (Activity::Active { metric }, Standing::Awake)
        }
        Some(Found::Unknown(metric)) => (Activity::Unknown { metric }, Standing::Unknown),
        Some(Found::Inactive) => inactive(context, zero, memory),
    };
    decision.steps.extend().activity = Some(activity);
    standing
}

/// Nothing is active. A target that is idle already stays so; any other one is, after the cool-down.
fn inactive(context: &Context<'_>, zero: ScaleToZero, memory: &mut Memory) -> (Activity, Standing) {
    let now = context.snapshot.now;
    let replicas = zero.idle_replicas.max(0);
    let until = memory.last_active.get_or_insert(now).after(zero.cooldown);
    if now < until && context.current() > replicas {
        (Activity::Cooling { until }, Standing::Usual)
    } else {
        (Activity::Idle { replicas }, Standing::Idle(replicas))
    }
}

enum Found {
    Active(u32),
    Inactive,
    Unknown(u32),
}

/// What the metrics that count say together; `None` if none of them counts.
fn found(context: &Context<'_>, answers: &Answers) -> Option<Found> {
    let mut found = None;
    for (place, metric) in context.snapshot.autoscaler.metrics.iter().enumerate() {
        let activation = context.extensions.rules(place).activation;
        if activation.is_none() && !metric.source.needs_no_pods() {
            continue;
        }
        match value(context, answers, metric, place) {
            Some(value) if value > activation.unwrap_or_default() => {
                return Some(Found::Active(place as u32));
            }
            Some(_) => {
                found.get_or_insert(Found::Inactive);
            }
            // Without pods there is nothing that could be active in them.
            None if context.current() == 0 && !metric.source.needs_no_pods() => {}
            None => found = Some(Found::Unknown(place as u32)),
        }
    }
    found
}

/// What is compared with the activation threshold: the whole of what one source says, or what is
/// made of the values of pods, in percent for a utilization.
fn value(context: &Context<'_>, answers: &Answers, metric: &Metric, place: usize) -> Option<Milli> {
    let proposal = answers.of_metrics.get(place)?.proposal.as_ref()?;
    let reading = context.snapshot.readings.get(place)?;
    if let Some((value, _)) = total_of(reading, &metric.source, metric.target) {
        return Some(value);
    }
    let current = &proposal.current;
    let percent = current.average_utilization;
    percent.map(|percent| Milli(i64::from(percent) * 1000)).or(current.average_value)
}
