//! Deployments: keep a replica set for the current template and move the pods over to it.

pub mod limits;
pub mod plan;
pub mod revision;
pub mod scale;
pub mod status;
pub mod template;

use super::cache::Key;
use super::claim::claim_all;
use super::pod::{controller_of, labels_of};
use super::queue::{Next, Queue, Shutdown};
use super::written::Written;
use super::{BY_OWNER, Context, orphans};
use crate::call::{CallError, call, gone_is_fine};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{Selector, SelectorExt};
use plan::{Input, Plan, Write};
use podscale_client::events::{Recorder, Severity, reference};
use std::collections::HashMap;
use std::sync::Arc;

const COMPONENT: &str = "deployment-controller";
/// How many deployments are worked on at a time.
const WORKERS: usize = 8;
/// The condition's reason and the event's when a replica set cannot be created.
const CREATE_FAILED: &str = "ReplicaSetCreateError";

/// Rolls out deployments.
pub struct Deployments {
    context: Context,
    written: Written,
    recorder: Recorder,
}

impl Deployments {
    /// Subscribes to changes; the returned future runs until shutdown.
    pub fn start(context: Context, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        let queue = Queue::new(COMPONENT, context.clock);
        listen(&context, &queue);
        let this = Arc::new(Deployments {
            written: Written::default(),
            recorder: context.recorder.named(COMPONENT),
            context,
        });
        async move {
            let caches = &this.context.caches;
            caches.deployments.complete().await;
            caches.replica_sets.complete().await;
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
        let Some(deployment) = caches.deployments.get(key) else {
            self.written.forget(key);
            return Ok(Next::Wait);
        };
        let now = self.context.clock.now();
        let observed = caches.replica_sets.observed();
        if !self.written.is_seen(key, observed, &caches.pods, now) {
            // The change that is not seen yet will queue the deployment again when it is.
            return Ok(Next::After(std::time::Duration::from_secs(1)));
        }
        let selector = Selector::try_from(deployment.spec.selector.clone());
        let selector = match selector {
            Ok(selector) if !selector.selects_all() => selector,
            _ => {
                let message =
                    "This deployment is selecting all pods. A non-empty selector is required.";
                let about = reference(deployment.as_ref());
                self.recorder.record(about, Severity::Warning, "SelectingAll", message);
                return Ok(Next::Wait);
            }
        };
        let uid = deployment.metadata.uid.as_deref().unwrap_or_default();
        let mut candidates = caches.replica_sets.indexed(0, uid);
        candidates.extend(caches.replica_sets.indexed(0, &orphans(&key.namespace)));
        let client = &self.context.client;
        let sets = claim_all(client, deployment.as_ref(), &selector, candidates).await?;
        let running = self.running(&sets);
        let now = self.context.clock.now();
        let input = Input { deployment: &deployment, sets: &sets, running: &running, now };
        self.execute(key, &deployment, plan::plan(&input)).await
    }

    fn running(&self, sets: &[Arc<ReplicaSet>]) -> HashMap<String, usize> {
        let uids = sets.iter().filter_map(|set| set.metadata.uid.clone());
        uids.map(|uid| {
            let pods = self.context.caches.pods.indexed(BY_OWNER, &uid);
            let running = pods.iter().filter(|pod| !pod.is_ended()).count();
            (uid, running)
        })
        .collect()
    }

    async fn execute(&self, key: &Key, stored: &Deployment, plan: Plan) -> Result<Next, CallError> {
        for write in &plan.writes {
            match write {
                Write::Create(set) => {
                    if !self.create(key, stored, set).await? {
                        return Ok(Next::Wait);
                    }
                }
                Write::Update { set, from } => self.update(key, stored, set, *from).await?,
                Write::Delete(set) => self.delete(key, set).await?,
            }
        }
        let mut changed = stored.clone();
        if let Some(revision) = &plan.revision {
            let patch = serde_json::json!({"metadata": {"uid": stored.metadata.uid,
                "annotations": {revision::REVISION: revision}}});
            let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
            let api = self.deployments(key);
            let patch = api.patch(&key.name, &params, &patch);
            let answer = call(|| format!("note the revision of {key}"), patch).await?;
            // A spec that changed meanwhile must be read before its status is written.
            if answer.metadata.generation != stored.metadata.generation {
                return Ok(Next::Wait);
            }
            changed.metadata.resource_version = answer.metadata.resource_version;
            changed.metadata.annotations = answer.metadata.annotations;
        }
        if let Some(status) = plan.status {
            self.report(key, changed, status).await?;
        }
        Ok(plan.after.map_or(Next::Wait, Next::After))
    }

    fn deployments(&self, key: &Key) -> Api<Deployment> {
        Api::namespaced(self.context.client.clone(), &key.namespace)
    }

    fn sets(&self, key: &Key) -> Api<ReplicaSet> {
        Api::namespaced(self.context.client.clone(), &key.namespace)
    }

    async fn report(
        &self,
        key: &Key,
        mut deployment: Deployment,
        status: DeploymentStatus,
    ) -> Result<(), CallError> {
        deployment.status = Some(status);
        let (api, params) = (self.deployments(key), PostParams::default());
        let write = api.replace_status(&key.name, &params, &deployment);
        call(|| format!("report the status of {key}"), write).await.map(drop)
    }

    /// Creates a replica set; false if the deployment must be reconciled again first.
    async fn create(
        &self,
        key: &Key,
        deployment: &Deployment,
        set: &ReplicaSet,
    ) -> Result<bool, CallError> {
        let (api, params) = (self.sets(key), PostParams::default());
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let error = match call(|| format!("create {name}"), api.create(&params, set)).await {
            Ok(created) => {
                self.written.wrote(key, &created.metadata, self.context.clock.now());
                self.tell_scaled(deployment, name, 0, status::replicas_of(set));
                return Ok(true);
            }
            Err(error) => error,
        };
        if error.is_already_exists() {
            return self.resolve_collision(key, deployment, name, error).await;
        }
        if error.is_namespace_ending() {
            return Err(error);
        }
        let message = format!("Failed to create new replica set {name:?}: {}", error.message());
        let about = reference(deployment);
        self.recorder.record(about, Severity::Warning, CREATE_FAILED, message.clone());
        if status::deadline(&deployment.spec).is_some() {
            let mut status = deployment.status.clone().unwrap_or_default();
            let now = self.context.clock.now();
            let condition =
                status::new_condition(status::PROGRESSING, "False", CREATE_FAILED, message, now);
            status::set_condition(&mut status, condition);
            if deployment.status.as_ref() != Some(&status) {
                self.report(key, deployment.clone(), status).await?;
            }
        }
        Err(error)
    }

    /// A replica set of that name exists: ours that the cache does not show yet, or one of another
    /// template with the same hash, in which case the next hash is made to differ.
    async fn resolve_collision(
        &self,
        key: &Key,
        deployment: &Deployment,
        name: &str,
        error: CallError,
    ) -> Result<bool, CallError> {
        let api = self.sets(key);
        let Some(found) = call(|| format!("read {name}"), api.get_opt(name)).await? else {
            return Err(error);
        };
        let ours = controller_of(&found.metadata)
            .is_some_and(|owner| Some(&owner.uid) == deployment.metadata.uid.as_ref());
        let same = found.spec.template.as_ref();
        let same = same.is_some_and(|found| template::same(found, &deployment.spec.template));
        if ours && same {
            self.written.wrote(key, &found.metadata, self.context.clock.now());
            return Err(error);
        }
        let mut status = deployment.status.clone().unwrap_or_default();
        status.collision_count = Some(status.collision_count.unwrap_or(0).saturating_add(1));
        self.report(key, deployment.clone(), status).await?;
        Ok(false)
    }

    async fn update(
        &self,
        key: &Key,
        deployment: &Deployment,
        set: &ReplicaSet,
        from: i32,
    ) -> Result<(), CallError> {
        let (api, params) = (self.sets(key), PostParams::default());
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let update = api.replace(name, &params, set);
        let updated = call(|| format!("update {name}"), update).await?;
        self.written.wrote(key, &updated.metadata, self.context.clock.now());
        self.tell_scaled(deployment, name, from, status::replicas_of(set));
        Ok(())
    }

    fn tell_scaled(&self, deployment: &Deployment, name: &str, from: i32, to: i32) {
        if from != to {
            let direction = if from < to { "up" } else { "down" };
            let message = format!("Scaled {direction} replica set {name} from {from} to {to}");
            let about = reference(deployment);
            self.recorder.record(about, Severity::Normal, "ScalingReplicaSet", message);
        }
    }

    async fn delete(&self, key: &Key, set: &ReplicaSet) -> Result<(), CallError> {
        let api = self.sets(key);
        let name = set.metadata.name.as_deref().unwrap_or_default();
        let preconditions = Some(Preconditions {
            uid: set.metadata.uid.clone(),
            resource_version: set.metadata.resource_version.clone(),
        });
        let params = DeleteParams { preconditions, ..DeleteParams::background() };
        gone_is_fine(call(|| format!("delete {name}"), api.delete(name, &params)).await)
    }
}

/// Queues the deployments that a change concerns.
fn listen(context: &Context, queue: &Queue<Key>) {
    let caches = &context.caches;
    caches.deployments.queue_changes(queue);
    let (own, deployments) = (queue.clone(), caches.deployments.clone());
    caches.replica_sets.listen(move |old, new| {
        let Some(set) = new.or(old) else { return };
        let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
        for set in [old, new].into_iter().flatten() {
            if let Some(owner) = controller_of(&set.metadata).filter(|owner| is_mine(owner)) {
                own.add(Key::new(namespace, &owner.name));
            }
        }
        let Some(orphan) = new.filter(|set| controller_of(&set.metadata).is_none()) else { return };
        let labels = labels_of(&orphan.metadata);
        for deployment in deployments.in_namespace(namespace) {
            let selector = Selector::try_from(deployment.spec.selector.clone());
            if selector.is_ok_and(|selector| selector.matches(labels)) {
                own.add(Key::of(deployment.as_ref()));
            }
        }
    });
    // A recreation waits for the last old pod to be gone.
    let (own, sets) = (queue.clone(), caches.replica_sets.clone());
    let deployments = caches.deployments.clone();
    caches.pods.listen(move |old, new| {
        let (Some(pod), None) = (old, new) else { return };
        let Some(owner) = controller_of(&pod.metadata) else { return };
        let Some(set) = sets.get(&Key::new(pod.namespace(), &owner.name)) else { return };
        let Some(owner) = controller_of(&set.metadata).filter(|owner| is_mine(owner)) else {
            return;
        };
        let key = Key::new(pod.namespace(), &owner.name);
        if deployments.get(&key).is_some_and(|deployment| !limits::is_rolling(&deployment.spec)) {
            own.add(key);
        }
    });
}

fn is_mine(owner: &OwnerReference) -> bool {
    owner.kind == "Deployment" && owner.api_version.starts_with("apps/")
}
