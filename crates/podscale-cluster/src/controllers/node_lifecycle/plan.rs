//! What becomes of a node that does not report, and of the pods on it: pure functions.

use crate::controllers::pod::Pod;
use crate::controllers::scheduler::requirements::tolerates;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};
use podscale_client::clock::stamp;

/// The taint of a node whose kubelet says that it is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// The taint of a node whose kubelet says nothing.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
/// The taint of a node that a person has closed.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// The conditions that only a living kubelet can know.
const KUBELETS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
/// How long a pod that says nothing about it bears a node that is not ready; on a real cluster an
/// admission plugin writes this into every pod.
const DEFAULT_TOLERATION: SignedDuration = SignedDuration::from_secs(300);

/// Whether a node can run pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Its kubelet says so.
    Ready,
    /// Its kubelet says that it cannot.
    NotReady,
    /// Its kubelet says nothing.
    Unreachable,
}

fn conditions(node: &Node) -> &[NodeCondition] {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default()
}

/// The health of a node by its stored conditions.
#[must_use]
pub fn health(node: &Node) -> Health {
    let ready = conditions(node).iter().find(|condition| condition.type_ == "Ready");
    match ready.map(|condition| condition.status.as_str()) {
        Some("True") => Health::Ready,
        Some("False") => Health::NotReady,
        _ => Health::Unreachable,
    }
}

/// The conditions to write for a node whose kubelet says nothing, if they are not written yet.
#[must_use]
pub fn silent_conditions(node: &Node, now: Timestamp) -> Option<Vec<NodeCondition>> {
    let known = |kind: &str| conditions(node).iter().find(|condition| condition.type_ == kind);
    let silent = KUBELETS.iter().map(|kind| match known(kind) {
        Some(condition) if condition.status == "Unknown" => condition.clone(),
        Some(condition) => NodeCondition {
            status: "Unknown".into(),
            reason: Some("NodeStatusUnknown".into()),
            message: Some("Kubelet stopped posting node status.".into()),
            last_transition_time: Some(stamp(now)),
            ..condition.clone()
        },
        None => NodeCondition {
            type_: (*kind).into(),
            status: "Unknown".into(),
            reason: Some("NodeStatusNeverUpdated".into()),
            message: Some("Kubelet never posted node status.".into()),
            last_heartbeat_time: node.metadata.creation_timestamp.clone(),
            last_transition_time: Some(stamp(now)),
        },
    });
    let silent: Vec<NodeCondition> = silent.collect();
    let changed = silent.iter().any(|new| known(&new.type_) != Some(new));
    changed.then_some(silent)
}

