//! Checks of one metric: that exactly the source which its type names is there, and that source.

use std::cmp::Ordering;

use super::{ApiVersionRule, check_path_segment, check_reference};
use crate::field_error::names::dns_label;
use crate::field_error::{BadValue, FieldError, FieldPath};
use crate::hpa::v2::{MetricIdentifier, MetricSpec, MetricTarget, metric_type, target_type};
use crate::names::label_key_errors;

const SOURCE_TYPES: [&str; 5] = [
    metric_type::CONTAINER_RESOURCE,
    metric_type::EXTERNAL,
    metric_type::OBJECT,
    metric_type::PODS,
    metric_type::RESOURCE,
];

pub(super) fn check(
    metric: &MetricSpec,
    rule: ApiVersionRule,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = metric.r#type.as_str();
    let type_field = path.child("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&type_field, "must specify a metric source type"));
    }
    if !SOURCE_TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&type_field, BadValue::json(&kind), &SOURCE_TYPES));
    }
    let present = present_sources(metric);
    // Only the first source is looked into; a second one is wrong anyway.
    if let Some(first) = present.first() {
        errors.extend(check_source(metric, first, rule, &path.child(first)));
    }
    let expected = match kind {
        metric_type::OBJECT => Some("object"),
        metric_type::PODS => Some("pods"),
        metric_type::RESOURCE => Some("resource"),
        metric_type::EXTERNAL => Some("external"),
        metric_type::CONTAINER_RESOURCE => Some("containerResource"),
        _ => None,
    };
    if let Some(expected) = expected.filter(|expected| !present.contains(expected)) {
        errors.push(FieldError::required(
            &path.child(expected),
            "must populate information for the given metric source",
        ));
    }
    if present.len() != 1 {
        let mut extra: Vec<&str> =
            present.into_iter().filter(|name| Some(*name) != expected).collect();
        extra.sort_unstable();
        errors.extend(extra.into_iter().map(|name| {
            let detail = "must populate the given metric source only";
            FieldError::forbidden(&path.child(name), detail)
        }));
    }
    errors
}

/// The sources that are there, in the order in which the API server tries them.
fn present_sources(metric: &MetricSpec) -> Vec<&'static str> {
    [
        ("object", metric.object.is_some()),
        ("external", metric.external.is_some()),
        ("pods", metric.pods.is_some()),
        ("resource", metric.resource.is_some()),
        ("containerResource", metric.container_resource.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, present)| present.then_some(name))
    .collect()
}

fn check_source(
    metric: &MetricSpec,
    name: &str,
    rule: ApiVersionRule,
    path: &FieldPath,
) -> Vec<FieldError> {
    let target_path = path.child("target");
    let mut errors = Vec::new();
    if let Some(source) = metric.object.as_ref().filter(|_| name == "object") {
        let described = path.child("describedObject");
        errors.extend(check_reference(&source.described_object, rule, &described));
        errors.extend(check_identifier(&source.metric, &path.child("metric")));
        errors.extend(check_target(&source.target, &target_path));
        if source.target.value.is_none() && source.target.average_value.is_none() {
            errors.push(missing_average(
                &target_path,
                "must set either a target value or averageValue",
            ));
        }
    } else if let Some(source) = metric.external.as_ref().filter(|_| name == "external") {
        errors.extend(check_identifier(&source.metric, &path.child("metric")));
        errors.extend(check_target(&source.target, &target_path));
        match (&source.target.value, &source.target.average_value) {
            (None, None) => errors.push(missing_average(
                &target_path,
                "must set either a target value for metric or a per-pod target",
            )),
            (Some(_), Some(_)) => errors.push(FieldError::forbidden(
                &target_path.child("value"),
                "may not set both a target value for metric and a per-pod target",
            )),
            _ => {}
        }
    } else if let Some(source) = metric.pods.as_ref().filter(|_| name == "pods") {
        errors.extend(check_identifier(&source.metric, &path.child("metric")));
        errors.extend(check_target(&source.target, &target_path));
        if source.target.average_value.is_none() {
            errors
                .push(missing_average(&target_path, "must specify a positive target averageValue"));
        }
    } else if let Some(source) = metric.resource.as_ref().filter(|_| name == "resource") {
        errors.extend(missing_resource_name(&source.name, path));
        errors.extend(check_resource_target(&source.target, &target_path));
    } else if let Some(source) = &metric.container_resource {
        errors.extend(missing_resource_name(&source.name, path));
        errors.extend(check_container_resource(&source.name, &path.child("name")));
        let field = path.child("container");
        if source.container.is_empty() {
            errors.push(FieldError::required(&field, "must specify a container"));
        } else {
            let container = source.container.as_str();
            let problems = dns_label(container).into_iter();
            errors.extend(problems.map(|problem| FieldError::invalid(&field, container, problem)));
        }
        errors.extend(check_resource_target(&source.target, &target_path));
    }
    errors
}

