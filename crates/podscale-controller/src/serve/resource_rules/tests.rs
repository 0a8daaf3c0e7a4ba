use super::*;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use parking_lot::Mutex;
use podscale_metrics::prometheus::{Client, Config};
use podscale_metrics::resource::{self, Source};
use podscale_metrics::rules::engine::Timings;
use podscale_metrics::rules::{KnownResources, RuleSet};
use serde_json::{Value, json};
use tower::ServiceExt;

type Asked = Arc<Mutex<Vec<String>>>;

/// As prometheus-adapter's own installation has them; `BY` is what the queries group by.
const RULES: &str = r#"
resourceRules:
  cpu:
    containerQuery: sum(cpu{<<.LabelMatchers>>}) by (BY)
    nodeQuery: sum(node_cpu{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    resources: {overrides: {instance: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
  memory:
    containerQuery: sum(memory{<<.LabelMatchers>>}) by (BY)
    nodeQuery: sum(node_memory{<<.LabelMatchers>>}) by (<<.GroupBy>>)
    resources: {overrides: {instance: {resource: node}, namespace: {resource: namespace}, pod: {resource: pod}}}
    containerLabel: container
  window: 3m
"#;

/// What Prometheus has: a resource, the labels of a series, and its value.
const SERIES: [(&str, [&str; 3], f64, &str); 8] = [
    ("cpu", ["shop", "web", "app"], 100.5, "0.25"),
    ("cpu", ["shop", "web", "proxy"], 100.0, "NaN"),
    ("memory", ["shop", "web", "app"], 99.0, "1048576"),
    ("memory", ["shop", "web", "log"], 100.0, "2048"),
    ("cpu", ["shop", "half", "app"], 100.0, "1"),
    ("cpu", ["shop", "gone", "app"], 100.0, "1"),
    ("cpu", ["other", "web", "app"], 100.0, "-2"),
    ("memory", ["other", "web", "app"], 100.0, "7.9"),
];

async fn answer(State(asked): State<Asked>, Form(form): Form<HashMap<String, String>>) -> Response {
    let query = form.get("query").cloned().unwrap_or_default();
    asked.lock().push(query.clone());
    if query.contains("broken") {
        let body = json!({"status": "error", "errorType": "timeout", "error": "too busy"});
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    }
    let is = |name: &str| query.starts_with(&format!("sum({name}{{"));
    let result: Vec<Value> = if is("node_cpu") {
        vec![
            json!({"metric": {"instance": "n1"}, "value": [100, "2"]}),
            json!({"metric": {"instance": "n2"}, "value": [100, "1"]}),
        ]
    } else if is("node_memory") {
        vec![json!({"metric": {"instance": "n1"}, "value": [98, "4096"]})]
    } else {
        let wanted = |(of, [namespace, pod, _], ..): &&(&str, [&str; 3], f64, &str)| {
            let all = query.contains("namespace!=\"\"");
            let one = query.contains(&format!("namespace=\"{namespace}\""));
            let this = !query.contains("pod=\"") || query.contains(&format!("pod=\"{pod}\""));
            is(of) && (all || one) && this
        };
        let series =
            |(_, [namespace, pod, container], time, value): &(&str, [&str; 3], f64, &str)| {
                json!({"metric": {"namespace": namespace, "pod": pod, "container": container},
                "value": [time, value]})
            };
        SERIES.iter().filter(wanted).map(series).collect()
    };
    Json(json!({"status": "success", "data": {"resultType": "vector", "result": result}}))
        .into_response()
}

/// The API, by these rules, and the queries that it causes.
async fn api(rules: &str) -> (Router, Asked) {
    let asked = Asked::default();
    let router = Router::new().route("/api/v1/query", post(answer)).with_state(Arc::clone(&asked));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = Arc::new(Client::new(Config::new(url)).expect("a client"));
    let known = Arc::new(KnownResources::everyday());
    let rules = RuleSet::parse(rules).expect("rules");
    let engine = Arc::new(Engine::new(client, rules, known, Timings::default()));
    let directory = Arc::new(podscale_metrics::directory::Directory::default());
    for (namespace, name) in [("shop", "web"), ("shop", "half"), ("shop", "new"), ("other", "web")]
    {
        let labels = [("app", name)].into_iter().collect();
        directory.apply_pod((namespace.into(), name.into()), labels);
    }
    for node in ["n1", "n2", "n3"] {
        directory.apply_node(node, [("zone", node)].into_iter().collect());
    }
    let usage = Arc::new(RuledUsage::new(engine).expect("everyday rules"));
    (resource::router(Source { usage, directory }), asked)
}

async fn get(api: &Router, path: &str) -> (u16, String) {
    let uri = format!("/apis/metrics.k8s.io/v1beta1{path}");
    let request = axum::http::Request::get(uri).body(axum::body::Body::empty()).expect("a request");
    let answer = api.clone().oneshot(request).await.expect("an answer");
    let code = answer.status().as_u16();
    let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    (code, if code == 200 { words(&body) } else { body["message"].to_string() })
}

/// An object in few words, or all objects of a list.
fn words(body: &Value) -> String {
    if let Some(items) = body["items"].as_array() {
        return items.iter().map(words).collect::<Vec<_>>().join("; ");
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let usage =
        |of: &Value| format!("{}/{}", text(&of["usage"]["cpu"]), text(&of["usage"]["memory"]));
    let used = match body["containers"].as_array() {
        None => usage(body),
        Some(all) => {
            let one = |of: &Value| format!("{}={}", text(&of["name"]), usage(of));
            all.iter().map(one).collect::<Vec<_>>().join(" ")
        }
    };
    let name = [&body["metadata"]["namespace"], &body["metadata"]["name"]].map(text).join("/");
    format!("{name} {used} {} {}", text(&body["timestamp"]), text(&body["window"]))
}

const WEB: &str = "shop/web app=250m/1Mi log=0/2Ki proxy=0/0 1970-01-01T00:01:39Z 3m0s";
const OTHER: &str = "other/web app=0/7 1970-01-01T00:01:40Z 3m0s";
const NODE: &str = "/n1 2/4Ki 1970-01-01T00:01:38Z 3m0s";

#[tokio::test]
async fn pods_and_nodes_are_what_prometheus_says_by_the_rules() {
    let all = format!("{OTHER}; {WEB}");
    let whole = RULES.replace("BY", "<<.GroupBy>>");
    let (api, asked) = api(&whole).await;
    for (path, expected) in [
        ("/pods", &*all),
        ("/namespaces/shop/pods", WEB),
        ("/namespaces/shop/pods?labelSelector=app%3Dnew", ""),
        ("/namespaces/shop/pods/web", WEB),
        ("/namespaces/none/pods", ""),
        ("/nodes", NODE),
        ("/nodes/n1", NODE),
    ] {
        assert_eq!(get(&api, path).await, (200, expected.to_owned()), "{path}");
    }
    for (path, expected) in [
        ("/namespaces/shop/pods/half", "podmetrics.metrics.k8s.io \\\"shop/half\\\" not found"),
        ("/namespaces/shop/pods/nobody", "podmetrics.metrics.k8s.io \\\"shop/nobody\\\" not found"),
        ("/nodes/n2", "nodemetrics.metrics.k8s.io \\\"n2\\\" not found"),
    ] {
        assert_eq!(get(&api, path).await, (404, format!("\"{expected}\"")), "{path}");
    }
    let asked = std::mem::take(&mut *asked.lock());
    for query in [
        r#"sum(cpu{namespace!="",pod!=""}) by (namespace,pod,container)"#,
        r#"sum(memory{namespace="shop",pod="web"}) by (pod,container)"#,
        r#"sum(node_memory{instance!=""}) by (instance)"#,
        r#"sum(node_cpu{instance="n2"}) by (instance)"#,
    ] {
        assert!(asked.iter().any(|asked| asked == query), "no {query} among {asked:#?}");
    }
}

#[tokio::test]
async fn a_rule_that_cannot_be_asked_for_all_namespaces_is_asked_for_each() {
    let (api, asked) = api(&RULES.replace("BY", "pod, container")).await;
    assert_eq!(get(&api, "/pods").await, (200, format!("{OTHER}; {WEB}")));
    let mut asked: Vec<String> =
        asked.lock().drain(..).filter(|q| q.starts_with("sum(cpu")).collect();
    asked.sort();
    assert_eq!(
        asked,
        [
            r#"sum(cpu{namespace="other",pod!=""}) by (pod, container)"#,
            r#"sum(cpu{namespace="shop",pod!=""}) by (pod, container)"#,
        ]
    );
}

#[tokio::test]
async fn a_failure_of_prometheus_is_an_error_and_not_an_empty_list() {
    let (api, _) = api(&RULES.replace("BY", "<<.GroupBy>>").replace("cpu{", "broken{")).await;
    for path in ["/pods", "/nodes", "/namespaces/shop/pods/web"] {
        let (code, text) = get(&api, path).await;
        assert_eq!(code, 500, "{path}");
        assert!(text.contains("Prometheus answered 503 timeout: too busy"), "{path}: {text}");
    }
}
