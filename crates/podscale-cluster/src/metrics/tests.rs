use super::*;
use crate::load::WorkloadConfig;
use crate::nodes::lifecycle::{Life, Stage};
use crate::nodes::pod::{Facts, WirePod};
use crate::nodes::{PodView, Table, Usage};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use jiff::Timestamp;
use podscale_metrics::plain;
use podscale_metrics::scrape::Scrape;
use serde_json::Value;
use std::collections::HashMap;
use tower::ServiceExt;

/// Two pods of `web` on one node, each scraped twice, 15 s apart; `new` only once.
fn source() -> resource::Source {
    let store = Store::new(LIMITS);
    for (second, cpu) in [(1000, 10.0), (1015, 13.75)] {
        let ms = second * 1000;
        let mut text = format!(
            "node_cpu_usage_seconds_total {second} {ms}\nnode_memory_working_set_bytes 1048576 {ms}\n"
        );
        for (pod, container) in [("web-1", "app"), ("web-1", "proxy"), ("api-1", "app")] {
            let labels = format!("{{container=\"{container}\",namespace=\"shop\",pod=\"{pod}\"}}");
            text += &format!("container_cpu_usage_seconds_total{labels} {cpu} {ms}\n");
            text += &format!("container_memory_working_set_bytes{labels} 2097152 {ms}\n");
        }
        let time = Timestamp::from_second(second).unwrap();
        store.apply("node-1", &Scrape::read(&text), time);
    }
    let directory = Directory::default();
    for (namespace, name, app) in [
        ("shop", "web-1", "web"),
        ("shop", "api-1", "api"),
        ("shop", "new-1", "new"),
        ("test", "web-1", "web"),
    ] {
        let labels = [("app", app)].into_iter().collect();
        directory.apply_pod((namespace.into(), name.into()), labels);
    }
    let nodes = ["node-1", "node-2"].map(|name| (name.into(), Default::default()));
    directory.replace_nodes(nodes.into());
    let clock = Arc::new(|| Timestamp::from_second(1020).unwrap());
    resource::Source::scraped(Arc::new(store), Arc::new(directory), clock)
}

fn load() -> LoadModel {
    let table = Arc::new(Table::default());
    for (name, ready) in [("web-1", true), ("web-2", true), ("web-3", false)] {
        let wire: WirePod = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name, "labels": {"app": "web", "pod": name}},
            "spec": {"nodeName": "node-1", "containers": [{"name": "app"}]},
        }))
        .unwrap();
        let mut life = Life::begin(&wire, Timestamp::now());
        life.stage = Stage::Running { ready };
        let facts = Arc::new(Facts::read(&wire).unwrap());
        table.put(PodView { facts, life, ip: [10, 0, 0, 1].into(), fault: None, stopped: false });
    }
    let workload = |name: &str, kind: &str, rps: u32| -> WorkloadConfig {
        serde_json::from_value(json!({
            "namespace": "shop", "name": name, "selector": {"app": name},
            "model": {"kind": kind, "rpsPerPod": 100, "cpuMsPerRequest": 5, "latencySeconds": 0.1},
            "load": {"constant": {"rps": rps}},
        }))
        .unwrap()
    };
    let workloads = [workload("web", "service", 40), workload("jobs", "consumer", 0)];
    let usage = Arc::new(Usage::default());
    let model = LoadModel::new(&workloads, HashMap::new(), table, usage, Clock::wall()).unwrap();
    model.wish("shop", "jobs", crate::load::Wish::Enqueue(42.0)).unwrap();
    std::thread::sleep(Duration::from_millis(2));
    model.step();
    model
}

