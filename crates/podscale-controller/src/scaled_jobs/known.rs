//! What the watches show: ScaledJobs, and the Jobs that they made.

use super::beside::KEDA;
use crate::triggers::{ObjectName, OwnerKind};
use parking_lot::Mutex;
use podscale_api::keda::ScaledJob;
use podscale_api::keda::scaled_job::Lean;
use podscale_api::labels::Labels;
use podscale_api::time::Timestamp;
use podscale_api::translate::scaled_job::made::{GENERATION, MANAGED_BY, NAME_LABEL};
use podscale_client::watch::{Change, Watched};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::{Notify, watch};

/// Which object it is.
pub(super) fn name_of(object: &ScaledJob) -> ObjectName {
    ObjectName::new(&object.metadata, OwnerKind::ScaledJob)
}

/// A ScaledJob as lists and watches bring it.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Wire(pub(super) Lean);

impl Watched for Wire {
    fn version(&self) -> Option<&str> {
        Some(&self.0.0.metadata.resource_version)
    }
}

/// The ScaledJobs that there are, and which of them have changed since somebody looked.
#[derive(Default)]
pub(super) struct Objects {
    state: Mutex<ObjectsState>,
    has_changed: Notify,
}

#[derive(Default)]
struct ObjectsState {
    all: HashMap<ObjectName, Arc<ScaledJob>>,
    changed: BTreeSet<ObjectName>,
}

impl Objects {
    /// Takes in a change.
    pub(super) fn apply(&self, change: Change<ScaledJob>) {
        let mut state = self.state.lock();
        match change {
            Change::All(all) => {
                let all: HashMap<ObjectName, Arc<ScaledJob>> =
                    all.into_iter().map(|object| (name_of(&object), Arc::new(object))).collect();
                let before = std::mem::replace(&mut state.all, all);
                state.changed.extend(before.into_keys());
                let there: Vec<ObjectName> = state.all.keys().cloned().collect();
                state.changed.extend(there);
            }
            Change::Applied(object) => {
                let name = name_of(&object);
                state.all.insert(name.clone(), Arc::new(object));
                state.changed.insert(name);
            }
            Change::Deleted(object) => {
                let name = name_of(&object);
                state.all.remove(&name);
                state.changed.insert(name);
            }
        }
        drop(state);
        self.has_changed.notify_one();
    }

    /// Waits until something has changed.
    pub(super) async fn changed(&self) {
        self.has_changed.notified().await;
    }

    /// What has changed since this was last asked; nothing in the place of those that are gone.
    pub(super) fn take_changed(&self) -> Vec<(ObjectName, Option<Arc<ScaledJob>>)> {
        let mut state = self.state.lock();
        let changed = std::mem::take(&mut state.changed);
        let found = changed.into_iter().map(|name| {
            let object = state.all.get(&name).cloned();
            (name, object)
        });
        found.collect()
    }

    /// An object as it is now.
    pub(super) fn get(&self, name: &ObjectName) -> Option<Arc<ScaledJob>> {
        self.state.lock().all.get(name).cloned()
    }
}

/// Whether a Job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has not.
    Unfinished,
    /// With success.
    Complete,
    /// Without.
    Failed,
}

