//! Decides on an autoscaler that asks for more than a native one: the same sequence of stages, with
//! more of them. Where an extension has its default value, the decision is that on a native one.

use super::{change, held_at_zero, keep, limit, propose, selected_pods, set, stabilize};
use crate::decision::{Decision, MetricResults, RescaleReason};
use crate::history::{Memory, Recommendation};
use crate::model::{
    Autoscaler, Bounds, Extensions, Metric, MetricRules, Milli, Mode, Scope, Settings, SizeFrom,
    Stabilization, Waking, Wording, ZeroedByOthers,
};
use crate::pod::Pod;
use crate::snapshot::{Reading, Scale, Snapshot};
use crate::status::{ConditionKind, Note, Status};
use crate::steps::{Bound, Fallen, Limit, Limited, Order, Stop};
use crate::text;
use activity::Standing;
use ask::Answers;
use std::cmp::Ordering;
use std::sync::Arc;

mod activity;
mod aggregate;
mod ahead;
mod answer;
mod ask;
mod combine;
mod formula;
mod gate;
mod per_pod;
mod queue;
mod room;
mod sized;
mod trigger;
mod window;

/// What [`super::external`] gives.
pub(super) fn trigger_value(
    metric: &Metric,
    rules: &MetricRules,
    reading: &Reading,
    (current, ready): (i32, usize),
    memory: &mut Memory,
) -> Result<Milli, Arc<str>> {
    let around = trigger::Around { current, ready };
    let resolved = trigger::resolve_reading(metric, rules, Some(reading), around, memory);
    match resolved.reading.as_deref() {
        Some(Reading::Trigger { value, .. }) => Ok(*value),
        Some(Reading::Failed(error)) => Err(Arc::clone(error)),
        _ => Err(text::NO_TRIGGER_VALUE.into()),
    }
}

/// What the stages share.
struct Context<'a> {
    snapshot: &'a Snapshot<'a>,
    extensions: &'a Extensions,
    /// The target's size, its `spec_replicas` being what counts as the current one.
    scale: Scale,
    /// What the target's spec asks for.
    asked: i32,
    /// The bounds in force.
    bounds: Bounds,
    /// The controller's settings with the object's own in their place.
    settings: Settings,
}

impl Context<'_> {
    fn current(&self) -> i32 {
        self.scale.spec_replicas
    }

    /// Whether the target has the size of an idle one.
    fn is_at_idle_size(&self) -> bool {
        self.extensions.scale_to_zero.is_some_and(|zero| zero.idle_replicas == self.current())
    }
}

/// Decides on a target whose size is known.
pub(super) fn decide<'a>(
    snapshot: &'a Snapshot<'a>,
    extensions: &'a Extensions,
    found: Scale,
    decision: &mut Decision,
) {
    let scale = match extensions.size_from {
        SizeFrom::Spec => found,
        SizeFrom::Status => Scale { spec_replicas: found.status_replicas, ..found },
    };
    let (now, current) = (snapshot.now, scale.spec_replicas);
    decision.found = Some(current);
    decision.metrics = MetricResults::NotRead;
    decision.steps.scale = Some(found);
    let steadies = extensions.stabilization == Stabilization::Recent;
    if steadies && snapshot.history.recommendations.is_empty() {
        decision.learned.first = Some(Recommendation { replicas: current, at: now });
    }

    let base = snapshot.autoscaler.bounds();
    let scheduled = extensions.schedules.as_ref().and_then(|schedules| schedules.at(now, base));
    let bounds = scheduled.as_ref().map_or(base, |scheduled| scheduled.bounds);
    if scheduled.is_some() {
        decision.steps.extend().scheduled = scheduled;
    }
    let settings = extensions.pods.over(snapshot.settings);
    let asked = found.spec_replicas;
    let context = Context { snapshot, extensions, scale, asked, bounds, settings };

    match extensions.control.mode_at(now) {
        Mode::Paused => pause(&context, decision),
        mode => {
            by_order_or_size(&context, found, decision);
            if mode == Mode::DryRun {
                decision.steps.extend().dry_run = true;
            }
        }
    }
    // Unless a stage said more.
    if decision.conditions.get(ConditionKind::AbleToScale).is_none() {
        set(snapshot, decision, ConditionKind::AbleToScale, true, Note::SucceededGetScale);
    }
}