async fn ask(router: &Router, method: &str, path: &str, accept: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("accept", accept);
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn get(router: &Router, path: &str) -> Value {
    let (code, body) = ask(router, "GET", path, "application/json").await;
    assert_eq!(code, 200, "{path}: {body}");
    body
}

fn names(list: &Value) -> Vec<String> {
    let name = |item: &Value| {
        let object =
            if item["metadata"].is_null() { &item["describedObject"] } else { &item["metadata"] };
        let namespace = object["namespace"].as_str().map(|ns| format!("{ns}/")).unwrap_or_default();
        format!("{namespace}{}", object["name"].as_str().unwrap())
    };
    list["items"].as_array().unwrap().iter().map(name).collect()
}

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";

#[tokio::test]
async fn resource_metrics_are_listed_and_selected() {
    let router = router(source(), load());
    let cases = [
        ("/pods", vec!["shop/api-1", "shop/web-1"]),
        ("/namespaces/shop/pods", vec!["shop/api-1", "shop/web-1"]),
        ("/namespaces/test/pods", vec![]),
        ("/pods?labelSelector=app%3Dweb", vec!["shop/web-1"]),
        ("/pods?labelSelector=app+in+(api,none)", vec!["shop/api-1"]),
        ("/pods?fieldSelector=metadata.name%3Dapi-1", vec!["shop/api-1"]),
        ("/nodes", vec!["node-1"]),
        ("/nodes?labelSelector=app", vec![]),
    ];
    for (path, expected) in cases {
        assert_eq!(names(&get(&router, &format!("{METRICS}{path}")).await), expected, "{path}");
    }
}

#[tokio::test]
async fn resource_metrics_have_kubernetes_form() {
    let router = router(source(), load());
    let pod = get(&router, &format!("{METRICS}/namespaces/shop/pods/web-1")).await;
    let used = json!({"cpu": "250m", "memory": "2Mi"});
    assert_eq!(
        pod,
        json!({
            "kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {"name": "web-1", "namespace": "shop", "creationTimestamp": "1970-01-01T00:16:55Z", "labels": {"app": "web"}},
            "timestamp": "1970-01-01T00:16:55Z", "window": "15s",
            "containers": [{"name": "app", "usage": used}, {"name": "proxy", "usage": used}],
        })
    );
    let node = get(&router, &format!("{METRICS}/nodes/node-1")).await;
    assert_eq!(node["usage"], json!({"cpu": "1", "memory": "1Mi"}));
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let (_, table) = ask(&router, "GET", &format!("{METRICS}/namespaces/shop/pods"), accept).await;
    let columns: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (table["kind"].as_str(), columns),
        (Some("Table"), vec!["Name", "cpu", "memory", "Window"])
    );
    assert_eq!(table["rows"][1]["cells"], json!(["web-1", "500m", "4Mi", "15s"]));
    assert_eq!(table["rows"][1]["object"]["metadata"]["namespace"], "shop");
}

#[tokio::test]
async fn what_cannot_be_is_refused_as_kubernetes_does() {
    let router = router(source(), load());
    for (method, path, code, message) in [
        (
            "GET",
            format!("{METRICS}/namespaces/shop/pods/new-1"),
            404,
            "podmetrics.metrics.k8s.io \"shop/new-1\" not found",
        ),
        (
            "GET",
            format!("{METRICS}/nodes/node-2"),
            404,
            "nodemetrics.metrics.k8s.io \"node-2\" not found",
        ),
        (
            "GET",
            format!("{METRICS}/pods?labelSelector=a%3D%3D%3Db"),
            400,
            "unable to parse labelSelector",
        ),
        (
            "GET",
            format!("{METRICS}/pods?fieldSelector=spec.nodeName%3Dn"),
            400,
            "field label not supported: spec.nodeName",
        ),
        ("GET", format!("{METRICS}/pods?watch=true"), 405, "does not allow this method"),
        ("DELETE", format!("{METRICS}/pods"), 405, "does not allow this method"),
        (
            "GET",
            "/apis/custom.metrics.k8s.io/v9".to_owned(),
            404,
            "could not find the requested resource",
        ),
        ("GET", "/nowhere".to_owned(), 404, "could not find the requested resource"),
        (
            "GET",
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/speed".to_owned(),
            404,
            "the server could not find the metric speed for pods",
        ),
        (
            "GET",
            "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/services/none/queue_length"
                .to_owned(),
            404,
            "the server could not find the metric queue_length for services none",
        ),
        (
            "GET",
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/speed".to_owned(),
            404,
            "could not find the metric speed",
        ),
    ] {
        let (found, body) = ask(&router, method, &path, "application/json").await;
        assert_eq!(found, code, "{path}: {body}");
        assert_eq!(body["kind"], "Status", "{path}");
        assert!(body["message"].as_str().unwrap().contains(message), "{path}: {body}");
    }
}

