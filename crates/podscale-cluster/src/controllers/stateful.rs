//! Stateful sets: pods with numbers, created, deleted and renewed in order.

pub mod identity;
pub mod plan;

use super::cache::Key;
use super::claim::claim_all;
use super::pod::{Pod, controller_of};
use super::queue::{Next, Queue, Shutdown};
use super::written::Written;
use super::{BY_OWNER, Context, orphans};
use crate::call::{CallError, call, gone_is_fine};
use identity::{claims, new_pod, new_revision, ordinal, remembered, revision_of, template_of};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod as FullPod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Selector;
use plan::{Action, Input, Plan};
use podscale_client::events::{Recorder, Severity, reference};
use std::collections::BTreeSet;
use std::sync::Arc;

const COMPONENT: &str = "statefulset-controller";
/// How many sets are worked on at a time.
const WORKERS: usize = 8;

/// Keeps the pods of stateful sets.
pub struct StatefulSets {
    context: Context,
    written: Written,
    recorder: Recorder,
}

/// The revisions of a set: where it comes from and where it goes to.
struct Revisions {
    current: Arc<ControllerRevision>,
    update: Arc<ControllerRevision>,
}

impl StatefulSets {
    /// Subscribes to changes; the returned future runs until shutdown.
    pub fn start(context: Context, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        let queue = Queue::new(COMPONENT, context.clock);
        listen(&context, &queue);
        let this = Arc::new(StatefulSets {
            written: Written::default(),
            recorder: context.recorder.named(COMPONENT),
            context,
        });
        async move {
            let caches = &this.context.caches;
            caches.stateful_sets.complete().await;
            caches.revisions.complete().await;
            caches.pods.complete().await;
            let worker = Arc::clone(&this);
            let work = move |key| {
                let this = Arc::clone(&worker);
                async move { this.reconcile(&key).await }
            };
            queue.run(WORKERS, shutdown, work).await;
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, CallError> {
        let caches = &self.context.caches;
        let Some(set) = caches.stateful_sets.get(key) else {
            self.written.forget(key);
            return Ok(Next::Wait);
        };
        let now = self.context.clock.now();
        if !self.written.is_seen(key, caches.pods.observed(), &caches.pods, now) {
            return Ok(Next::After(std::time::Duration::from_secs(1)));
        }
        let Ok(selector) = Selector::try_from(set.spec.selector.clone()) else {
            return Ok(Next::Wait);
        };
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let mut candidates = caches.pods.indexed(BY_OWNER, uid);
        let strangers = caches.pods.indexed(BY_OWNER, &orphans(&key.namespace));
        candidates.extend(strangers.into_iter().filter(|pod| ordinal(&set, pod).is_some()));
        let client = &self.context.client;
        let pods = claim_all(client, set.as_ref(), &selector, candidates).await?;
        let revisions = self.revisions(key, &set).await?;
        let (current, update) = (name_of(&revisions.current), name_of(&revisions.update));
        let now = self.context.clock.now();
        let input = Input { set: &set, pods: &pods, current, update, now };
        let plan = plan::plan(&input);
        let (status, after) = (plan.status.clone(), plan.after);
        let acted = if set.metadata.deletion_timestamp.is_none() {
            self.act(key, &set, &revisions, plan).await
        } else {
            Ok(())
        };
        self.report(key, &set, status).await?;
        acted?;
        self.forget_revisions(key, &set, &pods, &revisions).await?;
        Ok(after.map_or(Next::Wait, Next::After))
    }

    /// Finds the set's revisions; creates the one it goes to if it is new, and gives it the highest
    /// number if it is an old one come back.
    async fn revisions(&self, key: &Key, set: &StatefulSet) -> Result<Revisions, CallError> {
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let mut known = self.context.caches.revisions.indexed(0, uid);
        known.sort_by_key(|revision| revision.revision);
        let highest = known.last().and_then(|revision| revision.revision).unwrap_or(0);
        let data = remembered(set);
        let same = |revision: &&Arc<ControllerRevision>| {
            revision.data.0 == data || template_of(revision).as_ref() == Some(&set.spec.template)
        };
        let update = match known.iter().rev().find(same) {
            Some(found) if found.revision == Some(highest) => Arc::clone(found),
            Some(found) => Arc::new(self.renumber(key, found, highest.saturating_add(1)).await?),
            None => Arc::new(self.create_revision(key, set, highest.saturating_add(1)).await?),
        };
        let current = set.status.as_ref().and_then(|status| status.current_revision.as_deref());
        let current = known.iter().find(|revision| Some(name_of(revision)) == current);
        let current = current.map_or_else(|| Arc::clone(&update), Arc::clone);
        Ok(Revisions { current, update })
    }

    async fn create_revision(
        &self,
        key: &Key,
        set: &StatefulSet,
        number: i64,
    ) -> Result<ControllerRevision, CallError> {
        let api =
            Api::<ControllerRevision>::namespaced(self.context.client.clone(), &key.namespace);
        let collisions = set.status.as_ref().and_then(|status| status.collision_count);
        let params = PostParams::default();
        // A hash that is taken by another template is changed; more than a few is not chance.
        for collision in 0..8_i32 {
            let collision = collisions.unwrap_or(0).saturating_add(collision);
            let revision = new_revision(set, number, collision);
            let name = name_of(&revision).to_owned();
            let create = api.create(&params, &revision);
            match call(|| format!("create revision {name}"), create).await {
                Ok(created) => return Ok(created),
                Err(error) if error.is_already_exists() => {
                    let found = call(|| format!("read revision {name}"), api.get(&name)).await?;
                    let ours = controller_of(&found.metadata).map(|owner| &owner.uid);
                    if ours == set.metadata.uid.as_ref() && found.data.0 == revision.data.0 {
                        return Ok(found);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let what = format!("revision {number} of {key}");
        Err(CallError::Object { what, why: "all names are taken".into() })
    }

    async fn renumber(
        &self,
        key: &Key,
        revision: &ControllerRevision,
        number: i64,
    ) -> Result<ControllerRevision, CallError> {
        let api =
            Api::<ControllerRevision>::namespaced(self.context.client.clone(), &key.namespace);
        let patch = serde_json::json!({"revision": number});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let name = name_of(revision);
        call(|| format!("renumber revision {name}"), api.patch(name, &params, &patch)).await
    }

    async fn act(
        &self,
        key: &Key,
        set: &StatefulSet,
        revisions: &Revisions,
        plan: Plan,
    ) -> Result<(), CallError> {
        for action in plan.actions {
            match action {
                Action::Create { ordinal, from_current } => {
                    let revision =
                        if from_current { &revisions.current } else { &revisions.update };
                    self.create(key, set, revision, ordinal).await?;
                }
                Action::Delete(pod) => self.delete(key, set, &pod).await?,
            }
        }
        Ok(())
    }

    async fn create(
        &self,
        key: &Key,
        set: &StatefulSet,
        revision: &ControllerRevision,
        ordinal: i32,
    ) -> Result<(), CallError> {
        self.claim_volumes(key, set, ordinal).await?;
        let template = template_of(revision).unwrap_or_else(|| set.spec.template.clone());
        let pod = new_pod(set, &template, ordinal, name_of(revision));
        let api = Api::<FullPod>::namespaced(self.context.client.clone(), &key.namespace);
        let params = PostParams::default();
        let name = pod.metadata.name.clone().unwrap_or_default();
        let set_name = &key.name;
        match call(|| format!("create pod {name}"), api.create(&params, &pod)).await {
            Ok(created) => {
                self.written.wrote(key, &created.metadata, self.context.clock.now());
                let message = format!("create Pod {name} in StatefulSet {set_name} successful");
                self.recorder.record(reference(set), Severity::Normal, "SuccessfulCreate", message);
                Ok(())
            }
            Err(error) if error.is_already_exists() || error.is_namespace_ending() => Err(error),
            Err(error) => {
                let why = error.message();
                let message =
                    format!("create Pod {name} in StatefulSet {set_name} failed error: {why}");
                self.recorder.record(reference(set), Severity::Warning, "FailedCreate", message);
                Err(error)
            }
        }
    }

    /// Claims the volumes of a pod. On a cluster that knows no claims, pods do without them.
    async fn claim_volumes(
        &self,
        key: &Key,
        set: &StatefulSet,
        ordinal: i32,
    ) -> Result<(), CallError> {
        let client = self.context.client.clone();
        let api = Api::<PersistentVolumeClaim>::namespaced(client, &key.namespace);
        let params = PostParams::default();
        for (_, claim) in claims(set, ordinal) {
            let name = claim.metadata.name.clone().unwrap_or_default();
            match call(|| format!("claim {name}"), api.create(&params, &claim)).await {
                Ok(_) => {
                    let message = format!(
                        "create Claim {name} Pod {0}-{ordinal} in StatefulSet {0} success",
                        key.name
                    );
                    self.recorder.record(
                        reference(set),
                        Severity::Normal,
                        "SuccessfulCreate",
                        message,
                    );
                }
                Err(error) if error.is_already_exists() || error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn delete(&self, key: &Key, set: &StatefulSet, pod: &Pod) -> Result<(), CallError> {
        let api = Api::<Pod>::namespaced(self.context.client.clone(), &key.namespace);
        let uid = pod.metadata.uid.clone();
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let params = DeleteParams { preconditions, ..DeleteParams::default() };
        let (name, set_name) = (pod.name(), &key.name);
        gone_is_fine(call(|| format!("delete pod {name}"), api.delete(name, &params)).await)?;
        self.written.deleted(key, &pod.metadata, self.context.clock.now());
        let message = format!("delete Pod {name} in StatefulSet {set_name} successful");
        self.recorder.record(reference(set), Severity::Normal, "SuccessfulDelete", message);
        Ok(())
    }

    async fn report(
        &self,
        key: &Key,
        set: &StatefulSet,
        status: StatefulSetStatus,
    ) -> Result<(), CallError> {
        let old = set.status.clone().unwrap_or_default();
        if full(&old) == full(&status) {
            return Ok(());
        }
        let api = Api::<StatefulSet>::namespaced(self.context.client.clone(), &key.namespace);
        let changed = StatefulSet { status: Some(status), ..set.clone() };
        let params = PostParams::default();
        let write = api.replace_status(&key.name, &params, &changed);
        gone_is_fine(call(|| format!("report the status of {key}"), write).await)
    }

    /// Deletes the oldest revisions that no pod is made from, beyond those to be kept.
    async fn forget_revisions(
        &self,
        key: &Key,
        set: &StatefulSet,
        pods: &[Arc<Pod>],
        revisions: &Revisions,
    ) -> Result<(), CallError> {
        let uid = set.metadata.uid.as_deref().unwrap_or_default();
        let mut used: BTreeSet<&str> = pods.iter().filter_map(|pod| revision_of(pod)).collect();
        used.extend([name_of(&revisions.current), name_of(&revisions.update)]);
        let mut unused = self.context.caches.revisions.indexed(0, uid);
        unused.retain(|revision| !used.contains(name_of(revision)));
        unused.sort_by_key(|revision| revision.revision);
        let kept = usize::try_from(set.spec.revision_history_limit.unwrap_or(10)).unwrap_or(0);
        let surplus = unused.len().saturating_sub(kept);
        let api =
            Api::<ControllerRevision>::namespaced(self.context.client.clone(), &key.namespace);
        let params = DeleteParams::default();
        for revision in unused.into_iter().take(surplus) {
            let name = name_of(&revision);
            let delete = api.delete(name, &params);
            gone_is_fine(call(|| format!("delete revision {name}"), delete).await)?;
        }
        Ok(())
    }
}

fn name_of(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

/// A status with absent numbers as zero, for comparison.
fn full(status: &StatefulSetStatus) -> StatefulSetStatus {
    StatefulSetStatus {
        ready_replicas: Some(status.ready_replicas.unwrap_or(0)),
        available_replicas: Some(status.available_replicas.unwrap_or(0)),
        current_replicas: Some(status.current_replicas.unwrap_or(0)),
        updated_replicas: Some(status.updated_replicas.unwrap_or(0)),
        collision_count: Some(status.collision_count.unwrap_or(0)),
        ..status.clone()
    }
}

/// Queues the sets that a change concerns.
fn listen(context: &Context, queue: &Queue<Key>) {
    let caches = &context.caches;
    caches.stateful_sets.queue_changes(queue);
    let (own, sets) = (queue.clone(), caches.stateful_sets.clone());
    caches.pods.listen(move |old, new| {
        let Some(pod) = new.or(old) else { return };
        for pod in [old, new].into_iter().flatten() {
            let owner = controller_of(&pod.metadata).filter(|owner| owner.kind == "StatefulSet");
            if let Some(owner) = owner {
                own.add(Key::new(pod.namespace(), &owner.name));
            }
        }
        // A pod without a controller may have the name of one of a set's pods.
        if let Some(orphan) = new.filter(|pod| controller_of(&pod.metadata).is_none())
            && let Some((parent, _)) = orphan.name().rsplit_once('-')
        {
            let key = Key::new(pod.namespace(), parent);
            if sets.get(&key).is_some() {
                own.add(key);
            }
        }
    });
}
