use super::*;
use crate::load::{LoadModel, Wish, http, text};
use crate::nodes::Usage as UsageBoard;
use crate::nodes::lifecycle::{Life, Stage};
use crate::nodes::pod::{Facts, WirePod};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use podscale_client::clock::Clock;
use serde_json::{Value, json};
use tower::ServiceExt;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + second).unwrap()
}

fn view(name: &str, owner: &str, ready: bool) -> PodView {
    let wire: WirePod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"),
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": "o", "controller": true}]},
        "spec": {"nodeName": "node-1", "containers": [
            {"name": "proxy"}, {"name": "app", "resources": {"limits": {"cpu": "400m", "memory": "64Mi"}}}]},
    }))
    .unwrap();
    let mut life = Life::begin(&wire, at(0));
    life.stage = Stage::Running { ready };
    life.started = Some(at(0));
    PodView {
        facts: Arc::new(Facts::read(&wire).unwrap()),
        life,
        ip: [10, 0, 0, 1].into(),
        fault: None,
        stopped: false,
    }
}

fn config(name: &str, rps: f64) -> WorkloadConfig {
    serde_json::from_value(json!({
        "namespace": "shop", "name": name, "container": "app",
        "model": {"rpsPerPod": 100, "cpuMsPerRequest": 5, "baseMemoryBytes": 1_000_000},
        "load": {"constant": {"rps": rps}},
    }))
    .unwrap()
}

#[test]
fn usage_reaches_the_working_container_the_node_and_the_idle() {
    let table = Table::default();
    table.add_node(&"node-1".into());
    table.add_node(&"node-2".into());
    table.put(view("web-0", "web", true));
    table.put(view("web-1", "web", false));
    table.put(view("other", "other", true));
    let mut model = Model::new(at(0));
    model.add(&config("web", 40.0), Load::constant(40.0), at(0)).unwrap();
    let (samples, state) = model.step(&table, at(10));

    let cpu =
        |uid: &str, container: usize| samples.pods[uid].containers[container].cpu_seconds_total;
    assert!((cpu("uid-web-0", 1) - 2.0).abs() < 1e-9, "40 rps × 5 ms × 10 s");
    assert!((cpu("uid-web-0", 0) - 0.01).abs() < 1e-9, "the proxy idles");
    assert_eq!(cpu("uid-web-1", 1), 0.0, "not ready, so no work");
    assert!((cpu("uid-other", 1) - 0.01).abs() < 1e-9);
    let node = samples.nodes["node-1"].cpu_seconds_total;
    assert!((node - (2.0 + 0.04 + 1.0)).abs() < 1e-9, "all pods and the node itself: {node}");
    assert!((samples.nodes["node-2"].cpu_seconds_total - 1.0).abs() < 1e-9, "an empty node");

    let web = &state.workloads[0];
    assert_eq!((web.offered_rps.round(), web.pods.len()), (40.0, 2));
    assert_eq!(web.pods[0].rps.round(), 40.0);

    let (samples, state) = model.step(&table, at(5));
    assert_eq!((samples.time, state.window), (at(10), Duration::ZERO), "time never runs back");
}

#[test]
fn a_limited_pod_saturates_and_a_changed_load_counts() {
    let table = Table::default();
    table.put(view("web-0", "web", true));
    let mut model = Model::new(at(0));
    model.add(&config("web", 1000.0), Load::constant(1000.0), at(0)).unwrap();
    let (samples, _) = model.step(&table, at(10));
    let cpu = samples.pods["uid-web-0"].containers[1].cpu_seconds_total;
    assert!((cpu - 4.0).abs() < 1e-9, "0.4 cores for 10 s: {cpu}");
    model.change("shop", "web", Change::Load(Load::none()), at(10)).unwrap();
    assert!(model.step(&table, at(11)).1.workloads[0].load_set);
    assert_eq!(model.step(&table, at(12)).1.workloads[0].offered_rps, 0.0);
    model.change("shop", "web", Change::Configured, at(12)).unwrap();
    assert_eq!(model.step(&table, at(13)).1.workloads[0].offered_rps, 1000.0);
    assert!(model.change("shop", "nobody", Change::Configured, at(12)).is_err());
    let again = model.add(&config("web", 1.0), Load::none(), at(0)).unwrap_err();
    assert_eq!(again.to_string(), "workload shop/web is given twice");
}

fn load_model() -> LoadModel {
    let table = Arc::new(Table::default());
    table.put(view("web-0", "web", true));
    let usage = Arc::new(UsageBoard::default());
    LoadModel::new(&[config("web", 40.0)], HashMap::new(), table, usage, Clock::wall()).unwrap()
}

