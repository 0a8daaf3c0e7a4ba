use super::*;
use crate::convert::{convert, form};

fn object() -> Value {
    json!({"apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": "web", "finalizers": [FINALIZER], "labels": {NAME_LABEL: "web"},
            "annotations": {"autoscaling.keda.sh/paused-scale-in": "true", "team": "shop"}},
        "spec": {"scaleTargetRef": {"name": "web"}, "minReplicaCount": 0, "maxReplicaCount": 9,
            "cooldownPeriod": 60, "pollingInterval": 10,
            "fallback": {"failureThreshold": 3, "replicas": 2},
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior":
                {"scaleDown": {"stabilizationWindowSeconds": 60}}}},
            "triggers": [
                {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}},
                {"type": "prometheus", "name": "rate", "metadata": {"serverAddress": "http://p:9090",
                    "query": "sum(up)", "threshold": "10", "activationThreshold": "2"}},
                {"type": "cron", "metadata": {"timezone": "Europe/Berlin", "start": "0 8 * * *",
                    "end": "0 18 * * *", "desiredReplicas": "4"}},
                {"type": "redis", "metadata": {"listName": "jobs"}}]}})
}

fn to(object: &Value, name: &str) -> (Value, Vec<String>) {
    let written = convert(object, form(name).expect("a form")).expect("an autoscaler");
    let written = written.expect("another form");
    (written.object, written.losses.iter().map(|loss| loss.field.clone()).collect())
}

#[test]
fn a_pod_autoscaler_can_say_most_of_it() {
    let (pa, lost) = to(&object(), "pa");
    assert_eq!(lost, ["spec.triggers[3]"]);
    assert_eq!(pa["metadata"], json!({"name": "web", "annotations": {"team": "shop"}}));
    let query = json!({"server": "http://p:9090", "query": "(sum(up)) or vector(0)",
        "target": {"type": "AverageValue", "averageValue": "10"}});
    let expected = json!({
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1, "maxReplicas": 9, "syncPeriod": "10s",
        "metrics": [
            {"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "Prometheus", "name": "rate", "activation": "2", "prometheus": query}],
        "schedules": [{"name": "cron-0", "timeZone": "Europe/Berlin", "start": "0 8 * * *",
            "end": "0 18 * * *", "minReplicas": 4}],
        "scaleToZero": {"idleReplicas": 0, "coolDown": "1m", "zeroByOthers": "Wake"},
        "fallback": {"replicas": 2, "after": "30s"},
        "pause": {"scaleDown": {}},
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
    });
    assert_eq!(pa["spec"], expected);
    let (back, lost) = to(&pa, "so");
    assert_eq!(lost, [""; 0]);
    let spec = &back["spec"];
    for (field, expected) in [
        ("minReplicaCount", json!(0)),
        ("maxReplicaCount", json!(9)),
        ("cooldownPeriod", json!(60)),
        ("pollingInterval", json!(10)),
        ("scaleTargetRef", json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"})),
    ] {
        assert_eq!(spec[field], expected, "{field}");
    }
    let types: Vec<&Value> =
        spec["triggers"].as_array().expect("triggers").iter().map(|one| &one["type"]).collect();
    assert_eq!(types, ["cpu", "cron", "prometheus"]);
    assert_eq!(spec["triggers"][2]["metadata"]["query"], "sum(up)");
    let paused = &back["metadata"]["annotations"]["autoscaling.keda.sh/paused-scale-in"];
    assert_eq!(paused, "true");
}

#[test]
fn an_hpa_can_say_less() {
    let (hpa, lost) = to(&object(), "hpa.v2");
    assert_eq!(hpa["spec"]["metrics"].as_array().map(Vec::len), Some(1));
    // As the object names them.
    for field in [
        "spec.triggers[1]",
        "spec.triggers[2]",
        "spec.triggers[3]",
        "spec.minReplicaCount",
        "spec.cooldownPeriod",
        "spec.pollingInterval",
        "spec.fallback.replicas",
        "spec.fallback.failureThreshold",
        "metadata.annotations[autoscaling.keda.sh/paused-scale-in]",
    ] {
        assert!(lost.contains(&field.to_owned()), "{field}: {lost:?}");
    }
    assert_eq!(lost.len(), 9, "{lost:?}");
    let (back, lost) = to(&hpa, "so");
    assert_eq!(lost, [""; 0]);
    assert_eq!(back["spec"]["triggers"][0]["metadata"]["value"], "60");
    assert_eq!(back["spec"]["minReplicaCount"], 1);
}

#[test]
fn what_has_nothing_to_go_by_is_refused() {
    let mut queue = object();
    queue["spec"]["triggers"] = json!([{"type": "redis", "metadata": {}}]);
    let error = convert(&queue, form("pa").expect("a form")).expect_err("no metric");
    assert_eq!(error.to_string(), "none of its triggers can be a metric of another kind: redis");
    let pods = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Pods", "pods": {"metric": {"name": "rps"},
                "target": {"type": "AverageValue", "averageValue": "1"}}}]}});
    assert!(convert(&pods, &ScaledObjects).is_err());
}
