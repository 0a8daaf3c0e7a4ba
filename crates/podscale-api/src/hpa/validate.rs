//! What the API server refuses in an autoscaler, in its words and its order.

mod behavior;
mod metric;
#[cfg(test)]
mod tests;

pub(crate) use behavior::check as check_behavior;

use serde_json::Value;

use super::v2::{CrossVersionObjectReference, HorizontalPodAutoscaler, metric_type};
use crate::field_error::metadata::check_update as check_changed_metadata;
use crate::field_error::metadata::{check_create as check_new_metadata, check_finalizer_names};
use crate::field_error::names::{dns_subdomain, group_version, path_segment};
use crate::field_error::{FieldError, FieldPath, distinct};

/// Kind and group as the message of a refusal names them.
pub const QUALIFIED_KIND: &str = "HorizontalPodAutoscaler.autoscaling";

/// Which versions a reference may name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiVersionRule {
    /// A version of a group that has a name.
    NamedGroup,
    /// Any well-formed version, also none.
    WellFormed,
    /// Whatever it says: it was there before.
    Unchecked,
}

/// Everything that is wrong with a new autoscaler, after defaulting.
pub fn check_create(hpa: &HorizontalPodAutoscaler) -> Vec<FieldError> {
    let metadata = metadata_of(hpa);
    let mut errors = check_new_metadata(&metadata, true, dns_subdomain);
    errors.extend(check_finalizer_names(&metadata));
    errors.extend(check_spec(hpa, None));
    distinct(errors)
}

/// Everything that is wrong with an autoscaler that is to replace another.
pub fn check_update(
    hpa: &HorizontalPodAutoscaler,
    old: &HorizontalPodAutoscaler,
) -> Vec<FieldError> {
    let mut errors = check_metadata_update(hpa, old);
    errors.extend(check_spec(hpa, Some(old)));
    distinct(errors)
}

/// Everything that is wrong with a new status; the spec is not checked.
pub fn check_status_update(
    hpa: &HorizontalPodAutoscaler,
    old: &HorizontalPodAutoscaler,
) -> Vec<FieldError> {
    let mut errors = check_metadata_update(hpa, old);
    let path = FieldPath::new("status");
    let status = hpa.status.as_ref();
    let conditions = status.map(|status| status.conditions.as_slice()).unwrap_or_default();
    for (index, condition) in conditions.iter().enumerate() {
        let field = path.child("conditions").index(index).child("observedGeneration");
        errors.extend(check_not_negative(condition.observed_generation.unwrap_or(0), &field));
    }
    if let Some(status) = status {
        for (name, count) in [
            ("currentReplicas", status.current_replicas),
            ("desiredReplicas", status.desired_replicas),
        ] {
            errors.extend(check_not_negative(i64::from(count), &path.child(name)));
        }
    }
    distinct(errors)
}

fn check_not_negative(number: i64, field: &FieldPath) -> Option<FieldError> {
    (number < 0).then(|| FieldError::invalid(field, number, "must be greater than or equal to 0"))
}

fn metadata_of(hpa: &HorizontalPodAutoscaler) -> Value {
    serde_json::to_value(&hpa.metadata).unwrap_or(Value::Null)
}

fn check_metadata_update(
    hpa: &HorizontalPodAutoscaler,
    old: &HorizontalPodAutoscaler,
) -> Vec<FieldError> {
    let (new, old) = (metadata_of(hpa), metadata_of(old));
    let mut errors = check_new_metadata(&new, true, path_segment);
    errors.extend(check_changed_metadata(&new, &old));
    errors.extend(check_finalizer_names(&new));
    errors
}

