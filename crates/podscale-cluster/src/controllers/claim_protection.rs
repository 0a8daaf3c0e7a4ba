//! Lets go of claims on volumes that are being deleted, once no pod uses them.

use super::Context;
use super::cache::Key;
use super::queue::{Next, Queue, Shutdown};
use crate::call::{CallError, call, gone_is_fine};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use std::time::Duration;

/// The finalizer that the API server gives every claim.
const FINALIZER: &str = "kubernetes.io/pvc-protection";
/// How often the pods are listed while one of them uses the claim.
const PERIOD: Duration = Duration::from_secs(2);
/// How many claims are worked on at a time.
const WORKERS: usize = 2;

/// Subscribes to changes; the returned future runs until shutdown.
pub fn start(context: Context, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
    let queue = Queue::new("claims", context.clock);
    let own = queue.clone();
    context.caches.claims.listen(move |_, new| {
        if let Some(claim) = new.filter(|claim| is_held(claim)) {
            own.add(Key::of(claim.as_ref()));
        }
    });
    async move {
        context.caches.claims.complete().await;
        let work = move |key: Key| {
            let context = context.clone();
            async move { reconcile(&context, &key).await }
        };
        queue.run(WORKERS, shutdown, work).await;
    }
}

/// Whether only the protection may keep the claim from going.
fn is_held(claim: &PersistentVolumeClaim) -> bool {
    let finalizers = claim.metadata.finalizers.as_deref().unwrap_or_default();
    claim.metadata.deletion_timestamp.is_some() && finalizers.iter().any(|one| one == FINALIZER)
}

async fn reconcile(context: &Context, key: &Key) -> Result<Next, CallError> {
    let Some(claim) = context.caches.claims.get(key).filter(|claim| is_held(claim)) else {
        return Ok(Next::Wait);
    };
    let pods = Api::<Pod>::namespaced(context.client.clone(), &key.namespace);
    let list = ListParams::default();
    let found = call(|| format!("list the pods beside {key}"), pods.list(&list)).await?;
    if found.items.iter().any(|pod| uses(pod, &key.name)) {
        return Ok(Next::After(PERIOD));
    }
    let finalizers = claim.metadata.finalizers.iter().flatten();
    let kept: Vec<&String> = finalizers.filter(|one| *one != FINALIZER).collect();
    let patch = serde_json::json!({"metadata": {
        "finalizers": kept,
        "resourceVersion": claim.metadata.resource_version,
    }});
    let claims = Api::<PersistentVolumeClaim>::namespaced(context.client.clone(), &key.namespace);
    let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
    let write = claims.patch(&key.name, &params, &patch);
    gone_is_fine(call(|| format!("let claim {key} go"), write).await.map(|_| ()))?;
    Ok(Next::Wait)
}

/// Whether a pod that has not ended mounts the claim.
fn uses(pod: &Pod, claim: &str) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    !matches!(phase, Some("Succeeded" | "Failed"))
        && volumes
            .filter_map(|volume| volume.persistent_volume_claim.as_ref())
            .any(|source| source.claim_name == claim)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(phase: &str) -> Pod {
        serde_json::from_value(json!({
            "spec": {"containers": [], "volumes": [
                {"name": "a", "emptyDir": {}},
                {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
            ]},
            "status": {"phase": phase},
        }))
        .expect("a pod")
    }

    #[test]
    fn a_pod_uses_a_claim_until_it_has_ended() {
        assert!(uses(&pod("Running"), "data"));
        assert!(uses(&pod("Pending"), "data"));
        assert!(!uses(&pod("Succeeded"), "data"));
        assert!(!uses(&pod("Running"), "other"));
    }
}
