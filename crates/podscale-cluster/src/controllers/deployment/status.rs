//! The status of a deployment and its conditions.

use super::limits::Limits;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use podscale_client::clock::stamp;
use std::time::Duration;

/// The condition that says whether a rollout moves.
pub const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const REPLICA_FAILURE: &str = "ReplicaFailure";
/// Why a rollout counts as done.
const DONE: &str = "NewReplicaSetAvailable";
/// Why a rollout counts as failed.
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// The time that a rollout may make no progress, if there is a limit.
#[must_use]
pub fn deadline(spec: &DeploymentSpec) -> Option<SignedDuration> {
    let seconds = spec.progress_deadline_seconds.filter(|seconds| *seconds != i32::MAX)?;
    Some(SignedDuration::from_secs(i64::from(seconds)))
}

/// A condition of a status.
#[must_use]
pub fn condition<'a>(status: &'a DeploymentStatus, kind: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_.as_deref() == Some(kind))
}

/// A condition that holds from now on.
#[must_use]
pub fn new_condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: String,
    now: Timestamp,
) -> DeploymentCondition {
    DeploymentCondition {
        type_: Some(kind.into()),
        status: Some(status.into()),
        reason: Some(reason.into()),
        message: Some(message),
        last_update_time: Some(stamp(now)),
        last_transition_time: Some(stamp(now)),
    }
}

/// Sets a condition; one of the same status and reason stays as it is, and the time of transition
/// changes with the status alone.
pub fn set_condition(status: &mut DeploymentStatus, mut new: DeploymentCondition) {
    let kind = new.type_.clone().unwrap_or_default();
    if let Some(old) = condition(status, &kind) {
        if old.status == new.status && old.reason == new.reason {
            return;
        }
        if old.status == new.status {
            new.last_transition_time.clone_from(&old.last_transition_time);
        }
    }
    remove_condition(status, &kind);
    status.conditions.get_or_insert_default().push(new);
}

/// Takes a condition away.
pub fn remove_condition(status: &mut DeploymentStatus, kind: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_.as_deref() != Some(kind));
        if conditions.is_empty() {
            status.conditions = None;
        }
    }
}

/// Tells in the Progressing condition that a rollout was paused or resumed.
pub fn note_pause(spec: &DeploymentSpec, status: &mut DeploymentStatus, now: Timestamp) {
    if deadline(spec).is_none() {
        return;
    }
    let reason = condition(status, PROGRESSING).and_then(|condition| condition.reason.as_deref());
    if reason == Some(TIMED_OUT) {
        return;
    }
    let (paused, noted) = (spec.paused == Some(true), reason == Some(PAUSED));
    let (reason, message) = match (paused, noted) {
        (true, false) => (PAUSED, "Deployment is paused"),
        (false, true) => ("DeploymentResumed", "Deployment is resumed"),
        _ => return,
    };
    set_condition(status, new_condition(PROGRESSING, "Unknown", reason, message.into(), now));
}

/// The counts of a deployment's replica sets, and whether enough pods are available; conditions
/// other than Available are taken over from `old`.
#[must_use]
pub fn counted(
    deployment: &Deployment,
    old: &DeploymentStatus,
    sets: &[&ReplicaSet],
    newest: Option<&ReplicaSet>,
    limits: Limits,
    now: Timestamp,
) -> DeploymentStatus {
    let sum = |count: &dyn Fn(&ReplicaSet) -> i32| {
        sets.iter().fold(0_i32, |sum, set| sum.saturating_add(count(set)))
    };
    let available = sum(&available_of);
    let spec_total = sum(&replicas_of);
    let wanted = deployment.spec.replicas.unwrap_or(1);
    let mut status = DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(sum(&actual_of)),
        updated_replicas: some(newest.map_or(0, actual_of)),
        ready_replicas: some(sum(&|set| {
            set.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0)
        })),
        available_replicas: some(available),
        unavailable_replicas: some(spec_total.saturating_sub(available).max(0)),
        terminating_replicas: Some(sum(&|set| {
            set.status.as_ref().and_then(|status| status.terminating_replicas).unwrap_or(0)
        })),
        collision_count: old.collision_count,
        conditions: old.conditions.clone(),
    };
    let condition = if available >= wanted.saturating_sub(limits.max_unavailable) {
        let message = "Deployment has minimum availability.".into();
        new_condition(AVAILABLE, "True", "MinimumReplicasAvailable", message, now)
    } else {
        let message = "Deployment does not have minimum availability.".into();
        new_condition(AVAILABLE, "False", "MinimumReplicasUnavailable", message, now)
    };
    set_condition(&mut status, condition);
    status
}