fn missing_average(target: &FieldPath, detail: &str) -> FieldError {
    FieldError::required(&target.child("averageValue"), detail)
}

fn missing_resource_name(name: &str, path: &FieldPath) -> Option<FieldError> {
    name.is_empty()
        .then(|| FieldError::required(&path.child("name"), "must specify a resource name"))
}

fn check_identifier(metric: &MetricIdentifier, path: &FieldPath) -> Vec<FieldError> {
    let field = path.child("name");
    if metric.name.is_empty() {
        return vec![FieldError::required(&field, "must specify a metric name")];
    }
    check_path_segment(&metric.name, &field)
}

fn check_target(target: &MetricTarget, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = path.child("type");
    let kind = target.r#type.as_str();
    if kind.is_empty() {
        errors.push(FieldError::required(&field, "must specify a metric target type"));
    }
    let known = [target_type::UTILIZATION, target_type::VALUE, target_type::AVERAGE_VALUE];
    if !known.contains(&kind) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(&field, BadValue::json(&kind), detail));
    }
    for (name, value) in [("value", &target.value), ("averageValue", &target.average_value)] {
        if let Some(value) = value.as_ref().filter(|value| value.sign() != Ordering::Greater) {
            let value = BadValue::json(value);
            errors.push(FieldError::invalid(&path.child(name), value, "must be positive"));
        }
    }
    if let Some(percent) = target.average_utilization.filter(|percent| *percent < 1) {
        let field = path.child("averageUtilization");
        errors.push(FieldError::invalid(&field, percent, "must be greater than 0"));
    }
    errors
}

/// A target of a resource: a value or a utilization, not both.
fn check_resource_target(target: &MetricTarget, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = check_target(target, path);
    match (target.average_utilization, &target.average_value) {
        (None, None) => errors.push(FieldError::required(
            &path.child("averageUtilization"),
            "must set either a target raw value or a target utilization",
        )),
        (Some(_), Some(_)) => errors.push(FieldError::forbidden(
            &path.child("averageValue"),
            "may not set both a target raw value and a target utilization",
        )),
        _ => {}
    }
    errors
}

const STANDARD_RESOURCES: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];

/// Which resources a container can use.
fn check_container_resource(name: &str, field: &FieldPath) -> Vec<FieldError> {
    if name.is_empty() {
        return Vec::new();
    }
    let invalid = |detail: String| FieldError::invalid(field, BadValue::json(&name), detail);
    let mut errors: Vec<FieldError> = label_key_errors(name).into_iter().map(invalid).collect();
    let huge_pages = name.starts_with("hugepages-");
    if !name.contains('/') {
        let standard = STANDARD_RESOURCES.contains(&name)
            || huge_pages
            || name.starts_with("requests.hugepages-");
        if errors.is_empty() && !standard {
            let detail = "must be a standard resource type or fully qualified";
            errors.push(invalid(detail.to_owned()));
        }
        if !huge_pages && !matches!(name, "cpu" | "memory" | "ephemeral-storage") {
            errors.push(invalid("must be a standard resource for containers".to_owned()));
        }
    } else if !name.contains("kubernetes.io/") {
        // A quota for it must be nameable too.
        let extended = !name.starts_with("requests.")
            && label_key_errors(&format!("requests.{name}")).is_empty();
        if !extended {
            errors.push(invalid("doesn't follow extended resource name standard".to_owned()));
        }
    }
    errors
}
