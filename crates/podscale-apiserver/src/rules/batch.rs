//! Jobs and CronJobs: what is filled in, and which labels and selector a Job gets.

pub(crate) mod cron_job;
mod indexes;
pub(crate) mod job;
mod job_policies;
pub(crate) mod job_status;
mod job_update;
mod schedule;

pub(crate) use job_update::check_job_update;

use serde_json::{Map, Value, json};

use super::pod_defaults::default_template;
use crate::store::Fields;
use crate::value::{default, default_text, entry, fields, integer, is_set, section, text};

/// The labels that tie a pod to its Job: the name of the Job, then its uid, each with and without
/// the prefix that came later.
pub(super) const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
pub(super) const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

const BACKOFF_LIMIT: i64 = 6;

/// Fills in a Job.
pub(crate) fn default_job(job: &mut Value) {
    default_failure_patterns(job.pointer_mut("/spec/podFailurePolicy/rules"));
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    let spec = section(job, "spec");
    default_template(spec);
    if !is_set(spec.get("completions")) && !is_set(spec.get("parallelism")) {
        default(spec, "completions", 1);
    }
    default(spec, "parallelism", 1);
    let per_index = is_set(spec.get("backoffLimitPerIndex"));
    default(spec, "backoffLimit", if per_index { i64::from(i32::MAX) } else { BACKOFF_LIMIT });
    default(spec, "completionMode", "NonIndexed");
    default(spec, "suspend", false);
    let replaced =
        if is_set(spec.get("podFailurePolicy")) { "Failed" } else { "TerminatingOrFailed" };
    default(spec, "podReplacementPolicy", replaced);
    default(spec, "manualSelector", false);
    if let Some(labels @ Value::Object(_)) = labels.filter(|_| is_unlabelled(job)) {
        section(job, "metadata").insert("labels".to_owned(), labels);
    }
}

/// Fills in a CronJob; the Job in it is filled in when it is created.
pub(crate) fn default_cron_job(object: &mut Value) {
    default_failure_patterns(object.pointer_mut("/spec/jobTemplate/spec/podFailurePolicy/rules"));
    let spec = section(object, "spec");
    default_text(spec, "concurrencyPolicy", "Allow");
    default(spec, "suspend", false);
    default(spec, "successfulJobsHistoryLimit", 3);
    default(spec, "failedJobsHistoryLimit", 1);
    if let Some(template) = spec.get_mut("jobTemplate").and_then(|it| it.get_mut("spec")) {
        default_template(fields(template));
    }
}

fn default_failure_patterns(rules: Option<&mut Value>) {
    for rule in rules.and_then(Value::as_array_mut).into_iter().flatten() {
        let patterns = rule.get_mut("onPodConditions").and_then(Value::as_array_mut);
        for pattern in patterns.into_iter().flatten() {
            default_text(fields(pattern), "status", "True");
        }
    }
}

/// Gives a new Job its selector, and its template the labels that are selected by.
pub(crate) fn prepare_job(job: &mut Value) {
    drop_scheduling(section(job, "spec"));
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let name = text(job, "/metadata/name").to_owned();
    let uid = text(job, "/metadata/uid").to_owned();
    let spec = entry(job, "spec");
    let metadata = section(entry(spec, "template"), "metadata");
    let labels = fields(metadata.entry("labels").or_insert(Value::Null));
    for (keys, value) in [(NAME_LABELS, &name), (UID_LABELS, &uid)] {
        for key in keys {
            labels.entry(key).or_insert_with(|| json!(value));
        }
    }
    let selector = section(spec, "selector");
    let [_, key] = UID_LABELS;
    let wanted = fields(selector.entry("matchLabels").or_insert(Value::Null));
    wanted.entry(key).or_insert_with(|| json!(uid));
}

/// A Job without labels has those of its template, the generated ones included.
pub(crate) fn label_like_template(job: &mut Value) {
    if let Some(labels) = job.pointer("/spec/template/metadata/labels").cloned() {
        section(job, "metadata").insert("labels".to_owned(), labels);
    }
}

/// An update of a Job.
pub(crate) fn prepare_job_update(job: &mut Value, old: &Value) {
    drop_scheduling(section(job, "spec"));
    prepare_job_status(job, old);
}

/// An update of a Job's status.
pub(crate) fn prepare_job_status(job: &mut Value, _old: &Value) {
    if is_unlabelled(job) {
        label_like_template(job);
    }
}

fn is_unlabelled(job: &Value) -> bool {
    job.pointer("/metadata/labels").and_then(Value::as_object).is_none_or(Map::is_empty)
}

/// A new CronJob.
pub(crate) fn prepare_cron_job(object: &mut Value) {
    if let Some(spec) = object.pointer_mut("/spec/jobTemplate/spec") {
        drop_scheduling(fields(spec));
    }
}

/// An update of a CronJob.
pub(crate) fn prepare_cron_job_update(object: &mut Value, _old: &Value) {
    prepare_cron_job(object);
}

/// A field of a feature that is switched off where nothing else is said.
fn drop_scheduling(spec: &mut Map<String, Value>) {
    spec.remove("scheduling");
}

/// The values that a Job can be selected by.
pub(crate) fn job_fields(job: &Value) -> Fields {
    let succeeded = integer(job, "/status/succeeded").unwrap_or_default();
    vec![("status.successful", succeeded.to_string().into())]
}