/// Judges how the rollout moves: `new` is the counted status, `old` the one before.
pub fn judge_progress(
    deployment: &Deployment,
    old: &DeploymentStatus,
    new: &mut DeploymentStatus,
    newest: Option<&ReplicaSet>,
    now: Timestamp,
) {
    let Some(deadline) = deadline(&deployment.spec) else {
        remove_condition(new, PROGRESSING);
        return;
    };
    let current = condition(old, PROGRESSING).cloned();
    let reason = current.as_ref().and_then(|condition| condition.reason.as_deref());
    if new.replicas == new.updated_replicas && reason == Some(DONE) {
        return;
    }
    let who = || match newest.and_then(|set| set.metadata.name.as_deref()) {
        Some(name) => format!("ReplicaSet {name:?}"),
        None => format!("Deployment {:?}", deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    if is_complete(deployment, new) {
        let message = format!("{} has successfully progressed.", who());
        set_condition(new, new_condition(PROGRESSING, "True", DONE, message, now));
    } else if has_progressed(old, new) {
        let message = format!("{} is progressing.", who());
        let mut condition = new_condition(PROGRESSING, "True", "ReplicaSetUpdated", message, now);
        // The time of update must change even if nothing else does: the deadline counts from it.
        if let Some(current) = current.filter(|current| current.status.as_deref() == Some("True")) {
            condition.last_transition_time = current.last_transition_time;
        }
        remove_condition(new, PROGRESSING);
        set_condition(new, condition);
    } else if has_timed_out(new, deadline, now) {
        let message = format!("{} has timed out progressing.", who());
        set_condition(new, new_condition(PROGRESSING, "False", TIMED_OUT, message, now));
    }
}

/// Carries the failure of a replica set to create or delete pods into the deployment's status; the
/// newest set's failure comes first.
pub fn carry_failure(
    new: &mut DeploymentStatus,
    newest: Option<&ReplicaSet>,
    sets: &[&ReplicaSet],
) {
    let in_order = newest.into_iter().chain(sets.iter().copied());
    let mut conditions = in_order.filter_map(|set| set.status.as_ref()?.conditions.as_ref());
    let failure = conditions.find_map(|conditions| {
        conditions.iter().find(|condition| condition.type_.as_deref() == Some(REPLICA_FAILURE))
    });
    match failure {
        Some(failure) => set_condition(
            new,
            DeploymentCondition {
                type_: Some(REPLICA_FAILURE.into()),
                status: failure.status.clone(),
                reason: failure.reason.clone(),
                message: failure.message.clone(),
                last_update_time: failure.last_transition_time.clone(),
                last_transition_time: failure.last_transition_time.clone(),
            },
        ),
        None => remove_condition(new, REPLICA_FAILURE),
    }
}

/// When to check again whether a rollout that does not move has timed out.
#[must_use]
pub fn next_check(
    deployment: &Deployment,
    status: &DeploymentStatus,
    now: Timestamp,
) -> Option<Duration> {
    let deadline = deadline(&deployment.spec)?;
    let current = condition(status, PROGRESSING)?;
    if is_complete(deployment, status) || current.reason.as_deref() == Some(TIMED_OUT) {
        return None;
    }
    let at = updated(current)?.checked_add(deadline).ok()?;
    let second = Duration::from_secs(1);
    let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
    Some(wait.saturating_add(second))
}

/// Whether all pods are new and available and there are no others.
#[must_use]
pub fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = deployment.spec.replicas.unwrap_or(1);
    status.updated_replicas.unwrap_or(0) == wanted
        && status.replicas.unwrap_or(0) == wanted
        && status.available_replicas.unwrap_or(0) == wanted
        && status.observed_generation >= deployment.metadata.generation
}

fn has_progressed(old: &DeploymentStatus, new: &DeploymentStatus) -> bool {
    let updated = |status: &DeploymentStatus| status.updated_replicas.unwrap_or(0);
    let outdated =
        |status: &DeploymentStatus| status.replicas.unwrap_or(0).saturating_sub(updated(status));
    updated(new) > updated(old)
        || outdated(new) < outdated(old)
        || new.ready_replicas > old.ready_replicas
        || new.available_replicas > old.available_replicas
}

fn has_timed_out(status: &DeploymentStatus, deadline: SignedDuration, now: Timestamp) -> bool {
    let Some(current) = condition(status, PROGRESSING) else { return false };
    match current.reason.as_deref() {
        Some(DONE) => false,
        Some(TIMED_OUT) => true,
        _ => updated(current)
            .and_then(|updated| updated.checked_add(deadline).ok())
            .is_some_and(|limit| limit < now),
    }
}

fn updated(condition: &DeploymentCondition) -> Option<Timestamp> {
    condition.last_update_time.as_ref().map(|Time(time)| *time)
}

/// Stored numbers leave out zero.
fn some(number: i32) -> Option<i32> {
    (number != 0).then_some(number)
}

/// The wanted number of pods of a replica set.
#[must_use]
pub fn replicas_of(set: &ReplicaSet) -> i32 {
    set.spec.replicas.unwrap_or(1)
}

/// The available pods of a replica set, as it reports them.
#[must_use]
pub fn available_of(set: &ReplicaSet) -> i32 {
    set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0)
}

/// The pods of a replica set, as it reports them.
#[must_use]
pub fn actual_of(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}
