//! Jobs: run pods until enough of them have succeeded, or too many have failed.

pub mod plan;
pub mod tally;

use super::cache::Key;
use super::claim::{claim_all, owner_reference};
use super::pod::{Pod, controller_of};
use super::pod_writes::PodWrites;
use super::queue::{Next, Queue, Shutdown};
use super::replicas::new_pod;
use super::replicas::plan::batches;
use super::written::Written;
use super::{BY_JOB, BY_OWNER, Context, orphans};
use crate::call::{CallError, call, gone_is_fine};
use futures::future::join_all;
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus, UncountedTerminatedPods};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::Selector;
use parking_lot::Mutex;
use plan::{Input, Plan};
use podscale_client::events::{Recorder, reference};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tally::{FINALIZER, is_tracked};

const COMPONENT: &str = "job-controller";
/// How many Jobs are worked on at a time.
const WORKERS: usize = 8;
/// The label that names a pod's Job.
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";
/// How long to wait for a watch that shows less than was written.
const BEHIND: Duration = Duration::from_secs(1);

/// Runs the pods of Jobs.
pub struct Jobs {
    context: Context,
    written: Written,
    /// The versions of Jobs that were written. An older one says nothing of pods that have been counted since.
    versions: Mutex<HashMap<Key, u64>>,
    recorder: Recorder,
}

/// The value under which the pods' index by Job holds those that are to be counted.
#[must_use]
pub fn tracked_by(pod: &Pod) -> Option<String> {
    let name = pod.metadata.labels.as_ref()?.get(NAME_LABEL)?;
    is_tracked(pod).then(|| Key::new(pod.namespace(), name).to_string())
}

