//! What is wrong with what a metric has beyond an HPA's.

use super::{SECOND, check_duration, check_word};
use crate::expression::CURRENT_REPLICAS;
use crate::field_error::{BadValue, FieldError, FieldPath};
use crate::hpa::v2::metric_type as hpa_type;
use crate::keda::authentication;
use crate::keda::trigger::RESOURCE_TYPES;
use crate::pod_autoscaler::spec::{Metric, ON_MISSING, OnMissing, metric_type};

pub(super) fn check(metric: &Metric, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(metric.name.as_deref().and_then(|name| check_name(name, &path.child("name"))));
    errors.extend(check_prometheus(metric, &path.child("prometheus")));
    errors.extend(check_trigger(metric, &path.child("trigger")));
    errors.extend(check_duration(metric.max_age.as_deref(), SECOND, &path.child("maxAge")));
    let field = path.child("onMissing");
    match &metric.on_missing {
        Some(OnMissing::Replicas(replicas)) if *replicas < 0 => {
            errors.push(FieldError::invalid(&field, *replicas, format!("must be {ON_MISSING}")));
        }
        Some(OnMissing::Word(word)) if !["Hold", "Ignore", "LastValue"].contains(&&**word) => {
            let detail = format!("must be {ON_MISSING}");
            errors.push(FieldError::invalid(&field, word.as_str(), detail));
        }
        _ => {}
    }
    let (field, words) = (path.child("utilizationOf"), ["Requests", "Limits"]);
    errors.extend(check_word(metric.utilization_of.as_deref(), &words, &field));
    errors.extend(check_aggregate(metric, &path.child("aggregate")));
    errors.extend(check_watermarks(metric, &path.child("watermarks")));
    errors
}

fn check_name(name: &str, field: &FieldPath) -> Option<FieldError> {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let detail = if !name.starts_with(first) || !name.chars().all(rest) || name.len() > 63 {
        "must have letters, digits and underscores, begin with no digit, and be no longer than 63"
    } else if [CURRENT_REPLICAS, "true", "false", "null", "in", "math"].contains(&name) {
        "means something else in expressions"
    } else {
        return None;
    };
    Some(FieldError::invalid(field, name, detail))
}

fn check_prometheus(metric: &Metric, field: &FieldPath) -> Vec<FieldError> {
    let wanted = metric.hpa.r#type == metric_type::PROMETHEUS;
    let Some(source) = &metric.prometheus else {
        let missing =
            wanted.then(|| FieldError::required(field, "must say what to ask Prometheus"));
        return missing.into_iter().collect();
    };
    if !wanted {
        return vec![FieldError::forbidden(field, "must populate the given metric source only")];
    }
    let mut errors = Vec::new();
    if source.query.trim().is_empty() {
        errors.push(FieldError::required(&field.child("query"), "must say what to ask"));
    }
    let plain = |rest: &str| !rest.is_empty() && !rest.contains(['@', '?', '#']);
    let server = source.server.as_str();
    let rest = server.strip_prefix("http://").or_else(|| server.strip_prefix("https://"));
    if !server.is_empty() && !rest.is_some_and(plain) {
        let detail = "must be an address such as http://prometheus.monitoring:9090";
        errors.push(FieldError::invalid(&field.child("server"), server, detail));
    }
    errors
}

/// What the metadata mean is known to the event sources, and is judged where these are known.
fn check_trigger(metric: &Metric, field: &FieldPath) -> Vec<FieldError> {
    let wanted = metric.hpa.r#type == metric_type::TRIGGER;
    let Some(source) = &metric.trigger else {
        let missing =
            wanted.then(|| FieldError::required(field, "must say which event source is asked"));
        return missing.into_iter().collect();
    };
    if !wanted {
        return vec![FieldError::forbidden(field, "must populate the given metric source only")];
    }
    let mut errors = Vec::new();
    let kind = source.r#type.as_str();
    if kind.is_empty() {
        let detail = "must be the type of an event source, such as redis";
        errors.push(FieldError::required(&field.child("type"), detail));
    } else if RESOURCE_TYPES.contains(&kind) {
        let detail = "is a metric of pods: use a metric of type Resource or ContainerResource";
        errors.push(FieldError::invalid(&field.child("type"), kind, detail));
    }
    if let Some(reference) = &source.authentication_ref {
        let field = field.child("authenticationRef");
        if reference.name.is_empty() {
            errors.push(FieldError::required(&field.child("name"), ""));
        }
        let words = [authentication::KIND, authentication::CLUSTER_KIND];
        let kind = Some(reference.kind.as_str()).filter(|kind| !kind.is_empty());
        errors.extend(check_word(kind, &words, &field.child("kind")));
    }
    let words = ["AverageValue", "Value"];
    errors.extend(check_word(source.metric_type.as_deref(), &words, &field.child("metricType")));
    errors
}

fn check_aggregate(metric: &Metric, field: &FieldPath) -> Option<FieldError> {
    let word = metric.aggregate.as_deref()?;
    let words = ["Average", "Max", "P50", "P75", "P90", "P95", "P99"];
    let of_pods = [hpa_type::RESOURCE, hpa_type::CONTAINER_RESOURCE, hpa_type::PODS];
    if word != "Average" && !of_pods.contains(&metric.hpa.r#type.as_str()) {
        let detail = "only metrics with a value for each pod can be aggregated";
        return Some(FieldError::forbidden(field, detail));
    }
    check_word(Some(word), &words, field)
}

fn check_watermarks(metric: &Metric, field: &FieldPath) -> Option<FieldError> {
    let marks = metric.watermarks.as_ref()?;
    match (&marks.low, &marks.high) {
        (Some(low), Some(high)) if low > high => {
            let value = BadValue::text(&low.to_string());
            let detail = format!("must not be greater than high, which is {high}");
            Some(FieldError::invalid(&field.child("low"), value, detail))
        }
        (Some(_), Some(_)) => None,
        (None, _) => Some(FieldError::required(&field.child("low"), "")),
        (_, None) => Some(FieldError::required(&field.child("high"), "")),
    }
}
