//! The annotations that carry what an older version cannot say. Those that cannot be read are as
//! good as absent; all of them go when an object leaves for a newer version.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::metrics::{spec_down, spec_up, status_down, status_up};
use crate::field_error::go_json;
use crate::hpa::v2::{
    Condition, HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior, HpaScalingPolicy,
    HpaScalingRules, MetricSpec, MetricStatus,
};
use crate::hpa::v2beta1 as old;
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;

/// Holds the metrics that a version has no room for.
pub const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// Holds the behavior.
pub const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const SCALE_DOWN_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-down-tolerance";
const SCALE_UP_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";
/// Hold the tolerances for scaling down and up.
pub const TOLERANCES: [&str; 2] = [SCALE_DOWN_TOLERANCE, SCALE_UP_TOLERANCE];
const ALL: [&str; 6] =
    [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR, SCALE_DOWN_TOLERANCE, SCALE_UP_TOLERANCE];

/// Whether an annotation of this name is one of this kind.
#[must_use]
pub fn is_of_a_version(name: &str) -> bool {
    ALL.contains(&name)
}

/// Removes every annotation of this kind.
pub(super) fn remove(metadata: &mut ObjectMeta) {
    for name in ALL {
        metadata.annotations.remove(name);
    }
}

/// The annotations of this kind that are there, each with whether it can be read.
pub fn present(metadata: &ObjectMeta) -> Vec<(&'static str, bool)> {
    let readable = |name: &str| match name {
        METRICS => metrics(metadata).is_some(),
        CURRENT_METRICS => current_metrics(metadata).is_some(),
        CONDITIONS => conditions(metadata).is_some(),
        BEHAVIOR => parse::<HorizontalPodAutoscalerBehavior>(metadata, name).is_some(),
        _ => tolerance(metadata, name).is_some(),
    };
    let there = ALL.into_iter().filter(|name| metadata.annotations.get(name).is_some());
    there.map(|name| (name, readable(name))).collect()
}

/// Keeps the tolerances of an autoscaler, which `v2beta2` ended too early to have, and takes them from it.
pub(super) fn keep_tolerances(hpa: &mut HorizontalPodAutoscaler) {
    let Some(behavior) = &mut hpa.spec.behavior else { return };
    for (name, rules) in [
        (SCALE_DOWN_TOLERANCE, &mut behavior.scale_down),
        (SCALE_UP_TOLERANCE, &mut behavior.scale_up),
    ] {
        if let Some(tolerance) = rules.as_mut().and_then(|rules| rules.tolerance.take()) {
            hpa.metadata.annotations.insert(name, tolerance.to_string());
        }
    }
}

/// Puts kept tolerances back.
pub(super) fn restore_tolerances(hpa: &mut HorizontalPodAutoscaler) {
    let Some(behavior) = &mut hpa.spec.behavior else { return };
    for (name, rules) in [
        (SCALE_DOWN_TOLERANCE, &mut behavior.scale_down),
        (SCALE_UP_TOLERANCE, &mut behavior.scale_up),
    ] {
        if let Some(rules) = rules {
            rules.tolerance = tolerance(&hpa.metadata, name);
        }
    }
}

fn tolerance(metadata: &ObjectMeta, name: &str) -> Option<Quantity> {
    Quantity::parse(metadata.annotations.get(name)?).ok()
}

/// The metrics besides the cpu utilization.
pub(super) fn metrics(metadata: &ObjectMeta) -> Option<Vec<MetricSpec>> {
    let specs: Vec<old::MetricSpec> = parse(metadata, METRICS)?;
    Some(specs.into_iter().map(spec_up).collect())
}

/// What the metrics showed.
pub(super) fn current_metrics(metadata: &ObjectMeta) -> Option<Vec<MetricStatus>> {
    let statuses: Vec<old::MetricStatus> = parse(metadata, CURRENT_METRICS)?;
    Some(statuses.into_iter().map(status_up).collect())
}

/// The conditions.
pub(super) fn conditions(metadata: &ObjectMeta) -> Option<Vec<Condition>> {
    parse(metadata, CONDITIONS)
}