/// Bounds that were just set are judged by newer rules, whose errors come last; bounds that
/// were wrong before are judged by the older ones.
fn check_spec(
    hpa: &HorizontalPodAutoscaler,
    old: Option<&HorizontalPodAutoscaler>,
) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let spec = &hpa.spec;
    let old_spec = old.map(|old| &old.spec);
    let mut errors = Vec::new();
    let mut last = Vec::new();

    let min_field = path.child("minReplicas");
    let min_is_new = old_spec.is_none_or(|old| old.min_replicas != spec.min_replicas);
    if let Some(min) = spec.min_replicas.filter(|min| *min < 0) {
        let error = FieldError::invalid(&min_field, min, "must be greater than or equal to 0");
        if min_is_new { &mut last } else { &mut errors }.push(error);
    }

    let max_field = path.child("maxReplicas");
    let max_is_new = old_spec.is_none_or(|old| old.max_replicas != spec.max_replicas);
    let max_error = match spec.max_replicas {
        0 if max_is_new => Some(FieldError::required(&max_field, "")),
        0 => Some(FieldError::required(&max_field, "must be set and greater than 0")),
        max if max < 0 => {
            Some(FieldError::invalid(&max_field, max, "must be greater than or equal to 1"))
        }
        _ => None,
    };
    if max_is_new { &mut last } else { &mut errors }.extend(max_error);
    if spec.min_replicas.is_some_and(|min| spec.max_replicas < min) {
        errors.push(FieldError::invalid(
            &max_field,
            spec.max_replicas,
            "must be greater than or equal to `minReplicas`",
        ));
    }

    let target = &spec.scale_target_ref;
    let rule = match old_spec.map(|old| &old.scale_target_ref) {
        Some(old) if old.kind == target.kind && old.api_version == target.api_version => {
            ApiVersionRule::Unchecked
        }
        // The only scalable kind of the group without a name.
        _ if target.kind == "ReplicationController" => ApiVersionRule::WellFormed,
        _ => ApiVersionRule::NamedGroup,
    };
    errors.extend(check_reference(target, rule, &path.child("scaleTargetRef")));
    errors.extend(check_metrics(hpa, described_rule(old), &path.child("metrics")));
    if let Some(behavior) = &spec.behavior {
        errors.extend(behavior::check(behavior, &path.child("behavior")));
    }
    errors.extend(last);
    errors
}

/// An old object with a malformed version in one of its metrics may keep such.
fn described_rule(old: Option<&HorizontalPodAutoscaler>) -> ApiVersionRule {
    let metrics = old.map(|old| old.spec.metrics.as_slice()).unwrap_or_default();
    let malformed = metrics
        .iter()
        .filter(|metric| metric.r#type == metric_type::OBJECT)
        .filter_map(|metric| metric.object.as_ref())
        .any(|object| group_version(&object.described_object.api_version).is_err());
    if malformed { ApiVersionRule::Unchecked } else { ApiVersionRule::WellFormed }
}

fn check_metrics(
    hpa: &HorizontalPodAutoscaler,
    rule: ApiVersionRule,
    path: &FieldPath,
) -> Vec<FieldError> {
    let metrics = &hpa.spec.metrics;
    let mut errors: Vec<FieldError> = metrics
        .iter()
        .enumerate()
        .flat_map(|(index, metric)| metric::check(metric, rule, &path.index(index)))
        .collect();
    let wakes = |kind: &str| matches!(kind, metric_type::OBJECT | metric_type::EXTERNAL);
    if hpa.spec.min_replicas == Some(0) && !metrics.iter().any(|metric| wakes(&metric.r#type)) {
        errors.push(FieldError::forbidden(
            path,
            "must specify at least one Object or External metric to support scaling to zero replicas",
        ));
    }
    errors
}

fn check_reference(
    reference: &CrossVersionObjectReference,
    rule: ApiVersionRule,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (name, value) in [("kind", &reference.kind), ("name", &reference.name)] {
        let field = path.child(name);
        if value.is_empty() {
            errors.push(FieldError::required(&field, ""));
        }
        errors.extend(check_path_segment(value, &field));
    }
    let problem = match (rule, group_version(&reference.api_version)) {
        (ApiVersionRule::Unchecked, _) => None,
        (_, Err(problem)) => Some(problem),
        (ApiVersionRule::NamedGroup, Ok(("", _))) => {
            Some("apiVersion must specify API group".to_owned())
        }
        _ => None,
    };
    if let Some(problem) = problem {
        let field = path.child("apiVersion");
        errors.push(FieldError::invalid(&field, reference.api_version.as_str(), problem));
    }
    errors
}

fn check_path_segment(value: &str, field: &FieldPath) -> Vec<FieldError> {
    path_segment(value)
        .into_iter()
        .map(|problem| FieldError::invalid(field, value, problem))
        .collect()
}
