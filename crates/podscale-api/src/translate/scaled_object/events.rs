//! The events of a ScaledObject that follow from a decision, with KEDA's reasons and words.

use super::status::{
    CHECK_FAILED, FALLBACK, PAUSED, PAUSED_MESSAGE, Passed, READY, UNPAUSED_MESSAGE, activity, get,
    refused, was_never_ready,
};
use super::{CheckError, step};
use crate::keda::Condition;
use crate::keda::scaled_object::ScaledObjectStatus;
use crate::translate::polling::{started, stopped};
use podscale_core::decision::RescaleReason;
use podscale_core::model::{Source, Trigger, TriggerOf};
use podscale_core::pass::{ScaleWrite, WriteOutcome};
use podscale_core::snapshot::Reading;
use podscale_core::steps::Activity;
use podscale_core::{Event, Step};

/// The events of a pass, given the status that follows from it.
#[must_use]
pub fn events(passed: Passed<'_>, new: &ScaledObjectStatus) -> Vec<Event> {
    let mut events = of_conditions(passed, new);
    // What the metrics and rates have to say is said as by an HPA, but for the steps from and to idle. Why an object is
    // refused is said already.
    let first = passed.outcome.decision.rescale.map(|rescale| rescale.reason);
    let is_own = matches!(first, Some(RescaleReason::Activated | RescaleReason::Idle));
    let is_refused = refused(passed).is_some();
    let rest = passed.outcome.decision.events.iter().filter(|event| match &*event.reason {
        "SuccessfulRescale" | "FailedRescale" => !is_own,
        "InvalidSpec" | "FailedGetScale" => !is_refused,
        _ => true,
    });
    events.extend(rest.cloned());
    events.extend(of_size(passed, new));
    events
}

/// What changed in the conditions.
fn of_conditions(passed: Passed<'_>, new: &ScaledObjectStatus) -> Vec<Event> {
    let old = passed.object.status.as_ref();
    let is = |status: &ScaledObjectStatus, kind: &str| {
        get(status, kind).is_some_and(|condition| condition.status == "True")
    };
    let turned = |kind: &str| {
        let was = old.is_some_and(|old| is(old, kind));
        let now = is(new, kind);
        (was != now).then_some(now)
    };
    let mut events = Vec::new();
    match turned(PAUSED) {
        Some(true) => events.push(Event::normal("ScaledObjectPaused", PAUSED_MESSAGE)),
        Some(false) => events.push(Event::normal("ScaledObjectUnpaused", UNPAUSED_MESSAGE)),
        None => {}
    }
    events.extend(of_ready(passed, new));
    match turned(FALLBACK) {
        Some(true) => events.push(Event::normal(
            "ScaledObjectFallbackActivated",
            "ScaledObject fallback is active",
        )),
        Some(false) => events.push(Event::normal(
            "ScaledObjectFallbackDeactivated",
            "ScaledObject fallback is no longer active",
        )),
        None => {}
    }
    events
}

/// Whether the object can be used, and whether its triggers are polled.
fn of_ready(passed: Passed<'_>, new: &ScaledObjectStatus) -> Vec<Event> {
    let Some(now) = get(new, READY) else { return Vec::new() };
    let was = passed.object.status.as_ref().and_then(|old| get(old, READY));
    let was_ready = was.is_some_and(|was| !was_never_ready(was));
    let was_polled = was_ready && was.is_some_and(|was| !is_stopped(was));
    let mut events = Vec::new();
    if now.reason == CHECK_FAILED {
        if was != Some(now) {
            let is_missing = |refused: CheckError| {
                refused.step == step::TARGET && refused.problem.ends_with("not found")
            };
            if refused(passed).is_some_and(is_missing) {
                events.push(Event::warning(CHECK_FAILED, "Target resource doesn't exist"));
            }
            events.push(Event::warning(CHECK_FAILED, now.message.as_str()));
        }
    } else {
        if !was_polled && !is_stopped(now) {
            events.extend(started(&passed.object.spec.triggers));
        }
        if !was_ready {
            let message = "ScaledObject is ready for scaling";
            events.push(Event::normal("ScaledObjectReady", message));
        }
    }
    if was_polled && is_stopped(now) {
        events.push(stopped());
    }
    events
}

/// Whether a pause keeps triggers from being polled.
fn is_stopped(ready: &Condition) -> bool {
    ready.message == PAUSED_MESSAGE || ready.message.starts_with(step::PAUSE)
}

/// The step from idle, or to it.
fn of_size(passed: Passed<'_>, new: &ScaledObjectStatus) -> Option<Event> {
    let rescale = passed.outcome.decision.rescale?;
    let object = passed.object;
    let target = &object.spec.scale_target_ref;
    let kind = match &*new.scale_target_kind {
        "" => format!("{}.{}", target.api_version(), target.kind()),
        known => known.to_owned(),
    };
    let (namespace, name) = (&object.metadata.namespace, &target.name);
    let change = format!("{kind} {namespace}/{name} from {} to {}", rescale.from, rescale.to);
    let WriteOutcome::Ended(write) = &passed.outcome.scale else { return None };
    match (rescale.reason, write) {
        (RescaleReason::Activated, ScaleWrite::Written) => {
            let why = cause(passed);
            let message = format!("Scaled {change}, {why}");
            Some(Event::normal("KEDAScaleTargetActivated", message))
        }
        (RescaleReason::Activated, ScaleWrite::Failed(error)) => {
            let message = format!("Failed to scale {change}: {error}");
            Some(Event::warning("KEDAScaleTargetActivationFailed", message))
        }
        (RescaleReason::Idle, ScaleWrite::Written) => {
            Some(Event::normal("KEDAScaleTargetDeactivated", format!("Deactivated {change}")))
        }
        (RescaleReason::Idle, ScaleWrite::Failed(error)) => {
            let message = format!("Failed to deactivate {change}: {error}");
            Some(Event::warning("KEDAScaleTargetDeactivationFailed", message))
        }
        _ => None,
    }
}

/// Why a target was woken.
fn cause(passed: Passed<'_>) -> String {
    if activity(&passed.outcome.decision) == Some(Activity::Forced) {
        return "caused by forced activation annotation".to_owned();
    }
    let (snapshot, steps) = (passed.snapshot, &passed.outcome.decision.steps);
    let stands_in = |place: usize| {
        steps.iter().any(
            |step| matches!(step, Step::Substituted { metric, .. } if metric as usize == place),
        )
    };
    let mut active: Vec<&str> = Vec::new();
    let lined_up = snapshot.autoscaler.metrics.iter().zip(snapshot.readings).enumerate();
    for (place, (metric, reading)) in lined_up {
        if let Source::Trigger(Trigger { name, of }) = &*metric.source {
            let is_active = match of {
                TriggerOf::Source(_) => matches!(reading, Reading::Trigger { active: true, .. }),
                TriggerOf::Formula(_) => true,
            };
            active.extend((is_active || stands_in(place)).then_some(&**name));
        }
    }
    format!("triggered by {}", active.join(";"))
}
