//! A PodAutoscaler whose metric is a trigger, in the demonstration: the length of a queue, from a server that asks for a
//! token.

use super::*;
use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use podscale_api::pod_autoscaler::crd;
use podscale_controller::metrics::Metrics;
use podscale_controller::record::{Limits, Recorder};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::net::TcpListener;

const TOKEN: &str = "tell-me-no-lies";

/// A server that tells the length of the queue to those who have the token; its address.
async fn serve(queue: &Arc<Mutex<u32>>) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = format!("http://{}/queue", listener.local_addr().expect("an address"));
    let queue = Arc::clone(queue);
    let answer = get(move |headers: HeaderMap| {
        let sent = headers.get("authorization").and_then(|value| value.to_str().ok());
        let is_right = sent == Some(&*format!("Bearer {TOKEN}"));
        let body = json!({"waiting": *queue.lock()}).to_string();
        let code = if is_right { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        async move { (code, body) }
    });
    let router = Router::new().route("/queue", answer);
    let running = tokio::spawn(async move { axum::serve(listener, router).await.expect("serves") });
    (address, running)
}

fn manifests() -> Value {
    let container = json!({"name": "c", "image": "example.com/c",
        "resources": {"requests": {"cpu": "100m"}}});
    json!([
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worker"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "worker"}}, "template":
                {"metadata": {"labels": {"app": "worker"}}, "spec": {"containers": [container]}}}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"},
            "stringData": {"token": TOKEN}},
        {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
            "metadata": {"name": "token"}, "spec": {"secretTargetRef":
                [{"parameter": "token", "name": "token", "key": "token"}]}}
    ])
}

fn autoscaler(url: &str) -> Value {
    let trigger = json!({"type": "metrics-api", "authenticationRef": {"name": "token"},
        "metadata": {"url": url, "valueLocation": "waiting", "targetValue": "10",
            "activationTargetValue": "5", "authMode": "bearer"}});
    json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "PodAutoscaler",
        "metadata": {"name": "worker"}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "worker"},
            "minReplicas": 1, "maxReplicas": 8, "syncPeriod": "5s",
            "scaleToZero": {"coolDown": "30s"},
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
            "metrics": [{"type": "Trigger", "name": "waiting", "trigger": trigger}]}})
}

fn kind(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// Defines PodAutoscalers and creates one, as soon as they are served.
async fn create(client: &Client, object: Value) -> Api<DynamicObject> {
    let definitions = kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &definitions);
    let definition = serde_json::from_value(crd::definition()).expect("a definition");
    definitions.create(&PostParams::default(), &definition).await.expect("it is taken");
    let own = kind("podscale.dev", "v1alpha1", "PodAutoscaler");
    let objects: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &own);
    let object: DynamicObject = serde_json::from_value(object).expect("an object");
    until("PodAutoscalers", async || objects.create(&PostParams::default(), &object).await.ok())
        .await;
    objects
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_of_a_pod_autoscaler_wakes_its_worker_and_lets_it_sleep_again() {
    let queue = Arc::new(Mutex::new(60));
    let (url, running) = serve(&queue).await;
    let text = json!({"name": "own", "speed": 20, "nodes": 2, "manifests": manifests()});
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo-own-triggers");
    let _ = std::fs::remove_dir_all(&folder);
    let limits = Limits { bytes: 1 << 24, age: Duration::from_secs(3600) };
    let (recorder, writing) =
        Recorder::start(&folder, limits, Metrics::default()).expect("a folder");
    let config = Config::of(scenario(&text.to_string()));
    let demo = Demo::start(config, vec![Arc::new(recorder)]).await.expect("starts");
    let client = outside(&demo).await;
    let objects = create(&client, autoscaler(&url)).await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let has = async |wanted: i32| {
        let spec = deployments.get("worker").await.expect("a deployment").spec;
        (spec.replicas? == wanted).then_some(())
    };
    until("six workers", async || has(6).await).await;
    // Not above what the metadata say.
    *queue.lock() = 5;
    until("a worker that sleeps", async || has(0).await).await;
    *queue.lock() = 31;
    until("four workers", async || has(4).await).await;

    let object = until("its value in the status", async || {
        let object = objects.get("worker").await.expect("a PodAutoscaler");
        let is_shown =
            object.data["status"]["currentMetrics"][0]["trigger"]["type"] == "metrics-api";
        is_shown.then_some(object)
    })
    .await;
    let targets = object.data["status"]["targets"].as_str().unwrap_or_default();
    assert!(targets.starts_with("waiting: ") && targets.ends_with("/10 (avg)"), "{targets}");
    let metrics = page(address(&demo.dashboard_url()), "/metrics").await;
    let own = metrics.lines().any(|line| {
        line.starts_with("keda_scaler_metrics_value{") && line.contains("type=\"podautoscaler\"")
    });
    assert!(own, "{metrics}");
    let events: Api<Event> = Api::default_namespaced(client);
    let events = events.list(&ListParams::default()).await.expect("events");
    for text in [json!(object.data).to_string(), json!(events.items).to_string(), metrics] {
        assert!(!text.contains(TOKEN), "{text}");
    }
    timeout(TIMEOUT, demo.stop()).await.expect("ends");
    writing.finish();
    running.abort();
    replays(&folder);
}

/// What was recorded comes out the same, knows no secret, and can be tried with another target.
fn replays(folder: &Path) {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let files: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    let podscale = |arguments: &[&str], recordings: &[PathBuf]| {
        let output = Command::new(env!("CARGO_BIN_EXE_podscale"))
            .args(arguments)
            .args(recordings)
            .output()
            .expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    let (told, problem) = podscale(&["replay"], &files);
    let last = told.lines().last().unwrap_or_default();
    let counts: Vec<&str> = last.split_whitespace().collect();
    assert!(counts.len() > 2 && counts[0] == counts[2] && counts[0] != "0", "{told}{problem}");
    let (explained, _) = podscale(&["replay", "--explain"], &files);
    assert!(explained.contains("waiting is at") && !explained.contains(TOKEN), "{explained}");
    let edit = "spec.metrics[0].trigger.metadata.targetValue=40";
    let simulate = ["simulate", "-o", "json", "--set", edit, "--recording"];
    let (json, problem) = podscale(&simulate, &[folder.to_owned()]);
    let json: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{problem}"));
    let worker = &json["autoscalers"][0];
    let hours = |run: &str| worker[run]["podHours"].as_f64().expect("pod-hours");
    assert!(hours("changed") < hours("unchanged"), "{worker}");
}
