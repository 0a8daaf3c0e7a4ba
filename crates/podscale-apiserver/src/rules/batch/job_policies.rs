//! Checks of the policies that say when a Job has failed or succeeded.

use std::collections::HashSet;

use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use podscale_api::names::label_key_errors;
use serde_json::Value;

use super::indexes;
use crate::rules::pod_spec::{check_name, not_negative, shown};
use crate::value::{integer, is_set, list, text};

const MAX_RULES: usize = 20;
const MAX_PATTERNS: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const INDEXES_LIMIT_BYTES: usize = 64 * 1024;
const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

fn valid_values(supported: &[&str]) -> String {
    let quoted: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn one_of(value: &str, path: &FieldPath, supported: &[&str]) -> Option<FieldError> {
    match value {
        "" => Some(FieldError::required(path, valid_values(supported))),
        value if supported.contains(&value) => None,
        value => Some(FieldError::not_supported(path, value, supported)),
    }
}

/// A mistake of a value that is not shown.
pub(super) fn without_value(path: &FieldPath, detail: impl Into<String>) -> FieldError {
    FieldError::invalid(path, BadValue::verbatim(""), detail)
}

pub(super) fn check_failure_policy(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let path = path.child("rules");
    let rules = list(spec, "/podFailurePolicy/rules");
    let mut errors = Vec::new();
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&path, rules.len(), MAX_RULES));
    }
    let containers: HashSet<&str> = list(spec, "/template/spec/containers")
        .iter()
        .chain(list(spec, "/template/spec/initContainers"))
        .map(|container| text(container, "/name"))
        .collect();
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(check_failure_rule(spec, rule, &containers, &path.index(index)));
    }
    errors
}

fn check_failure_rule(
    spec: &Value,
    rule: &Value,
    containers: &HashSet<&str>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let action = text(rule, "/action");
    if action == "FailIndex" && !is_set(spec.get("backoffLimitPerIndex")) {
        let detail = "requires the backoffLimitPerIndex to be set";
        errors.push(FieldError::invalid(&path.child("action"), action, detail));
    }
    errors.extend(one_of(action, &path.child("action"), &ACTIONS));
    let codes = rule.get("onExitCodes").filter(|codes| !codes.is_null());
    if let Some(codes) = codes {
        errors.extend(check_exit_codes(codes, containers, &path.child("onExitCodes")));
    }
    let patterns = list(rule, "/onPodConditions");
    errors.extend(check_patterns(patterns, &path.child("onPodConditions")));
    match (codes.is_some(), !patterns.is_empty()) {
        (true, true) => {
            let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
            errors.push(without_value(path, detail));
        }
        (false, false) => {
            let detail = "specifying one of OnExitCodes and OnPodConditions is required";
            errors.push(without_value(path, detail));
        }
        _ => {}
    }
    errors
}

fn check_patterns(patterns: &[Value], path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if patterns.len() > MAX_PATTERNS {
        errors.push(FieldError::too_many(path, patterns.len(), MAX_PATTERNS));
    }
    for (index, pattern) in patterns.iter().enumerate() {
        let path = path.index(index);
        errors.extend(check_name(text(pattern, "/type"), &path.child("type"), label_key_errors));
        errors.extend(one_of(text(pattern, "/status"), &path.child("status"), &STATUSES));
    }
    errors
}

fn check_exit_codes(
    codes: &Value,
    containers: &HashSet<&str>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let operator = text(codes, "/operator");
    let mut errors: Vec<FieldError> =
        one_of(operator, &path.child("operator"), &OPERATORS).into_iter().collect();
    if let Some(name) = codes.get("containerName").and_then(Value::as_str)
        && !containers.contains(name)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(&path.child("containerName"), name, detail));
    }
    let path = path.child("values");
    let values: Vec<i64> = list(codes, "/values").iter().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        let detail = "at least one value is required";
        errors.push(FieldError::invalid(&path, shown(codes.get("values")), detail));
    } else if values.len() > MAX_EXIT_CODES {
        errors.push(FieldError::too_many(&path, values.len(), MAX_EXIT_CODES));
    }
    let mut seen = HashSet::new();
    for (index, value) in values.iter().enumerate() {
        let path = path.index(index);
        if operator == "In" && *value == 0 {
            errors.push(FieldError::invalid(&path, 0, "must not be 0 for the In operator"));
        }
        if !seen.insert(*value) {
            errors.push(FieldError::duplicate(&path, *value));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(&path, BadValue::json(&values), "must be ordered"));
    }
    errors
}

pub(super) fn check_success_policy(
    spec: &Value,
    policy: &Value,
    path: &FieldPath,
) -> Vec<FieldError> {
    let path = path.child("rules");
    let rules = list(policy, "/rules");
    let mut errors = Vec::new();
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, detail));
    }
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(&path, rules.len(), MAX_RULES));
    }
    let completions = integer(spec, "/completions").unwrap_or_default();
    for (index, rule) in rules.iter().enumerate() {
        errors.extend(check_success_rule(rule, completions, &path.index(index)));
    }
    errors
}

fn check_success_rule(rule: &Value, completions: i64, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let indexes = rule.get("succeededIndexes").and_then(Value::as_str);
    let count = integer(rule, "/succeededCount");
    if indexes.is_none() && count.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let mut total = 0;
    if let Some(text) = indexes {
        let path = path.child("succeededIndexes");
        if text.len() > INDEXES_LIMIT_BYTES {
            errors.push(FieldError::too_long(&path, INDEXES_LIMIT_BYTES));
        }
        match indexes::count(text, completions) {
            Ok(counted) => total = counted,
            Err(problem) => {
                let detail = format!("error parsing succeededIndexes: {problem}");
                errors.push(FieldError::invalid(&path, text, detail));
            }
        }
    }
    if let Some(count) = count {
        errors.extend(not_negative(rule, "succeededCount", path));
        let path = path.child("succeededCount");
        if count > completions {
            let detail = format!(
                "must be less than or equal to {completions} (the number of specified completions)"
            );
            errors.push(FieldError::invalid(&path, count, detail));
        }
        if indexes.is_some() && count > total {
            let detail = format!(
                "must be less than or equal to {total} (the number of indexes in the specified \
                 succeededIndexes field)"
            );
            errors.push(FieldError::invalid(&path, count, detail));
        }
    }
    errors
}
