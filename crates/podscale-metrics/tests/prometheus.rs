//! Against the real Prometheus: it scrapes a small exporter on the loopback, and is asked for queries and
//! series, wrongly too, and over a restart.

use podscale_api::Selector;
use podscale_metrics::prometheus::{Client, Config, PrometheusError};
use podscale_metrics::rules::catalog::Asked;
use podscale_metrics::rules::engine::{Engine, EngineError, Timings};
use podscale_metrics::rules::matchers::Matchers;
use podscale_metrics::rules::usage::{Measured, Scope};
use podscale_metrics::rules::{KnownResources, ResourceRules, RuleSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[path = "../../podscale/tests/support/ports.rs"]
mod ports;

/// How long something may take that takes seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

const EXPOSED: &str = r#"
http_requests_total{namespace="shop",pod="web-1",verb="GET"} 10
http_requests_total{namespace="shop",pod="web-1",verb="PUT"} 5
http_requests_total{namespace="shop",pod="web.2",verb="GET"} 30
http_requests_total{namespace="shop",pod="webx2",verb="GET"} 99
http_requests_total{namespace="other",pod="web-1",verb="GET"} 7
odd_value{namespace="shop",pod="web-1"} NaN
odd_value{namespace="shop",pod="web.2"} +Inf
queue_depth{queue="a",namespace="shop"} 3.25
queue_depth{queue="b",namespace="shop"} 4
container_memory_working_set_bytes{namespace="shop",pod="web-1",container="main"} 1048576
container_memory_working_set_bytes{namespace="shop",pod="web-1",container=""} 2097152
"#;

const RULES: &str = r#"
rules:
- seriesQuery: '{__name__=~"^http_.*_total$",pod!=""}'
  resources: {overrides: {namespace: {resource: namespace}, pod: {resource: pod}}}
  name: {matches: "^(.*)_total$"}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
- seriesQuery: odd_value
  resources: {template: <<.Resource>>}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: queue_depth
  resources: {template: <<.Resource>>}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (queue)
- seriesQuery: queue_depth
  resources: {template: <<.Resource>>}
  name: {as: total_depth}
  metricsQuery: scalar(sum(<<.Series>>{<<.LabelMatchers>>}))
- seriesQuery: queue_depth
  resources: {template: <<.Resource>>}
  name: {as: broken}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}[5m])
"#;

