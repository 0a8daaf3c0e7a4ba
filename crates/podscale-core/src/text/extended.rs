//! The texts of rules that native autoscalers do not have. Those of the configurable HPA are the same
//! to the letter; a pair is a reason for programs and a message for people.

use super::MetricError;
use crate::model::{Trigger, TriggerOf, Wording};
use crate::steps::CombinedBy;

/// Why the size goes up: a combination of metrics asks for more.
pub const COMBINED_ABOVE_TARGET: &str = "All metrics combined above target";
/// Why the size becomes one.
pub const NOT_ABOVE_ZERO: &str = "Current number of replicas must be greater than 0";
/// Why the size is the one that a person asked for.
pub const HELD_BY_SPEC: &str = "Size held by the spec";
/// Why the size becomes that of an idle target.
pub const NOTHING_ACTIVE: &str = "No metric above its activation threshold";
/// Why the size becomes that of a target that is not idle any more.
pub const ACTIVE: &str = "Metric above its activation threshold";
/// Why the size becomes the fallback.
pub const METRICS_GONE: &str = "Metrics gone for too long";
/// Why the size goes up before a metric asks for it.
pub const MORE_EXPECTED: &str = "More demand expected";

/// The reason of the event of a trigger that failed.
#[must_use]
pub const fn failed_trigger(trigger: &Trigger, wording: Wording) -> &'static str {
    match (wording, &trigger.of) {
        (Wording::Keda, TriggerOf::Source(_)) => "KEDAScalerFailed",
        (Wording::Keda, TriggerOf::Formula(_)) => "KEDAMetricSourceFailed",
        _ => "FailedGetTriggerMetric",
    }
}

/// What is said of a metric of pods while there are none on purpose.
pub const NO_PODS_RUN: &str = "not read while no pods run";

/// The condition of a paused autoscaler.
pub const PAUSED: (&str, &str) = ("Paused", "scaling is paused by the spec");
/// The condition of an idle target.
pub const IDLE: (&str, &str) = ("Idle", "no metric is above its activation threshold");
/// The condition of a target that is woken.
pub const ACTIVATED: (&str, &str) = ("Activated", "a metric is above its activation threshold");
/// The condition where going up is paused.
pub const UP_PAUSED: (&str, &str) = ("ScaleUpPaused", "scaling up is paused by the spec");
/// The condition where going down is paused.
pub const DOWN_PAUSED: (&str, &str) = ("ScaleDownPaused", "scaling down is paused by the spec");

/// The condition after both forbidden windows.
pub const READY_AFTER_WINDOWS: (&str, &str) =
    ("ReadyForNewScale", "the last scale time was sufficiently old as to warrant a new scale");
/// The condition within the forbidden window towards more replicas.
pub const BACKOFF_UPSCALE: (&str, &str) = (
    "BackoffUpscale",
    "the time since the previous scale is still within the upscale forbidden window",
);
/// The condition within the forbidden window towards fewer replicas.
pub const BACKOFF_DOWNSCALE: (&str, &str) = (
    "BackoffDownscale",
    "the time since the previous scale is still within the downscale forbidden window",
);
/// The condition within both forbidden windows.
pub const BACKOFF_BOTH: (&str, &str) = (
    "BackoffBoth",
    "the time since the previous scale is still within both the downscale and upscale forbidden \
     windows",
);

/// What is said of an event source that answered with nothing.
pub const NO_TRIGGER_VALUE: &str = "the event source returned no value";

/// What an event source said of its failure.
pub(super) fn trigger_error(error: &MetricError) -> &str {
    match error {
        MetricError::Fetch(error) => error,
        _ => NO_TRIGGER_VALUE,
    }
}

/// What is said of a trigger that nothing can stand in for.
pub const NO_STAND_IN: &str = "error performing fallback: no pod is ready";

/// What is said of a formula whose result is not finite.
pub const FORMULA_NOT_FINITE: &str = "the expression does not give a finite number of replicas";

/// What is said of a formula that needs a metric without a usable value.
#[must_use]
pub fn formula_missing(metric: Option<&str>) -> String {
    match metric {
        Some(name) => format!("the expression needs {name}, which has no usable value"),
        None => "the expression needs a metric that has no usable value".to_owned(),
    }
}

/// The condition's message of a target that a person holds at a size.
#[must_use]
pub fn held(replicas: i32) -> String {
    format!("the size is held at {replicas} by the spec")
}

/// The condition's message where no single metric decided.
#[must_use]
pub fn combined(by: CombinedBy) -> String {
    let what = match by {
        CombinedBy::Min => "the smallest proposal",
        CombinedBy::Average => "the average of all metrics",
        CombinedBy::Formula => "the expression over all metrics",
        CombinedBy::Nothing => "no metrics",
    };
    format!("the HPA was able to successfully calculate a replica count from {what}")
}
