//! The rules of the API as requests and what must come back, in order, against one server each.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "rules/custom.rs"]
mod custom;
#[path = "rules/removed_versions.rs"]
mod removed_versions;
mod support;
#[path = "rules/watches.rs"]
mod watches;

use axum::Router;
use axum::routing::get;
use podscale_apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use support::send;

/// One request and what must come back: its code, and values at JSON pointers (null: absent).
struct Step {
    name: &'static str,
    request: &'static str,
    body: Value,
    code: u16,
    expect: Vec<(&'static str, Value)>,
}

fn step(
    name: &'static str,
    request: &'static str,
    body: Value,
    code: u16,
    expect: Vec<(&'static str, Value)>,
) -> Step {
    Step { name, request, body, code, expect }
}

fn server() -> ApiServer {
    let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    ApiServer::new(Config {
        clock: std::sync::Arc::new(move || start),
        seed: Some(1),
        ..Config::default()
    })
}

/// Runs the steps; `MERGE`, `JSON`, `STRATEGIC` and `APPLY` are kinds of PATCH.
async fn run(server: &ApiServer, steps: Vec<Step>) {
    for step in steps {
        let (verb, path) = step.request.split_once(' ').expect("a verb and a path");
        let (method, content_type) = match verb {
            "MERGE" => ("PATCH", "application/merge-patch+json"),
            "JSON" => ("PATCH", "application/json-patch+json"),
            "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
            "APPLY" => ("PATCH", "application/apply-patch+yaml"),
            other => (other, "application/json"),
        };
        let body = if step.body.is_null() { String::new() } else { step.body.to_string() };
        let answer = send(server, method, path, content_type, "", body).await;
        assert_eq!(answer.code, step.code, "{}: {}", step.name, answer.body);
        for (pointer, expected) in step.expect {
            let found = answer.body.pointer(pointer).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{}: {pointer} of {}", step.name, answer.body);
        }
    }
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "app": name } },
        "spec": { "containers": [{ "name": "c", "image": "i:1" }] },
    })
}

#[tokio::test]
async fn pods_are_deleted_in_two_steps() {
    const ONE: &str = "DELETE /api/v1/namespaces/default/pods/one";
    run(
        &server(),
        vec![
            step(
                "create",
                "POST /api/v1/namespaces/default/pods",
                pod("one"),
                201,
                vec![
                    ("/status/phase", json!("Pending")),
                    ("/status/qosClass", json!("BestEffort")),
                    ("/spec/terminationGracePeriodSeconds", json!(30)),
                ],
            ),
            step(
                "bind",
                "POST /api/v1/namespaces/default/pods/one/binding",
                json!({ "target": { "name": "node-1" } }),
                201,
                vec![],
            ),
            step(
                "delete",
                ONE,
                Value::Null,
                200,
                vec![
                    ("/metadata/deletionGracePeriodSeconds", json!(30)),
                    ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:30Z")),
                ],
            ),
            step(
                "delete again",
                ONE,
                Value::Null,
                200,
                vec![("/metadata/deletionGracePeriodSeconds", json!(30))],
            ),
            step(
                "sooner",
                ONE,
                json!({ "gracePeriodSeconds": 5 }),
                200,
                vec![
                    ("/metadata/deletionGracePeriodSeconds", json!(5)),
                    ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:05Z")),
                ],
            ),
            step(
                "a finalizer holds it",
                "MERGE /api/v1/namespaces/default/pods/one",
                json!({ "metadata": { "labels": { "x": "y" } } }),
                200,
                vec![("/metadata/labels/x", json!("y"))],
            ),
            step("the kubelet confirms", ONE, json!({ "gracePeriodSeconds": 0 }), 200, vec![]),
            step("gone", "GET /api/v1/namespaces/default/pods/one", Value::Null, 404, vec![]),
        ],
    )
    .await;
}

