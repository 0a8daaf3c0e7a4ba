//! Steps of stateful sets as data.

use super::*;
use serde_json::json;

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

/// A set from words: `3 parallel partition=1 ondelete start=5 unavailable=2 minready=10`.
fn set(words: &str) -> StatefulSet {
    let mut json = json!({"metadata": {"name": "db", "namespace": "a", "uid": "s"},
        "spec": {"selector": {}, "template": {}}});
    for word in words.split(' ') {
        let spec = &mut json["spec"];
        let number = |text: &str| json!(text.parse::<i32>().unwrap());
        match word.split_once('=') {
            Some(("partition", n)) => {
                spec["updateStrategy"]["rollingUpdate"]["partition"] = number(n);
            }
            Some(("unavailable", n)) => {
                spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = number(n);
            }
            Some(("start", n)) => spec["ordinals"]["start"] = number(n),
            Some(("minready", n)) => spec["minReadySeconds"] = number(n),
            _ if word == "parallel" => spec["podManagementPolicy"] = json!("Parallel"),
            _ if word == "ondelete" => spec["updateStrategy"] = json!({"type": "OnDelete"}),
            _ => spec["replicas"] = number(word),
        }
    }
    serde_json::from_value(json).unwrap()
}

/// Pods from words such as `0:new 1:old,pending 2:old,ends 3:old,failed`.
fn pods(words: &str) -> Vec<Arc<Pod>> {
    let words = words.split(' ').filter(|word| !word.is_empty());
    words
        .map(|word| {
            let (number, traits) = word.split_once(':').unwrap();
            let name = format!("db-{number}");
            let mut json = json!({"metadata": {"name": name, "uid": name, "labels": {}},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True",
                    "lastTransitionTime": "2026-01-01T11:59:55Z"}]}});
            for word in traits.split(',') {
                match word {
                    "pending" => json["status"] = json!({"phase": "Pending"}),
                    "failed" => json["status"] = json!({"phase": "Failed"}),
                    "ends" => json["metadata"]["deletionTimestamp"] = json!(now().to_string()),
                    revision => {
                        json["metadata"]["labels"]["controller-revision-hash"] = json!(revision);
                    }
                }
            }
            Arc::new(serde_json::from_value(json).unwrap())
        })
        .collect()
}

fn text_of(plan: &Plan) -> String {
    let words = plan.actions.iter().map(|action| match action {
        Action::Create { ordinal, from_current: false } => format!("+{ordinal}"),
        Action::Create { ordinal, from_current: true } => format!("+{ordinal} old"),
        Action::Delete(pod) => pod.name().replace("db", ""),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn decides_the_next_step() {
    let cases = [
        ("the first comes first", "3", "", "+0"),
        ("the second waits for the first", "3", "0:new,pending", ""),
        ("then it comes", "3", "0:new", "+1"),
        ("all are there", "3", "0:new 1:new 2:new", ""),
        ("all at once", "3 parallel", "", "+0 +1 +2"),
        ("all at once, one is there", "3 parallel", "1:new,pending", "+0 +2"),
        ("numbers start elsewhere", "2 start=5", "5:new", "+6"),
        ("available, not only ready", "2 minready=10", "0:new", ""),
        ("available for long enough", "2 minready=5", "0:new", "+1"),
        ("a failed pod is replaced", "2", "0:new,failed 1:new", "-0"),
        ("a failed pod that is going", "2", "0:new,failed,ends 1:new", ""),
        ("a missing pod comes back first", "2", "1:old", "+0"),
        ("scale down from the top", "1", "0:new 1:new 2:new", "-2"),
        ("scale down waits for the top to be gone", "1", "0:new 1:new 2:new,ends", ""),
        ("scale down waits for the rest to work", "1", "0:new,pending 1:new 2:new", ""),
        ("a broken pod at the top may go", "1", "0:new 1:new 2:new,pending", "-2"),
        (
            "a broken pod below blocks a broken one above",
            "1",
            "0:new 1:new,pending 2:new,pending",
            "",
        ),
        ("scale down all at once", "1 parallel", "0:new 1:new 2:new,ends 3:new", "-3 -1"),
        ("scale to nothing", "0", "0:new 1:new", "-1"),
        ("update from the top", "3", "0:old 1:old 2:old", "-2"),
        ("update waits for the pod to be gone", "3", "0:old 1:old 2:old,ends", ""),
        ("update waits for the new pod to work", "3", "0:old 1:old 2:new,pending", ""),
        ("update goes on", "3", "0:old 1:old 2:new", "-1"),
        ("update stops at the partition", "3 partition=2", "0:old 1:old 2:new", ""),
        ("below the partition old pods come back old", "3 partition=2", "1:old 2:new", "+0 old"),
        ("above the partition pods come back new", "3 partition=1", "0:old 2:new", "+1"),
        ("update several at once", "4 parallel unavailable=2", "0:old 1:old 2:old 3:old", "-3 -2"),
        ("broken ones count", "4 parallel unavailable=2", "0:old 1:old 2:old 3:new,pending", "-2"),
        ("only when someone else deletes", "2 ondelete", "0:old 1:old", ""),
        ("then it comes back new", "2 ondelete", "0:old", "+1"),
    ];
    for (name, words, pod_words, expected) in cases {
        let (set, pods) = (set(words), pods(pod_words));
        let input = Input { set: &set, pods: &pods, current: "old", update: "new", now: now() };
        assert_eq!(text_of(&plan(&input)), expected, "{name}");
    }
}

#[test]
fn reports_counts_and_completes_an_update() {
    let (set, old, new) = (set("3"), pods("0:old 1:old 2:new,pending"), pods("0:new 1:new 2:new"));
    let input = Input { set: &set, pods: &old, current: "old", update: "new", now: now() };
    let status = plan(&input).status;
    let counts = (status.replicas, status.ready_replicas, status.current_replicas);
    assert_eq!(counts, (3, Some(2), Some(2)));
    assert_eq!((status.updated_replicas, status.available_replicas), (Some(1), Some(2)));
    assert_eq!(status.current_revision.as_deref(), Some("old"));
    let status = plan(&Input { pods: &new, ..input }).status;
    assert_eq!(status.current_revision.as_deref(), Some("new"));
    assert_eq!(status.current_replicas, Some(3));
}

#[test]
fn plans_again_when_a_pod_becomes_available() {
    let (set, pods) = (set("2 minready=8"), pods("0:new"));
    let input = Input { set: &set, pods: &pods, current: "new", update: "new", now: now() };
    assert_eq!(plan(&input).after, Some(Duration::from_secs(3)));
}
