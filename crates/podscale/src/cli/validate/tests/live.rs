//! What a cluster is asked about autoscalers of each kind.

use super::*;
use axum::routing::get;
use axum::{Json, Router};
use kube::Client;
use podscale_apiserver::{ApiServer, Config};
use podscale_client::call::{self, About};
use serde_json::json;

/// A cluster with a Deployment whose pods request nothing, one external metric, and no other metrics.
async fn environment() -> Client {
    let queue = async || {
        let value = json!({"metricName": "queue", "metricLabels": {}, "value": "100",
            "timestamp": "2026-01-01T00:00:00Z"});
        Json(json!({"kind": "ExternalMetricValueList", "metadata": {}, "items": [value]}))
    };
    let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue";
    let server = ApiServer::new(Config::default());
    let router = Router::new().route(path, get(queue)).fallback_service(server.router());
    let client = Client::new(router, "default");
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let about = About { resource: "", name: "" };
    let created: Result<Value, _> = call::send(&client, "POST", path, &target, about).await;
    created.expect("a Deployment");
    client
}

/// What is found about a document, each as its rule and field.
async fn asked(client: &Client, object: Value) -> Vec<String> {
    let mut check = Check::default();
    check.read(&Manifest { name: "f".to_owned(), text: object.to_string() });
    let answers = cluster::ask_through(client.clone(), "default".to_owned(), &check.candidates);
    let answers = answers.await.unwrap_or_else(|error| panic!("{error}"));
    let report = check.finish(&[], Some(&answers));
    report.findings.iter().map(|found| format!("{} {}", found.rule, found.field)).collect()
}

#[tokio::test]
async fn targets_metrics_and_requests_of_every_kind_are_asked_about() {
    let client = environment().await;
    let object = |version: &str, kind: &str, name: &str, metrics: Value| {
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web"},
            "spec": {"maxReplicas": 9, "metrics": metrics,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}})
    };
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}});
    let external = |name: &str| {
        json!({"type": "External", "external": {"metric": {"name": name},
            "target": {"type": "AverageValue", "averageValue": "5"}}})
    };
    let query = json!({"type": "Prometheus", "prometheus": {"query": "up", "target": {"type": "Value", "value": "5"}}});
    let pa = |name: &str, metrics: Value| {
        object("podscale.dev/v1alpha1", "PodAutoscaler", name, metrics)
    };
    let chpa = |metrics: Value| object("autoscalers.postmates.com/v1beta1", "CHPA", "web", metrics);
    let old_cpu =
        json!({"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 50}});
    let singlecloud = json!({"name": "web", "scaleTargetKind": "deployment", "scaleTargetName": "web",
        "minReplicas": 1, "maxReplicas": 9,
        "resourceMetrics": [{"resourceName": "cpu", "targetType": "AverageValue", "averageValue": "100m"}],
        "customMetrics": [{"metricName": "qps", "averageValue": "10"}]});
    for (object, expected) in [
        (pa("web", json!([query, external("queue")])), vec![]),
        (pa("gone", json!([external("queue")])), vec!["target-not-found spec.scaleTargetRef"]),
        (
            pa("web", json!([external("queue"), external("depth"), cpu])),
            vec![
                "metric-unavailable spec.metrics[1]",
                "metric-unavailable spec.metrics[2]",
                "no-requests spec.metrics[2].resource",
            ],
        ),
        (chpa(json!([])), vec!["no-metrics spec.metrics"]),
        (
            chpa(json!([old_cpu])),
            vec!["metric-unavailable spec.metrics[0]", "no-requests spec.metrics[0].resource"],
        ),
        (singlecloud, vec!["metric-unavailable resourceMetrics[0]"]),
    ] {
        assert_eq!(asked(&client, object.clone()).await, expected, "{object}");
    }
}