#[tokio::test]
async fn custom_metrics_come_from_the_load_model() {
    let router = router(source(), load());
    let base = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop";
    let pods = get(&router, &format!("{base}/pods/*/requests_per_second")).await;
    assert_eq!(names(&pods), ["shop/web-1", "shop/web-2", "shop/web-3"]);
    let values: Vec<&str> = pods["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["value"].as_str().unwrap())
        .collect();
    assert_eq!(values, ["20", "20", "0"]);
    let cases = [
        ("pods/*/requests_per_second?labelSelector=pod%3Dweb-2", vec!["shop/web-2"]),
        ("pods/web-3/requests_per_second", vec!["shop/web-3"]),
        ("pods/*/requests_per_second?metricLabelSelector=workload%3Djobs", vec![]),
        ("services/web/latency_seconds", vec!["shop/web"]),
        ("deployments.apps/jobs/queue_length", vec!["shop/jobs"]),
        ("deployments/*/queue_length", vec!["shop/jobs", "shop/web"]),
        ("metrics/queue_length", vec!["shop"]),
    ];
    for (path, expected) in cases {
        assert_eq!(names(&get(&router, &format!("{base}/{path}")).await), expected, "{path}");
    }
    let item =
        &get(&router, &format!("{base}/deployments.apps/jobs/queue_length")).await["items"][0];
    assert_eq!(item["value"], "42");
    assert_eq!(item["metric"], json!({"name": "queue_length", "selector": null}));
    assert_eq!(item["describedObject"]["kind"], "Deployment");
    let old = get(
        &router,
        "/apis/custom.metrics.k8s.io/v1beta1/namespaces/shop/metrics/requests_per_second",
    )
    .await;
    assert_eq!(old["items"][0]["metricName"], "requests_per_second");
    assert_eq!(old["items"][0]["value"], "40");
}

#[tokio::test]
async fn external_metrics_are_selected_by_label() {
    let router = router(source(), load());
    let base = "/apis/external.metrics.k8s.io/v1beta1/namespaces";
    let list =
        get(&router, &format!("{base}/shop/queue_length?labelSelector=workload%3Djobs")).await;
    let item = &list["items"][0];
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&item["value"], &item["metricLabels"]),
        (&json!("42"), &json!({"workload": "jobs"}))
    );
    assert_eq!(get(&router, &format!("{base}/test/queue_length")).await["items"], json!([]));
}

#[tokio::test]
async fn each_group_describes_itself() {
    let router = router(source(), load());
    for (group, versions, resource) in [
        ("metrics.k8s.io", vec!["v1beta1"], "pods"),
        ("custom.metrics.k8s.io", vec!["v1beta2", "v1beta1"], "pods/requests_per_second"),
        ("external.metrics.k8s.io", vec!["v1beta1"], "queue_length"),
    ] {
        let document = get(&router, &format!("/apis/{group}")).await;
        assert_eq!(document["preferredVersion"]["version"], versions[0]);
        for version in versions {
            let list = get(&router, &format!("/apis/{group}/{version}")).await;
            assert_eq!(list["groupVersion"], format!("{group}/{version}"));
            let resources = list["resources"].as_array().unwrap();
            assert!(resources.iter().any(|found| found["name"] == resource), "{group} {resource}");
        }
    }
}

