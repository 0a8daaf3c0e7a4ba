//! What is to be done for a Job, and the status to report: a pure function of the Job and its pods.

use super::tally::{End, Tally, end_of, ended_at, is_tracked};
use crate::controllers::pod::{Phase, Pod};
use crate::controllers::replicas::plan::{self as replicas, Step};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podscale_client::clock::stamp;
use podscale_client::events::Severity;
use std::sync::Arc;
use std::time::Duration;

/// The first and the longest wait before a pod that failed is replaced.
const BACK_OFF: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(10), SignedDuration::from_secs(600));
/// How often a Job's pods may fail, where it does not say.
const BACKOFF_LIMIT: i32 = 6;
/// Whom a Job names if this controller is to care for it.
const SELF: &str = "kubernetes.io/job-controller";

const COMPLETE: &str = "Complete";
const FAILED: &str = "Failed";
const SUCCESS: &str = "SuccessCriteriaMet";
const FAILURE: &str = "FailureTarget";
const SUSPENDED: &str = "Suspended";

/// What a Job's plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The Job.
    pub job: &'a Job,
    /// Its spec.
    pub spec: &'a JobSpec,
    /// Its pods, those that ended too.
    pub pods: &'a [Arc<Pod>],
    /// The time.
    pub now: Timestamp,
}

/// What is to be done for a Job.
#[derive(Debug, Default)]
pub struct Plan {
    /// How many pods are to be created.
    pub create: usize,
    /// The pods that are too many. They count for nothing.
    pub withdraw: Vec<Arc<Pod>>,
    /// The pods of a Job that has failed. They count as failed.
    pub end: Vec<Arc<Pod>>,
    /// The status to report.
    pub status: JobStatus,
    /// The pods that may go once it is reported.
    pub release: Vec<Arc<Pod>>,
    /// What is reported: how bad, in a word, in words.
    pub events: Vec<(Severity, &'static str, &'static str)>,
    /// How long until there is something to do without any change.
    pub after: Option<Duration>,
}

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    succeeds: bool,
    reason: &'static str,
    message: &'static str,
}

const REACHED: Verdict = Verdict {
    succeeds: true,
    reason: "CompletionsReached",
    message: "Reached expected number of succeeded pods",
};
const TOO_OFTEN: Verdict = Verdict {
    succeeds: false,
    reason: "BackoffLimitExceeded",
    message: "Job has reached the specified backoff limit",
};
const TOO_LONG: Verdict = Verdict {
    succeeds: false,
    reason: "DeadlineExceeded",
    message: "Job was active longer than specified deadline",
};

const fn unsupported(message: &'static str) -> Verdict {
    Verdict { succeeds: false, reason: "NotSupported", message }
}

/// Whether another controller is to care for a Job.
#[must_use]
pub fn is_managed_elsewhere(spec: &JobSpec) -> bool {
    spec.managed_by.as_deref().is_some_and(|manager| manager != SELF)
}

/// When a Job ended, if it has.
#[must_use]
pub fn finished(job: &Job) -> Option<&JobCondition> {
    let status = job.status.as_ref()?;
    condition(status, COMPLETE).or_else(|| condition(status, FAILED))
}

/// When a Job that has ended is to go, if it is.
#[must_use]
pub fn expiry(spec: &JobSpec, ended: &JobCondition) -> Option<Timestamp> {
    let ttl = SignedDuration::from_secs(spec.ttl_seconds_after_finished?.into());
    let since = ended.last_transition_time.as_ref()?.0;
    Some(since.saturating_add(ttl).unwrap_or(Timestamp::MAX))
}

/// Decides. The Job has not ended.
#[must_use]
pub fn plan(input: &Input<'_>) -> Plan {
    let Input { job, spec, pods, now } = *input;
    let old = job.status.clone().unwrap_or_default();
    let tally = Tally::of(spec, &old, pods);
    let mut plan = Plan { status: tally.status(&old), ..Plan::default() };
    let suspended = spec.suspend == Some(true);
    note_suspension(&mut plan, suspended, now);
    if plan.status.start_time.is_none() && !suspended {
        plan.status.start_time = Some(stamp(now));
    }
    let deadline = deadline(spec, &plan.status, suspended);
    match verdict(input, &old, &tally, deadline) {
        Some(verdict) => finish(&mut plan, &tally, verdict, now),
        None if suspended => plan.withdraw = tally.active.clone(),
        None => keep_running(&mut plan, input, &tally, deadline),
    }
    plan.release = tally.release;
    plan
}

