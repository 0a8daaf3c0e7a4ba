//! What a cluster is asked about autoscalers of each kind.

use super::*;
use axum::routing::{get, post};
use axum::{Json, Router};
use kube::Client;
use podscale_apiserver::ApiServer;
use podscale_client::call::{self, About};
use podscale_controller::source::PrometheusServers;
use podscale_metrics::prometheus::Config;
use serde_json::json;

/// A cluster with a Deployment whose pods request nothing, one external metric, and no other metrics.
async fn environment() -> Client {
    let queue = async || {
        let value = json!({"metricName": "queue", "metricLabels": {}, "value": "100",
            "timestamp": "2026-01-01T00:00:00Z"});
        Json(json!({"kind": "ExternalMetricValueList", "metadata": {}, "items": [value]}))
    };
    let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue";
    let server = ApiServer::new(podscale_apiserver::Config::default());
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

/// What is found about a document, each as its rule and field, and what was not asked.
async fn asked(client: &Client, servers: &PrometheusServers, object: Value) -> Vec<String> {
    let mut check = Check::default();
    check.read(&Manifest { name: "f".to_owned(), text: object.to_string() });
    let (client, namespace) = (client.clone(), "default".to_owned());
    let answers = cluster::ask_through(client, namespace, servers, &check.candidates);
    let answers = answers.await.unwrap_or_else(|error| panic!("{error}"));
    let report = check.finish(&[], Some(&answers));
    let findings = report.findings.iter().map(|found| format!("{} {}", found.rule, found.field));
    let notes = answers.notes.iter().map(|note| note[note.find("spec").unwrap_or(0)..].to_owned());
    findings.chain(notes).collect()
}

/// A Prometheus that has a value for one query, and none for others.
async fn prometheus() -> String {
    let answer = async |body: String| {
        let value = json!([{"metric": {}, "value": [1_700_000_000.5, "2.5"]}]);
        let result = if body.contains("query=known") { value } else { json!([]) };
        match body.contains("broken") {
            true => {
                Json(json!({"status": "error", "errorType": "bad_data", "error": "parse error"}))
            }
            false => Json(json!({"status": "success",
                "data": {"resultType": "vector", "result": result}})),
        }
    };
    let router = Router::new().route("/api/v1/query", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

fn pod_autoscaler(server: Option<&str>, query: &str) -> Value {
    let mut source = json!({"query": query, "target": {"type": "Value", "value": "5"}});
    if let Some(server) = server {
        source["server"] = server.into();
    }
    json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "PodAutoscaler", "metadata": {"name": "web"},
        "spec": {"maxReplicas": 9, "metrics": [{"type": "Prometheus", "prometheus": source}],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
}

#[tokio::test]
async fn queries_are_asked_of_prometheus() {
    let (client, url) = (environment().await, prometheus().await);
    let own = podscale_metrics::prometheus::Client::new(Config::new(&url)).expect("a client");
    let own = PrometheusServers::new(Some(Arc::new(own)), &[], None).expect("servers");
    let allowed = PrometheusServers::new(None, std::slice::from_ref(&url), None).expect("servers");
    let found = "metric-unavailable spec.metrics[0].prometheus";
    let stranger = "spec.metrics[0].prometheus: not asked: http://p is neither the --prometheus-url nor a --prometheus-allowed-server";
    let nowhere =
        "spec.metrics[0].prometheus: not asked: --prometheus-url does not say where Prometheus is";
    for (servers, server, query, expected) in [
        (&own, None, "known", vec![]),
        (&own, Some(url.as_str()), "known", vec![]),
        (&own, None, "unknown", vec![found]),
        (&own, None, "broken", vec![found]),
        (&own, Some("http://p"), "known", vec![stranger]),
        (&allowed, Some(url.as_str()), "known", vec![]),
        (&allowed, None, "known", vec![nowhere]),
    ] {
        let object = pod_autoscaler(server, query);
        assert_eq!(asked(&client, servers, object).await, expected, "{server:?} {query}");
    }
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
        (
            pa("web", json!([query, external("queue")])),
            vec![
                "spec.metrics[0].prometheus: not asked: --prometheus-url does not say where Prometheus is",
            ],
        ),
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
        let nowhere = PrometheusServers::default();
        assert_eq!(asked(&client, &nowhere, object.clone()).await, expected, "{object}");
    }
}
