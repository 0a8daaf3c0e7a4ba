//! Which pods belong to a target: those that it owns, directly or through its replica sets. Pods of other
//! workloads that its selector happens to pick, finished pods, and the pods that a rollout has on top
//! until they are ready do not count.

use super::target::Target;
use super::targets::Targets;
use crate::source::Answer;
use podscale_api::meta::OwnerReference;
use podscale_api::metrics::MetricValue;
use podscale_api::observe::model_pod;
use podscale_api::pod::{Pod, PodPhase};
use podscale_core::Autoscaler;
use podscale_core::model::PodSelection;
use podscale_core::pod::surge;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Whether an object counts only the pods that its target owns.
pub(super) fn counts_owned(model: &Autoscaler) -> bool {
    let extensions = model.extensions.as_deref();
    extensions.is_some_and(|extensions| extensions.pod_selection == PodSelection::Owned)
}

/// The pods of a target, of those that its selector picks. Where it is not known what owns them, all
/// of them count, as they would by the selector alone.
pub(super) async fn owned(
    targets: &Targets,
    target: &Target,
    namespace: &str,
    pods: Vec<Arc<Pod>>,
) -> Vec<Arc<Pod>> {
    let uid = target.scale.metadata.uid.as_str();
    let replica_sets: BTreeSet<&str> = pods
        .iter()
        .filter_map(|pod| controller(pod))
        .filter(|owner| owner.kind == "ReplicaSet" && owner.uid != uid)
        .map(|owner| owner.name.as_str())
        .collect();
    let owners = if replica_sets.is_empty() {
        Some(HashMap::new())
    } else {
        targets.replica_set_controllers(namespace, &replica_sets).await
    };
    let picked = match owners {
        Some(owners) if !uid.is_empty() => belonging(&pods, uid, &owners),
        _ => None,
    };
    without_surge(picked.unwrap_or(pods), target.scale.spec.replicas)
}

/// The pods that belong to the object of this uid; `None` if none does: then what is between them is of
/// a kind that is not known here.
fn belonging(
    pods: &[Arc<Pod>],
    uid: &str,
    owners: &HashMap<Box<str>, Box<str>>,
) -> Option<Vec<Arc<Pod>>> {
    let belongs = |pod: &&Arc<Pod>| {
        controller(pod).is_some_and(|owner| {
            let above = || owners.get(owner.name.as_str());
            owner.uid == uid || above().is_some_and(|above| **above == *uid)
        })
    };
    let found: Vec<Arc<Pod>> = pods.iter().filter(belongs).cloned().collect();
    (!found.is_empty()).then_some(found)
}

fn controller(pod: &Pod) -> Option<&OwnerReference> {
    pod.metadata.owner_references.iter().find(|owner| owner.controller == Some(true))
}

/// Leaves out finished pods, and what a rollout has on top.
fn without_surge(mut pods: Vec<Arc<Pod>>, wanted: i32) -> Vec<Arc<Pod>> {
    pods.retain(|pod| !matches!(pod.status.phase, Some(PodPhase::Succeeded | PodPhase::Failed)));
    let model: Vec<podscale_core::pod::Pod> = pods.iter().map(|pod| model_pod(pod)).collect();
    let left_out = surge(&model, wanted);
    let mut place = 0;
    pods.retain(|_| {
        place += 1;
        left_out.binary_search(&(place - 1)).is_err()
    });
    pods
}

/// An answer without the values of pods that do not count.
pub(super) fn of_pods(answer: Answer, pods: &[Arc<Pod>]) -> Answer {
    let names: BTreeSet<&str> = pods.iter().map(|pod| &*pod.metadata.name).collect();
    match answer {
        Answer::Resource(values) => {
            let counts = |name: &str| names.contains(name);
            if values.iter().all(|of_pod| counts(&of_pod.metadata.name)) {
                return Answer::Resource(values);
            }
            let ours = values.iter().filter(|of_pod| counts(&of_pod.metadata.name));
            Answer::Resource(ours.cloned().collect())
        }
        Answer::Custom(values) => {
            let counts = |value: &&MetricValue| {
                let object = &value.described_object;
                &*object.kind != "Pod" || names.contains(&*object.name)
            };
            if values.iter().all(|value| counts(&value)) {
                return Answer::Custom(values);
            }
            Answer::Custom(values.iter().filter(counts).cloned().collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, owner: Value, status: Value) -> Arc<Pod> {
        let owners = if owner.is_null() { json!([]) } else { json!([owner]) };
        let pod = json!({"metadata": {"name": name, "ownerReferences": owners}, "status": status});
        Arc::new(serde_json::from_value(pod).expect("a pod"))
    }

    fn owner(kind: &str, name: &str, uid: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true})
    }

    fn names(pods: &[Arc<Pod>]) -> String {
        pods.iter().map(|pod| &*pod.metadata.name).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn pods_belong_by_their_owners_and_not_by_their_labels() {
        let pods = [
            pod("a", owner("ReplicaSet", "web-1", "rs1"), json!({})),
            pod("b", owner("ReplicaSet", "web-2", "rs2"), json!({})),
            pod("other", owner("ReplicaSet", "api-1", "rs3"), json!({})),
            pod("plain", Value::Null, json!({})),
            pod("direct", owner("StatefulSet", "db", "db"), json!({})),
        ];
        let owners = [("web-1", "web"), ("web-2", "web"), ("api-1", "api")];
        let owners = owners.into_iter().map(|(name, uid)| (name.into(), uid.into())).collect();
        let found = |uid| belonging(&pods, uid, &owners).map(|pods| names(&pods));
        assert_eq!(found("web").as_deref(), Some("a,b"));
        assert_eq!(found("db").as_deref(), Some("direct"));
        assert_eq!(found("rs3").as_deref(), Some("other"), "a replica set itself");
        assert_eq!(found("stranger"), None);
    }

    #[test]
    fn what_a_rollout_has_on_top_counts_once_it_is_ready() {
        let status = |phase: &str, ready: &str, second: u32| {
            json!({"phase": phase, "startTime": format!("2026-01-01T00:00:{second:02}Z"),
                "conditions": [{"type": "Ready", "status": ready}]})
        };
        let mut pods = vec![
            pod("old-1", Value::Null, status("Running", "True", 1)),
            pod("old-2", Value::Null, status("Running", "False", 2)),
            pod("new-1", Value::Null, status("Running", "True", 30)),
            pod("new-2", Value::Null, status("Running", "False", 31)),
            pod("new-3", Value::Null, json!({"phase": "Pending"})),
            pod("done", Value::Null, status("Succeeded", "False", 1)),
            pod("failed", Value::Null, status("Failed", "False", 1)),
        ];
        for (wanted, expected) in [
            (5, "old-1,old-2,new-1,new-2,new-3"),
            (4, "old-1,old-2,new-1,new-2"),
            (3, "old-1,old-2,new-1"),
            (2, "old-1,new-1"),
            (0, "old-1,new-1"),
        ] {
            assert_eq!(names(&without_surge(pods.clone(), wanted)), expected, "{wanted}");
        }
        // One that goes is none on top.
        let mut going = Pod::clone(&pods[0]);
        going.metadata.deletion_timestamp = Some(podscale_api::time::Timestamp::default());
        pods[0] = Arc::new(going);
        assert_eq!(names(&without_surge(pods, 3)), "old-1,old-2,new-1,new-2");
    }
}
