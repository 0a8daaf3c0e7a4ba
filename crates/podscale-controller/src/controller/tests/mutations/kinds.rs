//! The same for HorizontalPodAutoscalers.

use super::*;

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
    reasons.any(|reason| ["FailedGetScale", TARGET_TAKEN].contains(&reason))
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