#[tokio::test]
async fn plain_forms() {
    let router = plain::server::router(source());
    let pods = get(&router, "/namespaces/all-namespaces/pods").await;
    assert_eq!(pods.as_array().unwrap().len(), 2);
    let web = &get(&router, "/namespaces/shop/pods?labelSelector=app%3Dweb").await[0];
    assert_eq!(
        web["containers"][0],
        json!({"name": "app", "resources": {"cpu": 250, "memory": 2_097_152}})
    );
    assert_eq!(
        (web["window"].as_str(), web["timestamp"].as_str()),
        (Some("15s"), Some("1970-01-01T00:16:55Z"))
    );
    assert_eq!(&get(&router, "/namespaces/shop/pods/web-1").await, web);
    assert_eq!(get(&router, "/nodes").await[0], get(&router, "/nodes/node-1").await);
    assert_eq!(
        get(&router, "/nodes/node-1").await["resources"],
        json!({"cpu": 1000, "memory": 1_048_576})
    );
    for (method, path, code) in [
        ("GET", "/nodes/node-2", 404),
        ("GET", "/namespaces/shop/pods/none", 404),
        ("GET", "/namespaces/shop/pods?labelSelector=%3D", 400),
        ("POST", "/nodes", 405),
        ("DELETE", "/namespaces/shop/pods/web-1", 405),
        ("GET", "/", 404),
        ("GET", "/foo", 404),
        ("GET", "/nodes/", 404),
        ("GET", "/namespaces/shop", 404),
        ("POST", "/foo", 405),
    ] {
        let (found, status) = ask(&router, method, path, "*/*").await;
        assert_eq!((found, &status["kind"]), (code, &json!("Status")), "{method} {path}");
    }
    // The same below a prefix of another server, which answers in a form of its own.
    let other = Router::new().fallback(async || "other").nest("/plain", router.clone());
    let (code, status) = ask(&other, "GET", "/plain/foo", "*/*").await;
    assert_eq!((code, &status["kind"]), (404, &json!("Status")));
    let request = Request::head("/nodes").body(Body::empty()).unwrap();
    let refused = router.oneshot(request).await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["allow"]),
        (405, &"GET".parse().unwrap())
    );
}

#[tokio::test]
async fn a_prometheus_finds_the_pods_and_what_they_say() {
    let router = prometheus::router(load(), ([127, 0, 0, 1], 8700).into());
    let targets = get(&router, "/prometheus/targets").await;
    let targets = targets.as_array().unwrap();
    let pods: Vec<&str> = targets.iter().filter_map(|t| t["labels"]["pod"].as_str()).collect();
    assert_eq!(pods, ["web-1", "web-2", "web-3"]);
    assert_eq!(
        targets[0],
        json!({"targets": ["127.0.0.1:8700"], "labels": {
        "__metrics_path__": "/pods/shop/web-1/metrics", "instance": "shop/web-1",
        "namespace": "shop", "pod": "web-1", "workload": "web"}})
    );
    let text = async |path: &str| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (code, String::from_utf8(body.to_vec()).unwrap())
    };
    let (code, said) = text("/pods/shop/web-1/metrics").await;
    let value = |name: &str| -> f64 {
        let line = said.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {said}")).parse().unwrap()
    };
    assert_eq!(code, 200);
    // Two of three pods are ready and share 40 requests a second.
    assert!((value("requests_per_second") - 20.0).abs() < 1e-6, "{said}");
    assert!(value("http_requests_total") > 0.0 && value("process_cpu_seconds_total") > 0.0);
    for (path, code) in [("/pods/shop/none/metrics", 404), ("/pods/test/web-1/metrics", 404)] {
        assert_eq!(text(path).await.0, code, "{path}");
    }
    let (_, config) = text(prometheus::CONFIG).await;
    assert!(config.contains("- url: http://127.0.0.1:8700/prometheus/targets\n"), "{config}");
}
