//! How many pods of a Job run, succeeded and failed. Each pod counts once: it has a finalizer until its uid is in the
//! status, and its uid stays there until the finalizer is gone. So none is lost, whenever pods or the controller go.

use crate::controllers::pod::{Phase, Pod};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobSpec, JobStatus, UncountedTerminatedPods};
use std::collections::HashSet;
use std::sync::Arc;

/// What a Job's pods have until they are counted.
pub const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// The most pods whose uids are in a status.
const MOST_UNCOUNTED: usize = 500;

/// How a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its work is done.
    Succeeded,
    /// It ended badly, or was deleted before its end.
    Failed,
}

/// The pods of a Job, counted.
#[derive(Debug, Default)]
pub struct Tally {
    /// Those that run, or will.
    pub active: Vec<Arc<Pod>>,
    /// How many are being deleted and have not ended.
    pub terminating: usize,
    /// How many ended well, for good.
    pub counted_succeeded: i32,
    /// How many ended badly, for good.
    pub counted_failed: i32,
    /// The uids of those that ended well and are being counted.
    pub succeeding: Vec<String>,
    /// The uids of those that ended badly and are being counted.
    pub failing: Vec<String>,
    /// The pods that may go once the status has their uids.
    pub release: Vec<Arc<Pod>>,
}

impl Tally {
    /// Counts the pods of a Job, which has this status.
    #[must_use]
    pub fn of(spec: &JobSpec, old: &JobStatus, pods: &[Arc<Pod>]) -> Tally {
        let uncounted = old.uncounted_terminated_pods.clone().unwrap_or_default();
        let succeeding = uncounted.succeeded.unwrap_or_default();
        let failing = uncounted.failed.unwrap_or_default();
        let known: HashSet<&str> = succeeding.iter().chain(&failing).map(String::as_str).collect();
        let mut tally = Tally {
            counted_succeeded: old.succeeded.unwrap_or(0),
            counted_failed: old.failed.unwrap_or(0),
            ..Tally::default()
        };
        let mut held = HashSet::new();
        let mut new = Vec::new();
        for pod in pods {
            let end = end_of(spec, pod);
            if pod.is_active() {
                tally.active.push(Arc::clone(pod));
            } else if !has_ended(pod) {
                tally.terminating += 1;
            }
            let Some(end) = end.filter(|_| is_tracked(pod)) else { continue };
            held.insert(pod.uid());
            if known.contains(pod.uid()) {
                tally.release.push(Arc::clone(pod));
            } else {
                new.push((end, pod));
            }
        }
        // What has lost its finalizer is counted for good.
        let keep = |uids: &[String], counted: &mut i32| -> Vec<String> {
            let (kept, gone): (Vec<&String>, Vec<&String>) =
                uids.iter().partition(|uid| held.contains(uid.as_str()));
            *counted = counted.saturating_add(narrow(gone.len()));
            kept.into_iter().cloned().collect()
        };
        tally.succeeding = keep(&succeeding, &mut tally.counted_succeeded);
        tally.failing = keep(&failing, &mut tally.counted_failed);
        let room = MOST_UNCOUNTED.saturating_sub(tally.succeeding.len() + tally.failing.len());
        for (end, pod) in new.into_iter().take(room) {
            let uids = match end {
                End::Succeeded => &mut tally.succeeding,
                End::Failed => &mut tally.failing,
            };
            uids.push(pod.uid().to_owned());
            tally.release.push(Arc::clone(pod));
        }
        tally
    }

    /// How many ended well.
    #[must_use]
    pub fn succeeded(&self) -> i32 {
        self.counted_succeeded.saturating_add(narrow(self.succeeding.len()))
    }

    /// How many ended badly.
    #[must_use]
    pub fn failed(&self) -> i32 {
        self.counted_failed.saturating_add(narrow(self.failing.len()))
    }

    /// Whether nothing runs and everything is counted.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.active.is_empty()
            && self.terminating == 0
            && self.succeeding.is_empty()
            && self.failing.is_empty()
    }

    /// The status with these counts.
    #[must_use]
    pub fn status(&self, old: &JobStatus) -> JobStatus {
        let some = |count: i32| (count > 0).then_some(count);
        let list = |uids: &[String]| (!uids.is_empty()).then(|| uids.to_vec());
        let ready = self.active.iter().filter(|pod| pod.is_ready()).count();
        JobStatus {
            active: some(narrow(self.active.len())),
            ready: Some(narrow(ready)),
            terminating: Some(narrow(self.terminating)),
            succeeded: some(self.counted_succeeded),
            failed: some(self.counted_failed),
            uncounted_terminated_pods: Some(UncountedTerminatedPods {
                succeeded: list(&self.succeeding),
                failed: list(&self.failing),
            }),
            ..old.clone()
        }
    }
}

/// Whether a pod is still to be counted.
#[must_use]
pub fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER)
}

/// Whether nothing of a pod runs any more: it has ended, or its node has confirmed its deletion.
fn has_ended(pod: &Pod) -> bool {
    pod.is_ended()
        || (pod.is_terminating() && pod.metadata.deletion_grace_period_seconds == Some(0))
}

/// How a pod ended, if it has. One that is being deleted counts as failed at once, unless only pods that have ended are
/// to be replaced.
#[must_use]
pub fn end_of(spec: &JobSpec, pod: &Pod) -> Option<End> {
    let waits = spec.pod_replacement_policy.as_deref() == Some("Failed");
    match pod.status.phase {
        Phase::Succeeded => Some(End::Succeeded),
        Phase::Failed => Some(End::Failed),
        _ if pod.is_terminating() && (!waits || has_ended(pod)) => Some(End::Failed),
        _ => None,
    }
}

/// When a pod ended, as far as it says so.
#[must_use]
pub fn ended_at(pod: &Pod) -> Option<Timestamp> {
    let ready = pod.condition("Ready").and_then(|ready| ready.last_transition_time.as_ref());
    let deleted = pod.metadata.deletion_timestamp.as_ref();
    ready.or(deleted).or(pod.metadata.creation_timestamp.as_ref()).map(|time| time.0)
}

fn narrow(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
