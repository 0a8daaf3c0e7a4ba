//! What a collector gets from `podscale run`: the real OpenTelemetry Collector, with the configuration
//! of the documentation; and one that never answers.

#[path = "telemetry/kinds.rs"]
mod kinds;
#[path = "telemetry/tls.rs"]
mod tls;

use super::{Folder, Replica, create, get, until};
use axum::Router;
use podscale_apiserver::{ApiServer, Config};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// How long the source of pods' metrics takes.
const SLOW: Duration = Duration::from_millis(300);
const SPACE: &str = "default";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The collector; it is built, which takes minutes, if it is not there. `None` without Go.
fn program() -> Option<PathBuf> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(find_program).clone()
}

fn find_program() -> Option<PathBuf> {
    let go = Command::new("go").arg("version").stdout(Stdio::null()).status();
    if !go.is_ok_and(|status| status.success()) {
        let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!in_ci, "the collector cannot be built: there is no Go");
        println!("\n!! LEFT OUT: telemetry: there is no Go to build a collector\n");
        return None;
    }
    let built = Command::new(root().join("e2e/collector/build")).status().expect("it runs");
    assert!(built.success(), "the collector cannot be built");
    Some(root().join("target/collector/collector"))
}

/// A collector that ends with the test.
struct Collector {
    child: Child,
    file: PathBuf,
}

impl Collector {
    /// Starts one in a folder, with the configuration that the documentation shows.
    fn start(program: &Path, folder: &Folder, port: u16) -> Collector {
        Collector::start_with(program, folder, port, "")
    }

    /// Starts one with more settings of what it listens on.
    fn start_with(program: &Path, folder: &Folder, port: u16, more: &str) -> Collector {
        let page = std::fs::read_to_string(root().join("docs/observability.md")).expect("a page");
        let (_, page) = page.split_once("## OpenTelemetry").expect("a chapter");
        let (_, page) = page.split_once("```yaml\n").expect("an example");
        let (example, _) = page.split_once("```").expect("its end");
        assert!(example.contains("127.0.0.1:4318"), "{example}");
        let example = example.replace("127.0.0.1:4318", &format!("127.0.0.1:{port}{more}"));
        let (config, log) = (folder.0.join("collector.yaml"), folder.0.join("collector.log"));
        std::fs::write(&config, example).expect("written");
        let log = std::fs::File::create(log).expect("a file");
        let mut command = Command::new(program);
        command.arg("--config").arg(&config).current_dir(&folder.0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().expect("the collector starts");
        Collector { child, file: folder.0.join("telemetry.jsonl") }
    }

    /// What has arrived so far, line by line.
    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        // The last line may be half written.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Everything below these names, each a list within the one before.
    fn all(&self, names: [&str; 3]) -> Vec<Value> {
        let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
        let mut found = self.lines();
        for name in names {
            found = found.iter().flat_map(|value| list(value, name)).collect();
        }
        found
    }

    fn spans(&self) -> Vec<Value> {
        self.all(["resourceSpans", "scopeSpans", "spans"])
    }

    fn logs(&self) -> Vec<Value> {
        self.all(["resourceLogs", "scopeLogs", "logRecords"])
    }

    /// The points of a metric, each with the fields of its metric.
    fn points(&self, name: &str, kind: &str) -> Vec<Value> {
        let metrics = self.all(["resourceMetrics", "scopeMetrics", "metrics"]);
        let named = metrics.iter().filter(|metric| metric["name"] == name);
        let points = named.flat_map(|metric| {
            let points = metric[kind]["dataPoints"].as_array().cloned().unwrap_or_default();
            points.into_iter().map(|mut point| {
                point["of"] = metric[kind].clone();
                point["of"]["dataPoints"] = Value::Null;
                point
            })
        });
        points.collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of an attribute, as text; empty if there is none.
fn attribute(of: &Value, key: &str) -> String {
    let attributes = of["attributes"].as_array().cloned().unwrap_or_default();
    let found = attributes.iter().find(|attribute| attribute["key"] == key);
    let value = found.and_then(|found| found["value"].as_object()?.values().next().cloned());
    match value {
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

fn nanos(of: &Value, name: &str) -> u64 {
    of[name].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// An API server with a slow source of metrics that knows of one busy pod.
async fn serve() -> (kube::Client, String) {
    let server = ApiServer::new(Config::default());
    let client = kube::Client::new(server.router(), SPACE);
    let metrics = json!({"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1",
        "items": [{"metadata": {"name": "web-1", "namespace": SPACE, "labels": {"app": "web"}},
            "timestamp": "2026-01-01T00:00:00Z", "window": "15s",
            "containers": [{"name": "c", "usage": {"cpu": "900m", "memory": "1Mi"}}]}]});
    let answer = axum::routing::get(move || async move {
        tokio::time::sleep(SLOW).await;
        axum::Json(metrics)
    });
    let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{SPACE}/pods");
    let router = Router::new().route(&path, answer).fallback_service(server.router());
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = tokio::net::TcpListener::bind(local).await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (client, url)
}

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

/// An autoscaler by cpu with at least so many replicas.
fn autoscaler(name: &str, least: i32) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name}, "spec": {"minReplicas": least, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "AverageValue", "averageValue": "800m"}}}]}})
}

