//! Whether a target is idle, and so gets its idle size.

use super::Context;
use super::answer::Answer;
use super::ask::Answers;
use crate::decision::Decision;
use crate::history::Memory;
use crate::model::{Milli, ScaleToZero, Source};
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
    let zero = context.extensions.scale_to_zero;
    let has_triggers = || {
        let mut metrics = context.snapshot.autoscaler.metrics.iter();
        metrics.any(|metric| matches!(*metric.source, Source::Trigger(_)))
    };
    // The activity of triggers is shown even if nothing follows from it.
    if zero.is_none() && !has_triggers() {
        memory.last_active = None;
        return Standing::Usual;
    }
    let (activity, standing) = match found(context, answers) {
        // Nothing that could ever wake it: it is not put to sleep either.
        None => return Standing::Usual,
        Some(Found::Active(activity)) => {
            memory.last_active = Some(context.snapshot.now);
            (activity, Standing::Awake)
        }
        Some(Found::Unknown(metric)) => (Activity::Unknown { metric }, Standing::Unknown),
        Some(Found::Inactive) => match zero {
            Some(zero) => inactive(context, zero, memory),
            None => (Activity::Inactive, Standing::Usual),
        },
    };
    decision.steps.extend().activity = Some(activity);
    if zero.is_some() { standing } else { Standing::Usual }
}

/// Nothing is active. A target that is idle already stays so; any other one is, after the cool-down.
fn inactive(context: &Context<'_>, zero: ScaleToZero, memory: &mut Memory) -> (Activity, Standing) {
    let now = context.snapshot.now;
    let replicas = zero.idle_replicas.max(0);
    // What was not seen may have been seen by another controller, before or since.
    let last_active = memory.last_active.max(context.snapshot.status.last_active);
    let until = match (last_active, context.extensions.activation.idle_from) {
        (None, Some(idle_from)) => idle_from,
        (last, _) => {
            let last = last.unwrap_or(now);
            memory.last_active = Some(last);
            last.after(zero.cooldown)
        }
    };
    if now < until && context.current() > replicas {
        (Activity::Cooling { until }, Standing::Usual)
    } else {
        (Activity::Idle { replicas }, Standing::Idle(replicas))
    }
}

enum Found {
    Active(Activity),
    Inactive,
    Unknown(u32),
}

/// What the metrics that count say together; `None` if none of them counts.
fn found(context: &Context<'_>, answers: &Answers) -> Option<Found> {
    if context.extensions.activation.forced {
        return Some(Found::Active(Activity::Forced));
    }
    let mut found = None;
    for (place, metric) in context.snapshot.autoscaler.metrics.iter().enumerate() {
        let activation = context.extensions.rules(place).activation;
        if activation.is_none() && !metric.source.needs_no_pods() {
            continue;
        }
        let answer = answers.of_metrics.get(place);
        let above = |value| value > activation.unwrap_or_default();
        let active = answer.and_then(|answer| answer.active.or_else(|| value(answer).map(above)));
        match active {
            Some(true) => {
                return Some(Found::Active(Activity::Active { metric: place as u32 }));
            }
            Some(false) => {
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
fn value(answer: &Answer) -> Option<Milli> {
    let proposal = answer.proposal.as_ref()?;
    let current = &proposal.current;
    let percent = current.average_utilization;
    let of_pods = percent.map(|percent| Milli(i64::from(percent) * 1000)).or(current.average_value);
    answer.total.or(of_pods)
}
