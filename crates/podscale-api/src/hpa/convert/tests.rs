//! Every line of `testdata/hpa-conversion.jsonl` was converted by Kubernetes 1.37.

use serde_json::{Value, json};

use super::*;

/// Annotations hold JSON texts; those are compared by what they say.
fn opened(mut object: Value) -> Value {
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        for text in annotations.values_mut() {
            if let Some(inner) = text.as_str().and_then(|text| serde_json::from_str(text).ok()) {
                *text = inner;
            }
        }
    }
    object
}

#[test]
fn conversions_are_those_of_kubernetes() {
    let cases = include_str!("../../../testdata/hpa-conversion.jsonl");
    let mut failures = Vec::new();
    for (index, line) in cases.lines().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let version =
            Version::of(&format!("autoscaling/{}", case["to"].as_str().unwrap())).unwrap();
        let expected = &case["expect"]["result"];
        let got = write(&read(&case["object"]).unwrap(), version).unwrap();
        if got != *expected {
            let note =
                if opened(got.clone()) == opened(expected.clone()) { " (order)" } else { "" };
            failures.push(format!(
                "line {}{note}\n  given    {}\n  expected {expected}\n  got      {got}",
                index + 1,
                case["object"],
            ));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

fn everything() -> Value {
    json!({
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"kept": "yes"}},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
            "minReplicas": 2,
            "maxReplicas": 9,
            "metrics": [
                {"type": "Pods", "pods": {"metric": {"name": "qps"},
                    "target": {"type": "AverageValue", "averageValue": "10"}}},
                {"type": "Object", "object": {"metric": {"name": "rps"},
                    "describedObject": {"kind": "Service", "name": "web"},
                    "target": {"type": "Value", "value": "2k"}}},
                {"type": "External", "external": {"metric": {"name": "queue"},
                    "target": {"type": "AverageValue", "averageValue": "30"}}},
                {"type": "ContainerResource", "containerResource": {"name": "memory",
                    "container": "app", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 70}}},
            ],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 5, "selectPolicy": "Min",
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
                    "tolerance": "50m"},
                "scaleDown": {"selectPolicy": "Disabled",
                    "policies": [{"type": "Percent", "value": 10, "periodSeconds": 30}]},
            },
        },
        "status": {"currentReplicas": 3, "desiredReplicas": 4,
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu",
                    "current": {"averageUtilization": 80, "averageValue": "800m"}}},
            ],
            "conditions": [{"type": "AbleToScale", "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    })
}

#[test]
fn older_versions_lose_nothing_on_the_way() {
    let hpa = read(&everything()).unwrap();
    for version in [Version::V1, Version::V2beta1, Version::V2] {
        let there = write(&hpa, version).unwrap();
        assert_eq!(there["apiVersion"], version.api_version());
        assert_eq!(read(&there).unwrap(), hpa, "{version:?}");
    }
    let there = write(&hpa, Version::V2beta2).unwrap();
    assert_eq!(there.pointer("/spec/behavior/scaleUp/tolerance"), None);
}

#[test]
fn other_objects_are_refused() {
    let refusal = |object| read(&object).unwrap_err().to_string();
    assert_eq!(
        refusal(json!({"apiVersion": "autoscaling/v3", "kind": "HorizontalPodAutoscaler"})),
        "\"autoscaling/v3\" \"HorizontalPodAutoscaler\" is no HorizontalPodAutoscaler of a known version"
    );
    assert!(
        refusal(json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "spec": {"maxReplicas": "many"}}))
        .contains("invalid type")
    );
}