async fn ask(model: &LoadModel, method: &str, path: &str, body: Value) -> (u16, String) {
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json").body(body).unwrap();
    let response = http::router(model.clone()).oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn the_load_is_set_by_calls() {
    let model = load_model();
    let cases = [
        ("PUT", "/load/shop/web", json!({"rps": 120}), 204, ""),
        ("PUT", "/load/shop/web", json!({"enqueue": 5}), 204, ""),
        ("PUT", "/load/shop/web", json!({"load": {"spike": {"peakRps": 9}}}), 204, ""),
        ("DELETE", "/load/shop/web", Value::Null, 204, ""),
        ("PUT", "/load/shop/nobody", json!({"rps": 1}), 404, "there is no workload shop/nobody"),
        ("PUT", "/load/shop/web", json!({"rps": -1}), 422, "rps: -1 is not between 0 and"),
        ("PUT", "/load/shop/web", json!({"enqueue": 0}), 422, "enqueue: 0 is not more than 0"),
        ("PUT", "/load/shop/web", json!({"rps": 1, "enqueue": 1}), 422, "give exactly one of"),
        ("PUT", "/load/shop/web", json!({"speed": 1}), 422, "unknown field `speed`"),
        (
            "PUT",
            "/load/shop/web",
            json!({"load": {"trace": {"file": "/etc/passwd"}}}),
            422,
            "there is no such trace",
        ),
        (
            "PUT",
            "/load/shop/api",
            json!({"rps": 1, "model": {"rpsPerPod": 1, "cpuMsPerRequest": 1}}),
            204,
            "",
        ),
        (
            "PUT",
            "/load/shop/api",
            json!({"rps": 1, "model": {"rpsPerPod": 1, "cpuMsPerRequest": 1}}),
            409,
            "given twice",
        ),
        ("GET", "/load/shop/nobody", Value::Null, 404, "there is no workload"),
        ("POST", "/load", Value::Null, 405, ""),
    ];
    for (method, path, body, code, text) in cases {
        let answer = ask(&model, method, path, body.clone()).await;
        assert_eq!(answer.0, code, "{method} {path} {body}: {}", answer.1);
        assert!(answer.1.contains(text), "{method} {path} {body}: {}", answer.1);
    }
    model.wish("shop", "web", Wish::Rps(77.0)).unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    model.step();
    let (code, shown) = ask(&model, "GET", "/load/shop/web", Value::Null).await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, shown["loadSet"].as_bool()), (200, Some(true)));
    assert!((shown["offeredRps"].as_f64().unwrap() - 77.0).abs() < 1e-6, "{shown}");
    let (_, list) = ask(&model, "GET", "/load", Value::Null).await;
    let list: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["workloads"].as_array().unwrap().len(), 2);
    let (code, metrics) = ask(&model, "GET", "/load/metrics", Value::Null).await;
    assert_eq!((code, metrics), (200, text::exposition(&model.state())));
}

#[tokio::test]
async fn work_can_be_put_into_the_queue_of_a_new_workload() {
    let model = load_model();
    let consumer = json!({"kind": "consumer", "rpsPerPod": 1, "cpuMsPerRequest": 1});
    let body = json!({"model": consumer, "enqueue": 500});
    let answer = ask(&model, "PUT", "/load/shop/jobs", body.clone()).await;
    assert_eq!(answer, (204, String::new()));
    tokio::time::sleep(Duration::from_millis(2)).await;
    model.step();
    let (_, shown) = ask(&model, "GET", "/load/shop/jobs", Value::Null).await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["queue"], 500.0, "no pod takes any of it: {shown}");
    let (code, text) = ask(&model, "PUT", "/load/shop/jobs", body).await;
    assert_eq!(code, 409, "{text}");
}

#[test]
fn exposition_text_has_every_series() {
    let table = Table::default();
    table.put(view("web-0", "web", true));
    let mut model = Model::new(at(0));
    model.add(&config("web", 40.0), Load::constant(40.0), at(0)).unwrap();
    let text = text::exposition(&model.step(&table, at(10)).1);
    for line in [
        "# TYPE workload_offered_requests_per_second gauge",
        r#"workload_offered_requests_per_second{namespace="shop",workload="web"} 40"#,
        r#"workload_arrived_requests_total{namespace="shop",workload="web"} 400"#,
        r#"workload_queue_length{namespace="shop",workload="web"} 0"#,
        r#"pod_requests_per_second{namespace="shop",pod="web-0",workload="web"} 40"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
}
