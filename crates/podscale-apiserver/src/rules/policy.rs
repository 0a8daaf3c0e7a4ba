//! PodDisruptionBudgets.

use std::collections::HashSet;

use podscale_api::field_error::{FieldError, FieldPath};
use podscale_api::names::label_key_errors;
use serde_json::Value;

use super::go_value::internal;
use super::pod_spec::{check_name, not_negative};
use super::selectors::check_selector;
use super::workloads::{int_or_percent, parse_percent};
use crate::value::{integer, is_set, list, text};

const EVICTION_POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];
const CONDITION_STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const REASON_LIMIT_BYTES: usize = 1024;
const MESSAGE_LIMIT_BYTES: usize = 32 * 1024;

/// Checks a budget.
pub(crate) fn check(budget: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let spec = budget.get("spec").unwrap_or(&Value::Null);
    let mut errors = Vec::new();
    let given: Vec<(&str, &Value)> = ["minAvailable", "maxUnavailable"]
        .into_iter()
        .filter_map(|name| Some((name, spec.get(name).filter(|value| !value.is_null())?)))
        .collect();
    if given.len() > 1 {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        let shown = internal("policy/v1.PodDisruptionBudgetSpec", spec);
        errors.push(FieldError::invalid(&path, shown, detail));
    }
    for (name, value) in given {
        let path = path.child(name);
        errors.extend(int_or_percent(value, &path));
        if let Some(text) = value.as_str()
            && parse_percent(text).is_some_and(|percent| percent > 100)
        {
            errors.push(FieldError::invalid(&path, text, "must not be greater than 100%"));
        }
    }
    if let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) {
        errors.extend(check_selector(selector, &path.child("selector")));
    }
    if let Some(policy) = spec.get("unhealthyPodEvictionPolicy").and_then(Value::as_str)
        && !EVICTION_POLICIES.contains(&policy)
    {
        let path = path.child("unhealthyPodEvictionPolicy");
        errors.push(FieldError::not_supported(&path, policy, &EVICTION_POLICIES));
    }
    errors
}

/// Checks a budget that replaces another.
pub(crate) fn check_update(budget: &Value, _old: &Value) -> Vec<FieldError> {
    check(budget)
}

/// Checks a budget's new status.
pub(crate) fn check_status(budget: &Value, _old: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("status");
    let status = budget.get("status").unwrap_or(&Value::Null);
    let mut errors = check_conditions(list(status, "/conditions"), &path.child("conditions"));
    for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        errors.extend(not_negative(status, name, &path));
    }
    errors
}

/// Checks conditions of the shared type.
fn check_conditions(conditions: &[Value], path: &FieldPath) -> Vec<FieldError> {
    let mut seen = HashSet::new();
    let mut errors = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        let kind = text(condition, "/type");
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path, kind));
        }
        errors.extend(check_condition(condition, &path));
    }
    errors
}

fn check_condition(condition: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match text(condition, "/type") {
        "" => errors.push(FieldError::required(&path.child("type"), "is required")),
        kind => errors.extend(check_name(kind, &path.child("type"), label_key_errors)),
    }
    match text(condition, "/status") {
        "" => errors.push(FieldError::required(&path.child("status"), "")),
        status if CONDITION_STATUSES.contains(&status) => {}
        status => {
            let path = path.child("status");
            errors.push(FieldError::not_supported(&path, status, &CONDITION_STATUSES));
        }
    }
    if let Some(generation) = integer(condition, "/observedGeneration").filter(|it| *it < 0) {
        let path = path.child("observedGeneration");
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(&path, generation, detail));
    }
    if !is_set(condition.get("lastTransitionTime")) {
        errors.push(FieldError::required(&path.child("lastTransitionTime"), ""));
    }
    let reason = text(condition, "/reason");
    if reason.is_empty() {
        errors.push(FieldError::required(&path.child("reason"), ""));
    } else if !is_reason(reason) {
        let detail = "a condition reason must start with alphabetic character, optionally \
                      followed by a string of alphanumeric characters or '_,:', and must end with \
                      an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or \
                      'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for \
                      validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
        errors.push(FieldError::invalid(&path.child("reason"), reason, detail));
    }
    if reason.len() > REASON_LIMIT_BYTES {
        errors.push(FieldError::too_long(&path.child("reason"), REASON_LIMIT_BYTES));
    }
    if text(condition, "/message").len() > MESSAGE_LIMIT_BYTES {
        errors.push(FieldError::too_long(&path.child("message"), MESSAGE_LIMIT_BYTES));
    }
    errors
}

fn is_reason(text: &str) -> bool {
    let bytes = text.as_bytes();
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(word)
        && bytes.iter().all(|byte| word(byte) || matches!(byte, b',' | b':'))
}
