//! Which statuses of a Job can follow each other.

use std::collections::HashSet;

use jiff::Timestamp;
use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use serde_json::{Value, json};

use super::indexes;
use super::job::is_indexed;
use super::job_policies::without_value;
use crate::rules::go_value::internal;
use crate::rules::pod_spec::{not_negative, shown};
use crate::value::{integer, is_set, list, text};

/// Whether the Job has a condition of that type with that status.
pub(super) fn has_condition(job: &Value, kind: &str, status: &str) -> bool {
    list(job, "/status/conditions")
        .iter()
        .any(|condition| text(condition, "/type") == kind && text(condition, "/status") == status)
}

fn holds(job: &Value, kind: &str) -> bool {
    has_condition(job, kind, "True")
}

fn is_finished(job: &Value) -> bool {
    holds(job, "Complete") || holds(job, "Failed")
}

fn count(job: &Value, name: &str) -> i64 {
    job.pointer("/status").and_then(|status| status.get(name)).and_then(Value::as_i64).unwrap_or(0)
}

/// The two versions of a Job, and which parts of the status differ. Only those are checked, so that
/// a status that was wrong before can still be amended.
struct Change<'a> {
    new: &'a Value,
    old: &'a Value,
    path: FieldPath,
    errors: Vec<FieldError>,
}

impl Change<'_> {
    fn differs(&self, name: &str) -> bool {
        let of = |job: &Value| job.pointer(&format!("/status/{name}")).cloned().unwrap_or_default();
        of(self.new) != of(self.old)
    }

    fn became(&self, state: impl Fn(&Value) -> bool) -> bool {
        state(self.new) != state(self.old)
    }

    fn field(&self, name: &str) -> Option<&Value> {
        self.new.pointer("/status")?.get(name).filter(|value| !value.is_null())
    }

    fn refuse(&mut self, wrong: bool, name: &str, value: impl Into<BadValue>, detail: &str) {
        if wrong {
            self.errors.push(FieldError::invalid(&self.path.child(name), value, detail));
        }
    }

    fn require(&mut self, missing: bool, name: &str, detail: &str) {
        if missing {
            self.errors.push(FieldError::required(&self.path.child(name), detail));
        }
    }

    fn refuse_conditions(&mut self, wrong: bool, detail: &str) {
        if wrong {
            self.errors.push(without_value(&self.path.child("conditions"), detail));
        }
    }
}

/// Checks a Job's new status.
pub(crate) fn check_job_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut change = Change { new, old, path: FieldPath::new("status"), errors: Vec::new() };
    check_counts(&mut change);
    check_ends(&mut change);
    check_finished(&mut change);
    check_indexes(&mut change);
    check_rest(&mut change);
    check_transitions(&mut change);
    change.errors
}

fn check_counts(change: &mut Change<'_>) {
    let status = change.new.get("status").unwrap_or(&Value::Null);
    for name in ["active", "succeeded", "failed", "ready", "terminating"] {
        change.errors.extend(not_negative(status, name, &change.path));
    }
    let mut seen = HashSet::new();
    let path = change.path.child("uncountedTerminatedPods");
    for name in ["succeeded", "failed"] {
        let uids = list(status, &format!("/uncountedTerminatedPods/{name}"));
        for (index, uid) in uids.iter().enumerate() {
            let path = path.child(name).index(index);
            match uid.as_str().unwrap_or_default() {
                "" => change.errors.push(FieldError::invalid(&path, "", "must not be empty")),
                uid if !seen.insert(uid) => change.errors.push(FieldError::duplicate(&path, uid)),
                _ => {}
            }
        }
    }
}

/// A Job ends in one way only, and what leads there comes first.
fn check_ends(change: &mut Change<'_>) {
    let new = change.new;
    let changed = |change: &Change<'_>, kind: &str| change.became(|job| holds(job, kind));
    let complete = holds(new, "Complete");
    let complete_changed = changed(change, "Complete");
    let failed_changed = changed(change, "Failed");
    let target_changed = changed(change, "FailureTarget");
    let met_changed = changed(change, "SuccessCriteriaMet");
    let (completion, start) = (change.differs("completionTime"), change.differs("startTime"));
    change.refuse_conditions(
        (complete_changed || failed_changed) && complete && holds(new, "Failed"),
        "cannot set Complete=True and Failed=true conditions",
    );
    change.refuse_conditions(
        (complete_changed || target_changed) && complete && holds(new, "FailureTarget"),
        "cannot set Complete=True and FailureTarget=true conditions",
    );
    let time = change.field("completionTime").cloned();
    if complete_changed || completion {
        change.refuse(
            time.is_some() && !complete,
            "completionTime",
            shown(time.as_ref()),
            "cannot set completionTime when there is no Complete=True condition",
        );
        change.require(
            time.is_none() && complete,
            "completionTime",
            "completionTime is required for Complete jobs",
        );
    }
    let read = |pointer: &str| text(new, pointer).parse::<Timestamp>().ok();
    if let (Some(started), Some(completed)) =
        (read("/status/startTime"), read("/status/completionTime"))
    {
        change.refuse(
            (start || completion) && completed < started,
            "completionTime",
            shown(time.as_ref()),
            "must be equal to or after `startTime`",
        );
    }
    change.refuse_conditions(
        (failed_changed || change.differs("failedIndexes"))
            && holds(new, "Failed")
            && !holds(new, "FailureTarget"),
        "cannot set Failed=True condition without the FailureTarget=true condition",
    );
    change.refuse_conditions(
        (complete_changed || met_changed) && complete && !holds(new, "SuccessCriteriaMet"),
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
    );
}

