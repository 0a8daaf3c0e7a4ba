//! Random autoscalers of both versions, and ways to spoil them.

use super::super::timelines::random::Random;
use serde_json::{Value, json};

/// An autoscaler that an API server accepts.
pub fn autoscaler(seed: u64) -> Value {
    let mut random = Random::new(seed);
    let target = random.pick(&[
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("v1", "ReplicationController"),
        ("argoproj.io/v1alpha1", "Rollout"),
    ]);
    let mut object = json!({"kind": "HorizontalPodAutoscaler", "metadata": {"name": format!("h{seed}")},
        "spec": {"maxReplicas": random.between(5, 20),
            "scaleTargetRef": {"apiVersion": target.0, "kind": target.1, "name": "web"}}});
    if random.percent(50) {
        object["spec"]["minReplicas"] = random.between(1, 5).into();
    }
    if random.percent(30) {
        object["metadata"]["annotations"] = json!({"kept": "<yes> & \"no\""});
    }
    if random.percent(60) {
        object["apiVersion"] = "autoscaling/v2".into();
        let metrics: Vec<Value> = (0..random.below(4)).map(|_| metric(&mut random)).collect();
        if !metrics.is_empty() {
            object["spec"]["metrics"] = metrics.into();
        }
        if random.percent(60) {
            object["spec"]["behavior"] = behavior(&mut random);
        }
        if random.percent(10) {
            object["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"] =
                "[]".into();
        }
    } else {
        object["apiVersion"] = "autoscaling/v1".into();
        if random.percent(60) {
            object["spec"]["targetCPUUtilizationPercentage"] = random.between(1, 120).into();
        }
        annotate(&mut random, &mut object);
    }
    object
}

/// Says in annotations what version 1 cannot say, sometimes in words that cannot be read.
fn annotate(random: &mut Random, object: &mut Value) {
    let metrics = random.pick(&[
        r#"[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"10"}}]"#,
        r#"[{"type":"Object","object":{"target":{"kind":"Service","name":"web"},"metricName":"rps","targetValue":"2k"}}]"#,
        r#"[{"type":"Object","object":{"target":{"kind":"Service","name":"web"},"metricName":"rps","targetValue":"0","averageValue":"3"}}]"#,
        r#"[{"TYPE":"External","external":{"MetricName":"queue","metricSelector":{"matchLabels":{"Name":"x"}},"targetAverageValue":"30"}}]"#,
        r#"[{"type":"ContainerResource","containerResource":{"name":"cpu","container":"app","targetAverageUtilization":50}}]"#,
        r#"[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1.5Gi"}}]"#,
        r#"[{"type":"Nonsense"}]"#,
        r#"[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"x"}}]"#,
        "[]",
        "[",
        "null",
        "{}",
    ]);
    let behavior = random.pick(&[
        r#"{"ScaleUp":{"StabilizationWindowSeconds":5,"SelectPolicy":"Min","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},"ScaleDown":null}"#,
        r#"{"scaleDown":{"selectPolicy":"Disabled","policies":[{"type":"Percent","value":10,"periodSeconds":60}],"tolerance":"50m"}}"#,
        r#"{"ScaleUp":{"SelectPolicy":"Max"}}"#,
        r#"{"ScaleUp":{"Policies":[]}}"#,
        "{}",
        "nonsense",
    ]);
    for (name, text) in [("metrics", metrics), ("behavior", behavior)] {
        if random.percent(50) {
            object["metadata"]["annotations"][format!("autoscaling.alpha.kubernetes.io/{name}")] =
                text.into();
        }
    }
}