fn condition<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind && condition.status == "True")
}

fn set(status: &mut JobStatus, kind: &str, holds: bool, why: (&str, &str), now: Timestamp) {
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|condition| condition.type_ != kind);
    conditions.push(JobCondition {
        type_: kind.to_owned(),
        status: if holds { "True" } else { "False" }.to_owned(),
        reason: Some(why.0.to_owned()),
        message: Some(why.1.to_owned()),
        last_probe_time: Some(stamp(now)),
        last_transition_time: Some(stamp(now)),
    });
}

/// A suspended Job starts anew when it goes on.
fn note_suspension(plan: &mut Plan, suspended: bool, now: Timestamp) {
    let was_suspended = condition(&plan.status, SUSPENDED).is_some();
    if suspended && !was_suspended {
        set(&mut plan.status, SUSPENDED, true, ("JobSuspended", "Job suspended"), now);
        plan.status.start_time = None;
        plan.events.push((Severity::Normal, "Suspended", "Job suspended"));
    } else if was_suspended && !suspended {
        set(&mut plan.status, SUSPENDED, false, ("JobResumed", "Job resumed"), now);
        plan.status.start_time = Some(stamp(now));
        plan.events.push((Severity::Normal, "Resumed", "Job resumed"));
    }
}

/// When a Job has been active for too long.
fn deadline(spec: &JobSpec, status: &JobStatus, suspended: bool) -> Option<Timestamp> {
    let allowed = SignedDuration::from_secs(spec.active_deadline_seconds.filter(|_| !suspended)?);
    let Time(started) = status.start_time.as_ref()?;
    Some(started.saturating_add(allowed).unwrap_or(Timestamp::MAX))
}

/// How the Job ends, if it is time. What was said before stays.
fn verdict(
    input: &Input<'_>,
    old: &JobStatus,
    tally: &Tally,
    deadline: Option<Timestamp>,
) -> Option<Verdict> {
    let Input { spec, now, .. } = *input;
    if condition(old, SUCCESS).is_some() {
        return Some(REACHED);
    }
    if let Some(failure) = condition(old, FAILURE) {
        let is = |verdict: &Verdict| failure.reason.as_deref() == Some(verdict.reason);
        let known = [TOO_OFTEN, TOO_LONG].into_iter().find(is);
        return known.or_else(|| refusal(spec)).or(Some(TOO_OFTEN));
    }
    if let Some(refusal) = refusal(spec) {
        return Some(refusal);
    }
    let limit = spec.backoff_limit.unwrap_or(BACKOFF_LIMIT);
    if tally.failed() > limit || has_restarted_too_often(spec, &tally.active, limit) {
        return Some(TOO_OFTEN);
    }
    if deadline.is_some_and(|deadline| deadline <= now) {
        return Some(TOO_LONG);
    }
    let enough = match spec.completions {
        None => tally.succeeded() > 0 && tally.active.is_empty(),
        Some(wanted) => tally.succeeded() >= wanted,
    };
    enough.then_some(REACHED)
}

/// Why a Job cannot be run here at all: better no pod than one that does something else.
fn refusal(spec: &JobSpec) -> Option<Verdict> {
    let is_indexed = spec.completion_mode.as_deref() == Some("Indexed");
    match () {
        () if spec.pod_failure_policy.is_some() => Some(unsupported(
            "The Job controller of the embedded cluster knows no podFailurePolicy",
        )),
        () if is_indexed => Some(unsupported(
            "The Job controller of the embedded cluster knows no completionMode Indexed",
        )),
        () => None,
    }
}

