//! The numbers that a custom resource's scale endpoint shows.

use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::Value;

use super::numbers::at;
use super::validate::type_name;
use crate::resource::ScalePaths;

/// Checks the fields that the scale endpoint reads; `spec` is left out for updates of the status.
pub fn check_scale(object: &Value, paths: &ScalePaths, spec: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if spec {
        errors.extend(check_count(object, &paths.spec_replicas));
    }
    errors.extend(check_count(object, &paths.status_replicas));
    if let Some(path) = &paths.selector
        && let Some(value) = at(object, path).filter(|value| !value.is_string())
    {
        errors.push(FieldError::invalid(
            &FieldPath::new(path),
            "",
            format!(
                "{path} accessor error: {value} is of the type {}, expected string",
                go_type(value)
            ),
        ));
    }
    errors
}

fn check_count(object: &Value, path: &str) -> Option<FieldError> {
    let value = at(object, path)?;
    let field = FieldPath::new(path);
    let Some(count) = value.as_i64() else {
        let found = go_type(value);
        let detail =
            format!("{path} accessor error: {value} is of the type {found}, expected int64");
        return Some(FieldError::invalid(&field, 0, detail));
    };
    if count < 0 {
        return Some(FieldError::invalid(&field, count, "should be a non-negative integer"));
    }
    (count > i64::from(i32::MAX)).then(|| {
        let detail = format!("should be less than or equal to {}", i32::MAX);
        FieldError::invalid(&field, count, detail)
    })
}

fn go_type(value: &Value) -> &'static str {
    match type_name(value) {
        "integer" => "int64",
        "number" => "float64",
        "boolean" => "bool",
        "array" => "[]interface {}",
        "object" => "map[string]interface {}",
        "null" => "<nil>",
        other => other,
    }
}