/// Whether metrics may lead a target away from zero that its spec asks for.
pub(super) fn may_wake(autoscaler: &Autoscaler, extensions: &Extensions, status: &Status) -> bool {
    let held = held_at_zero(status);
    let ours = held || extensions.zeroed_by_others == ZeroedByOthers::Woken;
    // A schedule may have any minimum.
    let may_have_minimum = autoscaler.min_replicas != 0 || extensions.schedules.is_some();
    ours && (may_have_minimum || autoscaler.has_metric_without_pods())
}

fn pause(context: &Context<'_>, decision: &mut Decision) {
    let until = context.extensions.control.mode_until;
    decision.steps.extend().order = Some(Order::Paused { until });
    let note = Note::text(text::PAUSED.0, text::PAUSED.1);
    set(context.snapshot, decision, ConditionKind::ScalingActive, false, note);
    keep(context.current(), decision);
}

/// A person's hold, sizes that need no metrics, and the metrics, in this order.
fn by_order_or_size(context: &Context<'_>, found: Scale, decision: &mut Decision) {
    let Context { snapshot, extensions, bounds, .. } = *context;
    let current = context.current();
    if let Some(hold) = extensions.control.hold_at(snapshot.now) {
        let is_free = extensions.control.hold_beyond_bounds;
        let replicas = if is_free { hold.replicas.max(0) } else { bounds.clamp(hold.replicas) };
        decision.steps.extend().order = Some(Order::Held { replicas, until: hold.until });
        let note = Note::text("Held", text::held(replicas));
        set(snapshot, decision, ConditionKind::ScalingActive, false, note);
        settle(context, replicas, RescaleReason::Held, decision);
    } else if found.spec_replicas == 0 {
        at_zero(context, decision);
    } else if current > bounds.max {
        outside_bounds(context, Bound::Max, decision);
    } else if current == 0
        && bounds.min <= 1
        && extensions.zeroed_by_others == ZeroedByOthers::SetToOne
    {
        decision.steps.extend().order = Some(Order::SetToOne);
        settle(context, 1, RescaleReason::Zero, decision);
    } else if current < bounds.min && !context.is_at_idle_size() {
        outside_bounds(context, Bound::Min, decision);
    } else {
        by_metrics(context, decision);
    }
}

fn outside_bounds(context: &Context<'_>, bound: Bound, decision: &mut Decision) {
    let (replicas, reason) = match bound {
        Bound::Max => (context.bounds.max, RescaleReason::AboveMax),
        Bound::Min => (context.bounds.min, RescaleReason::BelowMin),
    };
    decision.steps.stop = Some(Stop::OutsideBounds { bound, replicas });
    settle(context, replicas, reason, decision);
}

/// A target whose spec asks for zero: left alone if somebody else wants it so.
fn at_zero(context: &Context<'_>, decision: &mut Decision) {
    let Context { snapshot, extensions, bounds, .. } = *context;
    let held = held_at_zero(snapshot.status);
    let woken = extensions.zeroed_by_others == ZeroedByOthers::Woken;
    let readable = bounds.min != 0 || snapshot.autoscaler.has_metric_without_pods();
    if !held && woken && bounds.min > 0 && extensions.scale_to_zero.is_none() {
        outside_bounds(context, Bound::Min, decision);
    } else if (held || woken) && readable {
        by_metrics(context, decision);
    } else {
        set(snapshot, decision, ConditionKind::ScalingActive, false, Note::ScalingDisabled);
        decision.steps.stop = Some(Stop::Disabled);
        keep(context.current(), decision);
    }
}

