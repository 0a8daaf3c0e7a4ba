//! A kubelet's `/metrics/resource`: what its node, pods and containers used, as Prometheus reads it.

use super::http::Measured;
use super::usage::Used;
use jiff::Timestamp;
use podscale_metrics::exposition::write::{Label, Number};
use std::fmt::Write;

/// The content type of exposition text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const CONTAINER_CPU: Family = Family {
    name: "container_cpu_usage_seconds_total",
    kind: "counter",
    help: "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
};
const CONTAINER_MEMORY: Family = Family {
    name: "container_memory_working_set_bytes",
    kind: "gauge",
    help: "[STABLE] Current working set of the container in bytes",
};
const CONTAINER_START: Family = Family {
    name: "container_start_time_seconds",
    kind: "gauge",
    help: "[STABLE] Start time of the container since unix epoch in seconds",
};
const NODE_CPU: Family = Family {
    name: "node_cpu_usage_seconds_total",
    kind: "counter",
    help: "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
};
const NODE_MEMORY: Family = Family {
    name: "node_memory_working_set_bytes",
    kind: "gauge",
    help: "[STABLE] Current working set of the node in bytes",
};
const POD_CPU: Family = Family {
    name: "pod_cpu_usage_seconds_total",
    kind: "counter",
    help: "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
};
const POD_MEMORY: Family = Family {
    name: "pod_memory_working_set_bytes",
    kind: "gauge",
    help: "[STABLE] Current working set of the pod in bytes",
};
const RESOURCE_SCRAPE_ERROR: Family = Family {
    name: "resource_scrape_error",
    kind: "gauge",
    help: "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
};
const SCRAPE_ERROR: Family = Family {
    name: "scrape_error",
    kind: "gauge",
    help: "[ALPHA] (Deprecated since 1.29.0) 1 if there was an error while getting container metrics, 0 otherwise",
};

/// What samples of one name have in common.
struct Family {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
}

/// The text of one node; families are in order of their names, those without samples left out.
#[must_use]
pub fn resource_metrics(node: Option<Used>, pods: &[Measured], time: Timestamp) -> String {
    let capacity = 1024 + pods.len() * 900;
    let mut text = Text { text: String::with_capacity(capacity), time, begun: None };
    let cpu = |used: Used| used.cpu_seconds_total;
    let memory = |used: Used| used.memory_bytes.round();
    text.containers(&CONTAINER_CPU, pods, cpu);
    text.containers(&CONTAINER_MEMORY, pods, memory);
    for measured in pods {
        let started = measured.started().as_nanosecond() as f64 / 1e9;
        for (name, _) in measured.containers() {
            let labels = container_labels(measured, name);
            text.sample(&CONTAINER_START, &labels, started, false);
        }
    }
    if let Some(node) = node {
        text.sample(&NODE_CPU, "", cpu(node), true);
        text.sample(&NODE_MEMORY, "", memory(node), true);
    }
    text.pods(&POD_CPU, pods, cpu);
    text.pods(&POD_MEMORY, pods, memory);
    text.sample(&RESOURCE_SCRAPE_ERROR, "", 0.0, false);
    text.sample(&SCRAPE_ERROR, "", 0.0, false);
    text.text
}

struct Text {
    text: String,
    time: Timestamp,
    /// The family that the last sample was of.
    begun: Option<&'static str>,
}

// Writing to a string cannot fail, so the results of `write!` are dropped.
impl Text {
    fn sample(&mut self, family: &Family, labels: &str, value: f64, timed: bool) {
        let Family { name, kind, help } = family;
        if self.begun != Some(name) {
            self.begun = Some(name);
            let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
        let _ = write!(self.text, "{name}{labels} {}", Number(value));
        if timed {
            let _ = write!(self.text, " {}", self.time.as_millisecond());
        }
        self.text.push('\n');
    }

    fn containers(&mut self, family: &Family, pods: &[Measured], value: impl Fn(Used) -> f64) {
        for measured in pods {
            for (container, used) in measured.containers() {
                self.sample(family, &container_labels(measured, container), value(used), true);
            }
        }
    }

    fn pods(&mut self, family: &Family, pods: &[Measured], value: impl Fn(Used) -> f64) {
        for measured in pods {
            let facts = &measured.view.facts;
            let (namespace, pod) = (Label(&facts.namespace), Label(&facts.name));
            let labels = format!("{{namespace=\"{namespace}\",pod=\"{pod}\"}}");
            let sum = measured.containers().map(|(_, used)| value(used)).sum();
            self.sample(family, &labels, sum, true);
        }
    }
}

fn container_labels(measured: &Measured, container: &str) -> String {
    let facts = &measured.view.facts;
    format!(
        "{{container=\"{}\",namespace=\"{}\",pod=\"{}\"}}",
        Label(container),
        Label(&facts.namespace),
        Label(&facts.name)
    )
}
