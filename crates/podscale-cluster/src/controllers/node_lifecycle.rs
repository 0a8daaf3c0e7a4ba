//! Watches over nodes: one that stops reporting is marked and tainted, its pods are no longer ready
//! and after a while deleted, and pods of a node that is gone are removed.

pub mod plan;

use super::cache::Key;
use super::pod::Pod;
use super::queue::{Next, Queue, Shutdown};
use super::{BY_NODE, Context};
use crate::call::{CallError, call, gone_is_fine};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use parking_lot::Mutex;
use plan::Health;
use podscale_client::clock::stamp;
use podscale_client::events::{Recorder, Severity, reference};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const COMPONENT: &str = "node-controller";
/// Where kubelets renew their leases.
const LEASES: &str = "kube-node-lease";
/// How long a kubelet may be silent.
const GRACE: SignedDuration = SignedDuration::from_secs(40);
/// How often a node is reconciled.
const PERIOD: Duration = Duration::from_secs(5);
/// How long a node may be missing before its pods are removed.
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);
/// How many nodes are worked on at a time.
const WORKERS: usize = 4;

/// Watches over nodes.
pub struct NodeLifecycle {
    context: Context,
    recorder: Recorder,
    /// When each node's kubelet was last heard, by this clock, whatever the kubelet's own shows.
    heard: Arc<Mutex<HashMap<String, Timestamp>>>,
    /// Since when a node that pods are on has been missing.
    missing: Mutex<HashMap<String, Timestamp>>,
}

impl NodeLifecycle {
    /// Subscribes to changes; the returned future runs until shutdown.
    pub fn start(context: Context, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        let queue = Queue::new(COMPONENT, context.clock);
        let this = Arc::new(NodeLifecycle {
            recorder: context.recorder.named(COMPONENT),
            heard: Arc::default(),
            missing: Mutex::default(),
            context,
        });
        this.listen(&queue);
        async move {
            this.context.caches.nodes.complete().await;
            this.context.caches.pods.complete().await;
            let worker = Arc::clone(&this);
            let work = move |key: Key| {
                let this = Arc::clone(&worker);
                async move { this.reconcile(&key.name).await }
            };
            queue.run(WORKERS, shutdown, work).await;
        }
    }

    fn listen(&self, queue: &Queue<Key>) {
        let (clock, caches) = (self.context.clock, &self.context.caches);
        let (heard, nodes) = (Arc::clone(&self.heard), queue.clone());
        caches.nodes.listen(move |old, new| {
            let Some(node) = new.or(old) else { return };
            let name = node.metadata.name.clone().unwrap_or_default();
            match new {
                Some(node) if old.is_none_or(|old| is_heard(old, node)) => {
                    heard.lock().insert(name.clone(), clock.now());
                }
                Some(_) => {}
                None => {
                    heard.lock().remove(&name);
                }
            }
            nodes.add(Key::new("", &name));
        });
        let heard = Arc::clone(&self.heard);
        caches.leases.listen(move |old, new| {
            let Some(lease) =
                new.filter(|lease| lease.metadata.namespace.as_deref() == Some(LEASES))
            else {
                return;
            };
            let renewed = |lease: &k8s_openapi::api::coordination::v1::Lease| {
                lease.spec.as_ref().and_then(|spec| spec.renew_time.clone())
            };
            if old.is_none_or(|old| renewed(old) != renewed(lease)) {
                let name = lease.metadata.name.clone().unwrap_or_default();
                heard.lock().insert(name, clock.now());
            }
        });
        let (queue, nodes) = (queue.clone(), caches.nodes.clone());
        caches.pods.listen(move |old, new| {
            // Only a pod that arrives on a node is news.
            let Some(node) = new.and_then(|pod| pod.node()) else { return };
            if old.and_then(|pod| pod.node()) != Some(node) {
                let key = Key::new("", node);
                let tainted = nodes.get(&key).is_none_or(|node| {
                    node.spec.as_ref().is_some_and(|spec| spec.taints.is_some())
                });
                if tainted {
                    queue.add(key);
                }
            }
        });
    }

