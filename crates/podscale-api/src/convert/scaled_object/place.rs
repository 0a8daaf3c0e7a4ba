//! Where a ScaledObject says what was read from it.

use serde::Deserialize;
use serde_json::Value;

use super::super::at;
use super::{annotations, event_source, resource, schedule};
use crate::keda::scaled_object::ScaledObjectSpec;
use crate::keda::trigger::Trigger;

/// Where the behavior of its HPA is.
const BEHAVIOR: &str = "spec.advanced.horizontalPodAutoscalerConfig.behavior";
const MIN: &str = "spec.minReplicaCount";
const IDLE: &str = "spec.idleReplicaCount";

/// What `autoscaling/v2` has at a path; nothing if the object says nothing of it.
pub(super) fn native(object: &Value, path: &str) -> Option<String> {
    if let Some(rest) = path.strip_prefix("spec.behavior") {
        return Some(format!("{BEHAVIOR}{rest}"));
    }
    if path.starts_with("spec.metrics[") {
        let is_one = |trigger: &Trigger| resource(trigger).is_some();
        return nth_trigger(object, index(path)?, is_one);
    }
    match path {
        "spec.minReplicas" => said_at(object, MIN),
        "spec.maxReplicas" => said_at(object, "spec.maxReplicaCount"),
        other => Some(other.to_owned()),
    }
}

/// As [`native`], for what a PodAutoscaler has beyond that.
pub(super) fn beyond(object: &Value, path: &str) -> Option<String> {
    let annotation = |name: &str| Some(format!("metadata.annotations[{name}]"));
    let spec = || ScaledObjectSpec::deserialize(&object["spec"]).unwrap_or_default();
    if path.starts_with("spec.metrics[") {
        let spec = spec();
        let is_one = |trigger: &Trigger| {
            resource(trigger).is_some()
                || (schedule(trigger, &spec, 0).is_none() && event_source(trigger, &spec).is_some())
        };
        let found = nth_trigger(object, index(path)?, is_one);
        return found.map(|found| if path.ends_with("].name") { found + ".name" } else { found });
    }
    if path.starts_with("spec.schedules[") {
        let spec = spec();
        return nth_trigger(object, index(path)?, |one| schedule(one, &spec, 0).is_some());
    }
    match path {
        "spec.scaleToZero.idleReplicas" => said_at(object, IDLE).or_else(|| Some(MIN.to_owned())),
        "spec.scaleToZero.coolDown" => said_at(object, "spec.cooldownPeriod"),
        "spec.scaleToZero.zeroByOthers" => None,
        "spec.syncPeriod" => Some("spec.pollingInterval".to_owned()),
        "spec.fallback.after" => Some("spec.fallback.failureThreshold".to_owned()),
        "spec.combine" | "spec.expression" => Some("spec.advanced.scalingModifiers".to_owned()),
        "spec.mode" => annotation(annotations::PAUSED),
        "spec.hold.replicas" => annotation(annotations::PAUSED_REPLICAS),
        "spec.pause.scaleDown" => annotation(annotations::PAUSED_SCALE_IN),
        "spec.pause.scaleUp" => annotation(annotations::PAUSED_SCALE_OUT),
        other => Some(other.to_owned()),
    }
}

/// The path, if the object has something there.
fn said_at(object: &Value, path: &str) -> Option<String> {
    at(object, path).filter(|value| !value.is_null()).map(|_| path.to_owned())
}

/// The first index of a path.
fn index(path: &str) -> Option<usize> {
    let (_, rest) = path.split_once('[')?;
    rest.split_once(']')?.0.parse().ok()
}

/// The place among all triggers of one that is counted among some.
fn nth_trigger(
    object: &Value,
    number: usize,
    is_counted: impl Fn(&Trigger) -> bool,
) -> Option<String> {
    let triggers = object.pointer("/spec/triggers")?.as_array()?;
    let read = triggers.iter().map(|trigger| Trigger::deserialize(trigger).ok());
    let mut counted = read.enumerate().filter(|(_, one)| one.as_ref().is_some_and(&is_counted));
    let (place, _) = counted.nth(number)?;
    Some(format!("spec.triggers[{place}]"))
}