/// Metrics propose, activity may overrule them, recent recommendations steady, limits hold back,
/// forbidden windows and pauses keep.
fn by_metrics(context: &Context<'_>, decision: &mut Decision) {
    let snapshot = context.snapshot;
    let Some(pods) = selected_pods(snapshot, decision) else {
        return;
    };
    let stored = snapshot.history.memory.as_deref();
    let mut memory = stored.cloned().unwrap_or_default();
    let wanted = wanted(context, pods, &mut memory, decision);
    if stored.map_or(memory != Memory::default(), |stored| *stored != memory) {
        decision.learned.memory = Some(Box::new(memory));
    }
    let Some(wanted) = wanted else { return };
    let desired = if wanted.reason == RescaleReason::Activated {
        // Neither what was recommended before nor a rate is about the first step away from idle.
        context.bounds.clamp(wanted.replicas)
    } else {
        let desired = limited(context, &wanted, decision);
        gate::forbidden(context, &wanted, desired, decision)
    };
    settle(context, desired, wanted.reason, decision);
}

/// A size that is asked for.
struct Wanted {
    replicas: i32,
    reason: RescaleReason,
    /// When what asks for it was measured.
    taken: Option<crate::time::Time>,
    /// Whether it is the size of an idle target, which may be below the minimum.
    idle: bool,
    /// The size that it must at least become.
    at_least: i32,
}

fn wanted(
    context: &Context<'_>,
    pods: &[Pod],
    memory: &mut Memory,
    decision: &mut Decision,
) -> Option<Wanted> {
    let answers = ask::ask(context, pods, memory, decision);
    sized::forget(context.extensions, memory);
    let standing = activity::judge(context, &answers, memory, decision);
    if let Standing::Idle(replicas) = standing {
        memory.metrics_gone_since = None;
        ahead::note_idle(context, pods, memory);
        return Some(by_activity(context, &answers, replicas, RescaleReason::Idle, decision));
    }
    let min = context.bounds.min;
    let at_least = if standing == Standing::Awake { min.max(1) } else { min };
    let waking = context.extensions.activation.waking == Waking::ToMinimum;
    if waking && standing == Standing::Awake && context.current() < at_least {
        memory.metrics_gone_since = None;
        let reason = RescaleReason::Activated;
        return Some(by_activity(context, &answers, at_least, reason, decision));
    }
    if context.extensions.activation.scope == Scope::Activation {
        return leave_to_hpa(context, memory, decision);
    }
    let combined = match standing {
        Standing::Unknown if context.is_at_idle_size() => {
            combine::blocked(context, &answers, None, decision);
            None
        }
        _ => combine::combine(context, &answers, decision),
    };
    match combined {
        Some(combined) => {
            memory.metrics_gone_since = None;
            // Less than nothing cannot be asked for; then no metric gets the credit either.
            let asked = combined.replicas.max(0);
            let (asked, replicas) = sized::sized(context, pods, &answers, asked, memory, decision);
            let reason = match replicas.cmp(&context.current()) {
                Ordering::Greater if asked <= context.current() => RescaleReason::Expected,
                Ordering::Greater => {
                    // A metric that did not ask for more gets no credit for it.
                    let metric = combined.metric.filter(|_| combined.replicas > context.current());
                    metric.map_or(RescaleReason::CombinedAboveTarget, |m| {
                        RescaleReason::AboveTarget { metric: m as u32 }
                    })
                }
                Ordering::Less => RescaleReason::BelowTarget,
                Ordering::Equal => RescaleReason::Earlier,
            };
            Some(Wanted { replicas, reason, taken: combined.taken, idle: false, at_least })
        }
        // That something is active is enough to be woken.
        None if standing == Standing::Awake && context.is_at_idle_size() => {
            let (reason, taken) = (RescaleReason::CombinedAboveTarget, answers.oldest());
            Some(Wanted { replicas: at_least, reason, taken, idle: false, at_least })
        }
        None => fall_back(context, &answers, memory, at_least, decision),
    }
}

/// What an HPA decides is not decided a second time.
fn leave_to_hpa(
    context: &Context<'_>,
    memory: &mut Memory,
    decision: &mut Decision,
) -> Option<Wanted> {
    memory.metrics_gone_since = None;
    decision.steps.extend().left_to_hpa = true;
    keep(context.current(), decision);
    None
}

