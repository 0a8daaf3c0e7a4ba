//! Whether what `metrics.k8s.io` and `kubectl top` say of pods is what the kubelet measured.

use super::super::fixture::Workspace;
use super::cluster::{Cluster, NODE};
use anyhow::{Context, Result};
use axum::http::Request;
use kube::Client;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How often the kubelet is read: more often than it measures, so that none of its samples is missed.
const EVERY: Duration = Duration::from_millis(300);

/// One sample of a pod's container, as the kubelet says it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    time_ms: i64,
    value: f64,
}

/// All samples of one pod that the kubelet had since this was started.
pub struct Samples {
    cpu: Arc<Mutex<Vec<Sample>>>,
    memory: Arc<Mutex<BTreeSet<u64>>>,
    task: AbortHandle,
}

impl Drop for Samples {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The samples of a metric of a pod in the kubelet's text.
fn samples(text: &str, metric: &str, pod: &str) -> Vec<Sample> {
    let label = format!("pod=\"{pod}\"");
    let lines = text.lines().filter(|line| line.starts_with(metric) && line.contains(&label));
    let read = |line: &str| {
        let mut fields = line.rsplit(' ');
        let time_ms = fields.next()?.parse().ok()?;
        Some(Sample { time_ms, value: fields.next()?.parse().ok()? })
    };
    lines.filter_map(read).collect()
}

impl Samples {
    /// Reads the kubelet through the API server from now on.
    pub fn follow(client: Client, pod: &str) -> Samples {
        let (cpu, memory) = (Arc::<Mutex<Vec<Sample>>>::default(), Arc::default());
        let path = format!("/api/v1/nodes/{NODE}/proxy/metrics/resource");
        let (known, sizes): (_, Arc<Mutex<BTreeSet<u64>>>) =
            (Arc::clone(&cpu), Arc::clone(&memory));
        let pod = pod.to_owned();
        let task = tokio::spawn(async move {
            loop {
                if let Ok(request) = Request::get(&path).body(Vec::new())
                    && let Ok(text) = client.request_text(request).await
                {
                    let mut new = samples(&text, "container_cpu_usage_seconds_total", &pod);
                    let mut known = known.lock();
                    new.retain(|sample| !known.contains(sample));
                    known.extend(new);
                    let bytes = samples(&text, "container_memory_working_set_bytes", &pod);
                    sizes.lock().extend(bytes.iter().map(|sample| sample.value as u64));
                }
                tokio::time::sleep(EVERY).await;
            }
        });
        Samples { cpu, memory, task: task.abort_handle() }
    }

    /// Whether an answer follows from two samples of the kubelet, by its own times.
    fn explain(&self, answer: &Answer) -> bool {
        let known = self.cpu.lock();
        let ends = known.iter().filter(|end| end.time_ms / 1000 == answer.second);
        let mut pairs = ends.flat_map(|end| known.iter().map(move |start| (start, end)));
        let follows = pairs.any(|(start, end)| {
            let window_ms = end.time_ms - start.time_ms;
            let cores = (end.value - start.value) / (window_ms as f64 / 1000.0);
            (window_ms as f64 - answer.window_ms).abs() <= 1.0
                && (cores - answer.cores).abs() < 1e-5
        });
        follows && self.memory.lock().contains(&answer.bytes)
    }
}

/// What the API says of a pod with one container.
#[derive(Debug)]
struct Answer {
    /// The end of its window, in whole seconds.
    second: i64,
    window_ms: f64,
    cores: f64,
    bytes: u64,
}

impl Answer {
    async fn get(client: &Client, namespace: &str, pod: &str) -> Result<Answer> {
        let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{pod}");
        let object: Value = client.request(Request::get(path).body(Vec::new())?).await?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let usage = &object["containers"][0]["usage"];
        let time: jiff::Timestamp = text(&object["timestamp"])?.parse()?;
        let window = text(&object["window"])?;
        let window = window.strip_suffix('s').context("a window that is not in seconds")?;
        Ok(Answer {
            second: time.as_second(),
            window_ms: window.parse::<f64>().with_context(|| format!("a window {window}"))?
                * 1000.0,
            cores: cores(&text(&usage["cpu"])?)?,
            bytes: bytes(&text(&usage["memory"])?)?,
        })
    }
}

fn cores(text: &str) -> Result<f64> {
    let (number, size) = match text.char_indices().next_back() {
        Some((at, 'n')) => (&text[..at], 1e-9),
        Some((at, 'u')) => (&text[..at], 1e-6),
        Some((at, 'm')) => (&text[..at], 1e-3),
        _ => (text, 1.0),
    };
    Ok(number.parse::<f64>()? * size)
}

fn bytes(text: &str) -> Result<u64> {
    let (number, size) = match text.strip_suffix("Ki") {
        Some(number) => (number, 1024),
        None => match text.strip_suffix("Mi") {
            Some(number) => (number, 1024 * 1024),
            None => (text, 1),
        },
    };
    Ok(number.parse::<u64>()? * size)
}

/// Waits until the API says of a pod what the kubelet measured, to the digit, and `kubectl top` the same, rounded
/// up to thousandths as it does.
pub async fn until_agreed(cluster: &Cluster, space: &Workspace, pod: &str) -> Result<()> {
    let samples = Samples::follow(space.client(), pod);
    let namespace = &space.namespace;
    space
        .until("whether the API agrees with the kubelet", &Ok(()), async || {
            let answer = Answer::get(&space.client(), namespace, pod).await?;
            let shown = cluster.top_pods(namespace)?;
            let shown = shown.iter().find(|(name, _)| name == pod).map(|(_, millis)| *millis);
            let rounded = (answer.cores * 1000.0).ceil() as u64;
            let agreed = samples.explain(&answer) && shown == Some(rounded);
            Ok(if agreed { Ok(()) } else { Err(format!("{answer:?}, kubectl top: {shown:?}")) })
        })
        .await
}
