//! The same for HorizontalPodAutoscalers and PodAutoscalers.

use super::*;
use podscale_api::pod_autoscaler::{self, crd};

const PAS: &str = "/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers";

/// An HPA with everything in it, of a target that is not there.
fn whole_hpa(name: &str) -> Value {
    let target = |kind: &str, field: &str, value: Value| json!({"type": kind, field: value});
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {
            "minReplicas": 3, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": target("Utilization", "averageUtilization", json!(80))}},
                {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "c",
                    "target": target("AverageValue", "averageValue", json!("1Gi"))}},
                {"type": "Pods", "pods": {"metric": {"name": "hits"},
                    "target": target("AverageValue", "averageValue", json!("100"))}},
                {"type": "Object", "object": {"metric": {"name": "hits"},
                    "describedObject": {"kind": "Service", "name": "front"},
                    "target": target("Value", "value", json!("5k"))}},
                {"type": "External", "external": {
                    "metric": {"name": "queue", "selector": {"matchLabels": {"queue": "orders"}}},
                    "target": target("AverageValue", "averageValue", json!("30"))}}
            ],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 5, "selectPolicy": "Min", "tolerance": "50m",
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]},
                "scaleDown": {"policies": [{"type": "Percent", "value": 10, "periodSeconds": 30}]}
            }
        },
    })
}

/// A PodAutoscaler with everything in it that does not keep it from deciding.
fn whole_pa(name: &str) -> Value {
    let mut object = whole_hpa(name);
    object["apiVersion"] = pod_autoscaler::API_VERSION.into();
    object["kind"] = pod_autoscaler::KIND.into();
    let spec = &mut object["spec"];
    let metrics = spec["metrics"].as_array_mut().expect("metrics");
    metrics.push(json!({"type": "Prometheus", "maxAge": "90s", "onMissing": "LastValue",
        "prometheus": {"query": "up", "target": {"type": "Value", "value": "5"}}}));
    metrics[0]["utilizationOf"] = "Limits".into();
    metrics[2]["aggregate"] = "P95".into();
    metrics[2]["watermarks"] = json!({"low": "50", "high": "150"});
    metrics[4]["onMissing"] = 3.into();
    metrics[4]["activation"] = "2".into();
    for (index, metric) in metrics.iter_mut().enumerate() {
        metric["name"] = format!("m{index}").into();
    }
    let more = json!({"combine": "Expression", "expression": "max(m0, m1 + 1.0)", "mode": "Active",
        "podSelection": "Owned", "warmUp": "30s", "syncPeriod": "5s", "fallback": {"replicas": 3, "after": "2m"},
        "pause": {"scaleUp": {"until": "2020-01-01T00:00:00Z"}},
        "hold": {"replicas": 4, "until": "2020-01-01T00:00:00Z"},
        "schedules": [{"name": "long-ago", "timeZone": "Europe/Zurich", "start": "0 8 29 2 *", "duration": "1h",
            "minReplicas": 3, "maxReplicas": 20, "ramp": "10m"}]});
    for (field, value) in more.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    spec["behavior"]["scaleUp"]["limit"] = json!({"factor": "3", "minimum": 6});
    spec["behavior"]["scaleDown"]["forbiddenWindowSeconds"] = 60.into();
    object
}

fn names_its_field(message: &str) -> bool {
    // The decoder of amounts says of none of them where it is, neither does Kubernetes'.
    ["spec", "quantities must match"].iter().any(|name| message.contains(name))
}

/// Sends a thousand mutations; how many are stored, and how many refused.
async fn send_all(cluster: &Cluster, path: &str, whole: fn(&str) -> Value) -> (usize, usize) {
    let about = About { resource: "", name: "" };
    let client = cluster.client("tester");
    let (mut stored, mut refused) = (0, 0);
    for object in mutations_of(whole) {
        match call::send::<Value>(&client, "POST", path, &object, about).await {
            Ok(_) => stored += 1,
            Err(error) => {
                refused += 1;
                assert!(names_its_field(&error.to_string()), "{error}: {object}");
            }
        }
    }
    (stored, refused)
}

/// Whether the controller has said something about an object: it is decided, or a condition says why not.
fn is_reported(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut reasons = conditions.map(|condition| condition["reason"].as_str().unwrap_or_default());
    reasons.any(|reason| ["FailedGetScale", "Invalid", TARGET_TAKEN].contains(&reason))
}

async fn until_all_are_reported(cluster: &Cluster, path: &str, stored: usize) {
    until("each of the others is decided or reported", async || {
        let all = cluster.get(path).await;
        let all = all["items"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|object| is_reported(object)).count() >= stored
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn hpas_that_the_server_lets_in_are_decided_or_reported() {
    let cluster = Cluster::with(json!({})).await;
    cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
    let (stored, refused) = send_all(&cluster, HPA, whole_hpa).await;
    assert!(stored > 100 && refused > 300, "{stored} stored, {refused} refused");
    let controller = cluster.control(Config::default(), &Metrics::new(), Role::alone());
    cluster.send("POST", HPA, &whole_hpa("web")).await;
    until("the sound one is decided", async || cluster.replicas().await == 3).await;
    until_all_are_reported(&cluster, HPA, stored).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pod_autoscalers_that_the_server_lets_in_are_decided_or_reported() {
    let cluster = Cluster::with(json!({})).await;
    cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
    cluster.send("POST", CRDS, &crd::definition()).await;
    let about = About { resource: "", name: "" };
    let client = cluster.client("tester");
    until("they are served", async || call::get::<Value>(&client, PAS, about).await.is_ok()).await;
    let (stored, refused) = send_all(&cluster, PAS, whole_pa).await;
    assert!(stored > 100 && refused > 300, "{stored} stored, {refused} refused");
    let controller = cluster.control(Config::default(), &Metrics::new(), Role::alone());
    cluster.send("POST", PAS, &whole_pa("web")).await;
    until("the sound one is decided", async || cluster.replicas().await == 3).await;
    until_all_are_reported(&cluster, PAS, stored).await;
    controller.stop().await;
}
