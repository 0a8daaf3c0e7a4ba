//! A real Prometheus: queries, credentials, a restart; and its own API as one of `metrics-api`.

use super::harness::{
    Folder, PLANTED, Process, context, free_port, gives, is_installed, poll, polled, scaler, spec,
};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What `planted-secret` becomes with few rounds of bcrypt.
const HASH: &str = "$2b$04$abcdefghijklmnopqrstuu8EnUz84k1wKPrR/4snv5AybbZajXfTm";

async fn exporter(depth: Arc<AtomicU32>) -> u16 {
    let metrics = move || {
        let depth = depth.load(Ordering::Relaxed);
        async move { format!("queue_depth{{queue=\"a\"}} {depth}\nqueue_depth{{queue=\"b\"}} 4\n") }
    };
    let router = axum::Router::new().route("/metrics", axum::routing::get(metrics));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "starts real servers"]
async fn queries_of_a_real_prometheus() {
    if !is_installed("prometheus", "prometheus") {
        return;
    }
    let (folder, port, depth) =
        (Folder::new("prometheus"), free_port(), Arc::new(AtomicU32::new(0)));
    let exporter = exporter(depth.clone()).await;
    let config = folder.file(
        "prometheus.yml",
        &format!(
            "global: {{scrape_interval: 1s}}\n\
             scrape_configs: [{{job_name: e, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}]\n"
        ),
    );
    let web = folder.file("web.yml", &format!("basic_auth_users: {{admin: '{HASH}'}}\n"));
    let start = || {
        let mut command = Command::new("prometheus");
        command.args([
            format!("--config.file={config}"),
            format!("--web.config.file={web}"),
            format!("--storage.tsdb.path={}", folder.path("data")),
            format!("--web.listen-address=127.0.0.1:{port}"),
        ]);
        Process::start(&mut command, &folder, "log")
    };
    let process = start();
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
    let _process = start();
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
