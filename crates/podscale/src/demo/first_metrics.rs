//! Waits until the pods of a scenario have metrics, so that the first decisions have something to go
//! by.

use jiff::SignedDuration;
use podscale_client::clock::Clock;
use podscale_cluster::nodes::{PodView, Table};
use podscale_metrics::store::Store;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The longest wait; cluster time.
const LIMIT: Duration = Duration::from_secs(90);
/// The longest wait, wall-clock: whoever chose a slow clock wants to see something, too.
const WALL_LIMIT: Duration = Duration::from_secs(20);
/// How often the pods are checked; cluster time.
const POLL: Duration = Duration::from_secs(2);
/// The times of samples are rounded down to seconds where they are read.
const ROUNDING: SignedDuration = SignedDuration::from_secs(1);

/// Waits until so many pods have a usable sample, or for as long as is reasonable.
pub(super) async fn wait(clock: Clock, wanted: usize, table: &Table, store: &Store) {
    let measured = async {
        while table.all().iter().filter(|pod| has_usable_sample(pod, store, clock)).count() < wanted
        {
            clock.sleep(POLL).await;
        }
    };
    let _ = tokio::time::timeout(clock.to_wall(LIMIT).min(WALL_LIMIT), measured).await;
}

/// Whether a pod is ready and was measured since: autoscalers set earlier samples aside.
fn has_usable_sample(pod: &PodView, store: &Store, clock: Clock) -> bool {
    let key = (Arc::clone(&pod.facts.namespace), Arc::clone(&pod.facts.name));
    let Some(sample) = store.pod(&key, clock.now()).filter(|_| pod.life.ready()) else {
        return false;
    };
    let window = SignedDuration::try_from(sample.window).unwrap_or(SignedDuration::MAX);
    let passed = sample.time.duration_since(pod.life.ready_changed);
    passed >= window.saturating_add(ROUNDING)
}

/// How many pods these objects ask for.
pub(super) fn pods_of(manifests: &[Value]) -> usize {
    let replicas = |manifest: &Value| {
        let kind = manifest.get("kind").and_then(Value::as_str);
        let is_workload = matches!(
            kind,
            Some("Deployment" | "StatefulSet" | "ReplicaSet" | "ReplicationController")
        );
        let replicas = manifest.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        is_workload.then(|| usize::try_from(replicas).unwrap_or(usize::MAX))
    };
    manifests.iter().filter_map(replicas).fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_pods_of_a_scenario_are_counted() {
        let manifests = [
            json!({"kind": "Deployment", "spec": {"replicas": 3}}),
            json!({"kind": "StatefulSet", "spec": {}}),
            json!({"kind": "Deployment", "spec": {"replicas": 0}}),
            json!({"kind": "HorizontalPodAutoscaler", "spec": {"replicas": 9}}),
        ];
        assert_eq!(pods_of(&manifests), 4);
    }
}
