use super::*;
use crate::nodes::lifecycle::{Life, Stage};
use crate::nodes::pod::{Facts, WirePod};
use crate::nodes::usage::Samples;
use crate::nodes::{NodesConfig, address};
use axum::body::{Body, to_bytes};
use serde_json::json;
use std::collections::HashMap;
use tower::ServiceExt;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000_000 + second).unwrap()
}

fn view(name: &str, fault: Option<Fault>, stage: Stage) -> PodView {
    let wire: WirePod = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("uid-{name}"), "labels": {"app": "web"}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "app"}, {"name": "proxy"}]},
    }))
    .unwrap();
    let mut life = Life::begin(&wire, at(0));
    life.stage = stage;
    life.started = Some(at(1));
    PodView {
        facts: Arc::new(Facts::read(&wire).unwrap()),
        life,
        ip: address::node(0),
        fault,
        stopped: false,
    }
}

/// A kubelet whose pod `web` used a quarter of a core and whose proxy used little.
fn kubelet() -> Arc<Kubelet> {
    let ready = Stage::Running { ready: true };
    let table = Table::default();
    table.put(view("web", None, ready));
    table.put(view("mute", Some(Fault::NoMetrics), ready));
    table.put(view("new", None, Stage::Creating));
    let usage = Usage::default();
    for second in 0..=6 {
        let app =
            Used { cpu_seconds_total: second as f64 * 0.25, memory_bytes: 1e6 + second as f64 };
        let proxy = Used { cpu_seconds_total: second as f64 * 0.001, memory_bytes: 5e5 };
        let sample = PodSample { restarts: 0, containers: vec![app, proxy] };
        let uids = ["uid-web", "uid-mute", "uid-new"];
        usage.publish(Samples {
            time: at(second),
            pods: uids.iter().map(|uid| ((*uid).into(), sample.clone())).collect(),
            nodes: HashMap::from([(
                "node-1".into(),
                Used { cpu_seconds_total: second as f64, memory_bytes: 3e9 },
            )]),
        });
    }
    let node = Arc::new(NodeInfo::new(&NodesConfig::default(), 0, ([127, 0, 1, 1], 10250).into()));
    Arc::new(Kubelet { node, table: Arc::new(table), usage: Arc::new(usage), started: at(-5) })
}

async fn ask(kubelet: &Arc<Kubelet>, method: &str, path: &str) -> (u16, String) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let response = router(Arc::clone(kubelet)).oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

async fn ask_json(kubelet: &Arc<Kubelet>, path: &str) -> serde_json::Value {
    let (code, body) = ask(kubelet, "GET", path).await;
    assert_eq!(code, 200, "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn plain_forms() {
    let kubelet = kubelet();
    let web = json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
        "timestamp": "2001-09-09T01:46:46Z", "window": "6s",
        "containers": [
            {"name": "app", "resources": {"cpu": 250, "memory": 1_000_003}},
            {"name": "proxy", "resources": {"cpu": 1, "memory": 500_000}},
        ],
    });
    assert_eq!(ask_json(&kubelet, "/pods").await, json!([web]));
    assert_eq!(ask_json(&kubelet, "/namespaces/shop/pods/web").await, web);
    assert_eq!(
        ask_json(&kubelet, "/node").await,
        json!({"metadata": {"name": "node-1"}, "timestamp": "2001-09-09T01:46:46Z", "window": "6s",
               "resources": {"cpu": 1000, "memory": 3_000_000_000_u64}})
    );
}

#[tokio::test]
async fn only_reads_of_what_is_there() {
    let kubelet = kubelet();
    for (method, path, expected) in [
        ("GET", "/healthz", 200),
        ("GET", "/namespaces/shop/pods/other", 404),
        ("GET", "/namespaces/shop/pods/mute", 404),
        ("GET", "/namespaces/shop/pods/new", 404),
        ("GET", "/nowhere", 404),
        ("POST", "/pods", 405),
        ("DELETE", "/namespaces/shop/pods/web", 405),
        ("HEAD", "/node", 405),
        ("PUT", "/nowhere", 405),
    ] {
        assert_eq!(ask(&kubelet, method, path).await.0, expected, "{method} {path}");
    }
    kubelet.node.running.store(false, std::sync::atomic::Ordering::Release);
    assert_eq!(ask(&kubelet, "GET", "/healthz").await.0, 503, "a stopped node does not answer");
}

#[tokio::test]
async fn exposition_text() {
    let (code, text) = ask(&kubelet(), "GET", "/metrics/resource").await;
    assert_eq!(code, 200);
    let headers = text.lines().filter(|line| line.starts_with("# TYPE")).count();
    assert_eq!(headers, 9, "each family is described once");
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        samples,
        [
            r#"container_cpu_usage_seconds_total{container="app",namespace="shop",pod="web"} 1.5 1000000006000"#,
            r#"container_cpu_usage_seconds_total{container="proxy",namespace="shop",pod="web"} 0.006 1000000006000"#,
            r#"container_memory_working_set_bytes{container="app",namespace="shop",pod="web"} 1000006 1000000006000"#,
            r#"container_memory_working_set_bytes{container="proxy",namespace="shop",pod="web"} 500000 1000000006000"#,
            r#"container_start_time_seconds{container="app",namespace="shop",pod="web"} 1000000001"#,
            r#"container_start_time_seconds{container="proxy",namespace="shop",pod="web"} 1000000001"#,
            "node_cpu_usage_seconds_total 6 1000000006000",
            "node_memory_working_set_bytes 3000000000 1000000006000",
            r#"pod_cpu_usage_seconds_total{namespace="shop",pod="web"} 1.506 1000000006000"#,
            r#"pod_memory_working_set_bytes{namespace="shop",pod="web"} 1500006 1000000006000"#,
            "resource_scrape_error 0",
            "scrape_error 0",
        ]
    );
}

#[tokio::test]
async fn stats_summary() {
    let summary = ask_json(&kubelet(), "/stats/summary").await;
    assert_eq!(summary["node"]["nodeName"], "node-1");
    assert_eq!(summary["node"]["cpu"]["usageNanoCores"], 1_000_000_000_u64);
    assert_eq!(summary["pods"].as_array().unwrap().len(), 1);
    let pod = &summary["pods"][0];
    assert_eq!(pod["podRef"], json!({"name": "web", "namespace": "shop", "uid": "uid-web"}));
    assert_eq!(pod["cpu"]["usageCoreNanoSeconds"], 1_506_000_000_u64);
    assert_eq!(pod["containers"][0]["memory"]["workingSetBytes"], 1_000_006);
    assert_eq!(pod["containers"][0]["startTime"], "2001-09-09T01:46:41Z");
}

#[test]
fn label_values_are_escaped_and_numbers_are_short() {
    assert_eq!(
        podscale_metrics::exposition::write::Label("a\"b\\c\nd").to_string(),
        "a\\\"b\\\\c\\nd"
    );
    for (number, text) in [
        (0.0, "0"),
        (1.5, "1.5"),
        (1e9, "1000000000"),
        (1.0e-7, "1e-07"),
        (f64::INFINITY, "+Inf"),
        (f64::NAN, "NaN"),
    ] {
        assert_eq!(podscale_metrics::exposition::write::Number(number).to_string(), text);
    }
}
