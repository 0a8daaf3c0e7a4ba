//! The status of a ScaledObject that follows from a decision, with KEDA's conditions and words.

use super::{CheckError, stand_in, step};
use crate::keda::annotations::{Orders, Pause};
use crate::keda::scaled_object::status::{Health, TargetResource};
use crate::keda::scaled_object::{COMPOSITE_METRIC, ScaledObject, ScaledObjectStatus};
use crate::keda::{Condition, TriggerActivity, trigger};
use crate::time::Timestamp;
use podscale_core::decision::RescaleReason;
use podscale_core::history::{Failures, Memory};
use podscale_core::model::{Autoscaler, Source, Trigger, TriggerOf};
use podscale_core::pass::{Outcome, ScaleWrite, WriteOutcome};
use podscale_core::snapshot::{Reading, ScaleError};
use podscale_core::steps::Activity;
use podscale_core::{Decision, Metric, Snapshot, Step};
use std::sync::Arc;

/// That an object can be used.
pub const READY: &str = "Ready";
/// That something is to be done.
pub const ACTIVE: &str = "Active";
/// That something stands in for triggers that fail.
pub const FALLBACK: &str = "Fallback";
/// That a person paused it.
pub const PAUSED: &str = "Paused";

/// The reason of an object that cannot be used.
pub const CHECK_FAILED: &str = "ScaledObjectCheckFailed";
/// The message of an object that can be used.
pub const READY_MESSAGE: &str = "ScaledObject is defined correctly and is ready for scaling";
/// The message of a paused object.
pub const PAUSED_MESSAGE: &str = "ScaledObject is paused";
/// The message of an object that was paused.
pub const UNPAUSED_MESSAGE: &str = "pause annotation removed for ScaledObject";

/// What a pass over an object led to.
#[derive(Clone, Copy)]
pub struct Passed<'a> {
    /// The object.
    pub object: &'a ScaledObject,
    /// What is wrong with it, if anything is.
    pub checked: &'a Result<(), CheckError>,
    /// What it was decided on.
    pub snapshot: &'a Snapshot<'a>,
    /// What was decided, and what became of it.
    pub outcome: &'a Outcome,
    /// The target's resource, if it is known.
    pub target: Option<&'a TargetResource>,
}

/// The status that follows.
#[must_use]
pub fn to_wire(passed: Passed<'_>) -> ScaledObjectStatus {
    let Passed { object, snapshot, outcome, target, .. } = passed;
    let mut status = object.status.clone().unwrap_or_default();
    let memory = outcome.decision.memory(snapshot);
    if let Some(target) = target {
        status.scale_target_kind = kind_of(target);
        status.scale_target_gvkr = Some(target.clone());
    }
    if let Ok(scale) = snapshot.scale {
        status.original_replica_count.get_or_insert(scale.spec_replicas);
    }
    let refused = refused(passed);
    if refused.as_ref().is_none_or(|refused| refused.step == step::HPA) {
        status.triggers_types = Some(trigger::types(&object.spec.triggers));
        status.authentications_types = Some(trigger::authentications(&object.spec.triggers));
    }
    if refused.is_none() {
        name_metrics(&mut status, snapshot.autoscaler);
    }
    let orders = Orders::read(&object.metadata.annotations);
    status.paused_replica_count = match orders.pause {
        Pause::At(replicas) => Some(replicas),
        Pause::Unreadable(_) => status.paused_replica_count,
        Pause::No | Pause::AsItIs => None,
    };
    // Where nothing may be woken, nothing is to cool down.
    let stays_asleep = orders.scale_out_paused && outcome.decision.found == Some(0);
    if let Some(active) = memory.and_then(|memory| memory.last_active).filter(|_| !stays_asleep) {
        status.last_active_time = Some(Timestamp(active));
    }
    if reads(&outcome.decision) {
        note_triggers(&mut status, passed, memory);
    }
    set_conditions(&mut status, passed, memory);
    status
}

/// A group, a version and a kind, as KEDA writes them.
fn kind_of(TargetResource { group, version, kind, .. }: &TargetResource) -> String {
    if group.is_empty() { format!("{version}.{kind}") } else { format!("{group}/{version}.{kind}") }
}

/// Whether the triggers were looked at.
fn reads(decision: &Decision) -> bool {
    decision.steps.iter().any(|step| matches!(step, Step::Proposal(_) | Step::Invalid { .. }))
}

/// The names of all event sources, those that a formula uses included.
fn external_names(autoscaler: &Autoscaler) -> Vec<&Arc<str>> {
    let mut names = Vec::new();
    for metric in &autoscaler.metrics {
        if let Source::Trigger(Trigger { name, of }) = &*metric.source {
            match of {
                TriggerOf::Source(_) => names.push(name),
                TriggerOf::Formula(made) => names.extend(made.inputs.iter().map(|(name, _)| name)),
            }
        }
    }
    names
}