fn check_finished(change: &mut Change<'_>) {
    let new = change.new;
    let finished = is_finished(new);
    let changed = change.became(is_finished);
    let active = count(new, "active");
    change.refuse(
        (changed || change.differs("active")) && active > 0 && finished,
        "active",
        active,
        "active>0 is invalid for finished job",
    );
    let never_runs = new.pointer("/spec/suspend") == Some(&json!(true))
        && integer(new, "/spec/completions") == Some(0);
    change.require(
        (changed || change.differs("startTime"))
            && !never_runs
            && finished
            && change.field("startTime").is_none(),
        "startTime",
        "startTime is required for finished job",
    );
    let uncounted = change.field("uncountedTerminatedPods").cloned().unwrap_or_default();
    let pods = list(&uncounted, "/succeeded").len() + list(&uncounted, "/failed").len();
    change.refuse(
        (changed || change.differs("uncountedTerminatedPods")) && finished && pods > 0,
        "uncountedTerminatedPods",
        internal("batch/v1.UncountedTerminatedPods", &uncounted),
        "must be empty for finished job",
    );
}

fn check_indexes(change: &mut Change<'_>) {
    let new = change.new;
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let completions = integer(spec, "/completions");
    let per_index = is_set(spec.get("backoffLimitPerIndex"));
    let (completed_changed, failed_changed) =
        (change.differs("completedIndexes"), change.differs("failedIndexes"));
    let completed = text(new, "/status/completedIndexes");
    let failed = new.pointer("/status/failedIndexes").and_then(Value::as_str);
    let problem = |text: &str| indexes::count(text, completions?).err();
    if let Some(problem) = problem(completed).filter(|_| completed_changed) {
        let detail = format!("error parsing completedIndexes: {problem}");
        change.refuse(true, "completedIndexes", completed, &detail);
    }
    if let Some(failed) = failed.filter(|_| failed_changed && per_index)
        && let Some(problem) = problem(failed)
    {
        let detail = format!("error parsing failedIndexes: {problem}");
        change.refuse(true, "failedIndexes", failed, &detail);
    }
    change.refuse(
        completed_changed && !completed.is_empty() && !is_indexed(spec),
        "completedIndexes",
        completed,
        "cannot set non-empty completedIndexes when non-indexed completion mode",
    );
    let Some(failed) = failed else { return };
    change.refuse(
        failed_changed && !per_index,
        "failedIndexes",
        failed,
        "cannot set non-null failedIndexes when backoffLimitPerIndex is null",
    );
    if let Some(completions) = completions
        && (failed_changed || completed_changed)
        && let Some(index) = indexes::overlap(completed, failed, completions)
    {
        let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
        change.refuse(true, "failedIndexes", failed, &detail);
    }
}

fn check_rest(change: &mut Change<'_>) {
    let new = change.new;
    let (terminating, ready) = (count(new, "terminating"), count(new, "ready"));
    change.refuse(
        (change.became(is_finished) || change.differs("terminating"))
            && terminating > 0
            && is_finished(new),
        "terminating",
        terminating,
        "terminating>0 is invalid for finished job",
    );
    change.refuse(
        (change.differs("ready") || change.differs("active")) && ready > count(new, "active"),
        "ready",
        ready,
        "cannot set more ready pods than active",
    );
    let met = holds(new, "SuccessCriteriaMet");
    change.refuse_conditions(
        met && holds(new, "Failed"),
        "cannot set SuccessCriteriaMet=True and Failed=true conditions",
    );
    change.refuse_conditions(
        met && holds(new, "FailureTarget"),
        "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
    );
    change.refuse_conditions(
        is_set(new.pointer("/spec/successPolicy")) && !met && holds(new, "Complete"),
        "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
    );
}

/// What has been reached stays.
fn check_transitions(change: &mut Change<'_>) {
    let (new, old) = (change.new, change.old);
    for kind in ["Failed", "Complete", "FailureTarget"] {
        let detail = format!("cannot disable the terminal {kind}=True condition");
        change.refuse_conditions(holds(old, kind) && !holds(new, kind), &detail);
    }
    let failed = count(new, "failed");
    let lost = failed < count(old, "failed");
    change.refuse(lost, "failed", failed, "cannot decrease the failed counter");
    // An indexed Job that can be scaled down can lose pods that succeeded.
    let spec = new.get("spec").unwrap_or(&Value::Null);
    let scales = is_indexed(spec) && spec.get("completions") == spec.get("parallelism");
    let succeeded = count(new, "succeeded");
    change.refuse(
        !scales && succeeded < count(old, "succeeded"),
        "succeeded",
        succeeded,
        "cannot decrease the succeeded counter",
    );
    let of = |job: &Value, name: &str| {
        job.pointer(&format!("/status/{name}")).filter(|value| !value.is_null()).cloned()
    };
    let (time, before) = (of(new, "completionTime"), of(old, "completionTime"));
    change.refuse(
        time.is_some() && before.is_some() && time != before,
        "completionTime",
        shown(time.as_ref()),
        "field is immutable",
    );
    let (time, before) = (of(new, "startTime"), of(old, "startTime"));
    let resumes =
        has_condition(old, "Suspended", "True") && has_condition(new, "Suspended", "False");
    let suspended = new.pointer("/spec/suspend") == Some(&json!(true));
    change.refuse(
        !resumes && before.is_some() && time != before && !suspended,
        "startTime",
        shown(time.as_ref()),
        "field is immutable for unsuspended job once set",
    );
    let met = |job: &Value| holds(job, "SuccessCriteriaMet");
    change.refuse_conditions(
        met(old) && !met(new),
        "cannot disable the SuccessCriteriaMet=True condition",
    );
    change.refuse_conditions(
        holds(old, "Complete") && !met(old) && met(new),
        "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
    );
}
