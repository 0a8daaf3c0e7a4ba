//! Decides what a deployment's replica sets should look like next: a pure function of the
//! deployment, its replica sets and the time.

mod steps;

use super::limits::{Limits, is_rolling, limits};
use super::revision;
use super::status::{
    PROGRESSING, actual_of, available_of, carry_failure, condition, counted, deadline,
    judge_progress, new_condition, next_check, note_pause, replicas_of, set_condition,
};
use super::template;
use crate::controllers::claim::owner_reference;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet, ReplicaSetSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// What to decide about.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The deployment.
    pub deployment: &'a Deployment,
    /// The replica sets that belong to it.
    pub sets: &'a [Arc<ReplicaSet>],
    /// How many pods of each replica set (by uid) have not ended, those being deleted included.
    pub running: &'a HashMap<String, usize>,
    /// The time.
    pub now: Timestamp,
}

/// What to do, in this order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Changes of replica sets.
    pub writes: Vec<Write>,
    /// The revision to note on the deployment, if it changes.
    pub revision: Option<String>,
    /// The status to report, if it changes.
    pub status: Option<DeploymentStatus>,
    /// When to reconcile again even if nothing changes.
    pub after: Option<Duration>,
}

/// A change of a replica set.
#[derive(Clone, Debug)]
pub enum Write {
    /// A new one.
    Create(Box<ReplicaSet>),
    /// One that had `from` replicas.
    Update {
        /// As it should be.
        set: Box<ReplicaSet>,
        /// The replicas it has now.
        from: i32,
    },
    /// One that is no longer needed.
    Delete(Arc<ReplicaSet>),
}

/// Decides.
#[must_use]
pub fn plan(input: &Input<'_>) -> Plan {
    let spec = &input.deployment.spec;
    let mut rollout = Rollout::new(input, spec);
    if input.deployment.metadata.deletion_timestamp.is_some() {
        let status = rollout.counted();
        return rollout.finish(status);
    }
    note_pause(spec, &mut rollout.status, input.now);
    rollout.sync_revision();
    let paused = spec.paused == Some(true);
    if paused || rollout.was_scaled() {
        rollout.scale();
        if paused {
            rollout.clean_up();
        }
        let status = rollout.counted();
        return rollout.finish(status);
    }
    if is_rolling(spec) {
        rollout.roll()
    } else {
        rollout.recreate()
    }
    let mut status = rollout.counted();
    let newest = rollout.newest.map(|newest| &rollout.drafts[newest].set);
    judge_progress(input.deployment, &rollout.status, &mut status, newest, input.now);
    let sets: Vec<&ReplicaSet> = rollout.drafts.iter().map(|draft| &draft.set).collect();
    carry_failure(&mut status, newest, &sets);
    rollout.finish(status)
}

/// A replica set as it is and as it should be.
struct Draft {
    set: ReplicaSet,
    stored: Option<Arc<ReplicaSet>>,
    unneeded: bool,
}

/// The state of deciding.
struct Rollout<'a> {
    input: &'a Input<'a>,
    spec: &'a DeploymentSpec,
    wanted: i32,
    limits: Limits,
    /// The status as stored, with conditions that were set on the way.
    status: DeploymentStatus,
    /// Oldest first.
    drafts: Vec<Draft>,
    newest: Option<usize>,
    revision: Option<String>,
    /// Drafts in the order in which they were changed.
    touched: Vec<usize>,
}

