//! Random parts of autoscalers: metrics, behaviors, ranges, references to targets.

use super::random::Random;
use super::workload::Target;
use serde_json::{Value, json};

/// An autoscaler of a target.
pub fn autoscaler(name: &str, reference: Value, range: (i32, i32), metrics: Value) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name}, "spec": {"minReplicas": range.0, "maxReplicas": range.1,
            "scaleTargetRef": reference, "metrics": metrics}})
}

pub fn reference(target: &Target) -> Value {
    json!({"apiVersion": target.kind.version(), "kind": target.kind.name(), "name": target.name})
}

pub fn cpu(utilization: i32) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": utilization}}})
}

pub fn pods_metric(name: &str, average: &str) -> Value {
    json!({"type": "Pods", "pods": {"metric": {"name": name},
        "target": {"type": "AverageValue", "averageValue": average}}})
}

pub fn object_metric(kind: &str, name: &str, target: Value) -> Value {
    json!({"type": "Object", "object": {"metric": {"name": "hits"},
        "describedObject": {"apiVersion": "v1", "kind": kind, "name": name}, "target": target}})
}

pub fn external(name: &str, target: Value) -> Value {
    json!({"type": "External", "external": {"metric": {"name": name}, "target": target}})
}

pub fn value(amount: &str) -> Value {
    json!({"type": "Value", "value": amount})
}

pub fn average(amount: &str) -> Value {
    json!({"type": "AverageValue", "averageValue": amount})
}

/// The reference of an autoscaler to its target, sometimes in lower case or with another version.
pub fn random_reference(random: &mut Random, target: &Target) -> Value {
    let mut reference = reference(target);
    match random.below(10) {
        0 => reference["kind"] = json!(target.kind.name().to_lowercase()),
        1 => {
            // Any version of the group leads to the one that is served.
            let group = target.kind.version().split_once('/').map(|(group, _)| group);
            reference["apiVersion"] = json!(match group {
                Some(group) => format!("{group}/v9"),
                None => "v9".to_owned(),
            });
        }
        _ => {}
    }
    reference
}

/// References that lead nowhere.
pub fn lost_reference(random: &mut Random) -> Value {
    let of =
        |version: &str, kind: &str| json!({"apiVersion": version, "kind": kind, "name": "lost"});
    random.pick(&[
        of("apps/v1", "Deployment"),
        of("widgets.test.podscale.dev/v1", "Widget"),
        of("gadgets.test.podscale.dev/v1", "Gadget"),
        of("test.podscale.dev/v1", "Unicorn"),
        of("apps/v1", "Unicorn"),
        of("v1", "Pod"),
        of("v1", "ConfigMap"),
        of("apps/v1", "DaemonSet"),
        of("v1", "Deployment"),
        of("", "Deployment"),
        of("apps", "Deployment"),
    ])
}

/// Every size that occurs, but zero and one that somebody sets by hand.
pub const WHOLE_RANGE: (i32, i32) = (1, 10);

/// All have a size in common: two autoscalers of one target would never come to rest otherwise.
pub fn random_range(random: &mut Random) -> (i32, i32) {
    random.pick(&[(1, 6), (1, 8), (2, 5), (1, 10), (3, 3), (1, 4), (3, 9)])
}

/// One to three metrics of a target.
pub fn random_metrics(random: &mut Random, target: &Target) -> Value {
    let count = random.pick(&[1, 1, 1, 2, 2, 3]);
    let metrics: Vec<Value> = (0..count).map(|_| random_metric(random, target)).collect();
    json!(metrics)
}

fn random_metric(random: &mut Random, target: &Target) -> Value {
    let name = &target.name;
    match random.below(14) {
        0..=2 => cpu(random.pick(&[50, 50, 80, 200])),
        3 => json!({"type": "Resource", "resource": {"name": "cpu", "target": average("50m")}}),
        4 if random.percent(20) => json!({"type": "Resource", "resource": {
            "name": "example.com/gpu", "target": average("1")}}),
        4 => json!({"type": "Resource", "resource": {"name": "memory", "target":
            random.pick(&[average("32Mi"), json!({"type": "Utilization", "averageUtilization": 50})])}}),
        5 => json!({"type": "ContainerResource", "containerResource": {"name": "cpu",
            "container": random.pick(&["app", "sidecar"]),
            "target": random.pick(&[average("50m"),
                json!({"type": "Utilization", "averageUtilization": 50})])}}),
        6 | 7 => {
            let mut metric = pods_metric("rps", random.pick(&["10", "500m", "3"]));
            if random.percent(20) {
                metric["pods"]["metric"]["selector"] = json!({"matchLabels": {"verb": "GET"}});
            }
            metric
        }
        8 => object_metric("Service", name, random.pick(&[value("10"), average("5")])),
        9 => {
            let kind = random.pick(&["Service", "service", "Pod", "Namespace", "Unicorn"]);
            let targets = [
                value("10"),
                average("5"),
                // The type does not match the field.
                json!({"type": "Value", "averageValue": "5"}),
                json!({"type": "AverageValue", "value": "10"}),
            ];
            object_metric(kind, name, random.pick(&targets))
        }
        10 | 11 => external(&format!("queue-{name}"), average(random.pick(&["1", "10"]))),
        12 => external("shared", random.pick(&[value("10"), average("4")])),
        _ => {
            let mut metric = external("shared", average("2"));
            metric["external"]["metric"]["selector"] = random.pick(&[
                json!({"matchLabels": {"shard": "s0"}}),
                json!({"matchExpressions": [{"key": "shard", "operator": "NotIn", "values": ["s0"]}]}),
                json!({"matchExpressions": [{"key": "shard", "operator": "Exists"}]}),
            ]);
            metric
        }
    }
}

/// A behavior whose windows are either nothing or longer than any timeline.
pub fn random_behavior(random: &mut Random) -> Value {
    let rules = |random: &mut Random| {
        let policy = |random: &mut Random| {
            json!({"type": random.pick(&["Pods", "Percent"]), "value": random.pick(&[1, 2, 50, 100]),
                "periodSeconds": 1800})
        };
        let mut rules = json!({});
        if random.percent(60) {
            let count = random.between(1, 2);
            let policies: Vec<Value> = (0..count).map(|_| policy(random)).collect();
            rules["policies"] = json!(policies);
        }
        if random.percent(50) {
            rules["selectPolicy"] = json!(random.pick(&["Max", "Min", "Disabled"]));
        }
        if random.percent(60) {
            rules["stabilizationWindowSeconds"] = json!(random.pick(&[0, 0, 1800]));
        }
        if random.percent(20) {
            rules["tolerance"] = json!(random.pick(&["0", "300m", "500m"]));
        }
        rules
    };
    let mut behavior = json!({});
    if random.percent(70) {
        behavior["scaleUp"] = rules(random);
    }
    if random.percent(70) {
        behavior["scaleDown"] = rules(random);
    }
    behavior
}
