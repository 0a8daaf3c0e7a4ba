//! Places pods on nodes: on ready and open ones with room for what the pod asks for, the emptiest
//! first, the pods of one owner apart from each other.

pub mod ledger;
pub mod requirements;

use super::Context;
use super::cache::Key;
use super::pod::Pod;
use super::queue::{Next, Queue, Shutdown};
use crate::call::{CallError, call};
use k8s_openapi::api::core::v1::{Binding, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use ledger::Ledger;
use parking_lot::Mutex;
use podscale_client::clock::stamp;
use podscale_client::events::{Recorder, Severity, reference};
use requirements::PodRequirements;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The name by which pods ask for this scheduler, and its name in events.
const NAME: &str = "default-scheduler";
/// How many pods are bound at a time; the choices themselves are made one after the other.
const WORKERS: usize = 32;
/// When a pod that found no node is tried again even if nothing changed.
const RETRY: Duration = Duration::from_secs(60);

/// Places pods.
pub struct Scheduler {
    context: Context,
    recorder: Recorder,
    ledger: Arc<Mutex<Ledger>>,
    /// Pods that found no node.
    waiting: Arc<Mutex<BTreeSet<Key>>>,
}

impl Scheduler {
    /// Subscribes to changes; the returned future runs until shutdown.
    pub fn start(context: Context, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        let queue = Queue::new(NAME, context.clock);
        let this = Arc::new(Scheduler {
            recorder: context.recorder.named(NAME),
            ledger: Arc::default(),
            waiting: Arc::default(),
            context,
        });
        this.listen(&queue);
        async move {
            this.context.caches.nodes.complete().await;
            this.context.caches.pods.complete().await;
            let worker = Arc::clone(&this);
            let work = move |key| {
                let this = Arc::clone(&worker);
                async move { this.schedule(&key).await }
            };
            queue.run(WORKERS, shutdown, work).await;
        }
    }

    fn listen(&self, queue: &Queue<Key>) {
        let caches = &self.context.caches;
        let retry = {
            let (waiting, queue) = (Arc::clone(&self.waiting), queue.clone());
            move || std::mem::take(&mut *waiting.lock()).into_iter().for_each(|key| queue.add(key))
        };
        let (ledger, again) = (Arc::clone(&self.ledger), retry.clone());
        caches.nodes.listen(move |old, new| {
            match (old, new) {
                (_, Some(node)) => ledger.lock().set_node(node),
                (Some(node), None) => {
                    ledger.lock().remove_node(node.metadata.name.as_deref().unwrap_or_default());
                }
                (None, None) => {}
            }
            // Heartbeats change a node all the time; only what matters for placing starts a retry.
            if old.map(|node| substance(node)) != new.map(|node| substance(node)) {
                again();
            }
        });
        let (ledger, queue) = (Arc::clone(&self.ledger), queue.clone());
        caches.pods.listen(move |old, new| {
            ledger.lock().observe(old.map(AsRef::as_ref), new.map(AsRef::as_ref));
            match new {
                Some(pod) if is_pending(pod) => queue.add(Key::of(pod.as_ref())),
                Some(pod) if !pod.is_ended() => {}
                // Room was freed.
                _ => retry(),
            }
        });
    }

    async fn schedule(&self, key: &Key) -> Result<Next, CallError> {
        let Some(pod) = self.context.caches.pods.get(key).filter(|pod| is_pending(pod)) else {
            self.waiting.lock().remove(key);
            return Ok(Next::Wait);
        };
        let requirements = PodRequirements::of(&pod);
        let choice = {
            let mut ledger = self.ledger.lock();
            let choice = ledger.choose(&requirements).map(str::to_owned);
            if let Ok(node) = &choice {
                ledger.place(&pod, node);
            }
            choice
        };
        match choice {
            Ok(node) => {
                self.waiting.lock().remove(key);
                let bound = self.bind(key, &pod, &node).await;
                if bound.is_err() {
                    self.ledger.lock().unplace(pod.uid());
                }
                bound
            }
            Err(refusal) => {
                self.waiting.lock().insert(key.clone());
                self.refuse(key, &pod, refusal).await?;
                Ok(Next::After(RETRY))
            }
        }
    }

    async fn bind(&self, key: &Key, pod: &Pod, node: &str) -> Result<Next, CallError> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(key.name.clone()),
                namespace: Some(key.namespace.clone()),
                uid: pod.metadata.uid.clone(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".into()),
                kind: Some("Node".into()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        let api = Api::<Pod>::namespaced(self.context.client.clone(), &key.namespace);
        let params = PostParams::default();
        let bind = api.create_subresource("binding", &key.name, &params, &binding);
        let _: serde_json::Value = call(|| format!("bind {key} to {node}"), bind).await?;
        let message = format!("Successfully assigned {key} to {node}");
        self.recorder.record(reference(pod), Severity::Normal, "Scheduled", message);
        Ok(Next::Wait)
    }

    async fn refuse(&self, key: &Key, pod: &Pod, refusal: String) -> Result<(), CallError> {
        let known = pod.condition("PodScheduled");
        if known.is_some_and(|known| {
            known.status == "False" && known.message.as_deref() == Some(refusal.as_str())
        }) {
            return Ok(());
        }
        let since = known.filter(|known| known.status == "False");
        let since = since.and_then(|known| known.last_transition_time.clone());
        let since = since.unwrap_or_else(|| stamp(self.context.clock.now()));
        let patch = serde_json::json!({"status": {"conditions": [{"type": "PodScheduled",
            "status": "False", "reason": "Unschedulable", "message": refusal,
            "lastProbeTime": null, "lastTransitionTime": since}]}});
        self.recorder.record(reference(pod), Severity::Warning, "FailedScheduling", refusal);
        let api = Api::<Pod>::namespaced(self.context.client.clone(), &key.namespace);
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        let write = api.patch_status(&key.name, &params, &patch);
        crate::call::gone_is_fine(call(|| format!("report that {key} waits"), write).await)
    }
}

/// What of a node matters for placing pods.
fn substance(node: &k8s_openapi::api::core::v1::Node) -> impl PartialEq + use<'_> {
    let status = node.status.as_ref();
    (
        node.metadata.labels.as_ref(),
        node.spec.as_ref(),
        status.and_then(|status| status.allocatable.as_ref().or(status.capacity.as_ref())),
    )
}

fn is_pending(pod: &Pod) -> bool {
    let scheduler = pod.spec.scheduler_name.as_deref().filter(|name| !name.is_empty());
    pod.node().is_none()
        && pod.is_active()
        && pod.spec.scheduling_gates.is_empty()
        && scheduler.is_none_or(|name| name == NAME)
}
