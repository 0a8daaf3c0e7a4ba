//! How many pods to create, or which to delete, and the status to report: pure functions of an
//! owner's pods.

use crate::controllers::pod::{Pod, labels_of};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// The most pods that are created or deleted in one pass.
pub const BURST: usize = 500;

/// What brings the number of pods to the wanted one.
#[derive(Clone, Debug)]
pub enum Step {
    /// The number is right.
    Nothing,
    /// So many are missing.
    Create(usize),
    /// These are too many, the first to go first.
    Delete(Vec<Arc<Pod>>),
}

/// Decides from the active pods of an owner. `related` are the pods of all owners that belong
/// together (the replica sets of one deployment): of pods that share a node with many of them, one
/// goes first.
#[must_use]
pub fn plan(wanted: i32, active: &[Arc<Pod>], related: &[Arc<Pod>], now: Timestamp) -> Step {
    let wanted = usize::try_from(wanted).unwrap_or(0);
    if active.len() < wanted {
        return Step::Create((wanted - active.len()).min(BURST));
    }
    let surplus = (active.len() - wanted).min(BURST);
    if surplus == 0 {
        return Step::Nothing;
    }
    let mut victims = active.to_vec();
    // When all go, their order does not matter.
    if surplus < active.len() {
        let neighbours = neighbours(related);
        victims.sort_by_cached_key(|pod| {
            rank(pod, neighbours.get(pod.node().unwrap_or_default()).copied().unwrap_or(0), now)
        });
    }
    victims.truncate(surplus);
    Step::Delete(victims)
}

fn neighbours(related: &[Arc<Pod>]) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for pod in related.iter().filter(|pod| pod.is_active()) {
        *counts.entry(pod.node().unwrap_or_default()).or_insert(0) += 1;
    }
    counts
}

/// Orders pods by who goes first: not placed, in an early phase, not ready, cheap to delete, sharing
/// its node with many, ready for a short time, restarted often, young. Times count by their order of
/// magnitude, and within it the uid (that is: chance) decides, so that not always the youngest die.
fn rank(pod: &Pod, neighbours: usize, now: Timestamp) -> impl Ord + use<> {
    let (restarts, sidecar_restarts) = pod.restarts();
    let ready = pod.is_ready().then(|| magnitude(pod.ready_since(), now));
    let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (
        (pod.node().is_some(), pod.status.phase, pod.is_ready()),
        pod.deletion_cost(),
        Reverse(neighbours),
        ready,
        (Reverse(restarts), Reverse(sidecar_restarts)),
        magnitude(created, now),
        pod.uid().to_owned(),
    )
}

/// The power of two of nanoseconds that have passed; an unknown time is the smallest.
fn magnitude(since: Option<Timestamp>, now: Timestamp) -> i64 {
    let Some(since) = since else { return i64::MIN };
    let passed = now.duration_since(since).as_nanos();
    match u128::try_from(passed) {
        Ok(passed) if passed > 0 => i64::from(passed.ilog2()),
        _ => -1,
    }
}

/// The sizes of batches in which so many pods are created: 1, 2, 4 and so on, so that a template
/// that cannot work fails once and not a hundred times.
pub fn batches(mut count: usize) -> impl Iterator<Item = usize> {
    let mut size = 1;
    std::iter::from_fn(move || {
        let batch = size.min(count);
        count -= batch;
        size = size.saturating_mul(2);
        (batch > 0).then_some(batch)
    })
}

/// The status of a replica set or a replication controller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// Active pods.
    pub replicas: i32,
    /// Pods with all labels of the template.
    pub fully_labeled: i32,
    /// Pods that are ready.
    pub ready: i32,
    /// Pods that have been ready for long enough.
    pub available: i32,
    /// Pods that are being deleted; a replication controller does not report them.
    pub terminating: Option<i32>,
    /// The generation of the spec that was acted on.
    pub observed_generation: Option<i64>,
    /// What went wrong with creating or deleting pods.
    pub failure: Option<Failure>,
}

/// The condition ReplicaFailure.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Why, in a word.
    pub reason: String,
    /// Why, in words.
    pub message: String,
    /// Since when.
    pub since: Option<Time>,
}

/// What a status is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The active pods.
    pub active: &'a [Arc<Pod>],
    /// How many are being deleted.
    pub terminating: usize,
    /// The labels of the template.
    pub template_labels: &'a BTreeMap<String, String>,
    /// How long a pod must be ready to be available.
    pub min_ready_seconds: i32,
    /// The generation of the spec.
    pub generation: Option<i64>,
    /// The wanted number of pods.
    pub wanted: i32,
    /// What creating or deleting pods failed with.
    pub error: Option<&'a str>,
}

/// Computes the status; an old failure keeps its time and words until it is overcome.
#[must_use]
pub fn status(old: &Status, observed: &Observed<'_>, now: Timestamp) -> Status {
    let count = |test: &dyn Fn(&Pod) -> bool| {
        let matching = observed.active.iter().filter(|pod| test(pod)).count();
        i32::try_from(matching).unwrap_or(i32::MAX)
    };
    let has_labels = |pod: &Pod| {
        let labels = labels_of(&pod.metadata);
        observed.template_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
    };
    let replicas = count(&|_| true);
    let failure = observed.error.map(|message| {
        old.failure.clone().unwrap_or_else(|| Failure {
            reason: match replicas.cmp(&observed.wanted) {
                std::cmp::Ordering::Less => "FailedCreate".into(),
                std::cmp::Ordering::Greater => "FailedDelete".into(),
                std::cmp::Ordering::Equal => String::new(),
            },
            message: message.to_owned(),
            since: Some(podscale_client::clock::stamp(now)),
        })
    });
    Status {
        replicas,
        fully_labeled: count(&has_labels),
        ready: count(&Pod::is_ready),
        available: count(&|pod| pod.is_available(observed.min_ready_seconds, now)),
        terminating: Some(i32::try_from(observed.terminating).unwrap_or(i32::MAX)),
        observed_generation: observed.generation,
        failure,
    }
}

/// How long until the next ready pod becomes available, if one is on its way.
#[must_use]
pub fn next_available(
    pods: &[Arc<Pod>],
    min_ready_seconds: i32,
    now: Timestamp,
) -> Option<Duration> {
    let times = pods.iter().filter_map(|pod| pod.available_at(min_ready_seconds));
    let next = times.filter(|at| *at > now).min()?;
    Duration::try_from(next.duration_since(now)).ok()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