/// Whether containers that are started again in the same pod have failed too often.
fn has_restarted_too_often(spec: &JobSpec, active: &[Arc<Pod>], limit: i32) -> bool {
    let policy = spec.template.spec.as_ref().and_then(|pod| pod.restart_policy.as_deref());
    if policy != Some("OnFailure") {
        return false;
    }
    let begun = active.iter().filter(|pod| pod.status.phase != Phase::Unknown);
    let restarts = begun.fold(0_i32, |sum, pod| {
        let statuses = pod.status.container_statuses.iter();
        let all = statuses.chain(&pod.status.init_container_statuses);
        all.fold(sum, |sum, status| sum.saturating_add(status.restart_count))
    });
    if limit == 0 { restarts > 0 } else { restarts >= limit }
}

/// First the Job says how it will end; it has ended once nothing runs and everything is counted.
fn finish(plan: &mut Plan, tally: &Tally, verdict: Verdict, now: Timestamp) {
    let Verdict { succeeds, reason, message } = verdict;
    let (target, end) = if succeeds { (SUCCESS, COMPLETE) } else { (FAILURE, FAILED) };
    if condition(&plan.status, target).is_none() {
        set(&mut plan.status, target, true, (reason, message), now);
    }
    if succeeds {
        plan.withdraw.clone_from(&tally.active);
    } else {
        plan.end.clone_from(&tally.active);
    }
    if !tally.is_over() {
        return;
    }
    // A Job that never began ends when it would have begun.
    plan.status.start_time.get_or_insert_with(|| stamp(now));
    set(&mut plan.status, end, true, (reason, message), now);
    if succeeds {
        plan.status.completion_time = Some(stamp(now));
        plan.events.push((Severity::Normal, "Completed", "Job completed"));
    } else {
        plan.events.push((Severity::Warning, reason, message));
    }
}

/// Brings the number of pods to what is wanted, unless pods failed a moment ago.
fn keep_running(plan: &mut Plan, input: &Input<'_>, tally: &Tally, deadline: Option<Timestamp>) {
    let Input { spec, pods, now, .. } = *input;
    let parallelism = spec.parallelism.unwrap_or(1);
    let active = i32::try_from(tally.active.len()).unwrap_or(i32::MAX);
    let wanted = match spec.completions {
        // One that has succeeded tells the others that the work is done.
        None if tally.succeeded() > 0 => active.min(parallelism),
        None => parallelism,
        Some(completions) => parallelism.min(completions.saturating_sub(tally.succeeded())),
    };
    let mut retry = None;
    match replicas::plan(wanted, &tally.active, &tally.active, now) {
        Step::Nothing => {}
        Step::Delete(pods) => plan.withdraw = pods,
        Step::Create(count) => match next_try(spec, pods).filter(|at| *at > now) {
            None => plan.create = count.saturating_sub(still_ending(spec, tally)),
            at => retry = at,
        },
    }
    let next = [deadline, retry].into_iter().flatten().min();
    plan.after = next.and_then(|at| Duration::try_from(at.duration_since(now)).ok());
}

/// How many pods hold the places of their successors until they have ended.
fn still_ending(spec: &JobSpec, tally: &Tally) -> usize {
    let waits = spec.pod_replacement_policy.as_deref() == Some("Failed");
    if waits { tally.terminating } else { 0 }
}

/// When pods may be created again after those that failed since one succeeded. Those that were withdrawn did not fail.
fn next_try(spec: &JobSpec, pods: &[Arc<Pod>]) -> Option<Timestamp> {
    let ended = |end: End| {
        let counts = pods.iter().filter(|pod| pod.is_ended() || is_tracked(pod));
        let of = counts.filter(move |pod| end_of(spec, pod) == Some(end));
        of.filter_map(|pod| ended_at(pod))
    };
    let success = ended(End::Succeeded).max();
    let failures: Vec<Timestamp> =
        ended(End::Failed).filter(|at| success.is_none_or(|success| *at > success)).collect();
    let last = failures.iter().max()?;
    let (first, longest) = BACK_OFF;
    let doublings = u32::try_from(failures.len()).unwrap_or(u32::MAX).saturating_sub(1).min(16);
    let wait = first.saturating_mul(2_i32.saturating_pow(doublings)).min(longest);
    Some(last.saturating_add(wait).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
