//! Placement as data.

use super::*;
use serde_json::{Value, json};

/// A node from words: `n1 cpu=4 memory=8Gi pods=10 zone=a taint=gpu closed`.
fn node(words: &str) -> Node {
    let mut words = words.split(' ');
    let mut json = json!({"metadata": {"name": words.next().unwrap(), "labels": {}},
        "spec": {}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}});
    for word in words {
        match word.split_once('=') {
            Some((key @ ("cpu" | "memory" | "pods" | "gpu"), amount)) => {
                json["status"]["allocatable"][key] = json!(amount);
            }
            Some(("taint", key)) => {
                json["spec"]["taints"] = json!([{"key": key, "effect": "NoSchedule"}]);
            }
            Some((key, value)) => json["metadata"]["labels"][key] = json!(value),
            None => json["spec"]["unschedulable"] = json!(true),
        }
    }
    serde_json::from_value(json).unwrap()
}

/// A pod from words: `p1 cpu=500m owner=web zone=a bears=gpu port=80 on=n1`.
fn pod(words: &str) -> Pod {
    let mut words = words.split(' ');
    let name = words.next().unwrap();
    let mut container = json!({"name": "c", "resources": {"requests": {}}});
    let mut json = json!({"metadata": {"name": name, "uid": name}, "spec": {}});
    for word in words {
        let (key, value) = word.split_once('=').unwrap();
        match key {
            "owner" => {
                json["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "X",
                    "name": value, "uid": value, "controller": true}]);
            }
            "bears" => json["spec"]["tolerations"] = json!([{"key": value, "operator": "Exists"}]),
            "port" => {
                let port: i32 = value.parse().unwrap();
                container["ports"] = json!([{"containerPort": port, "hostPort": port}]);
            }
            "on" => json["spec"]["nodeName"] = json!(value),
            "zone" => json["spec"]["nodeSelector"] = json!({"zone": value}),
            "zones" => {
                let values: Vec<&str> = value.split(',').collect();
                let terms = json!([{"matchExpressions":
                    [{"key": "zone", "operator": "In", "values": values}]}]);
                json["spec"]["affinity"] = json!({"nodeAffinity":
                    {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
            }
            resource => container["resources"]["requests"][resource] = json!(value),
        }
    }
    json["spec"]["containers"] = json!([container]);
    serde_json::from_value(json).unwrap()
}

fn ledger(nodes: &[&str], pods: &[&str]) -> Ledger {
    let mut ledger = Ledger::default();
    // Pods may be seen before their nodes.
    for words in pods {
        ledger.observe(None, Some(&pod(words)));
    }
    for words in nodes {
        ledger.set_node(&node(words));
    }
    ledger
}

#[test]
fn chooses_a_node_or_says_why_not() {
    let three: &[&str] = &["n1", "n2", "n3"];
    let cases: &[(&str, &[&str], &[&str], &str, &str)] = &[
        ("no nodes", &[], &[], "p cpu=1", "no nodes available to schedule pods"),
        ("the emptiest", three, &["a on=n1 cpu=2", "b on=n3 cpu=1"], "p cpu=1", "n2"),
        (
            "memory counts too",
            three,
            &["a on=n1 memory=4Gi", "b on=n2 memory=2Gi", "c on=n3 cpu=1"],
            "p cpu=1",
            "n2",
        ),
        (
            "spread of one owner's pods",
            three,
            &["a on=n1 owner=web", "b on=n2 owner=web", "c on=n3 cpu=1"],
            "p owner=web",
            "n3",
        ),
        ("pods without requests are spread", three, &["a on=n1", "b on=n2"], "p", "n3"),
        ("no room", three, &[], "p cpu=5", "0/3 nodes are available: 3 Insufficient cpu."),
        (
            "no room of several kinds",
            &["n1", "n2 cpu=9"],
            &["a on=n2 cpu=8"],
            "p cpu=5 memory=9Gi",
            "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.",
        ),
        (
            "an unknown resource",
            three,
            &[],
            "p gpu=1",
            "0/3 nodes are available: 3 Insufficient gpu.",
        ),
        ("the one with the resource", &["n1", "n2 gpu=2"], &[], "p gpu=1", "n2"),
        (
            "too many pods",
            &["n1 pods=1"],
            &["a on=n1"],
            "p",
            "0/1 nodes are available: 1 Too many pods.",
        ),
        (
            "closed and tainted",
            &["n1 closed", "n2 taint=gpu", "n3 cpu=1"],
            &[],
            "p cpu=2",
            "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), \
             1 node(s) were unschedulable.",
        ),
        ("a taint that is borne", &["n1 taint=gpu"], &[], "p bears=gpu", "n1"),
        ("node labels", &["n1 zone=a", "n2 zone=b"], &[], "p zone=b", "n2"),
        ("node affinity", &["n1 zone=a", "n2 zone=b", "n3"], &[], "p zones=b,c", "n2"),
        (
            "no such label",
            &["n1 zone=a"],
            &[],
            "p zone=b",
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        ),
        ("ports on the node", &["n1", "n2"], &["a on=n1 port=80"], "p port=80", "n2"),
        (
            "no free port",
            &["n1"],
            &["a on=n1 port=80"],
            "p port=80",
            "0/1 nodes are available: \
            1 node(s) didn't have free ports for the requested pod ports.",
        ),
    ];
    for (name, nodes, pods, words, expected) in cases {
        let ledger = ledger(nodes, pods);
        let requirements = PodRequirements::of(&pod(words));
        let found = ledger.choose(&requirements).map_or_else(|refusal| refusal, str::to_owned);
        assert_eq!(found, *expected, "{name}");
    }
}

#[test]
fn room_comes_back_when_pods_end_or_go() {
    let mut ledger = ledger(&["n1 cpu=1"], &["a on=n1 cpu=1"]);
    let requirements = PodRequirements::of(&pod("p cpu=1"));
    assert!(ledger.choose(&requirements).is_err());
    let mut ended: Pod = pod("a on=n1 cpu=1");
    ended.status.phase = crate::controllers::pod::Phase::Succeeded;
    ledger.observe(Some(&pod("a on=n1 cpu=1")), Some(&ended));
    assert!(ledger.choose(&requirements).is_ok());
    ledger.place(&pod("p cpu=1"), "n1");
    ledger.observe(None, Some(&pod("p cpu=1")));
    assert!(ledger.choose(&requirements).is_err(), "placed, though the watch does not show it yet");
    ledger.observe(Some(&pod("p cpu=1")), None);
    assert_eq!(ledger.choose(&requirements), Ok("n1"));
}

#[test]
fn a_thousand_equal_pods_are_spread_evenly() {
    let names: Vec<String> = (0..10).map(|number| format!("n{number} cpu=100 pods=200")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut ledger = ledger(&names, &[]);
    for number in 0..1000 {
        let pod = pod(&format!("p{number} cpu=100m owner=web{}", number % 7));
        let node = ledger.choose(&PodRequirements::of(&pod)).unwrap().to_owned();
        ledger.place(&pod, &node);
    }
    let counts: Vec<i64> = ledger.nodes.values().map(|place| place.pods).collect();
    assert_eq!(counts, [100; 10]);
}

#[test]
fn requests_count_init_containers_and_overhead() {
    let json: Value = json!({"spec": {
        "containers": [{"name": "a", "resources": {"requests": {"cpu": "100m", "memory": "1Mi"}}},
            {"name": "b", "resources": {"requests": {"cpu": "200m"}}}],
        "initContainers": [
            {"name": "i", "resources": {"requests": {"cpu": "1", "memory": "rubbish"}}},
            {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}}],
        "overhead": {"cpu": "10m"}}});
    let requirements = PodRequirements::of(&serde_json::from_value(json).unwrap());
    assert_eq!(
        (requirements.requests.get("cpu"), requirements.requests.get("memory")),
        (1010, 1 << 20)
    );
}