impl Jobs {
    /// Subscribes to changes; the returned future runs until shutdown.
    pub fn start(context: Context, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        let queue = Queue::new(COMPONENT, context.clock);
        listen(&context, &queue);
        let this = Arc::new(Jobs {
            written: Written::default(),
            versions: Mutex::default(),
            recorder: context.recorder.named(COMPONENT),
            context,
        });
        async move {
            this.context.caches.jobs.complete().await;
            this.context.caches.pods.complete().await;
            let work = move |key| {
                let this = Arc::clone(&this);
                async move { this.reconcile(&key).await }
            };
            queue.run(WORKERS, shutdown, work).await;
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, CallError> {
        let Some(job) = self.context.caches.jobs.get(key) else {
            self.written.forget(key);
            self.versions.lock().remove(key);
            return self.let_go(key, None).await;
        };
        let Some(spec) = job.spec.as_ref().filter(|spec| !plan::is_managed_elsewhere(spec)) else {
            return Ok(Next::Wait);
        };
        let (pods, now) = (&self.context.caches.pods, self.context.clock.now());
        if !self.is_newest(key, &job) || !self.written.is_seen(key, pods.observed(), pods, now) {
            return Ok(Next::After(BEHIND));
        }
        if job.metadata.deletion_timestamp.is_some() {
            return self.let_go(key, None).await;
        }
        // Those of a Job of the same name that is gone.
        self.let_go(key, job.metadata.uid.as_deref()).await?;
        if let Some(ended) = plan::finished(&job) {
            self.let_go(key, None).await?;
            let Some(expiry) = plan::expiry(spec, ended) else { return Ok(Next::Wait) };
            return match Duration::try_from(expiry.duration_since(now)) {
                Ok(wait) if !wait.is_zero() => Ok(Next::After(wait)),
                _ => self.expire(key, &job).await,
            };
        }
        let pods = self.claim(key, &job, spec).await?;
        let now = self.context.clock.now();
        let plan = plan::plan(&Input { job: &job, spec, pods: &pods, now });
        self.carry_out(key, &job, spec, plan).await
    }

    /// The pods of a Job, those that have ended too.
    async fn claim(
        &self,
        key: &Key,
        job: &Job,
        spec: &JobSpec,
    ) -> Result<Vec<Arc<Pod>>, CallError> {
        let selector = spec.selector.clone().unwrap_or_default();
        let selector = Selector::try_from(selector).map_err(|error| CallError::Object {
            what: format!("Job {key}"),
            why: format!("selector: {error}"),
        })?;
        let pods = &self.context.caches.pods;
        let uid = job.metadata.uid.as_deref().unwrap_or_default();
        let mut candidates = pods.indexed(BY_OWNER, uid);
        candidates.extend(pods.indexed(BY_OWNER, &orphans(&key.namespace)));
        claim_all(&self.context.client, job, &selector, candidates).await
    }

    /// Pods first, so that the status says what came of it; what is counted goes last.
    async fn carry_out(
        &self,
        key: &Key,
        job: &Job,
        spec: &JobSpec,
        plan: Plan,
    ) -> Result<Next, CallError> {
        let withdrawn = plan.withdraw.iter().map(|pod| self.withdraw(key, job, pod));
        let writes = self.writes();
        let ended = plan.end.iter().map(|pod| writes.delete(key, reference(job), pod));
        let mut acted: Result<(), CallError> = join_all(withdrawn).await.into_iter().collect();
        acted = acted.and(join_all(ended).await.into_iter().collect());
        if acted.is_ok() && plan.create > 0 {
            acted = self.create_all(key, job, spec, plan.create).await;
        }
        self.report(key, job, plan.status).await?;
        for (severity, reason, message) in plan.events {
            self.recorder.record(reference(job), severity, reason, message);
        }
        let released = plan.release.iter().map(|pod| self.release(pod));
        join_all(released).await.into_iter().collect::<Result<(), CallError>>()?;
        acted?;
        Ok(plan.after.map_or(Next::Wait, Next::After))
    }

    async fn create_all(
        &self,
        key: &Key,
        job: &Job,
        spec: &JobSpec,
        count: usize,
    ) -> Result<(), CallError> {
        let mut pod = new_pod(&key.name, &spec.template, owner_reference(job));
        pod.metadata.finalizers.get_or_insert_default().push(FINALIZER.to_owned());
        let writes = self.writes();
        for size in batches(count) {
            let creations = (0..size).map(|_| writes.create(key, reference(job), &pod));
            join_all(creations).await.into_iter().collect::<Result<(), CallError>>()?;
        }
        Ok(())
    }

    fn writes(&self) -> PodWrites<'_> {
        PodWrites { context: &self.context, written: &self.written, recorder: &self.recorder }
    }

    /// Deletes a pod that counts for nothing.
    async fn withdraw(&self, key: &Key, job: &Job, pod: &Pod) -> Result<(), CallError> {
        if is_tracked(pod) {
            self.release(pod).await?;
        }
        self.writes().delete(key, reference(job), pod).await
    }

    /// Takes away what holds a pod that is counted, or never will be.
    async fn release(&self, pod: &Pod) -> Result<(), CallError> {
        let api = Api::<Pod>::namespaced(self.context.client.clone(), pod.namespace());
        let patch = serde_json::json!({"metadata": {"uid": pod.metadata.uid,
            "$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        let (name, release) = (pod.name(), api.patch(pod.name(), &params, &patch));
        match call(|| format!("release pod {name}"), release).await {
            // Gone, or another pod of this name.
            Err(error) if !error.is_not_found() && !error.is_invalid() && !error.is_conflict() => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Releases the pods that name this Job and are to be counted, but those of the one that counts.
    async fn let_go(&self, key: &Key, counts: Option<&str>) -> Result<Next, CallError> {
        let mut pods = self.context.caches.pods.indexed(BY_JOB, &key.to_string());
        pods.retain(|pod| {
            let owner = controller_of(&pod.metadata).map(|owner| owner.uid.as_str());
            counts.is_none_or(|uid| owner.is_some_and(|owner| owner != uid))
        });
        let released = pods.iter().map(|pod| self.release(pod));
        join_all(released).await.into_iter().collect::<Result<(), CallError>>()?;
        Ok(Next::Wait)
    }

    async fn expire(&self, key: &Key, job: &Job) -> Result<Next, CallError> {
        let api = Api::<Job>::namespaced(self.context.client.clone(), &key.namespace);
        let uid = job.metadata.uid.clone();
        let resource_version = job.metadata.resource_version.clone();
        let preconditions = Some(Preconditions { uid, resource_version });
        let params = DeleteParams { preconditions, ..DeleteParams::foreground() };
        let delete = api.delete(&key.name, &params);
        gone_is_fine(call(|| format!("delete Job {key}, which has expired"), delete).await)?;
        Ok(Next::Wait)
    }

    async fn report(&self, key: &Key, job: &Job, status: JobStatus) -> Result<(), CallError> {
        if job.status.as_ref().is_some_and(|old| full(old) == full(&status)) {
            return Ok(());
        }
        let api = Api::<Job>::namespaced(self.context.client.clone(), &key.namespace);
        let (params, changed) =
            (PostParams::default(), Job { status: Some(status), ..job.clone() });
        let write = api.replace_status(&key.name, &params, &changed);
        let written = call(|| format!("report the status of {key}"), write).await?;
        if let Some(version) = version_of(&written) {
            self.versions.lock().insert(key.clone(), version);
        }
        Ok(())
    }

    /// Whether the watch shows what was last written of a Job, or something newer.
    fn is_newest(&self, key: &Key, job: &Job) -> bool {
        let mut versions = self.versions.lock();
        let Some(&written) = versions.get(key) else { return true };
        let is_newest = version_of(job).is_none_or(|shown| shown >= written);
        if is_newest {
            versions.remove(key);
        }
        is_newest
    }
}

/// A status with absent numbers as zero and absent lists as empty ones, for comparison.
fn full(status: &JobStatus) -> JobStatus {
    let number = |count: Option<i32>| Some(count.unwrap_or(0));
    let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
    JobStatus {
        active: number(status.active),
        ready: number(status.ready),
        terminating: number(status.terminating),
        succeeded: number(status.succeeded),
        failed: number(status.failed),
        uncounted_terminated_pods: Some(UncountedTerminatedPods {
            succeeded: Some(uncounted.succeeded.unwrap_or_default()),
            failed: Some(uncounted.failed.unwrap_or_default()),
        }),
        ..status.clone()
    }
}

fn version_of(job: &Job) -> Option<u64> {
    job.metadata.resource_version.as_deref()?.parse().ok()
}

/// Queues the Jobs that a change concerns.
fn listen(context: &Context, queue: &Queue<Key>) {
    let caches = &context.caches;
    caches.jobs.queue_changes(queue);
    let queue = queue.clone();
    caches.pods.listen(move |old, new| {
        for pod in [old, new].into_iter().flatten() {
            let owner = controller_of(&pod.metadata).filter(|owner| owner.kind == "Job");
            let named = || Some(pod.metadata.labels.as_ref()?.get(NAME_LABEL)?.as_str());
            // One without a Job is not left waiting to be counted.
            let name = owner.map(|owner| owner.name.as_str()).or_else(named);
            if let Some(name) = name {
                queue.add(Key::new(pod.namespace(), name));
            }
        }
    });
}
