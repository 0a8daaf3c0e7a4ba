//! Replica sets and replication controllers: keep as many pods as wanted.

pub mod owner;
pub mod plan;

use super::cache::{Cache, Key};
use super::claim::{claim_all, owner_reference};
use super::pod::{Pod, controller_of, labels_of};
use super::pod_writes::PodWrites;
use super::queue::{Next, Queue, Shutdown};
use super::written::Written;
use super::{BY_OWNER, Context, orphans};
use crate::call::{CallError, call, gone_is_fine};
use futures::future::join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod as FullPod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::PostParams;
use kube::core::SelectorExt;
use owner::{Owner, Spec};
use plan::{Observed, Step};
use podscale_client::events::{Recorder, reference};
use std::sync::Arc;

/// How many owners are worked on at a time.
const WORKERS: usize = 8;

/// Keeps the pods of one kind of owner.
pub struct Replicas<O> {
    context: Context,
    owners: Cache<O>,
    /// The replica sets of all deployments, to see which pods belong together.
    sets: Cache<ReplicaSet>,
    written: Written,
    recorder: Recorder,
}

impl<O: Owner> Replicas<O> {
    /// Subscribes to changes; the returned future runs until shutdown.
    pub fn start(
        context: Context,
        owners: Cache<O>,
        shutdown: Shutdown,
    ) -> impl Future<Output = ()> + Send + use<O> {
        let queue = Queue::new(O::COMPONENT, context.clock);
        listen(&owners, &context.caches.pods, &queue);
        let this = Arc::new(Replicas {
            owners: owners.clone(),
            sets: context.caches.replica_sets.clone(),
            written: Written::default(),
            recorder: context.recorder.named(O::COMPONENT),
            context,
        });
        async move {
            owners.complete().await;
            this.sets.complete().await;
            this.context.caches.pods.complete().await;
            let work = move |key| {
                let this = Arc::clone(&this);
                async move { this.reconcile(&key).await }
            };
            queue.run(WORKERS, shutdown, work).await;
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, CallError> {
        let Some(owner) = self.owners.get(key) else {
            self.written.forget(key);
            return Ok(Next::Wait);
        };
        let spec = match owner.spec() {
            Ok(spec) => spec,
            Err(error) => {
                tracing::warn!(%error, "left alone");
                return Ok(Next::Wait);
            }
        };
        let pods = &self.context.caches.pods;
        let now = self.context.clock.now();
        let settled = self.written.is_seen(key, pods.observed(), pods, now);
        let uid = owner.meta().uid.as_deref().unwrap_or_default();
        let mut candidates = pods.indexed(BY_OWNER, uid);
        let terminating = candidates
            .iter()
            .filter(|pod| pod.is_terminating() && !pod.is_ended())
            .filter(|pod| spec.selector.matches(labels_of(&pod.metadata)))
            .count();
        candidates.extend(pods.indexed(BY_OWNER, &orphans(&key.namespace)));
        candidates.retain(|pod| pod.is_active());
        let client = &self.context.client;
        let active = claim_all(client, owner.as_ref(), &spec.selector, candidates).await?;
        let managed = if settled && owner.meta().deletion_timestamp.is_none() {
            self.manage(key, owner.as_ref(), &spec, &active).await
        } else {
            Ok(())
        };
        let error = managed.as_ref().err().map(CallError::message);
        let now = self.context.clock.now();
        let observed = Observed {
            active: &active,
            terminating,
            template_labels: spec
                .template
                .metadata
                .as_ref()
                .map_or_else(|| labels_of(&NO_META), labels_of),
            min_ready_seconds: spec.min_ready_seconds,
            generation: owner.meta().generation,
            wanted: spec.replicas,
            error: error.as_deref(),
        };
        self.report(key, owner.as_ref(), &observed, now).await?;
        managed?;
        let wait = plan::next_available(&active, spec.min_ready_seconds, now);
        Ok(wait.map_or(Next::Wait, Next::After))
    }

    async fn manage(
        &self,
        key: &Key,
        owner: &O,
        spec: &Spec<'_>,
        active: &[Arc<Pod>],
    ) -> Result<(), CallError> {
        let now = self.context.clock.now();
        let (context, written, recorder) = (&self.context, &self.written, &self.recorder);
        let writes = PodWrites { context, written, recorder };
        match plan::plan(spec.replicas, active, &self.related(owner, active), now) {
            Step::Nothing => Ok(()),
            Step::Create(count) => {
                let pod = new_pod(&key.name, spec.template, owner_reference(owner));
                for size in plan::batches(count) {
                    let creations = (0..size).map(|_| writes.create(key, reference(owner), &pod));
                    join_all(creations).await.into_iter().collect::<Result<(), CallError>>()?;
                }
                Ok(())
            }
            Step::Delete(pods) => {
                let deletions = pods.iter().map(|pod| writes.delete(key, reference(owner), pod));
                join_all(deletions).await.into_iter().collect()
            }
        }
    }

    /// The pods of all replica sets of the same deployment.
    fn related(&self, owner: &O, active: &[Arc<Pod>]) -> Vec<Arc<Pod>> {
        let Some(parent) = controller_of(owner.meta()) else { return active.to_vec() };
        let siblings = self.sets.indexed(0, &parent.uid);
        let uids = siblings.iter().filter_map(|set| set.metadata.uid.as_deref());
        uids.flat_map(|uid| self.context.caches.pods.indexed(BY_OWNER, uid)).collect()
    }

    async fn report(
        &self,
        key: &Key,
        owner: &O,
        observed: &Observed<'_>,
        now: jiff::Timestamp,
    ) -> Result<(), CallError> {
        let old = owner.status();
        let mut new = plan::status(&old, observed, now);
        if old.terminating.is_none() {
            // A kind that does not report them.
            new.terminating = owner.with_status(&new).status().terminating;
        }
        if new == old {
            return Ok(());
        }
        let api = Api::<O>::namespaced(self.context.client.clone(), &key.namespace);
        let (params, changed) = (PostParams::default(), owner.with_status(&new));
        let write = api.replace_status(&key.name, &params, &changed);
        gone_is_fine(call(|| format!("report the status of {key}"), write).await)
    }
}

static NO_META: std::sync::LazyLock<ObjectMeta> = std::sync::LazyLock::new(ObjectMeta::default);

/// Queues the owners that a change concerns.
fn listen<O: Owner>(owners: &Cache<O>, pods: &Cache<Pod>, queue: &Queue<Key>) {
    owners.queue_changes(queue);
    let (queue, owners) = (queue.clone(), owners.clone());
    pods.listen(move |old, new| {
        let controllers = [old, new].map(|pod| pod.and_then(|pod| controller_of(&pod.metadata)));
        let Some(pod) = new.or(old) else { return };
        let mine = controllers.into_iter().flatten().filter(|owner| is_kind::<O>(owner));
        for owner in mine {
            queue.add(Key::new(pod.namespace(), &owner.name));
        }
        // An orphan may find an owner when it appears or its labels or owners change.
        let Some(orphan) = new.filter(|pod| controller_of(&pod.metadata).is_none()) else { return };
        let changed = old.is_none_or(|old| {
            old.metadata.labels != orphan.metadata.labels || controller_of(&old.metadata).is_some()
        });
        if changed && orphan.is_active() {
            for owner in owners.in_namespace(orphan.namespace()) {
                let labels = labels_of(&orphan.metadata);
                if owner.spec().is_ok_and(|spec| spec.selector.matches(labels)) {
                    queue.add(Key::of(owner.as_ref()));
                }
            }
        }
    });
}

fn is_kind<O: Owner>(owner: &OwnerReference) -> bool {
    owner.kind == O::kind(&())
        && owner.api_version.rsplit_once('/').map_or("", |(group, _)| group) == O::group(&())
}

/// A pod made from a template.
#[must_use]
pub fn new_pod(owner_name: &str, template: &PodTemplateSpec, owner: OwnerReference) -> FullPod {
    let meta = template.metadata.as_ref();
    FullPod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{owner_name}-")),
            labels: meta.and_then(|meta| meta.labels.clone()),
            annotations: meta.and_then(|meta| meta.annotations.clone()),
            finalizers: meta.and_then(|meta| meta.finalizers.clone()),
            owner_references: Some(vec![owner]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    }
}