fn metric(random: &mut Random) -> Value {
    let value = random.pick(&["1", "100m", "2k", "1.5", "1Gi", "0.0001", "3e2"]);
    let amount = random.pick(&[("Value", "value"), ("AverageValue", "averageValue")]);
    let by_amount = json!({"type": amount.0, amount.1: value});
    let average = json!({"type": random.pick(&["AverageValue", "Value"]), "averageValue": value});
    let of_resource = if random.percent(50) {
        json!({"type": "Utilization", "averageUtilization": random.between(1, 200)})
    } else {
        average.clone()
    };
    let mut identifier =
        json!({"name": random.pick(&["qps", "queue.depth", "a/b"]).replace('/', "_")});
    if random.percent(30) {
        identifier["selector"] = json!({"matchLabels": {"app": "x"},
            "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]});
    }
    match random.below(5) {
        0 => {
            json!({"type": "Resource", "resource": {"name": random.pick(&["cpu", "memory"]), "target": of_resource}})
        }
        1 => json!({"type": "Pods", "pods": {"metric": identifier, "target": average}}),
        2 => json!({"type": "Object", "object": {"metric": identifier, "target": by_amount,
            "describedObject": {"kind": "Service", "name": "web", "apiVersion": "v1"}}}),
        3 => json!({"type": "External", "external": {"metric": identifier, "target": by_amount}}),
        _ => json!({"type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "app", "target": of_resource}}),
    }
}

fn behavior(random: &mut Random) -> Value {
    let mut behavior = json!({});
    for direction in ["scaleUp", "scaleDown"] {
        if random.percent(70) {
            let mut rules = json!({});
            if random.percent(50) {
                rules["stabilizationWindowSeconds"] = random.between(0, 3600).into();
            }
            if random.percent(50) {
                rules["selectPolicy"] = random.pick(&["Max", "Min", "Disabled"]).into();
            }
            if random.percent(50) {
                rules["policies"] = json!([{"type": random.pick(&["Pods", "Percent"]),
                    "value": random.between(1, 100), "periodSeconds": random.between(1, 1800)}]);
            }
            if random.percent(30) {
                rules["tolerance"] = random.pick(&["0", "50m", "0.2", "1"]).into();
            }
            behavior[direction] = rules;
        }
    }
    behavior
}

/// Breaks something that is there, or adds something that must not be.
pub fn spoil(seed: u64, object: &mut Value) {
    let mut random = Random::new(seed ^ 0xBAD);
    let wrong = [
        ("/spec/maxReplicas", json!(0)),
        ("/spec/maxReplicas", json!(-3)),
        ("/spec/minReplicas", json!(100)),
        ("/spec/minReplicas", json!(-1)),
        ("/spec/minReplicas", json!(0)),
        ("/spec/scaleTargetRef/kind", json!("")),
        ("/spec/scaleTargetRef/name", json!("a/b%")),
        ("/spec/scaleTargetRef/name", json!("..")),
        ("/spec/scaleTargetRef/apiVersion", json!("a/b/c")),
        ("/spec/scaleTargetRef/apiVersion", json!("v2")),
        ("/spec/targetCPUUtilizationPercentage", json!(0)),
        ("/spec/metrics", json!([{"type": "Resource"}])),
        ("/spec/metrics", json!([{"type": ""}])),
        (
            "/spec/metrics",
            json!([{"type": "Pods", "resource": {"name": "", "target": {"type": ""}}}]),
        ),
        (
            "/spec/metrics",
            json!([{"type": "Pods", "pods": {"metric": {"name": "%"}, "target": {"type": "Value", "value": "-1"}},
            "external": {"metric": {"name": "q"}, "target": {"type": "Value", "value": "1", "averageValue": "1"}}}]),
        ),
        (
            "/spec/metrics",
            json!([{"type": "Object", "object": {"metric": {"name": ""}, "target": {"type": "Odd"},
            "describedObject": {"kind": "", "name": "", "apiVersion": "a/b/c"}}}]),
        ),
        (
            "/spec/metrics",
            json!([{"type": "Resource", "resource": {"name": "cpu", "target":
            {"type": "Utilization", "averageUtilization": 0, "averageValue": "0"}}}]),
        ),
        (
            "/spec/metrics",
            json!([{"type": "ContainerResource", "containerResource": {"name": "example.com/gpu", "container": "A_b",
            "target": {"type": "Utilization", "averageUtilization": 50}}}]),
        ),
        (
            "/spec/metrics",
            json!([{"type": "ContainerResource", "containerResource": {"name": "gpu", "container": "",
            "target": {"type": "Utilization"}}}]),
        ),
        (
            "/spec/behavior",
            json!({"scaleUp": {"stabilizationWindowSeconds": -1, "selectPolicy": "Odd", "policies": []}}),
        ),
        (
            "/spec/behavior",
            json!({"scaleDown": {"stabilizationWindowSeconds": 3601, "tolerance": "-1",
            "policies": [{"type": "Odd", "value": 0, "periodSeconds": 1801}, {"type": "Pods", "value": -1, "periodSeconds": 0}]}}),
        ),
        ("/metadata/name", json!("Upper_Case")),
        ("/metadata/labels", json!({"ok": "not ok!"})),
    ];
    for _ in 0..=random.below(2) {
        let (pointer, value) = random.pick(&wrong);
        let v1 = object["apiVersion"] == "autoscaling/v1";
        let of_v2 = ["/spec/metrics", "/spec/behavior"].contains(&pointer);
        // Fields of the other version would only be unknown.
        if (v1 && of_v2) || (!v1 && pointer.ends_with("Percentage")) {
            continue;
        }
        let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
        let parent = object.pointer_mut(parent).expect("a part of every autoscaler");
        parent[field] = value;
    }
}

/// A status as a controller writes it.
pub fn status(seed: u64) -> Value {
    let mut random = Random::new(seed ^ 0x57A7);
    let mut status = json!({"currentReplicas": random.between(0, 9), "desiredReplicas": random.between(0, 9),
        "observedGeneration": 1,
        "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "ReadyForNewScale", "message": "<ready> & able"}]});
    let current = [
        json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7, "averageValue": "100m"}}}),
        json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "1"}}}),
        json!({"type": "Pods", "pods": {"metric": {"name": "qps"}, "current": {"averageValue": "1500m"}}}),
        json!({"type": "External", "external": {"metric": {"name": "q", "selector": {"matchLabels": {"a": "b"}}}, "current": {"value": "3"}}}),
        json!({"type": ""}),
    ];
    let shown: Vec<Value> = (0..random.below(4)).map(|_| random.pick(&current)).collect();
    status["currentMetrics"] = if shown.is_empty() { Value::Null } else { shown.into() };
    status
}