fn name_metrics(status: &mut ScaledObjectStatus, autoscaler: &Autoscaler) {
    let external = external_names(autoscaler);
    status.external_metric_names = external.iter().map(|name| name.to_string()).collect();
    let mut resources = Vec::new();
    let mut composite = "";
    for metric in &autoscaler.metrics {
        match &*metric.source {
            Source::Resource { name } => resources.push(name.to_string()),
            Source::Trigger(Trigger { of: TriggerOf::Formula(_), .. }) => {
                composite = COMPOSITE_METRIC;
            }
            _ => {}
        }
    }
    status.resource_metric_names = resources;
    status.composite_scaler_name = composite.to_owned();
}

/// Which triggers are active, and how often each has failed. With a formula only the composite is active,
/// none of its inputs.
fn note_triggers(status: &mut ScaledObjectStatus, passed: Passed<'_>, memory: Option<&Memory>) {
    let (autoscaler, readings) = (passed.snapshot.autoscaler, passed.snapshot.readings);
    status.triggers_activity.clear();
    status.health.clear();
    let is_active = |name: &Arc<str>| {
        let mut lined_up = autoscaler.metrics.iter().zip(readings);
        lined_up.any(|(metric, reading)| {
            let of_name = matches!(&*metric.source, Source::Trigger(t) if t.name == *name);
            of_name && matches!(reading, Reading::Trigger { active: true, .. })
        })
    };
    let fallback = stand_in(&passed.object.spec);
    for name in external_names(autoscaler) {
        let failures = failures_of(name, memory);
        let stands_in = fallback.is_some_and(|fallback| failures > fallback.failures);
        let is_active = is_active(name) || (stands_in && !is_composite(autoscaler));
        status.triggers_activity.insert(name.to_string(), TriggerActivity { is_active });
        if fallback.is_some() {
            let word = if failures == 0 { "Happy" } else { "Failing" };
            let count = i32::try_from(failures).unwrap_or(i32::MAX);
            let health = Health { number_of_failures: Some(count), status: word.to_owned() };
            status.health.insert(name.to_string(), health);
        }
    }
}

fn is_composite(autoscaler: &Autoscaler) -> bool {
    autoscaler.metrics.iter().any(|metric| {
        matches!(&*metric.source, Source::Trigger(Trigger { of: TriggerOf::Formula(_), .. }))
    })
}

fn failures_of(name: &str, memory: Option<&Memory>) -> u32 {
    let key = Failures::key(name);
    let known = memory.and_then(|memory| memory.failures.iter().find(|f| f.trigger == key));
    known.map_or(0, |failures| failures.count)
}

type Said = (&'static str, &'static str, String);

fn said(status: &'static str, reason: &'static str, message: &str) -> Option<Said> {
    Some((status, reason, message.to_owned()))
}