/// The taints that a node should have, if it has others; those of other origin are left alone.
#[must_use]
pub fn taints(node: &Node, health: Health, now: Timestamp) -> Option<Vec<Taint>> {
    let spec = node.spec.as_ref();
    let closed = spec.and_then(|spec| spec.unschedulable) == Some(true);
    let mut wanted = Vec::new();
    if closed {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    match health {
        Health::Ready => {}
        Health::NotReady => wanted.extend([(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        Health::Unreachable => {
            wanted.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]);
        }
    }
    let stored = spec.and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let is =
        |taint: &Taint, (key, effect): (&str, &str)| taint.key == key && taint.effect == effect;
    let kept = stored.iter().filter(|taint| {
        let ours = [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&taint.key.as_str());
        !ours || wanted.iter().any(|wanted| is(taint, *wanted))
    });
    let mut result: Vec<Taint> = kept.cloned().collect();
    for (key, effect) in wanted {
        if !result.iter().any(|taint| is(taint, (key, effect))) {
            result.push(Taint {
                key: key.into(),
                effect: effect.into(),
                value: None,
                time_added: (effect == "NoExecute").then(|| stamp(now)),
            });
        }
    }
    (result != stored).then_some(result)
}

/// When a pod must leave its node, if it must.
#[must_use]
pub fn eviction(node: &Node, pod: &Pod) -> Option<Timestamp> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default();
    let driving = taints.iter().filter(|taint| taint.effect == "NoExecute");
    driving.filter_map(|taint| leaves_at(taint, pod)).min()
}

fn leaves_at(taint: &Taint, pod: &Pod) -> Option<Timestamp> {
    let added = taint.time_added.as_ref().map_or(Timestamp::MIN, |time| time.0);
    let bearing: Vec<_> =
        pod.spec.tolerations.iter().filter(|toleration| tolerates(toleration, taint)).collect();
    if bearing.is_empty() {
        let about_health = taint.key == NOT_READY || taint.key == UNREACHABLE;
        let tolerated = if about_health { DEFAULT_TOLERATION } else { SignedDuration::ZERO };
        return Some(added.saturating_add(tolerated).unwrap_or(Timestamp::MAX));
    }
    let shortest = bearing.iter().filter_map(|toleration| toleration.toleration_seconds).min()?;
    let tolerated = SignedDuration::from_secs(shortest.max(0));
    Some(added.saturating_add(tolerated).unwrap_or(Timestamp::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn node(json: Value) -> Node {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_silent_node_is_marked_once() {
        let quiet = node(json!({"metadata": {"name": "n"}, "status": {"conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}));
        assert_eq!(health(&quiet), Health::Ready);
        let conditions = silent_conditions(&quiet, now()).unwrap();
        let shown: Vec<_> = conditions
            .iter()
            .map(|condition| {
                format!(
                    "{}={} {}",
                    condition.type_,
                    condition.status,
                    condition.reason.as_deref().unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "Ready=Unknown NodeStatusUnknown",
                "MemoryPressure=Unknown NodeStatusNeverUpdated",
                "DiskPressure=Unknown NodeStatusNeverUpdated",
                "PIDPressure=Unknown NodeStatusNeverUpdated"
            ]
        );
        let marked = node(json!({"metadata": {"name": "n"}, "status": {"conditions": conditions}}));
        assert_eq!(health(&marked), Health::Unreachable);
        assert_eq!(silent_conditions(&marked, now()), None);
    }

    #[test]
    fn taints_follow_health_and_leave_others_alone() {
        let mut gpu = node(json!({"metadata": {}, "spec": {"unschedulable": true,
            "taints": [{"key": "gpu", "effect": "NoSchedule"}]}}));
        let keys = |taints: &[Taint]| -> Vec<String> {
            taints.iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
        };
        let lost = taints(&gpu, Health::Unreachable, now()).unwrap();
        assert_eq!(
            keys(&lost),
            [
                "gpu:NoSchedule",
                "node.kubernetes.io/unschedulable:NoSchedule",
                "node.kubernetes.io/unreachable:NoSchedule",
                "node.kubernetes.io/unreachable:NoExecute"
            ]
        );
        gpu.spec.as_mut().unwrap().taints = Some(lost);
        assert_eq!(taints(&gpu, Health::Unreachable, now()), None);
        gpu.spec.as_mut().unwrap().unschedulable = None;
        let back = taints(&gpu, Health::Ready, now()).unwrap();
        assert_eq!(keys(&back), ["gpu:NoSchedule"]);
    }

    #[test]
    fn pods_leave_when_their_patience_ends() {
        let seconds = |tolerations: Value, key: &str| {
            let node = node(json!({"metadata": {}, "spec": {"taints": [
                {"key": key, "effect": "NoExecute", "timeAdded": "2026-01-01T12:00:00Z"},
                {"key": "x", "effect": "NoSchedule"}]}}));
            let pod = json!({"spec": {"tolerations": tolerations}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            eviction(&node, &pod).map(|at| at.duration_since(now()).as_secs())
        };
        let cases = [
            ("says nothing, not ready", json!([]), UNREACHABLE, Some(300)),
            ("says nothing, other taint", json!([]), "maintenance", Some(0)),
            (
                "for a minute",
                json!([{"key": UNREACHABLE, "operator": "Exists",
                "tolerationSeconds": 60}]),
                UNREACHABLE,
                Some(60),
            ),
            (
                "the shortest counts",
                json!([{"operator": "Exists", "tolerationSeconds": 90},
                {"key": UNREACHABLE, "operator": "Exists", "tolerationSeconds": 60}]),
                UNREACHABLE,
                Some(60),
            ),
            ("for ever", json!([{"operator": "Exists"}]), UNREACHABLE, None),
            (
                "another effect",
                json!([{"operator": "Exists", "effect": "NoSchedule"}]),
                "maintenance",
                Some(0),
            ),
        ];
        for (name, tolerations, key, expected) in cases {
            assert_eq!(seconds(tolerations, key), expected, "{name}");
        }
        let healthy = node(json!({"metadata": {}, "spec": {}}));
        assert_eq!(eviction(&healthy, &Pod::default()), None);
    }
}
