//! What a Prometheus needs to scrape the workloads: the metrics of each of their pods, where they are (HTTP
//! service discovery), and a configuration that says so.
//!
//! `GET /pods/{namespace}/{pod}/metrics`, `GET /prometheus/targets`, `GET /prometheus.yml`.

use super::series::Metric;
use crate::load::{LoadModel, LoadState, PodRate, WorkloadState};
use crate::nodes::exposition::CONTENT_TYPE;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use podscale_metrics::exposition::write::Number;
use serde_json::{Value, json};
use std::fmt::Write;
use std::net::SocketAddr;

/// Where the configuration is.
pub const CONFIG: &str = "/prometheus.yml";
const TARGETS: &str = "/prometheus/targets";

/// A metric of a pod: name, type, help and value.
type Family = (&'static str, &'static str, &'static str, fn(&WorkloadState, &PodRate) -> f64);

const FAMILIES: [Family; 6] = [
    ("http_requests_total", "counter", "Requests that this pod has served.", |_, pod| {
        pod.served_total
    }),
    ("requests_per_second", "gauge", "Requests that this pod serves.", |workload, pod| {
        Metric::RequestsPerSecond.of_pod(workload, pod)
    }),
    ("queue_length", "gauge", "This pod's part of the work that waits.", |workload, pod| {
        Metric::QueueLength.of_pod(workload, pod)
    }),
    ("latency_seconds", "gauge", "How long a request takes.", |workload, pod| {
        Metric::LatencySeconds.of_pod(workload, pod)
    }),
    ("process_cpu_seconds_total", "counter", "CPU time that this pod has used.", |_, pod| {
        pod.cpu_seconds_total
    }),
    ("process_resident_memory_bytes", "gauge", "Memory that this pod uses.", |_, pod| {
        pod.memory_bytes
    }),
];

#[derive(Clone)]
struct Served {
    load: LoadModel,
    address: SocketAddr,
}

/// The calls, as a router that is reached at this address.
pub fn router(load: LoadModel, address: SocketAddr) -> Router {
    Router::new()
        .route(CONFIG, get(config))
        .route(TARGETS, get(targets))
        .route("/pods/{namespace}/{pod}/metrics", get(metrics))
        .with_state(Served { load, address })
}

/// Five seconds, so that a change of load is soon seen; whoever wants other times has a file of their own.
async fn config(State(served): State<Served>) -> Response {
    let address = served.address;
    let text = format!(
        "global:\n  scrape_interval: 5s\nscrape_configs:\n  - job_name: podscale-demo\n    \
         http_sd_configs:\n      - url: http://{address}{TARGETS}\n        refresh_interval: 5s\n"
    );
    ([(header::CONTENT_TYPE, "application/yaml")], text).into_response()
}

async fn targets(State(served): State<Served>) -> Json<Value> {
    Json(found(&served.load.state(), served.address))
}

/// Every running pod of a workload. All are behind one address, so each has a path of its own.
fn found(state: &LoadState, address: SocketAddr) -> Value {
    let target = |workload: &WorkloadState, pod: &PodRate| {
        let (namespace, name) = (&*workload.namespace, &*pod.name);
        json!({"targets": [address.to_string()], "labels": {
            "__metrics_path__": format!("/pods/{namespace}/{name}/metrics"),
            "instance": format!("{namespace}/{name}"),
            "namespace": namespace, "pod": name, "workload": &*workload.name,
        }})
    };
    let of = |workload: &WorkloadState| -> Vec<Value> {
        workload.pods.iter().map(|pod| target(workload, pod)).collect()
    };
    state.workloads.iter().flat_map(of).collect()
}

async fn metrics(
    State(served): State<Served>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    match exposition(&served.load.state(), &namespace, &name) {
        Some(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        None => {
            let text = format!("{namespace}/{name} is no running pod of a workload\n");
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

/// What one pod says of itself. Without times: the cluster's clock may be another one than Prometheus'.
fn exposition(state: &LoadState, namespace: &str, name: &str) -> Option<String> {
    let of = |workload: &WorkloadState| workload.pods.iter().position(|pod| *pod.name == *name);
    let mut workloads = state.workloads.iter().filter(|w| *w.namespace == *namespace);
    let (workload, pod) = workloads.find_map(|w| Some((w, &w.pods[of(w)?])))?;
    let mut text = String::new();
    for (family, kind, help, value) in FAMILIES {
        let number = Number(value(workload, pod));
        // Writing to a string cannot fail.
        let _ = write!(text, "# HELP {family} {help}\n# TYPE {family} {kind}\n{family} {number}\n");
    }
    Some(text)
}