/// A running Prometheus with its folder; both go with it.
struct Prometheus {
    process: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Prometheus {
    fn start(folder: PathBuf, address: SocketAddr) -> Prometheus {
        let log = std::fs::File::create(folder.join("log")).expect("a log");
        let process = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("prometheus starts");
        Prometheus { process, folder, address }
    }

    fn kill(mut self) -> (PathBuf, SocketAddr) {
        self.end();
        (std::mem::take(&mut self.folder), self.address)
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.end();
        if !self.folder.as_os_str().is_empty() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Whether there is a Prometheus; in CI there must be.
fn is_installed() -> bool {
    let found = Command::new("prometheus").arg("--version").output().is_ok();
    assert!(found || std::env::var("CI").as_deref() != Ok("true"), "prometheus is not installed");
    if !found {
        eprintln!("!! LEFT OUT: prometheus is not installed (Debian's package prometheus)");
    }
    found
}

async fn exporter() -> SocketAddr {
    let router = axum::Router::new().route("/metrics", axum::routing::get(|| async { EXPOSED }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], ports::free_port().expect("a port")))
}

/// Waits until something is so.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{what} does not come");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_and_queries_on_the_real_prometheus() {
    if !is_installed() {
        return;
    }
    let folder =
        std::env::temp_dir().join(format!("podscale-real-prometheus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs: [{{job_name: e, honor_labels: true, static_configs: [{{targets: ['{}']}}]}}]\n",
        exporter().await
    );
    std::fs::write(folder.join("prometheus.yml"), config).expect("written");
    let prometheus = Prometheus::start(folder, free_address());
    let url = format!("http://{}", prometheus.address);
    let client = Arc::new(Client::new(Config::new(url)).expect("a client"));
    until("the first scrape", async || {
        let answer = client.query("queue_depth").await.ok()?;
        (answer.vector.samples.len() == 2).then_some(())
    })
    .await;

    queries(&client).await;
    let rules = RuleSet::parse(RULES).expect("rules");
    let known = Arc::new(KnownResources::everyday());
    let engine = Engine::new(Arc::clone(&client), rules, known, Timings::default());
    metrics(&engine).await;

    let (folder, address) = prometheus.kill();
    let gone = client.query("up").await.expect_err("it is gone");
    assert_eq!(gone.kind(), "unreachable", "{gone}");
    let gone = custom(&engine, "http_requests", &["web-1"], "").await;
    assert!(gone.starts_with("unable to fetch metrics: cannot be reached"), "{gone}");
    let _prometheus = Prometheus::start(folder, address);
    until("the restarted one", async || {
        let values = custom(&engine, "http_requests", &["web-1"], "").await;
        (values == "web-1=15").then_some(())
    })
    .await;
}

async fn queries(client: &Client) {
    for (query, expected) in [
        ("vector(1)", "1 samples"),
        ("vector(1) > 2", "0 samples"),
        ("scalar(vector(7))", "1 samples, scalar"),
        ("odd_value", "2 samples"),
        ("sum(", "Prometheus answered 400 bad_data: "),
        ("queue_depth[1m]", "the query gives a matrix, not one value for each series; use rate()"),
        ("\"text\"", "the query gives a string, not one value for each series"),
        ("queue_depth * on(namespace) queue_depth", "Prometheus answered 422 execution: "),
    ] {
        let found = match client.query(query).await {
            Ok(answer) => {
                let scalar = if answer.scalar { ", scalar" } else { "" };
                format!("{} samples{scalar}", answer.vector.samples.len())
            }
            Err(error) => error.to_string(),
        };
        assert!(found.starts_with(expected), "{query}: {found}");
    }
    // Whatever objects are called, the query for them can be read.
    for name in ["a.b", "a|b", "(", "[", "\\", "\"", "\n", "é日\u{200b}\u{7f}", "$^*+?{}"] {
        let mut matchers = Matchers::default();
        matchers.one_of("pod", &[name, "web.2"]);
        matchers.equals("verb", "GET");
        matchers.one_of("namespace", &["shop"]);
        let query = format!("http_requests_total{{{}}}", matchers.text());
        let answer = client.query(&query).await.unwrap_or_else(|e| panic!("{name:?}: {e}"));
        assert_eq!(answer.vector.samples.len(), 1, "{query}");
    }
    let shapes = client.series("queue_depth", Duration::from_secs(600)).await.expect("series");
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    let labels: Vec<&str> = shapes[0].labels.iter().map(|label| &**label).collect();
    assert_eq!(labels, ["instance", "job", "namespace", "queue"]);
    let wrong = client.series("{", Duration::from_secs(600)).await.expect_err("wrong");
    assert!(matches!(wrong, PrometheusError::Refused { code: 400, .. }), "{wrong}");
}

async fn metrics(engine: &Engine) {
    let both = ["web-1", "web.2", "none"];
    for (metric, names, selector, expected) in [
        ("http_requests", &both[..], "", "web-1=15 web.2=30"),
        ("http_requests", &["web-1"], "verb=PUT", "web-1=5"),
        ("http_requests", &both, "verb in (GET,PUT)", "web-1=15 web.2=30"),
        ("http_requests", &both, "verb notin (GET)", "web-1=5"),
        ("http_requests", &both, "!verb", ""),
        ("odd_value", &both, "", "web-1=0 web.2=9223372036854775807m"),
        (
            "http_requests",
            &["none"],
            "",
            "the server could not find the metric http_requests for pods none",
        ),
        ("unknown", &["web-1"], "", "the server could not find the metric unknown for pods"),
        (
            "http_requests",
            &["web-1"],
            "verb>1",
            "the operator > on verb is not supported by Prometheus",
        ),
    ] {
        assert_eq!(custom(engine, metric, names, selector).await, expected, "{metric} {selector}");
    }
    assert_eq!(external(engine, "queue_depth", "").await, "a=3250m b=4");
    assert_eq!(external(engine, "queue_depth", "queue=b").await, "b=4");
    assert_eq!(external(engine, "total_depth", "").await, "=7250m");
    let broken = external(engine, "broken", "").await;
    assert!(
        broken.starts_with("unable to fetch metrics: Prometheus answered 400 bad_data"),
        "{broken}"
    );
    let everyday = ResourceRules::everyday().expect("rules");
    for scope in [Scope::Cluster, Scope::Namespace("shop"), Scope::Pods("shop", &["web-1"])] {
        let used = engine.containers(Measured::Memory, scope, &everyday, Duration::ZERO).await;
        let used: Vec<String> = used
            .expect("usage")
            .iter()
            .map(|used| format!("{}/{}={}", used.name, used.container, used.milli))
            .collect();
        assert_eq!(used, ["web-1/main=1048576000"], "{scope:?}");
    }
}

async fn custom(engine: &Engine, metric: &str, names: &[&str], selector: &str) -> String {
    let pods = engine.resource("", "pods").expect("pods");
    let selector = Selector::parse(selector).expect("a selector");
    let asked = Asked { resource: &pods, namespace: Some("shop"), names, selector: &selector };
    let values = engine.custom(metric, asked, Duration::ZERO).await;
    words(values, |value| format!("{}={}", value.name, value.value))
}

async fn external(engine: &Engine, metric: &str, selector: &str) -> String {
    let selector = Selector::parse(selector).expect("a selector");
    let values = engine.external(metric, "shop", &selector, Duration::ZERO).await;
    words(values, |value| {
        format!("{}={}", value.labels.get("queue").unwrap_or_default(), value.value)
    })
}

fn words<T>(values: Result<Vec<T>, EngineError>, word: impl Fn(&T) -> String) -> String {
    match values {
        Ok(values) => {
            let mut words: Vec<String> = values.iter().map(word).collect();
            words.sort();
            words.join(" ")
        }
        Err(error) => error.to_string(),
    }
}