#[tokio::test]
async fn finalizers_hold_objects() {
    let held = json!({ "metadata": { "name": "one", "finalizers": ["x.io/hold"] } });
    run(
        &server(),
        vec![
            step("create", "POST /api/v1/namespaces/default/configmaps", held, 201, vec![]),
            step(
                "delete",
                "DELETE /api/v1/namespaces/default/configmaps/one",
                json!({ "propagationPolicy": "Foreground" }),
                200,
                vec![
                    ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
                    ("/metadata/finalizers", json!(["x.io/hold", "foregroundDeletion"])),
                ],
            ),
            step(
                "no new ones",
                "MERGE /api/v1/namespaces/default/configmaps/one",
                json!({ "metadata": { "finalizers": ["x.io/hold", "x.io/more"] } }),
                422,
                vec![("/reason", json!("Invalid"))],
            ),
            step(
                "the last one goes",
                "MERGE /api/v1/namespaces/default/configmaps/one",
                json!({ "metadata": { "finalizers": [] } }),
                200,
                vec![],
            ),
            step(
                "gone",
                "GET /api/v1/namespaces/default/configmaps/one",
                Value::Null,
                404,
                vec![("/message", json!("configmaps \"one\" not found"))],
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn namespaces_end_when_they_are_finalized() {
    run(
        &server(),
        vec![
            step(
                "create",
                "POST /api/v1/namespaces",
                json!({ "metadata": { "name": "n" } }),
                201,
                vec![
                    ("/spec/finalizers", json!(["kubernetes"])),
                    ("/status/phase", json!("Active")),
                ],
            ),
            step(
                "delete",
                "DELETE /api/v1/namespaces/n",
                Value::Null,
                200,
                vec![("/status/phase", json!("Terminating"))],
            ),
            step(
                "closed",
                "POST /api/v1/namespaces/n/pods",
                pod("p"),
                403,
                vec![("/details/causes/0/reason", json!("NamespaceTerminating"))],
            ),
            step(
                "finalize",
                "PUT /api/v1/namespaces/n/finalize",
                json!({ "metadata": { "name": "n" }, "spec": { "finalizers": [] } }),
                200,
                vec![],
            ),
            step("gone", "GET /api/v1/namespaces/n", Value::Null, 404, vec![]),
        ],
    )
    .await;
}

#[tokio::test]
async fn groups_are_forwarded_to_whom_their_service_names() {
    let server = server();
    let list = r#"{"kind":"APIResourceList","groupVersion":"m.example/v1","resources":[
        {"name":"pods","singularName":"","namespaced":true,"kind":"PodMetrics","verbs":["get","list"]}]}"#;
    let backend = Router::new()
        .route("/apis/m.example/v1", get(move || async move { list }))
        .route("/apis/m.example/v1/namespaces/{ns}/pods", get(|| async { r#"{"kind":"List"}"# }));
    let service = json!({
        "metadata": { "name": "v1.m.example" },
        "spec": {
            "group": "m.example", "version": "v1",
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": { "namespace": "kube-system", "name": "metrics" },
            "insecureSkipTLSVerify": true,
        },
    });
    run(
        &server,
        vec![
            step(
                "register",
                "POST /apis/apiregistration.k8s.io/v1/apiservices",
                service,
                201,
                vec![],
            ),
            step(
                "nobody answers",
                "GET /apis/apiregistration.k8s.io/v1/apiservices/v1.m.example",
                Value::Null,
                200,
                vec![("/status/conditions/0/reason", json!("ServiceNotFound"))],
            ),
            step(
                "unavailable",
                "GET /apis/m.example/v1/namespaces/x/pods",
                Value::Null,
                503,
                vec![],
            ),
        ],
    )
    .await;
    server.register_backend("kube-system", "metrics", backend);
    run(
        &server,
        vec![
            step(
                "available",
                "GET /apis/apiregistration.k8s.io/v1/apiservices/v1.m.example",
                Value::Null,
                200,
                vec![("/status/conditions/0/status", json!("True"))],
            ),
            step(
                "forwarded",
                "GET /apis/m.example/v1/namespaces/x/pods",
                Value::Null,
                200,
                vec![("/kind", json!("List"))],
            ),
            step(
                "resources",
                "GET /apis/m.example/v1",
                Value::Null,
                200,
                vec![("/resources/0/kind", json!("PodMetrics"))],
            ),
        ],
    )
    .await;
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let all = send(&server, "GET", "/apis", "", accept, String::new()).await.body;
    let groups = all["items"].as_array().cloned().unwrap_or_default();
    let found = groups.iter().find(|group| group["metadata"]["name"] == "m.example");
    let kind = found.and_then(|group| group.pointer("/versions/0/resources/0/responseKind/kind"));
    assert_eq!(kind, Some(&json!("PodMetrics")));
}

#[tokio::test]
async fn nothing_is_stored_by_a_dry_run_and_names_are_generated() {
    let server = server();
    let before = server.store().revision();
    run(
        &server,
        vec![
            step(
                "dry create",
                "POST /api/v1/namespaces/default/pods?dryRun=All",
                pod("p"),
                201,
                vec![],
            ),
            step(
                "dry delete",
                "DELETE /api/v1/namespaces/default?dryRun=All",
                Value::Null,
                200,
                vec![],
            ),
            step(
                "dry apply",
                "APPLY /api/v1/namespaces/default/configmaps/c?fieldManager=m&dryRun=All",
                json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } }),
                201,
                vec![],
            ),
            step(
                "not there",
                "GET /api/v1/namespaces/default/configmaps/c",
                Value::Null,
                404,
                vec![],
            ),
        ],
    )
    .await;
    assert_eq!(server.store().revision(), before);
    let body = json!({ "metadata": { "generateName": "x-" } }).to_string();
    let maps = "/api/v1/namespaces/default/configmaps";
    let one = send(&server, "POST", maps, "", "", body.clone()).await.body;
    let two = send(&server, "POST", maps, "", "", body).await.body;
    assert_ne!(one["metadata"]["name"], two["metadata"]["name"]);
    assert!(one["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("x-")));
}