fn set_conditions(status: &mut ScaledObjectStatus, passed: Passed<'_>, memory: Option<&Memory>) {
    for kind in [READY, ACTIVE, FALLBACK, PAUSED] {
        let first = if kind == PAUSED { "False" } else { "Unknown" };
        if !status.conditions.iter().any(|condition| condition.r#type == kind) {
            let (r#type, status_word) = (kind.to_owned(), first.to_owned());
            let new = Condition { r#type, status: status_word, ..Condition::default() };
            status.conditions.push(new);
        }
    }
    let was_paused = get(status, PAUSED).is_some_and(|paused| paused.status == "True");
    let found = [
        (READY, ready(passed)),
        (ACTIVE, active(passed)),
        (FALLBACK, fallback(passed, memory)),
        (PAUSED, paused(passed.object, was_paused)),
    ];
    for (kind, said) in found {
        let known = status.conditions.iter_mut().find(|condition| condition.r#type == kind);
        if let (Some(condition), Some((word, reason, message))) = (known, said) {
            condition.status = word.to_owned();
            condition.reason = reason.to_owned();
            condition.message = message;
        }
    }
}

/// The condition of a kind.
#[must_use]
pub fn get<'a>(status: &'a ScaledObjectStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.r#type == kind)
}

/// What was found of the activity, if it was looked for.
pub(super) fn activity(decision: &Decision) -> Option<Activity> {
    decision.steps.iter().find_map(|step| match step {
        Step::Activity { activity } => Some(activity),
        _ => None,
    })
}

/// Whether an event source could not be read, and nothing stands in for it.
fn has_error(passed: Passed<'_>) -> bool {
    let (metrics, readings) = (&passed.snapshot.autoscaler.metrics, passed.snapshot.readings);
    passed.outcome.decision.steps.iter().any(|step| {
        let Step::Invalid { metric, .. } = step else { return false };
        let place = metric as usize;
        let is_trigger = |metric: &Metric| matches!(*metric.source, Source::Trigger(_));
        let was_read = matches!(readings.get(place), Some(Reading::Trigger { .. }));
        metrics.get(place).is_some_and(is_trigger) && !was_read
    })
}

/// Where an object is refused, or not acted on at all: before its triggers are polled. A target that is missing refuses
/// an object that was never ready; later it only cannot be scaled.
pub(super) fn refused(passed: Passed<'_>) -> Option<CheckError> {
    let Passed { object, checked, snapshot, .. } = passed;
    match Orders::read(&object.metadata.annotations).pause {
        Pause::Unreadable(problem) => {
            let problem = format!("failed to parse paused replica count: {problem}");
            return Some(CheckError { step: step::PAUSE, problem });
        }
        Pause::AsItIs | Pause::At(_) => return None,
        Pause::No => {}
    }
    let stored = object.status.as_ref().and_then(|status| get(status, READY));
    match snapshot.scale {
        Err(error) if stored.is_none_or(was_never_ready) => {
            Some(CheckError { step: step::TARGET, problem: scale_error(error).to_owned() })
        }
        _ => checked.clone().err(),
    }
}

/// Whether nothing good was said of an object before, however its triggers fared.
pub(super) fn was_never_ready(was: &Condition) -> bool {
    was.reason.is_empty() || was.reason == CHECK_FAILED
}

fn ready(passed: Passed<'_>) -> Option<Said> {
    let Passed { object, snapshot, outcome, .. } = passed;
    let ready = |message| said("True", "ScaledObjectReady", message);
    if let Some(refused) = refused(passed) {
        return said("False", CHECK_FAILED, &refused.to_string());
    }
    if Orders::read(&object.metadata.annotations).pause != Pause::No {
        return ready(PAUSED_MESSAGE);
    }
    if let Err(error) = snapshot.scale {
        let message =
            format!("Error getting current replicas count for ScaleTarget: {}", scale_error(error));
        return said("False", "ErrorGettingCurrentReplicas", &message);
    }
    if let Some(message) = write_failure(outcome) {
        return said("False", "ErrorScalingTarget", &message);
    }
    let fallback = object.spec.fallback.as_ref();
    let woken = outcome.decision.rescale.map(|rescale| rescale.reason);
    match (has_error(passed), activity(&outcome.decision)) {
        (true, Some(Activity::Active { .. } | Activity::Forced))
            if woken != Some(RescaleReason::Activated) =>
        {
            let message = "Some triggers defined in ScaledObject are not working correctly";
            said("Unknown", "PartialTriggerError", message)
        }
        (true, Some(Activity::Unknown { .. })) if fallback.is_none() => {
            let message = "Triggers defined in ScaledObject are not working correctly";
            said("False", "TriggerError", message)
        }
        _ => ready(READY_MESSAGE),
    }
}

fn scale_error(error: &ScaleError) -> &str {
    match error {
        ScaleError::ApiVersion(error)
        | ScaleError::NoResource(error)
        | ScaleError::Unreadable(error) => error,
    }
}

/// The failure to set the size, where that is not an HPA's business.
fn write_failure(outcome: &Outcome) -> Option<String> {
    let WriteOutcome::Ended(ScaleWrite::Failed(error)) = &outcome.scale else { return None };
    let doing = match outcome.decision.rescale?.reason {
        RescaleReason::Activated => "error activating ScaleTarget",
        RescaleReason::Idle => "error deactivating ScaleTarget",
        RescaleReason::BelowMin => {
            "error setting ScaleTarget replicas count to ScaledObject minReplicaCount"
        }
        _ => return None,
    };
    Some(format!("{doing}: {error}"))
}

fn active(passed: Passed<'_>) -> Option<Said> {
    let Passed { object, outcome, .. } = passed;
    if refused(passed).is_some() {
        return said("Unknown", "UnknownState", "ScaledObject check failed");
    }
    let because = |what| format!("Scaling is performed because {what}");
    let active = |what| said("True", "ScalerActive", &because(what));
    let inactive = || {
        said("False", "ScalerNotActive", "Scaling is not performed because triggers are not active")
    };
    let orders = Orders::read(&object.metadata.annotations);
    match activity(&outcome.decision) {
        Some(Activity::Forced) => active("activation is being forced by annotation"),
        Some(Activity::Active { .. }) => active("triggers are active"),
        Some(Activity::Cooling { .. }) if !orders.scale_in_paused => {
            said("False", "ScalerCooldown", "Scaler cooling down because triggers are not active")
        }
        Some(_) => inactive(),
        // Metrics of pods alone are always active while they can be read.
        None if reads(&outcome.decision) => {
            if outcome.decision.error.is_none() {
                active("triggers are active")
            } else {
                inactive()
            }
        }
        None => None,
    }
}

fn fallback(passed: Passed<'_>, memory: Option<&Memory>) -> Option<Said> {
    let stand_in = stand_in(&passed.object.spec);
    if passed.checked.is_err() && stand_in.is_some() {
        return None;
    }
    let is_in_force = stand_in.is_some_and(|stand_in| {
        let names = external_names(passed.snapshot.autoscaler);
        names.into_iter().any(|name| failures_of(name, memory) > stand_in.failures)
    });
    if is_in_force {
        said("True", "FallbackExists", "At least one trigger is falling back on this scaled object")
    } else {
        said("False", "NoFallbackFound", "No fallbacks are active on this scaled object")
    }
}

fn paused(object: &ScaledObject, was_paused: bool) -> Option<Said> {
    if Orders::read(&object.metadata.annotations).is_any_paused() {
        said("True", "ScaledObjectPaused", PAUSED_MESSAGE)
    } else if was_paused {
        said("False", "ScaledObjectUnpaused", UNPAUSED_MESSAGE)
    } else {
        None
    }
}
