//! A running controller seen from outside: its admin port, `explain`, `top`, and recordings of it that
//! replay to the same decisions.

// Helpers of tests may fail as loudly as tests do.
#![allow(clippy::expect_used)]

use parking_lot::Mutex;
use podscale::demo::{Config, Demo};
use podscale::scenario::Scenario;
use podscale_controller::controller::observer::{Decided, Observer};
use podscale_controller::metrics::Metrics;
use podscale_controller::record::{Limits, Recorder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How long anything may take before the test gives up: generous, since machines can be busy.
const PATIENCE: Duration = Duration::from_secs(300);

/// Counts decisions and changes of size.
#[derive(Default)]
struct Counted(Mutex<BTreeMap<String, (u32, u32)>>);

impl Observer for Counted {
    fn decided(&self, decided: &Decided<'_>) {
        let mut counts = self.0.lock();
        let count = counts.entry(decided.key().to_string()).or_default();
        count.0 += 1;
        count.1 += u32::from(decided.decision().rescaled_at.is_some());
    }
}

impl Counted {
    fn decisions(&self) -> u32 {
        self.0.lock().values().map(|(decisions, _)| decisions).sum()
    }

    fn changes(&self) -> u32 {
        self.0.lock().values().map(|(_, changes)| changes).sum()
    }
}

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).expect("a folder");
    found.map(|file| file.expect("a file").path()).collect()
}

/// Runs the program, off the threads that serve.
async fn podscale(arguments: &[&str]) -> Output {
    let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
    let run = move || Command::new(env!("CARGO_BIN_EXE_podscale")).args(arguments).output();
    tokio::task::spawn_blocking(run).await.expect("it ran").expect("it can be run")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn get(url: &str) -> String {
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    let mut stream = tokio::net::TcpStream::connect(host).await.expect("a connection");
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await.expect("an answer");
    text(&answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_controller_tells_and_records_what_it_does() {
    let name = format!("podscale-admin-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    let metrics = Metrics::new();
    let (recorder, writing) =
        Recorder::start(&folder.0, Limits::default(), metrics.clone()).expect("a folder");
    let counted = Arc::new(Counted::default());
    let scenario = Scenario::load("tour").expect("the tour");
    let config = Config { speed: 30.0, ..Config::of(scenario) };
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(recorder), counted.clone()];
    let demo = Demo::start(config, observers).await.expect("a demo");
    let end = Instant::now() + PATIENCE;
    while counted.decisions() < 60 || counted.changes() < 6 {
        let (decisions, changes) = (counted.decisions(), counted.changes());
        assert!(Instant::now() < end, "{decisions} decisions, {changes} changes of size");
        sleep(Duration::from_millis(200)).await;
    }
    let admin = demo.dashboard_url();
    seen_from_outside(&admin).await;
    demo.stop().await;
    writing.finish();

    let decided = counted.decisions();
    assert!(metrics.text().contains(&format!("\npodscale_recorded_steps_total {decided}\n")));
    let files = files(&folder.0);
    let names = files.iter().map(|file| file.to_str().expect("UTF-8"));
    let arguments: Vec<&str> = ["replay"].into_iter().chain(names).collect();
    let replayed = podscale(&arguments).await;
    let told = text(&replayed.stdout);
    let last = told.lines().last().unwrap_or_default();
    assert_eq!(last, format!("{decided} of {decided} decisions agree"), "{told}");
    assert!(replayed.status.success(), "{}", text(&replayed.stderr));
}

async fn seen_from_outside(admin: &str) {
    let metrics = get(&format!("{admin}metrics")).await;
    for part in [
        "horizontal_pod_autoscaler_controller_reconciliations_total{action=\"scale_up\",error=\"none\"}",
        "podscale_cache_objects{cache=\"pods\"}",
        "podscale_kubelet_scrapes_total{outcome=\"new\"}",
        "podscale_api_requests_total{verb=\"update\",resource=\"status\",code=\"200\"}",
        "podscale_due_lag_seconds_count",
    ] {
        assert!(metrics.contains(part), "no {part} in\n{metrics}");
    }
    assert!(get(&format!("{admin}readyz")).await.ends_with("ok\n"));

    let told = podscale(&["explain", "shop/web", "--admin", admin]).await;
    let words = text(&told.stdout);
    assert!(told.status.success(), "{}", text(&told.stderr));
    for part in ["shop/web: HorizontalPodAutoscaler scales Deployment/web", "Latest decision"] {
        assert!(words.contains(part), "no {part} in\n{words}");
    }
    let told = podscale(&["explain", "web", "--admin", admin, "-o", "json"]).await;
    let json: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!(json["autoscaler"]["namespace"], "shop");
    let refused = podscale(&["explain", "shop/wep", "--admin", admin]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("did you mean shop/web"), "{}", text(&refused.stderr));

    let top = podscale(&["top", "--admin", admin]).await;
    let table = text(&top.stdout);
    assert!(table.starts_with("NAMESPACE") && table.contains("Deployment/web"), "{table}");
    let top = podscale(&["top", "--admin", admin, "-o", "json", "--filter", "shop/web"]).await;
    let json: Value = serde_json::from_slice(&top.stdout).expect("JSON");
    assert_eq!(json["autoscalers"][0]["name"], "web");
}
