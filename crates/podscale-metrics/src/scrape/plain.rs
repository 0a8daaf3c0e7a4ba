//! Reads the plain JSON forms of kubelets that have no `/metrics/resource`: means over a window, CPU in
//! thousandths of a core and memory in bytes.

use super::{Reading, Scrape};
use crate::exposition::LineError;
use jiff::Timestamp;
use podscale_api::time::GoDuration;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The answer of `/node`, or one pod of `/pods`: whatever of it can be read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Object {
    metadata: Option<Metadata>,
    timestamp: Option<String>,
    window: Option<String>,
    containers: Option<Vec<Container>>,
    resources: Option<Resources>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
    namespace: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    resources: Option<Resources>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    cpu: Option<f64>,
    memory: Option<f64>,
}

/// One item of a list; one that makes no sense costs only itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Object(Box<Object>),
    Other(IgnoredAny),
}

impl Object {
    fn reading(&self, resources: Option<Resources>) -> Reading {
        let Resources { cpu, memory } = resources.unwrap_or_default();
        let time = self.timestamp.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
        let window = self.window.as_deref().and_then(|text| GoDuration::parse(text).ok());
        let window_ms = window.map(|GoDuration(nanos)| nanos / 1_000_000).filter(|ms| *ms > 0);
        // Without a time and a window there is nothing to say of when it holds.
        let cpu_seconds = cpu.zip(window_ms).filter(|_| time.is_some());
        Reading {
            time_ms: time.map(Timestamp::as_millisecond),
            start_seconds: 0.0,
            cpu_seconds: cpu_seconds.map(|(millis, window_ms)| millis * window_ms as f64 / 1e6),
            memory_bytes: memory,
            window_ms,
        }
    }
}

impl Scrape {
    /// Reads the answers of `/pods` and, where the kubelet has it, of `/node`. Pods that make no sense
    /// are skipped and counted.
    ///
    /// # Errors
    /// One of them is not JSON of that form at all.
    pub fn read_plain(pods: &[u8], node: Option<&[u8]>) -> Result<Scrape, serde_json::Error> {
        let mut scrape = Scrape { recognized: true, ..Scrape::default() };
        if let Some(node) = node {
            let node: Option<Object> = serde_json::from_slice(node)?;
            let node = node.unwrap_or_default();
            scrape.node = node.reading(node.resources);
        }
        let items: Option<Vec<Item>> = serde_json::from_slice(pods)?;
        for (place, item) in items.unwrap_or_default().into_iter().enumerate() {
            let line = place + 1;
            match item {
                Item::Object(pod) => scrape.add_pod(&pod, line),
                Item::Other(_) => scrape.skip(LineError { line, problem: "not a pod" }),
            }
        }
        Ok(scrape.finish())
    }

    fn add_pod(&mut self, pod: &Object, line: usize) {
        let Some(Metadata { name, namespace }) = &pod.metadata else {
            return self.skip(LineError { line, problem: "a pod without a name" });
        };
        for container in pod.containers.iter().flatten() {
            match self.push([namespace, name, &container.name]) {
                Some(place) => {
                    if let Some(row) = self.rows.get_mut(place) {
                        row.reading = pod.reading(container.resources);
                    }
                }
                None => self.skip(LineError { line, problem: "not the names of a container" }),
            }
        }
    }
}
