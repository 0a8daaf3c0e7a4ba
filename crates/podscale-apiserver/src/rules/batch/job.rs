//! Checks of Jobs.

use podscale_api::field_error::{FieldError, FieldPath, names};
use podscale_api::{LabelSelector, Selector};
use serde::Deserialize;
use serde_json::{Value, json};

use super::job_policies::{check_failure_policy, check_success_policy};
use super::{NAME_LABELS, UID_LABELS};
use crate::rules::go_value::internal;
use crate::rules::networking::check_domain_path;
use crate::rules::pod_spec::{check_template, not_negative, shown};
use crate::rules::selectors::{check_selector, shown_selector};
use crate::value::{integer, is_set, text};

const MAX_PARALLELISM_INDEXED: i64 = 100_000;
const MAX_FAILED_INDEXES: i64 = 100_000;
/// Above so many completions, failures of indexes are tracked in less detail.
const MANY_COMPLETIONS: i64 = 100_000;
const MAX_PARALLELISM_OF_MANY: i64 = 10_000;
const MAX_FAILED_INDEXES_OF_MANY: i64 = 10_000;
const MANAGER_LIMIT_BYTES: usize = 63;

/// Checks a new Job.
pub(crate) fn check_job(job: &Value) -> Vec<FieldError> {
    let spec = job.get("spec").unwrap_or(&Value::Null);
    let mut errors = check_generated_selector(job, spec);
    errors.extend(check_spec_and_selector(spec));
    errors.extend(check_name_allows_completions(job, spec));
    errors
}

/// Warnings for clients about a new Job that is valid, but surprising.
pub(crate) fn job_warnings(job: &Value) -> Vec<String> {
    let mut warnings = name_warnings(job);
    warnings.extend(spec_warnings(job.get("spec").unwrap_or(&Value::Null), "spec"));
    warnings
}

pub(super) fn name_warnings(object: &Value) -> Vec<String> {
    let problems = names::dns_label(text(object, "/metadata/name"));
    if problems.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising \
         behavior; a DNS label is recommended: [{}]",
        problems.join(" ")
    )]
}

pub(super) fn spec_warnings(spec: &Value, path: &str) -> Vec<String> {
    let count = |name: &str| spec.get(name).and_then(Value::as_i64).unwrap_or_default();
    let many = count("completions") > MANY_COMPLETIONS
        && count("parallelism") > MAX_PARALLELISM_OF_MANY
        && is_indexed(spec);
    if !many {
        return Vec::new();
    }
    vec![format!(
        "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism \
         higher than 10^4, Kubernetes might not be able to track completedIndexes when a big \
         number of indexes fail"
    )]
}

pub(super) fn is_indexed(spec: &Value) -> bool {
    text(spec, "/completionMode") == "Indexed"
}

fn has_label(
    labels: Option<&Value>,
    key: &str,
    wanted: &str,
    path: &FieldPath,
) -> Option<FieldError> {
    let path = path.child("labels").key(key);
    let detail = format!("must be '{wanted}'");
    match labels.and_then(|labels| labels.get(key)).and_then(Value::as_str) {
        None => Some(FieldError::required(&path, detail)),
        Some(actual) if actual == wanted => None,
        Some(_) => Some(FieldError::invalid(&path, shown(labels), detail)),
    }
}

fn check_generated_selector(job: &Value, spec: &Value) -> Vec<FieldError> {
    let given = spec.get("selector").filter(|selector| !selector.is_null());
    let manual = spec.get("manualSelector") == Some(&json!(true));
    let Some(selector) = given.filter(|_| !manual) else { return Vec::new() };
    let labels = spec.pointer("/template/metadata/labels");
    let path = FieldPath::new("spec").child("template").child("metadata");
    let (uid, name) = (text(job, "/metadata/uid"), text(job, "/metadata/name"));
    let [old_uid, new_uid] = UID_LABELS;
    let [old_name, new_name] = NAME_LABELS;
    let wanted = [(old_uid, uid), (old_name, name), (new_uid, uid), (new_name, name)];
    let mut errors: Vec<FieldError> =
        wanted.iter().filter_map(|(key, value)| has_label(labels, key, value, &path)).collect();
    let label = |key: &str| wanted.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
    if parse(selector).is_some_and(|selector| !selector.is_empty() && !selector.matches(label)) {
        let path = FieldPath::new("spec").child("selector");
        let detail = "`selector` not auto-generated";
        errors.push(FieldError::invalid(&path, shown_selector(given), detail));
    }
    errors
}

fn parse(selector: &Value) -> Option<Selector> {
    LabelSelector::deserialize(selector).ok()?.to_selector().ok()
}

pub(super) fn check_name_allows_completions(job: &Value, spec: &Value) -> Option<FieldError> {
    let completions = integer(spec, "/completions").filter(|count| *count > 0)?;
    let name = text(job, "/metadata/name");
    let longest = format!("{name}-{}", completions - 1);
    if !is_indexed(spec) || names::dns_label(&longest).is_empty() {
        return None;
    }
    let detail = format!("will not able to create pod with invalid DNS label: {longest}");
    Some(FieldError::invalid(&FieldPath::new("metadata").child("name"), name, detail))
}

/// Checks the spec of a Job, and that its selector matches its template.
pub(super) fn check_spec_and_selector(spec: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("spec");
    let mut errors = check_spec(spec, &path);
    let given = spec.get("selector").filter(|selector| !selector.is_null());
    match given {
        None => errors.push(FieldError::required(&path.child("selector"), "")),
        Some(given) => errors.extend(check_selector(given, &path.child("selector"))),
    }
    let labels = spec.pointer("/template/metadata/labels");
    let label = |key: &str| labels?.get(key)?.as_str();
    // No selector selects nothing, an empty one everything.
    let matches = given.map_or(Some(false), |given| {
        parse(given).map(|selector| selector.is_empty() || selector.matches(label))
    });
    if matches == Some(false) {
        let path = path.child("template").child("metadata").child("labels");
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid(&path, shown(labels), detail));
    }
    errors
}

