//! What a server is asked to do, and how long it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::{Value, json};

/// How many clients write at the same time.
const WRITERS: u64 = 8;
/// How many clients watch while others write.
const WATCHERS: u64 = 20;

/// How much is measured.
#[derive(Clone, Copy)]
pub struct Scale {
    /// Pods to list and to replay.
    pub pods: u64,
    /// Changes that are watched.
    pub changes: u64,
    /// Lists in a row.
    pub lists: u32,
    /// Objects for the measurement of many.
    pub many: u64,
}

impl Scale {
    pub const FULL: Self = Self { pods: 10_000, changes: 2_000, lists: 20, many: 100_000 };
    pub const BRIEF: Self = Self { pods: 200, changes: 50, lists: 2, many: 500 };
}

/// What was measured of one server.
pub struct Figures {
    pub creates: f64,
    pub create_p99: Duration,
    pub lists: f64,
    pub replayed: f64,
    pub delivered: f64,
}

type Row = (&'static str, &'static str, fn(&Figures) -> f64);

/// The rows of the table: what, in which unit.
pub const ROWS: [Row; 5] = [
    ("creates of pods, 8 writers", "/s", |figures| figures.creates),
    ("slowest 1 % of creates", "µs", |figures| figures.create_p99.as_secs_f64() * 1e6),
    ("lists of 10,000 pods", "/min", |figures| figures.lists * 60.0),
    ("watch events, replay of 10,000 pods", "/s", |figures| figures.replayed),
    ("watch events, live to 20 watchers", "/s", |figures| figures.delivered),
];

pub fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "app": "web", "pod-template-hash": "abc" } },
        "spec": { "nodeName": "node-1", "containers": [{
            "name": "main", "image": "registry.example/web:1.2.3",
            "ports": [{ "containerPort": 8080 }],
            "resources": { "requests": { "cpu": "100m", "memory": "128Mi" } },
        }] },
    })
}

fn post(path: &str, body: &Value) -> Request<Body> {
    let request = Request::post(path).header("content-type", "application/json");
    request.body(Body::from(body.to_string().into_bytes())).unwrap()
}

/// Sends a request and reads the answer to its end; gives its length.
pub async fn exchange(client: &kube::Client, request: Request<Body>) -> usize {
    let response = client.send(request).await.unwrap();
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    assert!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&bytes));
    bytes.len()
}

pub async fn get(client: &kube::Client, path: &str) -> usize {
    exchange(client, Request::get(path).body(Body::empty()).unwrap()).await
}

/// Creates pods from several writers at once; gives how long each took, sorted.
pub async fn create(client: &kube::Client, prefix: &str, count: u64) -> Vec<Duration> {
    let next = Arc::new(AtomicU64::new(0));
    let writers = (0..WRITERS).map(|_| {
        let (client, next, prefix) = (client.clone(), next.clone(), prefix.to_owned());
        tokio::spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return times;
                }
                let started = Instant::now();
                let pod = pod(&format!("{prefix}-{number}"));
                exchange(&client, post("/api/v1/namespaces/default/pods", &pod)).await;
                times.push(started.elapsed());
            }
        })
    });
    let mut times = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        times.extend(writer.await.unwrap());
    }
    times.sort_unstable();
    times
}

/// The time that this share of a sorted list stays below.
pub fn share(times: &[Duration], percent: usize) -> Duration {
    let at = times.len().saturating_mul(percent) / 100;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Reads a watch until that many events of some type have come.
pub async fn watch(client: &kube::Client, path: &str, mark: &[u8], count: u64) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let mut body = client.send(request).await.unwrap().into_body();
    read_events(&mut body, mark, count).await;
}

async fn read_events(body: &mut Body, mark: &[u8], count: u64) {
    // The end of a piece may cut the mark in two.
    let mut rest: Vec<u8> = Vec::new();
    let mut seen = 0;
    while seen < count {
        let frame = body.frame().await.unwrap().unwrap();
        let Ok(piece) = frame.into_data() else { continue };
        rest.extend_from_slice(&piece);
        let mut from = 0;
        while let Some(end) = rest[from..].iter().position(|byte| *byte == b'\n') {
            let line = &rest[from..from + end];
            seen += u64::from(line.starts_with(mark));
            from += end + 1;
        }
        rest.drain(..from);
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below the limit")]
fn per_second(count: u64, started: Instant) -> f64 {
    count as f64 / started.elapsed().as_secs_f64()
}

/// Measures everything on an empty server.
pub async fn measure(client: &kube::Client, scale: Scale) -> Figures {
    // The first requests open connections and fill caches.
    create(client, "warm", WRITERS * 2).await;
    let started = Instant::now();
    let times = create(client, "pod", scale.pods).await;
    let creates = per_second(scale.pods, started);

    get(client, "/api/v1/pods").await;
    let started = Instant::now();
    for _ in 0..scale.lists {
        get(client, "/api/v1/pods").await;
    }
    let lists = per_second(scale.lists.into(), started);

    let started = Instant::now();
    let path = "/api/v1/pods?watch=1&resourceVersion=0";
    watch(client, path, ADDED, scale.pods).await;
    let replayed = per_second(scale.pods, started);

    let delivered = live(client, scale.changes).await;
    Figures { creates, create_p99: share(&times, 99), lists, replayed, delivered }
}

pub const ADDED: &[u8] = b"{\"type\":\"ADDED\"";

/// Events per second that reach all watchers while pods are created as fast as possible.
async fn live(client: &kube::Client, changes: u64) -> f64 {
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        // An exact start: what is there already does not count.
        let path = "/api/v1/pods?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan\
                    &allowWatchBookmarks=true";
        let request = Request::get(path).body(Body::empty()).unwrap();
        let mut body = client.send(request).await.unwrap().into_body();
        watchers.push(tokio::spawn(async move { read_events(&mut body, ADDED, changes).await }));
    }
    let started = Instant::now();
    create(client, "live", changes).await;
    for watcher in watchers {
        watcher.await.unwrap();
    }
    per_second(changes * WATCHERS, started)
}
