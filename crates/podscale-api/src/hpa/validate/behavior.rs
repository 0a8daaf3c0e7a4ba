//! Checks of the rules for scaling up and down.

use crate::field_error::{BadValue, FieldError, FieldPath};
use crate::hpa::v2::{HorizontalPodAutoscalerBehavior, HpaScalingPolicy, HpaScalingRules};
use crate::quantity::Quantity;

/// Longest period of a policy.
const MAX_PERIOD_SECONDS: i32 = 1800;
/// Longest stabilization window.
const MAX_WINDOW_SECONDS: i32 = 3600;

pub(crate) fn check(
    behavior: &HorizontalPodAutoscalerBehavior,
    path: &FieldPath,
) -> Vec<FieldError> {
    [("scaleUp", &behavior.scale_up), ("scaleDown", &behavior.scale_down)]
        .into_iter()
        .filter_map(|(name, rules)| Some((path.child(name), rules.as_ref()?)))
        .flat_map(|(path, rules)| check_rules(rules, &path))
        .collect()
}

fn check_rules(rules: &HpaScalingRules, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(seconds) = rules.stabilization_window_seconds {
        let field = path.child("stabilizationWindowSeconds");
        if seconds < 0 {
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(&field, seconds, detail));
        }
        if seconds > MAX_WINDOW_SECONDS {
            let detail = format!("must be less than or equal to {MAX_WINDOW_SECONDS}");
            errors.push(FieldError::invalid(&field, seconds, detail));
        }
    }
    let policy = rules.select_policy.as_deref();
    if let Some(policy) = policy.filter(|policy| !matches!(*policy, "Max" | "Min" | "Disabled")) {
        let field = path.child("selectPolicy");
        let value = BadValue::json(&policy);
        errors.push(FieldError::not_supported(&field, value, &["Disabled", "Max", "Min"]));
    }
    let field = path.child("policies");
    let policies = rules.policies.as_deref().unwrap_or_default();
    if policies.is_empty() {
        errors.push(FieldError::required(&field, "must specify at least one Policy"));
    }
    for (index, policy) in policies.iter().enumerate() {
        errors.extend(check_policy(policy, &field.index(index)));
    }
    if let Some(tolerance) = rules.tolerance.as_ref().filter(|one| **one < Quantity::default()) {
        let field = path.child("tolerance");
        let value = BadValue::text(&tolerance.to_string());
        errors.push(FieldError::invalid(&field, value, "must be greater than or equal to 0"));
    }
    errors
}

fn check_policy(policy: &HpaScalingPolicy, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !matches!(policy.r#type.as_str(), "Pods" | "Percent") {
        let value = BadValue::json(&policy.r#type);
        errors.push(FieldError::not_supported(&path.child("type"), value, &["Percent", "Pods"]));
    }
    for (name, number) in [("value", policy.value), ("periodSeconds", policy.period_seconds)] {
        if number <= 0 {
            let field = path.child(name);
            errors.push(FieldError::invalid(&field, number, "must be greater than zero"));
        }
    }
    if policy.period_seconds > MAX_PERIOD_SECONDS {
        let field = path.child("periodSeconds");
        let detail = format!("must be less than or equal to {MAX_PERIOD_SECONDS}");
        errors.push(FieldError::invalid(&field, policy.period_seconds, detail));
    }
    errors
}