/// Checks the spec of a Job, which may be the template of a CronJob.
pub(super) fn check_spec(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        errors.extend(not_negative(spec, name, path));
    }
    let per_index = is_set(spec.get("backoffLimitPerIndex"));
    if is_set(spec.get("maxFailedIndexes")) && !per_index {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), detail));
    }
    errors.extend(check_manager(spec, &path.child("managedBy")));
    errors.extend(check_completion_mode(spec, path));
    if is_set(spec.get("podFailurePolicy")) {
        errors.extend(check_failure_policy(spec, &path.child("podFailurePolicy")));
    }
    if let Some(policy) = spec.get("successPolicy").filter(|policy| !policy.is_null()) {
        let path = path.child("successPolicy");
        if is_indexed(spec) {
            errors.extend(check_success_policy(spec, policy, &path));
        } else {
            let shown = internal("batch/v1.SuccessPolicy", policy);
            errors.push(FieldError::invalid(&path, shown, "requires indexed completion mode"));
        }
    }
    errors.extend(check_replacement_policy(spec, &path.child("podReplacementPolicy")));
    let template = spec.get("template").unwrap_or(&Value::Null);
    errors.extend(check_template(template, &path.child("template")));
    errors.extend(check_restart_policy(spec, template, path));
    errors
}

fn check_manager(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let Some(manager) = spec.get("managedBy").and_then(Value::as_str) else { return Vec::new() };
    let mut errors = check_domain_path(manager, path);
    if manager.len() > MANAGER_LIMIT_BYTES {
        errors.push(FieldError::too_long(path, MANAGER_LIMIT_BYTES));
    }
    errors
}

fn check_completion_mode(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match spec.get("completionMode").and_then(Value::as_str) {
        Some("Indexed") => return check_indexed(spec, path),
        None | Some("NonIndexed") => {}
        Some(other) => {
            let supported = ["NonIndexed", "Indexed"];
            let path = path.child("completionMode");
            errors.push(FieldError::not_supported(&path, other, &supported));
            return errors;
        }
    }
    for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
        if let Some(value) = spec.get(name).and_then(Value::as_i64) {
            let detail = "requires indexed completion mode";
            errors.push(FieldError::invalid(&path.child(name), value, detail));
        }
    }
    errors
}

fn check_indexed(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let count = |name: &str| spec.get(name).and_then(Value::as_i64);
    let (completions, failed) = (count("completions"), count("maxFailedIndexes"));
    let mut at_most = |name: &str, limit: i64, detail: String| {
        if let Some(value) = count(name).filter(|value| *value > limit) {
            errors.push(FieldError::invalid(&path.child(name), value, detail));
        }
    };
    let mut required = Vec::new();
    if completions.is_none() {
        let detail = "when completion mode is Indexed";
        required.push(FieldError::required(&path.child("completions"), detail));
    }
    at_most(
        "parallelism",
        MAX_PARALLELISM_INDEXED,
        format!(
            "must be less than or equal to {MAX_PARALLELISM_INDEXED} when completion mode is \
             Indexed"
        ),
    );
    if let Some(completions) = completions {
        let detail = "must be less than or equal to completions".to_owned();
        at_most("maxFailedIndexes", completions, detail);
    }
    let detail = format!("must be less than or equal to {MAX_FAILED_INDEXES}");
    at_most("maxFailedIndexes", MAX_FAILED_INDEXES, detail);
    let many = completions.is_some_and(|count| count > MANY_COMPLETIONS);
    if many && count("backoffLimitPerIndex").is_some() {
        let detail = |limit: i64| {
            format!(
                "must be less than or equal to {limit} when completions are above \
                 {MANY_COMPLETIONS} and used with backoff limit per index"
            )
        };
        at_most("parallelism", MAX_PARALLELISM_OF_MANY, detail(MAX_PARALLELISM_OF_MANY));
        let limit = MAX_FAILED_INDEXES_OF_MANY;
        at_most("maxFailedIndexes", limit, detail(limit));
        if failed.is_none() {
            let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            required.push(FieldError::required(&path.child("maxFailedIndexes"), detail));
        }
    }
    required.extend(errors);
    required
}

fn check_replacement_policy(spec: &Value, path: &FieldPath) -> Option<FieldError> {
    let policy = spec.get("podReplacementPolicy").and_then(Value::as_str)?;
    let supported: &[&str] = if is_set(spec.get("podFailurePolicy")) {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    (!supported.contains(&policy)).then(|| FieldError::not_supported(path, policy, supported))
}

fn check_restart_policy(spec: &Value, template: &Value, path: &FieldPath) -> Option<FieldError> {
    let path = path.child("template").child("spec").child("restartPolicy");
    match text(template, "/spec/restartPolicy") {
        // What is not given has been filled in as Always.
        "Always" | "" => {
            Some(FieldError::required(&path, "valid values: \"OnFailure\", \"Never\""))
        }
        "Never" => None,
        policy @ "OnFailure" if is_set(spec.get("podFailurePolicy")) => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            Some(FieldError::invalid(&path, policy, detail))
        }
        "OnFailure" => None,
        other => Some(FieldError::not_supported(&path, other, &["OnFailure", "Never"])),
    }
}
