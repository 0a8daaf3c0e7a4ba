//! Checks of selectors and of the pod templates that they must match.

use podscale_api::LabelSelector;
use podscale_api::field_error::metadata::{check_immutable, check_labels};
use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use podscale_api::names::{label_key_errors, label_value_errors};
use serde::Deserialize;
use serde_json::Value;

use super::pod_spec::{check_name, check_template, shown};
use crate::value::{integer, text};

/// Checks the selector, and that the template matches it.
pub(super) fn check_selector_and_template(
    spec: &Value,
    kind: &str,
    owner: &str,
    broken: &str,
) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let mut errors = Vec::new();
    let given = spec.get("selector").filter(|selector| !selector.is_null());
    let selector_path = path.child("selector");
    match given {
        None => errors.push(FieldError::required(&selector_path, "")),
        Some(given) => {
            errors.extend(check_selector(given, &selector_path));
            let empty = |name: &str| match given.get(name) {
                None | Some(Value::Null) => true,
                Some(Value::Object(entries)) => entries.is_empty(),
                Some(Value::Array(items)) => items.is_empty(),
                Some(_) => false,
            };
            if empty("matchLabels") && empty("matchExpressions") {
                let detail = format!("empty selector is invalid for {kind}");
                errors.push(FieldError::invalid(
                    &selector_path,
                    shown_selector(Some(given)),
                    detail,
                ));
            }
        }
    }
    let selector = given
        .map(|given| LabelSelector::deserialize(given).map_err(|_| ()))
        .transpose()
        .and_then(|selector| selector.unwrap_or_default().to_selector().map_err(|_| ()));
    let template = spec.get("template").unwrap_or(&Value::Null);
    let path = path.child("template");
    match selector {
        Err(()) => {
            errors.push(FieldError::invalid(&selector_path, shown_selector(given), broken));
        }
        Ok(selector) => {
            let labels = template.pointer("/metadata/labels");
            let label = |key: &str| labels?.get(key)?.as_str();
            // No selector selects nothing, an empty one everything.
            let matches = given.is_some() && (selector.is_empty() || selector.matches(label));
            if !matches {
                errors.push(FieldError::invalid(
                    &path.child("metadata").child("labels"),
                    shown(labels),
                    "`selector` does not match template `labels`",
                ));
            }
            errors.extend(check_template(template, &path));
            errors.extend(check_restart_policy(template, &path, owner));
        }
    }
    errors
}

/// A selector for messages, its fields in the order of the Go type.
pub(super) fn shown_selector(selector: Option<&Value>) -> BadValue {
    let Some(selector) = selector else { return BadValue::verbatim("null") };
    let parts: Vec<String> = ["matchLabels", "matchExpressions"]
        .into_iter()
        .filter_map(|name| Some(format!("\"{name}\":{}", selector.get(name)?)))
        .collect();
    BadValue::verbatim(format!("{{{}}}", parts.join(",")))
}

/// Checks that pods of a template are restarted whatever happens to them.
pub(super) fn check_restart_policy(
    template: &Value,
    path: &FieldPath,
    owner: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let policy = text(template, "/spec/restartPolicy");
    if policy != "Always" {
        let path = path.child("spec").child("restartPolicy");
        errors.push(FieldError::not_supported(&path, policy, &["Always"]));
    }
    if integer(template, "/spec/activeDeadlineSeconds").is_some() {
        errors.push(FieldError::forbidden(
            &path.child("spec").child("activeDeadlineSeconds"),
            format!("activeDeadlineSeconds in {owner} is not Supported"),
        ));
    }
    errors
}

/// Checks the labels and expressions of a selector.
pub(super) fn check_selector(selector: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = check_labels(selector.get("matchLabels"), &path.child("matchLabels"));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for (index, expression) in expressions.into_iter().flatten().enumerate() {
        let path = path.child("matchExpressions").index(index);
        let values = expression.get("values").and_then(Value::as_array).map_or(0, Vec::len);
        match text(expression, "/operator") {
            "In" | "NotIn" if values == 0 => errors.push(FieldError::required(
                &path.child("values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if values > 0 => errors.push(FieldError::forbidden(
                &path.child("values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                &path.child("operator"),
                other,
                "not a valid selector operator",
            )),
        }
        errors.extend(check_name(text(expression, "/key"), &path.child("key"), label_key_errors));
        let values = expression.get("values").and_then(Value::as_array);
        for (index, value) in values.into_iter().flatten().enumerate() {
            let path = path.child("values").index(index);
            let value = value.as_str().unwrap_or_default();
            errors.extend(check_name(value, &path, label_value_errors));
        }
    }
    errors
}

/// Checks that a selector stays what it was.
pub(super) fn selector_is_fixed(new: &Value, old: &Value) -> Option<FieldError> {
    let path = FieldPath::new("spec").child("selector");
    check_immutable(new.pointer("/spec/selector"), old.pointer("/spec/selector"), &path)
}
