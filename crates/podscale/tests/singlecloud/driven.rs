//! Workloads of the embedded cluster, driven by autoscalers that were made through singlecloud's API.

use super::environment::{COLLECTION, Environment, NAMESPACE, until};
use podscale::demo::{Config, Demo};
use podscale::scenario::Scenario;
use serde_json::{Value, json};

/// One workload that gets more load than its pods should bear, and one that gets almost none.
fn up_and_down() -> Scenario {
    let deployment = |name: &str, replicas: u32| {
        format!(
            "- apiVersion: apps/v1\n  kind: Deployment\n  metadata: {{name: {name}}}\n  spec:\n    \
             replicas: {replicas}\n    selector: {{matchLabels: {{app: {name}}}}}\n    template:\n      \
             metadata: {{labels: {{app: {name}}}}}\n      spec:\n        containers:\n        - {{name: c, \
             image: example.com/c, resources: {{requests: {{cpu: 100m}}}}}}\n"
        )
    };
    let workload = |name: &str, rps: u32| {
        format!(
            "- name: {name}\n  model: {{rpsPerPod: 50, cpuMsPerRequest: 5, baseMemoryBytes: 50000000}}\n  \
             load: {{constant: {{rps: {rps}}}}}\n"
        )
    };
    let text = format!(
        "name: up-and-down\nspeed: 20\nnodes: 2\nworkloads:\n{}{}manifests:\n{}{}",
        workload("busy", 120),
        workload("idle", 1),
        deployment("busy", 2),
        deployment("idle", 4)
    );
    Scenario::read("test", &text, None).expect("the scenario makes sense")
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_of_the_embedded_cluster_are_driven_up_and_down() {
    let demo = Demo::start(Config::of(up_and_down()), Vec::new()).await.expect("starts");
    let mut environment = Environment::before(demo.client().clone()).await;
    let collection = COLLECTION.replace(NAMESPACE, "default");
    for name in ["busy", "idle"] {
        let body = json!({"name": name, "scaleTargetKind": "deployment", "scaleTargetName": name,
            "minReplicas": 1, "maxReplicas": 8, "resourceMetrics": [
                {"resourceName": "cpu", "targetType": "AverageValue", "averageValue": "100m"}]});
        let (code, error) = environment.rest("POST", &collection, &body, "good").await;
        assert_eq!(code, 201, "{error}");
    }
    for (name, from, up) in [("busy", 2, true), ("idle", 4, false)] {
        let item = format!("{collection}/{name}");
        let wanted = until(&format!("{name} has another size"), async || {
            let (_, seen) = environment.rest("GET", &item, &Value::Null, "reader").await;
            let metric =
                seen["status"]["currentMetrics"]["resourceMetrics"][0]["averageValue"].clone();
            let wanted = seen["status"]["desiredReplicas"].as_i64()?;
            (wanted != from && metric.is_string()).then_some(wanted)
        })
        .await;
        assert_eq!(wanted > from, up, "{name} went from {from} to {wanted}");
    }
    environment.stop().await;
    demo.stop().await;
}