/// The behavior; an empty one counts as none.
pub(super) fn behavior(metadata: &ObjectMeta) -> Option<HorizontalPodAutoscalerBehavior> {
    let behavior: HorizontalPodAutoscalerBehavior = parse(metadata, BEHAVIOR)?;
    (behavior != HorizontalPodAutoscalerBehavior::default()).then_some(behavior)
}

fn parse<T: DeserializeOwned>(metadata: &ObjectMeta, name: &str) -> Option<T> {
    let value: Value = serde_json::from_str(metadata.annotations.get(name)?).ok()?;
    T::deserialize(canonical(value)).ok()
}

/// Keeps metrics, their statuses and conditions, each only if there are any.
pub(super) fn keep(
    metadata: &mut ObjectMeta,
    specs: &[&MetricSpec],
    statuses: &[MetricStatus],
    conditions: &[Condition],
) {
    if !specs.is_empty() {
        let specs: Vec<old::MetricSpec> = specs.iter().map(|spec| spec_down(spec)).collect();
        metadata.annotations.insert(METRICS, go_json(&specs));
    }
    if !statuses.is_empty() {
        let statuses: Vec<old::MetricStatus> = statuses.iter().map(status_down).collect();
        metadata.annotations.insert(CURRENT_METRICS, go_json(&statuses));
    }
    if !conditions.is_empty() {
        metadata.annotations.insert(CONDITIONS, go_json(&conditions));
    }
}

/// Keeps the behavior.
pub(super) fn keep_behavior(
    metadata: &mut ObjectMeta,
    behavior: Option<&HorizontalPodAutoscalerBehavior>,
) {
    if let Some(behavior) = behavior {
        let kept = KeptBehavior {
            scale_up: behavior.scale_up.as_ref().map(KeptRules::of),
            scale_down: behavior.scale_down.as_ref().map(KeptRules::of),
        };
        metadata.annotations.insert(BEHAVIOR, go_json(&kept));
    }
}

// The annotation holds a type that Kubernetes uses inside, written with its field names.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeptBehavior<'a> {
    scale_up: Option<KeptRules<'a>>,
    scale_down: Option<KeptRules<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeptRules<'a> {
    stabilization_window_seconds: Option<i32>,
    select_policy: Option<&'a str>,
    policies: Option<Vec<KeptPolicy<'a>>>,
    tolerance: Option<&'a Quantity>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct KeptPolicy<'a> {
    r#type: &'a str,
    value: i32,
    period_seconds: i32,
}

impl<'a> KeptRules<'a> {
    fn of(rules: &'a HpaScalingRules) -> Self {
        let policy = |policy: &'a HpaScalingPolicy| KeptPolicy {
            r#type: &policy.r#type,
            value: policy.value,
            period_seconds: policy.period_seconds,
        };
        Self {
            stabilization_window_seconds: rules.stabilization_window_seconds,
            select_policy: rules.select_policy.as_deref(),
            policies: rules.policies.as_ref().map(|policies| policies.iter().map(policy).collect()),
            tolerance: rules.tolerance.as_ref(),
        }
    }
}

/// Field names in the annotations, as they are written here.
const FIELDS: [&str; 38] = [
    "apiVersion",
    "averageValue",
    "container",
    "containerResource",
    "currentAverageUtilization",
    "currentAverageValue",
    "currentValue",
    "external",
    "key",
    "kind",
    "lastTransitionTime",
    "matchExpressions",
    "matchLabels",
    "message",
    "metricName",
    "metricSelector",
    "name",
    "object",
    "observedGeneration",
    "operator",
    "periodSeconds",
    "pods",
    "policies",
    "reason",
    "resource",
    "scaleDown",
    "scaleUp",
    "selectPolicy",
    "selector",
    "stabilizationWindowSeconds",
    "status",
    "target",
    "targetAverageUtilization",
    "targetAverageValue",
    "targetValue",
    "tolerance",
    "type",
    "value",
];

/// Go does not mind the case of field names; labels are no field names.
fn canonical(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(canonical).collect(),
        Value::Object(fields) => {
            let mut renamed = Map::new();
            for (name, value) in fields {
                let known = FIELDS.iter().find(|field| field.eq_ignore_ascii_case(&name));
                let name = known.map_or(name, |field| (*field).to_owned());
                let value = if name == "matchLabels" { value } else { canonical(value) };
                renamed.insert(name, value);
            }
            Value::Object(renamed)
        }
        other => other,
    }
}