impl<'a> Rollout<'a> {
    fn new(input: &'a Input<'a>, spec: &'a DeploymentSpec) -> Rollout<'a> {
        let mut sets = input.sets.to_vec();
        sets.sort_by(|one, other| age(one).cmp(&age(other)));
        let drafts: Vec<Draft> = sets
            .into_iter()
            .map(|set| Draft { set: (*set).clone(), stored: Some(set), unneeded: false })
            .collect();
        let is_new = |draft: &Draft| {
            let set = draft.set.spec.template.as_ref();
            set.is_some_and(|set| template::same(set, &spec.template))
        };
        Rollout {
            newest: drafts.iter().position(is_new),
            input,
            spec,
            wanted: spec.replicas.unwrap_or(1),
            limits: limits(input.deployment),
            status: input.deployment.status.clone().unwrap_or_default(),
            drafts,
            revision: None,
            touched: Vec::new(),
        }
    }

    fn old(&self) -> impl Iterator<Item = usize> + use<> {
        let newest = self.newest;
        (0..self.drafts.len()).filter(move |index| Some(*index) != newest)
    }

    fn replicas(&self, index: usize) -> i32 {
        replicas_of(&self.drafts[index].set)
    }

    fn total(&self) -> i32 {
        (0..self.drafts.len()).fold(0, |sum, index| self.replicas(index).saturating_add(sum))
    }

    /// Pods that will still be there after the replica set has done what its spec says.
    fn available(&self, index: usize) -> i32 {
        available_of(&self.drafts[index].set).min(self.replicas(index))
    }

    fn touch(&mut self, index: usize) {
        if !self.touched.contains(&index) {
            self.touched.push(index);
        }
    }

    /// Gives a replica set another size; says whether that is a change.
    fn resize(&mut self, index: usize, replicas: i32) -> bool {
        if self.replicas(index) == replicas {
            return false;
        }
        self.force(index, replicas);
        true
    }

    /// Gives a replica set a size and notes on it what size the deployment had then.
    fn force(&mut self, index: usize, replicas: i32) {
        let most = self.wanted.saturating_add(self.limits.max_surge);
        let set = &mut self.drafts[index].set;
        set.spec.replicas = Some(replicas);
        revision::note_sizes(&mut set.metadata, self.wanted, most);
        self.touch(index);
    }

    /// Gives the newest replica set its revision and the deployment's annotations.
    fn sync_revision(&mut self) {
        let Some(newest) = self.newest else { return };
        let next = self.next_revision();
        let deployment = self.input.deployment;
        let min_ready = self.spec.min_ready_seconds.unwrap_or(0);
        let set = &mut self.drafts[newest].set;
        let mut changed = revision::annotate(&mut set.metadata, &deployment.metadata, next);
        if set.spec.min_ready_seconds.unwrap_or(0) != min_ready {
            set.spec.min_ready_seconds = Some(min_ready);
            changed = true;
        }
        let (now_at, name) = (revision::of(&set.metadata), set.metadata.name.clone());
        if changed {
            self.touch(newest);
        }
        self.note_revision(now_at);
        if deadline(self.spec).is_some() && condition(&self.status, PROGRESSING).is_none() {
            let message = format!("Found new replica set {:?}", name.unwrap_or_default());
            self.progress("True", "FoundNewReplicaSet", message);
        }
    }

    fn next_revision(&self) -> i64 {
        let old = self.old().map(|index| revision::of(&self.drafts[index].set.metadata));
        old.max().unwrap_or(0).saturating_add(1)
    }

    fn note_revision(&mut self, revision: i64) {
        let known = self.input.deployment.metadata.annotations.as_ref();
        let text = revision.to_string();
        if known.and_then(|known| known.get(revision::REVISION)) != Some(&text) {
            self.revision = Some(text);
        }
    }

    fn progress(&mut self, status: &str, reason: &str, message: String) {
        let condition = new_condition(PROGRESSING, status, reason, message, self.input.now);
        set_condition(&mut self.status, condition);
    }

    /// Whether the deployment's size changed since its replica sets were last given theirs.
    fn was_scaled(&self) -> bool {
        let active = self.drafts.iter().filter(|draft| replicas_of(&draft.set) > 0);
        let mut sizes = active.filter_map(|draft| revision::desired(&draft.set.metadata));
        sizes.any(|size| size != self.wanted)
    }

    /// Adds the replica set of the current template, as large as there is room for.
    fn create_set(&mut self) -> usize {
        let deployment = self.input.deployment;
        let hash = template::hash(&self.spec.template, self.status.collision_count);
        let replicas = if is_rolling(self.spec) {
            let most = self.wanted.saturating_add(self.limits.max_surge);
            most.saturating_sub(self.total()).clamp(0, self.wanted.max(0))
        } else {
            self.wanted
        };
        let next = self.next_revision();
        let mut set = new_set(deployment, self.spec, &hash, replicas);
        revision::annotate(&mut set.metadata, &deployment.metadata, next);
        let most = self.wanted.saturating_add(self.limits.max_surge);
        revision::note_sizes(&mut set.metadata, self.wanted, most);
        let name = set.metadata.name.clone().unwrap_or_default();
        self.drafts.push(Draft { set, stored: None, unneeded: false });
        let index = self.drafts.len() - 1;
        self.newest = Some(index);
        self.touch(index);
        self.note_revision(next);
        if deadline(self.spec).is_some() {
            let message = format!("Created new replica set {name:?}");
            self.progress("True", "NewReplicaSetCreated", message);
        }
        index
    }

    /// Drops the oldest revisions beyond those to be kept.
    fn clean_up(&mut self) {
        let Some(limit) = self.spec.revision_history_limit.filter(|limit| *limit != i32::MAX)
        else {
            return;
        };
        let mut old: Vec<usize> = self
            .old()
            .filter(|index| self.drafts[*index].set.metadata.deletion_timestamp.is_none())
            .collect();
        let kept = usize::try_from(limit).unwrap_or(0);
        let surplus = old.len().saturating_sub(kept);
        old.sort_by_key(|index| revision::of(&self.drafts[*index].set.metadata));
        for index in old.into_iter().take(surplus) {
            let set = &self.drafts[index].set;
            let observed = set.status.as_ref().and_then(|status| status.observed_generation);
            let settled = set.metadata.generation.unwrap_or(0) <= observed.unwrap_or(0);
            if replicas_of(set) == 0 && actual_of(set) == 0 && settled {
                self.drafts[index].unneeded = true;
            }
        }
    }

    fn counted(&self) -> DeploymentStatus {
        let sets: Vec<&ReplicaSet> = self.drafts.iter().map(|draft| &draft.set).collect();
        let newest = self.newest.map(|newest| &self.drafts[newest].set);
        counted(self.input.deployment, &self.status, &sets, newest, self.limits, self.input.now)
    }

    fn finish(self, status: DeploymentStatus) -> Plan {
        let stored = self.input.deployment.status.clone().unwrap_or_default();
        let after = next_check(self.input.deployment, &status, self.input.now);
        let changed = self.touched.iter().map(|index| &self.drafts[*index]);
        let changes = changed.filter(|draft| !draft.unneeded).map(|draft| {
            let set = Box::new(draft.set.clone());
            match &draft.stored {
                Some(stored) => Write::Update { set, from: replicas_of(stored) },
                None => Write::Create(set),
            }
        });
        let unneeded = self.drafts.iter().filter(|draft| draft.unneeded);
        let deletions = unneeded.filter_map(|draft| draft.stored.clone().map(Write::Delete));
        let writes = changes.chain(deletions).collect();
        let status = (status != stored).then_some(status);
        Plan { writes, revision: self.revision, status, after }
    }
}

fn age(set: &ReplicaSet) -> (Option<Timestamp>, Option<&str>) {
    let created = set.metadata.creation_timestamp.as_ref().map(|Time(time)| *time);
    (created, set.metadata.name.as_deref())
}

fn new_set(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    hash: &str,
    replicas: i32,
) -> ReplicaSet {
    let mut template = spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(template::HASH_LABEL.into(), hash.into());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    let matched = selector.match_labels.get_or_insert_default();
    matched.insert(template::HASH_LABEL.into(), hash.into());
    let mut name = deployment.metadata.name.clone().unwrap_or_default();
    name.truncate(LONGEST_NAME.saturating_sub(hash.len() + 1));
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![owner_reference(deployment)]),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        },
        status: None,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