/// A Job of a ScaledJob, as far as it matters.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "WireJob")]
pub(super) struct Job {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
    version: String,
    /// The name of its ScaledJob.
    owner: Arc<str>,
    /// The generation of its ScaledJob that made it.
    pub(super) generation: Option<String>,
    pub(super) state: State,
    /// When it completed.
    pub(super) completed: Option<Timestamp>,
    /// Whether KEDA's operator says that it made it.
    is_foreign: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireJob {
    metadata: WireMeta,
    status: WireStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireMeta {
    namespace: String,
    name: String,
    resource_version: String,
    labels: Labels,
    annotations: Labels,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WireStatus {
    conditions: Vec<WireCondition>,
    completion_time: Option<Timestamp>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireCondition {
    r#type: String,
    status: String,
}

impl From<WireJob> for Job {
    fn from(WireJob { metadata, status }: WireJob) -> Job {
        let holds = |kind: &str| {
            status.conditions.iter().any(|it| it.r#type == kind && it.status == "True")
        };
        let state = match () {
            () if holds("Complete") => State::Complete,
            () if holds("Failed") => State::Failed,
            () => State::Unfinished,
        };
        Job {
            namespace: metadata.namespace.into(),
            name: metadata.name.into(),
            version: metadata.resource_version,
            owner: metadata.labels.get(NAME_LABEL).unwrap_or_default().into(),
            generation: metadata.annotations.get(GENERATION).map(str::to_owned),
            state,
            completed: status.completion_time,
            is_foreign: metadata.labels.get(MANAGED_BY) == Some(KEDA),
        }
    }
}

impl Watched for Job {
    fn version(&self) -> Option<&str> {
        Some(&self.version)
    }
}

/// The Jobs of all ScaledJobs.
pub(super) struct Jobs {
    state: Mutex<JobsState>,
    is_known: watch::Sender<bool>,
}

#[derive(Default)]
struct JobsState {
    by_owner: HashMap<ObjectName, BTreeMap<Arc<str>, Job>>,
    /// The objects for which another controller has created Jobs since somebody looked.
    foreign: HashSet<ObjectName>,
}

impl JobsState {
    /// Takes in a Job, and notes if it is another controller's and was not there before.
    fn put(&mut self, job: Job) {
        let (owner, is_foreign) = (owner_of(&job), job.is_foreign);
        let jobs = self.by_owner.entry(owner.clone()).or_default();
        if jobs.insert(Arc::clone(&job.name), job).is_none() && is_foreign {
            self.foreign.insert(owner);
        }
    }

    fn remove(&mut self, job: &Job) {
        let owner = owner_of(job);
        if let Some(jobs) = self.by_owner.get_mut(&owner) {
            jobs.remove(&job.name);
            if jobs.is_empty() {
                self.by_owner.remove(&owner);
                self.foreign.remove(&owner);
            }
        }
    }
}

impl Default for Jobs {
    fn default() -> Jobs {
        Jobs { state: Mutex::default(), is_known: watch::channel(false).0 }
    }
}

impl Jobs {
    /// Takes in a change.
    pub(super) fn apply(&self, change: Change<Job>) {
        let mut state = self.state.lock();
        match change {
            Change::All(all) => {
                let there: HashSet<(ObjectName, Arc<str>)> =
                    all.iter().map(|job| (owner_of(job), Arc::clone(&job.name))).collect();
                let known = state.by_owner.values().flat_map(BTreeMap::values);
                let is_gone = |job: &&Job| !there.contains(&(owner_of(job), Arc::clone(&job.name)));
                let gone: Vec<Job> = known.filter(is_gone).cloned().collect();
                gone.iter().for_each(|job| state.remove(job));
                all.into_iter().for_each(|job| state.put(job));
                self.is_known.send_replace(true);
            }
            Change::Applied(job) => state.put(job),
            Change::Deleted(job) => state.remove(&job),
        }
    }

    /// Whether another controller has created Jobs for an object since this was last asked.
    pub(super) fn take_foreign(&self, object: &ObjectName) -> bool {
        self.state.lock().foreign.remove(object)
    }

    /// Takes in a Job that was created just now, unless the watch has shown it already.
    pub(super) fn created(&self, job: Job) {
        let mut state = self.state.lock();
        let jobs = state.by_owner.entry(owner_of(&job)).or_default();
        jobs.entry(Arc::clone(&job.name)).or_insert(job);
    }

    /// Waits until they were listed.
    pub(super) async fn known(&self) {
        // The sender lives as long as `self`.
        let _ = self.is_known.subscribe().wait_for(|known| *known).await;
    }

    /// Those of an object, by name.
    pub(super) fn of(&self, object: &ObjectName) -> Vec<Job> {
        let state = self.state.lock();
        state.by_owner.get(object).map(|jobs| jobs.values().cloned().collect()).unwrap_or_default()
    }
}

fn owner_of(job: &Job) -> ObjectName {
    ObjectName {
        namespace: Arc::clone(&job.namespace),
        name: Arc::clone(&job.owner),
        kind: OwnerKind::ScaledJob,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn job(name: &str, status: Value) -> Job {
        let wire = json!({"metadata": {"namespace": "shop", "name": name, "resourceVersion": "1",
            "labels": {NAME_LABEL: "mail"}, "annotations": {GENERATION: "2"}}, "status": status});
        serde_json::from_value(wire).expect("a Job")
    }

    #[test]
    fn jobs_are_found_by_their_scaled_job() {
        let jobs = Jobs::default();
        let mail = ObjectName {
            namespace: "shop".into(),
            name: "mail".into(),
            kind: OwnerKind::ScaledJob,
        };
        let ended = |kind: &str| json!({"conditions": [{"type": kind, "status": "True"}]});
        jobs.apply(Change::All(vec![job("a", json!({})), job("b", ended("Failed"))]));
        jobs.apply(Change::Applied(job("a", ended("Complete"))));
        jobs.apply(Change::Applied(job("c", ended("Suspended"))));
        let found = jobs.of(&mail);
        let states: Vec<(&str, State)> = found.iter().map(|job| (&*job.name, job.state)).collect();
        let expected = [("a", State::Complete), ("b", State::Failed), ("c", State::Unfinished)];
        assert_eq!(states, expected);
        assert_eq!(found[0].generation.as_deref(), Some("2"));
        jobs.apply(Change::Deleted(job("b", json!({}))));
        assert_eq!(jobs.of(&mail).len(), 2);
        jobs.apply(Change::All(Vec::new()));
        assert!(jobs.of(&mail).is_empty());
    }

    #[test]
    fn new_jobs_of_another_controller_are_told_once() {
        let jobs = Jobs::default();
        let mail = ObjectName {
            namespace: "shop".into(),
            name: "mail".into(),
            kind: OwnerKind::ScaledJob,
        };
        let foreign = |name: &str| Job { is_foreign: true, ..job(name, json!({})) };
        jobs.apply(Change::Applied(job("ours", json!({}))));
        assert!(!jobs.take_foreign(&mail));
        jobs.apply(Change::Applied(foreign("theirs")));
        assert!(jobs.take_foreign(&mail) && !jobs.take_foreign(&mail));
        jobs.apply(Change::Applied(foreign("theirs")));
        jobs.apply(Change::All(vec![foreign("theirs")]));
        assert!(!jobs.take_foreign(&mail), "it was there before");
        jobs.apply(Change::All(vec![foreign("theirs"), foreign("another")]));
        assert!(jobs.take_foreign(&mail));
        jobs.apply(Change::Deleted(foreign("theirs")));
        assert!(!jobs.take_foreign(&mail));
    }

    #[test]
    fn what_changed_is_told_once() {
        let object = |name: &str| {
            let mut object = ScaledJob::default();
            object.metadata.name = name.to_owned();
            object
        };
        let objects = Objects::default();
        let changed = || {
            let found = objects.take_changed().into_iter();
            let shown = found.map(|(name, object)| format!("{}:{}", name.name, object.is_some()));
            shown.collect::<Vec<_>>().join(" ")
        };
        objects.apply(Change::All(vec![object("a"), object("b")]));
        assert_eq!(changed(), "a:true b:true");
        assert_eq!(changed(), "");
        objects.apply(Change::Applied(object("a")));
        objects.apply(Change::Deleted(object("b")));
        assert_eq!(changed(), "a:true b:false");
        objects.apply(Change::All(vec![object("c")]));
        assert_eq!(changed(), "a:false c:true");
    }
}