/// The size that activity alone leads to: that of an idle target, or the first step away from it.
fn by_activity(
    context: &Context<'_>,
    answers: &Answers,
    replicas: i32,
    reason: RescaleReason,
    decision: &mut Decision,
) -> Wanted {
    let idle = reason == RescaleReason::Idle;
    let (word, message) = if idle { text::IDLE } else { text::ACTIVATED };
    let note = Note::text(word, message);
    set(context.snapshot, decision, ConditionKind::ScalingActive, true, note);
    Wanted { replicas, reason, taken: answers.oldest(), idle, at_least: replicas }
}

/// What is asked for while no size can be computed, once that has lasted.
fn fall_back(
    context: &Context<'_>,
    answers: &Answers,
    memory: &mut Memory,
    at_least: i32,
    decision: &mut Decision,
) -> Option<Wanted> {
    let fallback = context.extensions.fallback?;
    let now = context.snapshot.now;
    let since = *memory.metrics_gone_since.get_or_insert(now);
    if now < since.after(fallback.after) {
        return None;
    }
    let replicas = fallback.replicas;
    decision.steps.extend().fallback = Some(Fallen { since, replicas });
    let (reason, taken) = (RescaleReason::Fallback, answers.oldest());
    Some(Wanted { replicas: replicas.max(0), reason, taken, idle: false, at_least })
}

/// What recent recommendations, rates and bounds make of the size.
fn limited(context: &Context<'_>, wanted: &Wanted, decision: &mut Decision) -> i32 {
    let Context { snapshot, extensions, bounds, .. } = *context;
    let current = context.current();
    let steady = if wanted.idle || extensions.stabilization == Stabilization::Off {
        set(snapshot, decision, ConditionKind::AbleToScale, true, Note::ReadyForNewScale);
        wanted.replicas
    } else {
        stabilize::stabilize(snapshot, current, wanted.replicas, decision)
    };
    let bounds = if wanted.idle {
        Bounds { min: wanted.replicas.min(bounds.max), ..bounds }
    } else {
        bounds
    };
    let desired = limit::limit(snapshot, bounds, extensions.pace, current, steady, decision);
    if extensions.wording == Wording::ConfigurableHpa {
        word_too_few(context, decision);
    }
    // From zero, or from an idle size, a rate may not lead all the way to the minimum.
    let at_least = bounds.clamp(wanted.at_least);
    let from_below = current == 0 || current < bounds.min || context.is_at_idle_size();
    if !wanted.idle && from_below && desired < at_least {
        decision.steps.raised_from_zero = Some(at_least);
        return at_least;
    }
    desired
}

/// The configurable HPA names the minimum as the reason, but explains the maximum beside it.
fn word_too_few(context: &Context<'_>, decision: &mut Decision) {
    let Some(Limited { limit: Limit::Bound(Bound::Min), .. }) = decision.steps.limited else {
        return;
    };
    let paced =
        limit::pace_is_below(context.bounds.max, context.extensions.pace, context.current());
    let other = if paced { Note::ScaleUpLimit } else { Note::TooManyReplicas };
    let note = Note::text("TooFewReplicas", other.message());
    set(context.snapshot, decision, ConditionKind::ScalingLimited, true, note);
}

/// Sets a size, unless a person paused that direction.
fn settle(context: &Context<'_>, to: i32, reason: RescaleReason, decision: &mut Decision) {
    let current = context.current();
    let to = gate::direction_paused(context, to, decision);
    if to == current {
        keep(current, decision);
    } else if to == context.asked {
        // It has not got there yet, and needs not be told again.
        keep(current, decision);
        decision.desired = Some(to);
    } else {
        let raised = decision.steps.raised_from_zero.is_some();
        let reason = if raised && reason == RescaleReason::Earlier {
            RescaleReason::BelowMin
        } else {
            reason
        };
        change(current, to, reason, decision);
    }
}
