//! What of a Job can change once it exists.

use podscale_api::field_error::metadata::check_immutable;
use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::job::{check_name_allows_completions, check_spec_and_selector, is_indexed};
use super::job_status::has_condition;
use crate::rules::go_value::internal;
use crate::rules::selectors::shown_selector;
use crate::value::{copy, entry, fields, integer, is_set, text};

const IMMUTABLE: &str = "field is immutable";

/// Checks a Job that replaces another.
pub(crate) fn check_job_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let nothing = Value::Null;
    let (spec, before) = (new.get("spec").unwrap_or(&nothing), old.get("spec").unwrap_or(&nothing));
    let path = FieldPath::new("spec");
    let mut errors = check_spec_and_selector(spec);
    errors.extend(check_completions(spec, before, &path.child("completions")));
    if spec.get("selector") != before.get("selector") {
        let shown = shown_selector(spec.get("selector"));
        errors.push(FieldError::invalid(&path.child("selector"), shown, IMMUTABLE));
    }
    errors.extend(check_template(spec, old, &path));
    let fixed = |name: &str| check_immutable(spec.get(name), before.get(name), &path.child(name));
    let fixed_structure = |name: &str, ty: &str| {
        (spec.get(name) != before.get(name)).then(|| {
            let shown = spec.get(name).map_or_else(
                || podscale_api::field_error::BadValue::verbatim("null"),
                |value| internal(ty, value),
            );
            FieldError::invalid(&path.child(name), shown, IMMUTABLE)
        })
    };
    errors.extend(fixed("completionMode"));
    errors.extend(fixed_structure("podFailurePolicy", "batch/v1.PodFailurePolicy"));
    errors.extend(fixed("backoffLimitPerIndex"));
    errors.extend(fixed("managedBy"));
    errors.extend(fixed_structure("successPolicy", "batch/v1.SuccessPolicy"));
    errors.extend(check_name_allows_completions(new, spec));
    errors
}

/// An indexed Job can grow and shrink, with its parallelism.
fn check_completions(spec: &Value, before: &Value, path: &FieldPath) -> Option<FieldError> {
    if !is_indexed(spec) {
        return check_immutable(spec.get("completions"), before.get("completions"), path);
    }
    let completions = integer(spec, "/completions")?;
    let changed = integer(before, "/completions") != Some(completions);
    (changed && integer(spec, "/parallelism") != Some(completions)).then(|| {
        let detail = "can only be modified in tandem with spec.parallelism";
        FieldError::invalid(path, completions, detail)
    })
}

/// The template is fixed, except that a suspended Job without pods can still be placed elsewhere
/// and be given other resources.
fn check_template(spec: &Value, old: &Value, path: &FieldPath) -> Option<FieldError> {
    let nothing = Value::Null;
    let after = spec.get("template").unwrap_or(&nothing);
    let mut before = old.pointer("/spec/template").cloned().unwrap_or_default();
    let path = path.child("template");
    if !is_movable(old) {
        return (*after != before)
            .then(|| FieldError::invalid(&path, template_value(after), IMMUTABLE));
    }
    take_over_placement(&mut before, after);
    let path = path.child("spec");
    let after = after.get("spec").unwrap_or(&nothing);
    let before = entry(&mut before, "spec");
    for name in ["containers", "initContainers"] {
        take_over_resources(before.get_mut(name), after.get(name));
    }
    (after != before)
        .then(|| FieldError::invalid(&path, internal("core/v1.PodSpec", after), IMMUTABLE))
}

fn template_value(template: &Value) -> podscale_api::field_error::BadValue {
    internal("core/v1.PodTemplateSpec", template)
}

/// Whether no pod of the Job can be running.
fn is_movable(job: &Value) -> bool {
    let suspended = job.pointer("/spec/suspend") == Some(&json!(true));
    let started = is_set(job.pointer("/status/startTime"));
    suspended
        && (!started || has_condition(job, "Suspended", "True"))
        && integer(job, "/status/active").unwrap_or_default() == 0
}

fn take_over_placement(before: &mut Value, after: &Value) {
    let nothing = Value::Null;
    let new_metadata = after.get("metadata").unwrap_or(&nothing);
    for name in ["annotations", "labels"] {
        copy(entry(before, "metadata"), new_metadata, name);
    }
    let new_spec = after.get("spec").unwrap_or(&nothing);
    let spec = entry(before, "spec");
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy(spec, new_spec, name);
    }
    let node_affinity = new_spec.pointer("/affinity/nodeAffinity").cloned();
    match (is_set(spec.get("affinity")), is_set(new_spec.get("affinity"))) {
        (false, false) => {}
        (_, true) => {
            let affinity = fields(entry(spec, "affinity"));
            match node_affinity {
                Some(node_affinity) => {
                    affinity.insert("nodeAffinity".to_owned(), node_affinity);
                }
                None => {
                    affinity.remove("nodeAffinity");
                }
            }
        }
        (true, false) => {
            let affinity = fields(entry(spec, "affinity"));
            affinity.remove("nodeAffinity");
            if affinity.is_empty() {
                fields(spec).remove("affinity");
            }
        }
    }
}

fn take_over_resources(before: Option<&mut Value>, after: Option<&Value>) {
    let (Some(Value::Array(before)), Some(Value::Array(after))) = (before, after) else { return };
    if before.len() != after.len() {
        return;
    }
    for (before, after) in before.iter_mut().zip(after) {
        if text(before, "/name") == text(after, "/name") {
            copy(before, after, "resources");
        }
    }
}