    async fn reconcile(&self, name: &str) -> Result<Next, CallError> {
        let Some(node) = self.context.caches.nodes.get(&Key::new("", name)) else {
            return self.bury(name).await;
        };
        self.missing.lock().remove(name);
        let now = self.context.clock.now();
        let last = *self.heard.lock().entry(name.to_owned()).or_insert(now);
        let mut health = plan::health(&node);
        if now.duration_since(last) > GRACE {
            if let Some(conditions) = plan::silent_conditions(&node, now) {
                self.mark_silent(name, &node, health, &conditions).await?;
            }
            health = Health::Unreachable;
        }
        if let Some(taints) = plan::taints(&node, health, now) {
            let patch = json!({"metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": taints}});
            // After the marking the version is old: the changed node comes back through the watch.
            self.patch(name, &patch).await?;
        }
        let mut wait = PERIOD;
        if health != Health::Ready {
            self.mark_pods_unready(name).await?;
        }
        for pod in self.context.caches.pods.indexed(BY_NODE, name) {
            match plan::eviction(&node, &pod) {
                Some(at) if at <= now => self.evict(&pod).await?,
                Some(at) => {
                    let left = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                    wait = wait.min(left.max(Duration::from_millis(100)));
                }
                None => {}
            }
        }
        Ok(Next::After(wait))
    }

    async fn patch(&self, name: &str, patch: &serde_json::Value) -> Result<(), CallError> {
        let api = Api::<Node>::all(self.context.client.clone());
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        match call(|| format!("taint node {name}"), api.patch(name, &params, &patch)).await {
            // It changed; the watch brings the new one.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
            other => other.map(drop),
        }
    }

    async fn mark_silent(
        &self,
        name: &str,
        node: &Node,
        health: Health,
        conditions: &[k8s_openapi::api::core::v1::NodeCondition],
    ) -> Result<(), CallError> {
        let api = Api::<Node>::all(self.context.client.clone());
        let patch = json!({"status": {"conditions": conditions}});
        let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
        let write = api.patch_status(name, &params, &patch);
        gone_is_fine(call(|| format!("mark node {name}"), write).await)?;
        if health == Health::Ready {
            let message = format!("Node {name} status is now: NodeNotReady");
            self.recorder.record(reference(node), Severity::Normal, "NodeNotReady", message);
        }
        Ok(())
    }

    async fn mark_pods_unready(&self, node: &str) -> Result<(), CallError> {
        let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "False",
            "lastTransitionTime": stamp(self.context.clock.now())}]}});
        let params = PatchParams::default();
        for pod in self.context.caches.pods.indexed(BY_NODE, node) {
            if !pod.is_ready() {
                continue;
            }
            let api = Api::<Pod>::namespaced(self.context.client.clone(), pod.namespace());
            let patch = Patch::Strategic(&patch);
            let write = api.patch_status(pod.name(), &params, &patch);
            gone_is_fine(call(|| format!("mark pod {}", pod.name()), write).await)?;
            let about = reference(pod.as_ref());
            self.recorder.record(about, Severity::Warning, "NodeNotReady", "Node is not ready");
        }
        Ok(())
    }

    async fn evict(&self, pod: &Pod) -> Result<(), CallError> {
        if pod.is_terminating() {
            return Ok(());
        }
        let message = format!("Marking for deletion Pod {}/{}", pod.namespace(), pod.name());
        self.recorder.record(reference(pod), Severity::Normal, "TaintManagerEviction", message);
        self.delete(pod, &DeleteParams::default()).await
    }

    async fn delete(&self, pod: &Pod, params: &DeleteParams) -> Result<(), CallError> {
        let api = Api::<Pod>::namespaced(self.context.client.clone(), pod.namespace());
        let delete = api.delete(pod.name(), params);
        gone_is_fine(call(|| format!("delete pod {}", pod.name()), delete).await)
    }

    /// Removes the pods of a node that is gone: no kubelet is left to end them.
    async fn bury(&self, name: &str) -> Result<Next, CallError> {
        let pods = self.context.caches.pods.indexed(BY_NODE, name);
        if pods.is_empty() {
            self.missing.lock().remove(name);
            return Ok(Next::Wait);
        }
        let now = self.context.clock.now();
        let since = *self.missing.lock().entry(name.to_owned()).or_insert(now);
        let left = QUARANTINE - now.duration_since(since);
        if let Ok(left) = Duration::try_from(left)
            && !left.is_zero()
        {
            return Ok(Next::After(left));
        }
        let api = Api::<Node>::all(self.context.client.clone());
        if call(|| format!("read node {name}"), api.get_opt(name)).await?.is_some() {
            return Ok(Next::After(PERIOD));
        }
        for pod in pods {
            if !pod.is_ended() && !pod.is_terminating() {
                let patch = json!({"status": {"phase": "Failed", "conditions": [{
                    "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
                    "message": "PodGC: node no longer exists", "lastTransitionTime": stamp(now)}]}});
                let api = Api::<Pod>::namespaced(self.context.client.clone(), pod.namespace());
                let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
                let write = api.patch_status(pod.name(), &params, &patch);
                gone_is_fine(call(|| format!("fail pod {}", pod.name()), write).await)?;
            }
            let params = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            self.delete(&pod, &params).await?;
        }
        Ok(Next::After(PERIOD))
    }
}

/// Whether a change of a node comes from its kubelet: nobody else beats, or knows its health.
fn is_heard(old: &Node, new: &Node) -> bool {
    let knows = |node: &Node| plan::health(node) != Health::Unreachable;
    beat(old) != beat(new) || (knows(new) && !knows(old))
}

/// The last heartbeat that a kubelet wrote into its node.
fn beat(node: &Node) -> Option<Timestamp> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    ready.last_heartbeat_time.as_ref().map(|time| time.0)
}
