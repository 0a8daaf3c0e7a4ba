//! Lints about what PodAutoscalers and CHPAs have beyond an HPA.

use super::{Autoscaler, Lint, Manifests, Remark, remark};
use crate::hpa::v2beta1::MetricSpec;
use crate::pod_autoscaler::PodAutoscaler;
use crate::pod_autoscaler::spec::{OnMissing, PodAutoscalerSpec};
use crate::written::Written;
use serde::Deserialize;
use serde_json::Value;

pub(super) const LINTS: &[Lint] = &[
    Lint {
        name: "field-without-effect",
        reason: "Some fields of a PodAutoscaler count only together with another one, and do nothing without it.",
        check: field_without_effect,
    },
    Lint {
        name: "no-metrics",
        reason: "A CHPA without metrics sets its target to minReplicas and leaves it there; an HPA would go by cpu.",
        check: no_metrics,
    },
    Lint {
        name: "outside-bounds",
        reason: "Sizes that are held, fallen back to or proposed stay within minReplicas and maxReplicas, so a number outside of them is never reached.",
        check: outside_bounds,
    },
    Lint {
        name: "unread-field",
        reason: "The definition of CHPAs lets any field into a metric; one that nobody reads is misspelt, or of another version.",
        check: unread_field,
    },
];

/// The spec of a PodAutoscaler.
fn pod_autoscaler(autoscaler: &Autoscaler<'_>) -> Option<PodAutoscalerSpec> {
    if autoscaler.form() != Written::PodAutoscaler {
        return None;
    }
    PodAutoscaler::deserialize(autoscaler.object).ok().map(|pa| pa.spec)
}

fn field_without_effect(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let Some(spec) = pod_autoscaler(autoscaler) else { return Vec::new() };
    let mut remarks = Vec::new();
    for (index, metric) in spec.metrics.iter().enumerate() {
        let field = |name: &str| format!("spec.metrics[{index}].{name}");
        if metric.activation.is_some() && spec.scale_to_zero.is_none() {
            remarks.push(remark(field("activation"), "this counts only with spec.scaleToZero"));
        }
        let targets = [
            metric.hpa.resource.as_ref().map(|source| &source.target),
            metric.hpa.container_resource.as_ref().map(|source| &source.target),
        ];
        let mut targets = targets.into_iter().flatten();
        let share = targets.any(|target| target.average_utilization.is_some());
        if metric.utilization_of.is_some() && !share {
            remarks.push(remark(field("utilizationOf"), "the target is no utilization"));
        }
    }
    let active = spec.mode.as_deref().is_none_or(|mode| mode == "Active");
    if spec.mode_until.is_some() && active {
        remarks.push(remark("spec.modeUntil", "the mode is Active before and after"));
    }
    remarks
}

fn outside_bounds(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let Some(spec) = pod_autoscaler(autoscaler) else { return Vec::new() };
    let mins = spec.schedules.iter().filter_map(|one| one.min_replicas);
    let maxes = spec.schedules.iter().filter_map(|one| one.max_replicas);
    let min = mins.fold(spec.min_replicas.unwrap_or(1), i32::min);
    let max = maxes.fold(spec.max_replicas, i32::max);
    let hold = spec.hold.as_ref().map(|hold| ("spec.hold.replicas".to_owned(), hold.replicas));
    let fallback = spec.fallback.as_ref();
    let fallback = fallback.map(|one| ("spec.fallback.replicas".to_owned(), one.replicas));
    let proposed = spec.metrics.iter().enumerate().filter_map(|(index, metric)| {
        let Some(OnMissing::Replicas(replicas)) = metric.on_missing else { return None };
        Some((format!("spec.metrics[{index}].onMissing.replicas"), replicas))
    });
    let sizes = hold.into_iter().chain(fallback).chain(proposed);
    let outside = sizes.filter(|(_, size)| !(min..=max).contains(size));
    outside
        .map(|(field, size)| {
            let bound = size.clamp(min, max.max(min));
            remark(field, format!("{size} becomes {bound}, since the bounds are {min} and {max}"))
        })
        .collect()
}

fn no_metrics(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    if autoscaler.form() != Written::Chpa || !autoscaler.hpa.spec.metrics.is_empty() {
        return Vec::new();
    }
    vec![remark("spec.metrics", "without metrics the size is always minReplicas")]
}

fn unread_field(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let given = autoscaler.object.pointer("/spec/metrics");
    let Some(given) = given.filter(|_| autoscaler.form() == Written::Chpa) else {
        return Vec::new();
    };
    let read = Vec::<MetricSpec>::deserialize(given).ok();
    let Some(read) = read.and_then(|read| serde_json::to_value(read).ok()) else {
        return Vec::new();
    };
    let mut unread = Vec::new();
    compare(given, &read, "spec.metrics", &mut unread);
    unread
        .into_iter()
        .map(|field| {
            let problem = format!("nobody reads \"{field}\"");
            remark(field, problem)
        })
        .collect()
}

/// The paths of what says something and is not there any more once it was read.
fn compare(given: &Value, read: &Value, path: &str, unread: &mut Vec<String>) {
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => {
            for (name, value) in given {
                let path = format!("{path}.{name}");
                match read.get(name) {
                    Some(below) => compare(value, below, &path, unread),
                    None if says_something(value) => unread.push(path),
                    None => {}
                }
            }
        }
        (Value::Array(given), Value::Array(read)) => {
            for (index, (value, below)) in given.iter().zip(read).enumerate() {
                compare(value, below, &format!("{path}[{index}]"), unread);
            }
        }
        _ => {}
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty() && text != "0",
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(true) => true,
    }
}