async fn put_deployment(client: &kube::Client) {
    let template = json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
    create(client, DEPLOYMENT, target).await;
}

async fn put_objects(client: &kube::Client) {
    put_deployment(client).await;
    create(client, AUTOSCALERS, autoscaler("web", 3)).await;
    create(client, AUTOSCALERS, autoscaler("lost", 1)).await;
}

async fn raise(client: &kube::Client, least: i32) {
    let patch = json!({"spec": {"minReplicas": least}}).to_string().into_bytes();
    let request = axum::http::Request::patch(format!("{AUTOSCALERS}/web"));
    let request = request.header("content-type", "application/merge-patch+json");
    client.request::<Value>(request.body(patch).expect("a request")).await.expect("patched");
}

async fn until_size(client: &kube::Client, size: i32) {
    until(&format!("{size} replicas"), async || {
        get(client, &format!("{DEPLOYMENT}/web")).await["spec"]["replicas"] == size
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_gets_traces_logs_and_metrics() {
    let Some(program) = program() else { return };
    let (client, url) = serve().await;
    put_objects(&client).await;
    let (folder, port) = (Folder::new("collector"), free_port());
    let collector = Collector::start(&program, &folder, port);
    let kubeconfig = folder.kubeconfig(&url);
    let endpoint = format!("http://127.0.0.1:{port}");
    let flags = ["--otlp-endpoint", &endpoint, "--sync-period", "1s"];
    let replica = Replica::start_with(
        &kubeconfig,
        &flags,
        &[
            ("OTEL_SERVICE_NAME", "scaler"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_BSP_SCHEDULE_DELAY", "100"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "300"),
        ],
    );
    until_size(&client, 3).await;

    until("the span of the change", async || rescale(&collector.spans()).is_some()).await;
    let spans = collector.spans();
    let decide = rescale(&spans).expect("it was there");
    for (key, value) in [
        ("k8s.namespace.name", SPACE),
        ("podscale.autoscaler", "web"),
        ("podscale.target", "Deployment/web"),
        ("podscale.replicas.from", "1"),
        ("podscale.replicas.to", "3"),
    ] {
        assert_eq!(attribute(&decide, key), value, "{key} of {decide:#}");
    }
    assert!(!attribute(&decide, "podscale.reason").is_empty(), "{decide:#}");
    assert_eq!(decide["parentSpanId"].as_str().unwrap_or_default(), "", "{decide:#}");
    let inside = |parent: &Value| -> Vec<Value> {
        let is_child = |span: &&Value| span["parentSpanId"] == parent["spanId"];
        spans.iter().filter(is_child).cloned().collect()
    };
    let write = inside(&decide).into_iter().find(|span| span["name"] == "update scale");
    let write = write.unwrap_or_else(|| panic!("nothing written in {:#?}", inside(&decide)));
    assert_eq!(attribute(&write, "http.response.status_code"), "200", "{write:#}");
    assert_eq!(
        (attribute(&write, "podscale.api.verb"), &write["kind"]),
        ("update".into(), &json!(3))
    );

    // The reconcile that asked the slow source shows how long that took.
    let slow = |span: &&Value| span["name"] == "list resource metrics";
    let parent = |spans: &[Value], span: &Value| {
        spans.iter().find(|parent| parent["spanId"] == span["parentSpanId"]).cloned()
    };
    until("the source was asked", async || {
        let spans = collector.spans();
        spans.iter().find(slow).is_some_and(|asked| parent(&spans, asked).is_some())
    })
    .await;
    let spans = collector.spans();
    let asked = spans.iter().find(slow).expect("it was there");
    let reading = &parent(&spans, asked).expect("it was there");
    assert_eq!(reading["name"], "read metric");
    assert_eq!(attribute(reading, "podscale.metric.name"), "cpu");
    for span in [asked, reading] {
        let took = nanos(span, "endTimeUnixNano") - nanos(span, "startTimeUnixNano");
        assert!(Duration::from_nanos(took) >= SLOW, "{span:#}");
    }

    until("a reconcile that failed", async || {
        let lost = |span: &&Value| attribute(span, "podscale.autoscaler") == "lost";
        let spans = collector.spans();
        let failed = spans.iter().filter(lost).find(|span| span["status"]["code"] == 2);
        failed.is_some_and(|span| {
            let message = span["status"]["message"].as_str().unwrap_or_default();
            message.contains("not found") && attribute(span, "podscale.outcome") == "failed"
        })
    })
    .await;

    until("the line of the change", async || {
        let body =
            |line: &Value| line["body"]["stringValue"].as_str().unwrap_or_default().to_owned();
        let lines = collector.logs();
        let line = lines.iter().find(|line| body(line).starts_with("Deployment web: 1 → 3: "));
        line.is_some_and(|line| {
            (&line["traceId"], &line["spanId"]) == (&decide["traceId"], &decide["spanId"])
                && line["severityText"] == "INFO"
                && attribute(line, "autoscaler") == "default/web"
        })
    })
    .await;

    until("the metrics", async || {
        let counted = collector.points("podscale_decisions_total", "sum");
        let up = counted.iter().find(|point| attribute(point, "outcome") == "up");
        let waits = collector.points("podscale_source_request_duration_seconds", "histogram");
        let leads = collector.points("podscale_leader", "gauge");
        up.is_some_and(|up| {
            up["asInt"] == "1"
                && up["of"]["isMonotonic"] == true
                && up["of"]["aggregationTemporality"] == 2
                && nanos(up, "startTimeUnixNano") > 0
        }) && waits.iter().any(|point| {
            let bounds = point["explicitBounds"].as_array().map_or(0, Vec::len);
            let counts = point["bucketCounts"].as_array().map_or(0, Vec::len);
            nanos(point, "count") > 0 && bounds > 0 && counts == bounds + 1
        }) && leads.iter().any(|point| point["asInt"] == "1")
    })
    .await;
    for line in collector.lines() {
        let text = line.to_string();
        for part in ["\"scaler\"", "deployment.environment.name", "service.instance.id"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }

    drop(collector);
    raise(&client, 5).await;
    until_size(&client, 5).await;

    let later = Folder::new("collector-again");
    let collector = Collector::start(&program, &later, port);
    until("spans after the restart", async || !collector.spans().is_empty()).await;
    raise(&client, 6).await;
    until_size(&client, 6).await;
    let output = replica.end();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    until("the last line", async || {
        let lines = collector.logs();
        lines.iter().any(|line| line["body"]["stringValue"] == "released the lease")
    })
    .await;
    assert!(rescale(&collector.spans()).is_some(), "the last change is not exported");
    assert!(!log.contains("reconcile{"), "spans do not belong into the log: {log}");
}

/// The latest span of a reconcile that scaled the target up.
fn rescale(spans: &[Value]) -> Option<Value> {
    let is_it =
        |span: &&Value| span["name"] == "reconcile" && attribute(span, "podscale.outcome") == "up";
    spans.iter().rfind(is_it).cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_never_answers_delays_nothing() {
    // Takes connections into its backlog, and nothing from them.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let endpoint = format!("http://{}", silent.local_addr().expect("an address"));
    let (client, url) = serve().await;
    put_objects(&client).await;
    let folder = Folder::new("silent");
    let kubeconfig = folder.kubeconfig(&url);
    // The queue is soon full.
    let replica = Replica::start_with(
        &kubeconfig,
        &["--sync-period", "100ms"],
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "200"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "4"),
            ("OTEL_BSP_SCHEDULE_DELAY", "10"),
        ],
    );
    until_size(&client, 3).await;
    for size in 4..=8 {
        raise(&client, size).await;
        until_size(&client, size).await;
    }
    let output = replica.end();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{log}");
    let reported = log.matches("traces do not reach the collector").count();
    assert_eq!(reported, 1, "it is logged once, not for each batch: {log}");
    assert!(log.contains("no answer within 200 ms"), "{log}");
}
