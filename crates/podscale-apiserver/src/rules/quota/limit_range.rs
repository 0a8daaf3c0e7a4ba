//! LimitRanges. They are stored and checked; nothing is limited.

use std::collections::{BTreeMap, HashSet};

use podscale_api::Quantity;
use podscale_api::field_error::{FieldError, FieldPath};
use podscale_api::names::label_key_errors;
use serde_json::{Map, Value};

use super::{check_resource_name, is_extended, is_native, quantity};
use crate::rules::pod_spec::check_name;
use crate::value::{fields, list, text};

/// Fills in a LimitRange: what containers ask for follows from what they may have.
pub(crate) fn default_limit_range(range: &mut Value) {
    let limits = range.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten() {
        if text(limit, "/type") != "Container" {
            continue;
        }
        let limit = fields(limit);
        for (from, to) in
            [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")]
        {
            fill(limit, from, to);
        }
    }
}

fn fill(limit: &mut Map<String, Value>, from: &str, to: &str) {
    let given = limit.get(from).and_then(Value::as_object).cloned().unwrap_or_default();
    let target = fields(limit.entry(to).or_insert(Value::Null));
    for (name, amount) in given {
        target.entry(name).or_insert(amount);
    }
}

/// Checks a LimitRange.
pub(crate) fn check_limit_range(range: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec").child("limits");
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, limit) in list(range, "/spec/limits").iter().enumerate() {
        let path = path.index(index);
        let kind = text(limit, "/type");
        errors.extend(check_limit_type(kind, &path.child("type")));
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path.child("type"), kind));
        }
        errors.extend(check_limit(limit, kind, &path));
    }
    errors
}

fn check_limit_type(kind: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = check_name(kind, path, label_key_errors);
    let standard = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
    if errors.is_empty() && !kind.contains('/') && !standard {
        let detail = "must be a standard limit type or fully qualified";
        errors.push(FieldError::invalid(path, kind, detail));
    }
    errors
}

fn check_limit_resource(kind: &str, name: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = check_resource_name(name, path);
    if !matches!(kind, "Pod" | "Container") {
        return errors;
    }
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    if !name.contains('/') && !standard && !name.starts_with("hugepages-") {
        let detail = "must be a standard resource for containers";
        errors.push(FieldError::invalid(path, name, detail));
    } else if !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, name, detail));
    }
    errors
}

fn check_limit(limit: &Value, kind: &str, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut amounts: BTreeMap<&str, BTreeMap<&str, Quantity>> = BTreeMap::new();
    for part in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let given = limit.get(part).and_then(Value::as_object);
        if kind == "Pod" && part.starts_with("default") {
            if given.is_some_and(|given| !given.is_empty()) {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.push(FieldError::forbidden(&path.child(part), detail));
            }
            continue;
        }
        for (name, value) in given.into_iter().flatten() {
            errors.extend(check_limit_resource(kind, name, &path.child(part).key(name)));
            if let Some(value) = quantity(value) {
                amounts.entry(name).or_default().insert(part, value);
            }
        }
    }
    let storage = |part: &str| amounts.get("storage").is_some_and(|it| it.contains_key(part));
    if kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        errors.push(FieldError::required(&path.child("limits"), detail));
    }
    for (name, amounts) in &amounts {
        errors.extend(check_limit_order(name, amounts, path));
    }
    errors
}

/// Each amount of one resource fits the others.
fn check_limit_order(
    name: &str,
    amounts: &BTreeMap<&str, Quantity>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // What is smaller, what is larger, the field that is blamed, the value that is shown, the words.
    for (low, high, blamed, shown, words) in [
        ("min", "max", "min", "min", ["min value", "max value"]),
        (
            "min",
            "defaultRequest",
            "defaultRequest",
            "defaultRequest",
            ["min value", "default request value"],
        ),
        (
            "defaultRequest",
            "max",
            "defaultRequest",
            "defaultRequest",
            ["default request value", "max value"],
        ),
        (
            "defaultRequest",
            "default",
            "defaultRequest",
            "defaultRequest",
            ["default request value", "default limit value"],
        ),
        ("min", "default", "default", "min", ["min value", "default value"]),
        ("default", "max", "default", "max", ["default value", "max value"]),
    ] {
        if let (Some(low), Some(high)) = (amounts.get(low), amounts.get(high))
            && low > high
        {
            let [low_words, high_words] = words;
            let detail = format!("{low_words} {low} is greater than {high_words} {high}");
            let shown = amounts.get(shown).map(ToString::to_string).unwrap_or_default();
            let path = path.child(blamed).key(name);
            errors.push(FieldError::invalid(&path, shown.as_str(), detail));
        }
    }
    errors.extend(check_ratio(name, amounts, path));
    let (limit, request) = (amounts.get("default"), amounts.get("defaultRequest"));
    if let (Some(limit), Some(request)) = (limit, request)
        && limit != request
        && (!is_native(name) || name.starts_with("hugepages-"))
    {
        let path = path.child("defaultRequest").key(name);
        let detail =
            format!("default value {limit} must equal to defaultRequest value {request} in {name}");
        errors.push(FieldError::invalid(&path, request.to_string().as_str(), detail));
    }
    errors
}

fn check_ratio(
    name: &str,
    amounts: &BTreeMap<&str, Quantity>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let Some(ratio) = amounts.get("maxLimitRequestRatio") else { return Vec::new() };
    let path = path.child("maxLimitRequestRatio").key(name);
    let shown = ratio.to_string();
    let mut errors = Vec::new();
    if ratio.milli_value() < 1000 {
        let detail = format!("ratio {ratio} is less than 1");
        errors.push(FieldError::invalid(&path, shown.as_str(), detail));
    }
    if let (Some(min), Some(max)) = (amounts.get("min"), amounts.get("max")) {
        let limit = max.as_approximate_f64() / min.as_approximate_f64();
        if ratio.as_approximate_f64() > limit {
            let detail = format!("ratio {ratio} is greater than max/min = {limit:.6}");
            errors.push(FieldError::invalid(&path, shown.as_str(), detail));
        }
    }
    errors
}

/// Checks a LimitRange that replaces another.
pub(crate) fn check_limit_range_update(new: &Value, _old: &Value) -> Vec<FieldError> {
    check_limit_range(new)
}
