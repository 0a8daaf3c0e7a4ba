//! Turns one snapshot into one decision. Never fails, never waits, never reads a clock.

use crate::decision::{Decision, Event, MetricResults, Rescale, RescaleReason};
use crate::history::Recommendation;
use crate::model::{Autoscaler, Extensions, Pace, Wording};
use crate::snapshot::{Scale, ScaleError, Selection, Snapshot};
use crate::status::{ConditionKind, ConditionStatus, Finding, Note, Status};
use crate::steps::{Bound, End, Stop};
use crate::text;
use std::borrow::Borrow;
use std::sync::Arc;

mod extended;
pub mod external;
mod limit;
mod per_pod;
mod propose;
mod stabilize;
mod tolerance;
mod total;

/// Decides how many replicas the target should have. Sequence and state stay here; the modules
/// below only compute.
#[must_use]
pub fn decide(snapshot: &Snapshot<'_>) -> Decision {
    let mut decision = Decision::undecided();
    decide_into(snapshot, &mut decision);
    decision
}

/// The same into a place where nothing was decided yet: a decision is large to move.
pub(crate) fn decide_into(snapshot: &Snapshot<'_>, decision: &mut Decision) {
    match (snapshot.scale, snapshot.autoscaler.extensions.as_deref()) {
        (_, Some(Extensions { invalid: Some(why), wording, .. })) => {
            without_spec(snapshot, why, *wording, decision);
        }
        (Ok(scale), None) => with_scale(snapshot, *scale, decision),
        (Ok(scale), Some(extensions)) => extended::decide(snapshot, extensions, *scale, decision),
        (Err(error), _) => without_scale(snapshot, error, decision),
    }
}

/// A spec that cannot be acted on is reported when it is found, and shown as long as it is there.
#[cold]
fn without_spec(
    snapshot: &Snapshot<'_>,
    why: &Arc<str>,
    wording: Wording,
    decision: &mut Decision,
) {
    let reason = text::invalid_spec_reason(wording);
    let stored = snapshot.status.condition(ConditionKind::AbleToScale);
    let known = |note: &Note| note.reason() == reason && note.message() == **why;
    if !stored.is_some_and(|stored| known(&stored.note)) {
        decision.events.push(Event::warning(reason, &**why));
    }
    let note = Note::text(reason, &**why);
    set(snapshot, decision, ConditionKind::AbleToScale, false, note);
    decision.error = Some((&**why).into());
    decision.steps.stop = Some(Stop::InvalidSpec(Arc::clone(why)));
}

fn without_scale(snapshot: &Snapshot<'_>, error: &ScaleError, decision: &mut Decision) {
    let (ScaleError::ApiVersion(cause)
    | ScaleError::NoResource(cause)
    | ScaleError::Unreadable(cause)) = error;
    decision.events.push(Event::warning("FailedGetScale", &**cause));
    let note = Note::text("FailedGetScale", text::unable_to_get_scale(cause));
    set(snapshot, decision, ConditionKind::AbleToScale, false, note);
    decision.error = Some(text::scale_failed(snapshot.autoscaler, error).into());
    decision.steps.stop = Some(Stop::ScaleUnknown(Arc::clone(cause)));
}

fn with_scale(snapshot: &Snapshot<'_>, scale: Scale, decision: &mut Decision) {
    let current = scale.spec_replicas;
    decision.found = Some(current);
    decision.metrics = MetricResults::NotRead;
    decision.steps.scale = Some(scale);
    if snapshot.history.recommendations.is_empty() {
        decision.learned.first = Some(Recommendation { replicas: current, at: snapshot.now });
    }

    let autoscaler = snapshot.autoscaler;
    let (min, max) = (autoscaler.min_replicas, autoscaler.max_replicas);
    if asks_metrics(autoscaler, scale, || snapshot.status) {
        by_metrics(snapshot, scale, decision);
    } else if current == 0 {
        set(snapshot, decision, ConditionKind::ScalingActive, false, Note::ScalingDisabled);
        decision.steps.stop = Some(Stop::Disabled);
        keep(current, decision);
    } else if current > max {
        decision.steps.stop = Some(Stop::OutsideBounds { bound: Bound::Max, replicas: max });
        change(current, max, RescaleReason::AboveMax, decision);
    } else {
        decision.steps.stop = Some(Stop::OutsideBounds { bound: Bound::Min, replicas: min });
        change(current, min, RescaleReason::BelowMin, decision);
    }
    // Unless stabilizing said more.
    if decision.conditions.get(ConditionKind::AbleToScale).is_none() {
        set(snapshot, decision, ConditionKind::AbleToScale, true, Note::SucceededGetScale);
    }
}

