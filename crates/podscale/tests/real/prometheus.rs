//! A real Prometheus: queries, credentials, a restart; and its own API as one of `metrics-api`.

use super::driven::{FOR_ONE, Server, Trigger};
use super::harness::{
    Folder, PLANTED, Process, basic, context, free_port, gives, http, is_installed, listens, poll,
    polled, scaler, spec, until,
};
use serde_json::json;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `planted-secret` becomes with few rounds of bcrypt.
const HASH: &str = "$2b$04$abcdefghijklmnopqrstuu8EnUz84k1wKPrR/4snv5AybbZajXfTm";

/// Serves the depth of a queue, and that of another one, which is 4.
fn exporter(depth: Arc<AtomicUsize>) -> u16 {
    let metrics = move || {
        let depth = depth.load(Ordering::Relaxed);
        async move { format!("queue_depth{{queue=\"a\"}} {depth}\nqueue_depth{{queue=\"b\"}} 4\n") }
    };
    let router = axum::Router::new().route("/metrics", axum::routing::get(metrics));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("it does not block");
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

pub(crate) struct Prometheus {
    folder: Folder,
    port: u16,
    /// What it scrapes.
    depth: Arc<AtomicUsize>,
    config: String,
    web: String,
}

impl Server for Prometheus {
    fn installed() -> Option<Prometheus> {
        if !is_installed("prometheus", "prometheus") {
            return None;
        }
        let (folder, depth) = (Folder::new("prometheus"), Arc::new(AtomicUsize::new(0)));
        let exporter = exporter(Arc::clone(&depth));
        let config = folder.file(
            "prometheus.yml",
            &format!(
                "global: {{scrape_interval: 1s}}\n\
                 scrape_configs: [{{job_name: e, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}]\n"
            ),
        );
        let web = folder.file("web.yml", &format!("basic_auth_users: {{admin: '{HASH}'}}\n"));
        Some(Prometheus { folder, port: free_port(), depth, config, web })
    }

    fn start(&self) -> Process {
        let mut command = Command::new("prometheus");
        command.args([
            format!("--config.file={}", self.config),
            format!("--web.config.file={}", self.web),
            format!("--storage.tsdb.path={}", self.folder.path("data")),
            format!("--web.listen-address=127.0.0.1:{}", self.port),
        ]);
        Process::start(&mut command, &self.folder, "log")
    }

    /// It must have scraped something, too.
    async fn answers(&self) {
        listens(self.port).await;
        until("a sample", async || {
            let head = "GET /api/v1/query?query=queue_depth";
            let answer = http(self.port, head, &basic("admin", PLANTED), "");
            answer.contains("127.0.0.1").then_some(())
        })
        .await;
    }

    fn prepare(&self) {}

    fn triggers(&self) -> Vec<Trigger> {
        let (address, query) =
            (format!("http://127.0.0.1:{}", self.port), "queue_depth{queue=\"a\"}");
        let by_query = json!({"serverAddress": address, "query": query, "threshold": FOR_ONE,
            "ignoreNullValues": "false", "authModes": "basic"});
        let url = format!("{address}/api/v1/query?query=queue_depth{{queue=%22a%22}}");
        let by_api = json!({"url": url, "valueLocation": "data.result.0.value.1",
            "targetValue": FOR_ONE, "authMode": "basic"});
        let with = |trigger: Trigger| trigger.with("username", "admin").with("password", PLANTED);
        vec![with(Trigger::new("prometheus", by_query)), with(Trigger::new("metrics-api", by_api))]
    }

    fn send(&self, count: usize) {
        self.depth.fetch_add(count, Ordering::Relaxed);
    }

    async fn drain(&self) {
        self.depth.store(0, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queries_of_a_real_prometheus() {
    let Some(prometheus) = Prometheus::installed() else { return };
    let (port, depth) = (prometheus.port, &prometheus.depth);
    let process = prometheus.start();
    let auth = format!("authModes: basic\nauth.username: admin\nauth.password: {PLANTED}");
    let at = format!("serverAddress: http://127.0.0.1:{port}\nthreshold: 2\n{auth}");
    let context = context();
    let query = "query: queue_depth{queue=\"a\"}\nactivationThreshold: 1\nignoreNullValues: false";
    let queue = scaler(&context, &spec("prometheus", &format!("{at}\n{query}")));
    for (value, expected) in [(0, "0"), (1, "1"), (7, "7!"), (0, "0"), (5, "5!")] {
        depth.store(value, Ordering::Relaxed);
        gives(&*queue, expected).await;
    }
    for (query, expected) in [
        ("sum(queue_depth)", "9!"),
        ("queue_depth", "prometheus query queue_depth returned multiple elements"),
        ("nothing_like_it", "0"),
        ("vector(0)/0", "0"),
        ("scalar(vector(3))", "3!"),
        ("sum(", "Prometheus answered 400 bad_data: "),
        ("queue_depth[1m]", "the query gives a matrix"),
    ] {
        let found = polled("prometheus", &format!("{at}\nquery: {query}")).await;
        assert!(found.contains(expected), "{query}: {found}");
    }
    let wrong = at.replace(PLANTED, "other");
    let found = polled("prometheus", &format!("{wrong}\nquery: up")).await;
    assert!(found.contains("refuses the credentials: "), "{found}");
    apis(port).await;

    drop(process);
    let gone = poll(&*queue).await;
    assert!(gone.contains("cannot be reached: "), "{gone}");
    let _process = prometheus.start();
    gives(&*queue, "5!").await;
}

/// The API of Prometheus as any other one.
async fn apis(port: u16) {
    let auth = format!("authMode: basic\nauth.username: admin\nauth.password: {PLANTED}");
    let url = format!("url: http://127.0.0.1:{port}");
    for (path, more, expected) in [
        (
            "/api/v1/query?query=queue_depth{queue=%22b%22}",
            "valueLocation: data.result.0.value.1",
            "4!",
        ),
        ("/api/v1/query?query=queue_depth", "valueLocation: data.result.#", "2!"),
        (
            "/api/v1/query?query=queue_depth",
            "valueLocation: data.result.#(metric.queue==\"b\").value.1",
            "4!",
        ),
        ("/metrics", "format: prometheus\nvalueLocation: prometheus_build_info", "1!"),
        (
            "/-/healthy",
            "valueLocation: a",
            "error requesting metrics endpoint: the answer is not JSON",
        ),
    ] {
        let text = format!("{url}{path}\n{auth}\ntargetValue: 1\n{more}");
        let found = polled("metrics-api", &text).await;
        assert!(found.starts_with(expected), "{path}: {found}");
    }
    let text = format!("{url}/metrics\ntargetValue: 1\nformat: prometheus\nvalueLocation: up");
    let found = polled("metrics-api", &text).await;
    assert!(found.contains("refuses the credentials: it answers 401"), "{found}");
}