/// Whether a decision on a target of this size reads metrics and pods. A size out of bounds is
/// corrected without them, and zero that somebody else set is left alone. The stored status is asked
/// for only where it matters.
pub fn reads_metrics<S: Borrow<Status>>(
    autoscaler: &Autoscaler,
    scale: Scale,
    status: impl FnOnce() -> S,
) -> bool {
    match &autoscaler.extensions {
        None => asks_metrics(autoscaler, scale, status),
        // Which bounds are in force is known only when it is decided.
        Some(extensions)
            if extensions.invalid.is_some() || extensions.control.overrules_metrics() =>
        {
            false
        }
        Some(extensions) => {
            scale.spec_replicas != 0
                || extended::may_wake(autoscaler, extensions, status().borrow())
        }
    }
}

fn asks_metrics<S: Borrow<Status>>(
    autoscaler: &Autoscaler,
    scale: Scale,
    status: impl FnOnce() -> S,
) -> bool {
    let (min, max) = (autoscaler.min_replicas, autoscaler.max_replicas);
    if scale.spec_replicas == 0 {
        let held = held_at_zero(status().borrow());
        return held && (min != 0 || autoscaler.has_metric_without_pods());
    }
    (min..=max).contains(&scale.spec_replicas)
}

/// Whether this autoscaler, and nobody else, has set its target to zero.
fn held_at_zero(status: &Status) -> bool {
    let condition = status.condition(ConditionKind::ScaledToZero);
    condition.is_some_and(|c| c.status == ConditionStatus::True)
}

/// Metrics propose, recent recommendations steady, limits hold back.
fn by_metrics(snapshot: &Snapshot<'_>, scale: Scale, decision: &mut Decision) {
    let Some(pods) = selected_pods(snapshot, decision) else {
        return;
    };
    let Some((proposed, metric)) = propose::propose(snapshot, scale, pods, decision) else {
        return;
    };

    let current = scale.spec_replicas;
    // Less than nothing cannot be asked for; then no metric gets the credit either.
    let wanted = proposed.max(0);
    let mut reason = match wanted.cmp(&current) {
        std::cmp::Ordering::Greater => RescaleReason::AboveTarget { metric: metric as u32 },
        std::cmp::Ordering::Less => RescaleReason::BelowTarget,
        std::cmp::Ordering::Equal => RescaleReason::Earlier,
    };

    let steady = stabilize::stabilize(snapshot, current, wanted, decision);
    let (bounds, pace) = (snapshot.autoscaler.bounds(), Pace::Policies);
    let mut desired = limit::limit(snapshot, bounds, pace, current, steady, decision);

    let min = snapshot.autoscaler.min_replicas;
    if current == 0 && desired < min {
        desired = min;
        decision.steps.raised_from_zero = Some(min);
        if reason == RescaleReason::Earlier {
            reason = RescaleReason::BelowMin;
        }
    }
    if desired == current {
        keep(current, decision);
    } else {
        change(current, desired, reason, decision);
    }
}

/// The pods, or the trouble with the selector.
#[inline]
fn selected_pods<'a>(
    snapshot: &Snapshot<'a>,
    decision: &mut Decision,
) -> Option<&'a [crate::pod::Pod]> {
    if let Selection::Pods(pods) = snapshot.pods {
        return Some(pods);
    }
    report_selector(snapshot, decision);
    None
}

#[cold]
fn report_selector(snapshot: &Snapshot<'_>, decision: &mut Decision) {
    let (event, message, note) = match snapshot.pods {
        Selection::Pods(_) => return,
        Selection::NoSelector => (
            "SelectorRequired",
            text::SELECTOR_REQUIRED.to_owned(),
            Note::text("InvalidSelector", text::SELECTOR_MISSING),
        ),
        Selection::BadSelector(error) => {
            let message = text::bad_selector(error);
            ("InvalidSelector", message.clone(), Note::text("InvalidSelector", message))
        }
        Selection::Ambiguous { selector, autoscalers } => {
            let message = text::ambiguous_selector(selector, autoscalers);
            ("AmbiguousSelector", message.clone(), Note::text("AmbiguousSelector", message))
        }
    };
    decision.events.push(Event::warning(event, message.as_str()));
    set(snapshot, decision, ConditionKind::ScalingActive, false, note);
    decision.compute_failed(snapshot, &message);
    decision.steps.stop = Some(Stop::NoPods(message.into()));
}

fn keep(current: i32, decision: &mut Decision) {
    decision.desired = Some(current);
    decision.steps.end = Some(End::Keep { replicas: current });
}

fn change(from: i32, to: i32, reason: RescaleReason, decision: &mut Decision) {
    decision.desired = Some(to);
    decision.rescale = Some(Rescale { from, to, reason });
    decision.steps.end = Some(End::Rescale { from, to });
}

fn set(
    snapshot: &Snapshot<'_>,
    decision: &mut Decision,
    kind: ConditionKind,
    holds: bool,
    finding: impl Into<Finding>,
) {
    decision.conditions.set(snapshot.status, kind, holds, finding, snapshot.now);
}

/// Rounds up; what does not fit stays at the end of the range.
fn ceil(replicas: f64) -> i32 {
    replicas.ceil() as i32
}
