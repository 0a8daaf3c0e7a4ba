//! A kubelet's `/metrics/resource`: what its node, pods and containers used, as Prometheus reads it.

use super::http::Measured;
use super::usage::Used;
use jiff::Timestamp;
use std::fmt::{Display, Write};

/// The content type of exposition text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of one node; families and samples are in order of their names.
#[must_use]
pub fn resource_metrics(node: Option<Used>, pods: &[Measured], time: Timestamp) -> String {
    let mut text = Text {
        text: String::with_capacity(1024 + pods.len() * 900),
        time,
    };
    text.family(
        "container_cpu_usage_seconds_total",
        "STABLE",
        "Cumulative cpu time consumed by the container in core-seconds",
        "counter",
    );
    text.containers(pods, "container_cpu_usage_seconds_total", |used| {
        used.cpu_seconds_total
    });
    text.family(
        "container_memory_working_set_bytes",
        "STABLE",
        "Current working set of the container in bytes",
        "gauge",
    );
    text.containers(pods, "container_memory_working_set_bytes", |used| {
        used.memory_bytes.round()
    });
    text.family(
        "container_start_time_seconds",
        "STABLE",
        "Start time of the container since unix epoch in seconds",
        "gauge",
    );
    for measured in pods {
        let started = measured.started().as_nanosecond() as f64 / 1e9;
        for (name, _) in measured.containers() {
            let labels = container_labels(measured, name);
            text.sample("container_start_time_seconds", &labels, started, false);
        }
    }
    text.family(
        "node_cpu_usage_seconds_total",
        "STABLE",
        "Cumulative cpu time consumed by the node in core-seconds",
        "counter",
    );
    text.node(
        "node_cpu_usage_seconds_total",
        node.map(|used| used.cpu_seconds_total),
    );
    text.family(
        "node_memory_working_set_bytes",
        "STABLE",
        "Current working set of the node in bytes",
        "gauge",
    );
    text.node(
        "node_memory_working_set_bytes",
        node.map(|used| used.memory_bytes.round()),
    );
    text.family(
        "pod_cpu_usage_seconds_total",
        "STABLE",
        "Cumulative cpu time consumed by the pod in core-seconds",
        "counter",
    );
    text.pods(pods, "pod_cpu_usage_seconds_total", |used| {
        used.cpu_seconds_total
    });
    text.family(
        "pod_memory_working_set_bytes",
        "STABLE",
        "Current working set of the pod in bytes",
        "gauge",
    );
    text.pods(pods, "pod_memory_working_set_bytes", |used| {
        used.memory_bytes.round()
    });
    let help = "1 if there was an error while getting container metrics, 0 otherwise";
    text.family("resource_scrape_error", "STABLE", help, "gauge");
    text.sample("resource_scrape_error", "", 0.0, false);
    text.family(
        "scrape_error",
        "ALPHA",
        &format!("(Deprecated since 1.29.0) {help}"),
        "gauge",
    );
    text.sample("scrape_error", "", 0.0, false);
    text.text
}

struct Text {
    text: String,
    time: Timestamp,
}

// Writing to a string cannot fail, so the results of `write!` are dropped.
impl Text {
    fn family(&mut self, name: &str, stability: &str, help: &str, kind: &str) {
        let _ = write!(
            self.text,
            "# HELP {name} [{stability}] {help}\n# TYPE {name} {kind}\n"
        );
    }

    fn sample(&mut self, name: &str, labels: &str, value: f64, timed: bool) {
        let _ = write!(self.text, "{name}{labels} {}", Number(value));
        if timed {
            let _ = write!(self.text, " {}", self.time.as_millisecond());
        }
        self.text.push('\n');
    }

    fn node(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.sample(name, "", value, true);
        }
    }

    fn containers(&mut self, pods: &[Measured], name: &str, value: impl Fn(Used) -> f64) {
        for measured in pods {
            for (container, used) in measured.containers() {
                self.sample(
                    name,
                    &container_labels(measured, container),
                    value(used),
                    true,
                );
            }
        }
    }

    fn pods(&mut self, pods: &[Measured], name: &str, value: impl Fn(Used) -> f64) {
        for measured in pods {
            let facts = &measured.view.facts;
            let labels = format!(
                "{{namespace=\"{}\",pod=\"{}\"}}",
                Label(&facts.namespace),
                Label(&facts.name)
            );
            let sum = measured.containers().map(|(_, used)| value(used)).sum();
            self.sample(name, &labels, sum, true);
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

/// The value of a label, with what must not stand there escaped.
pub struct Label<'a>(pub &'a str);

impl Display for Label<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// A sample's value: the shortest text that reads back the same, large ones with an exponent.
pub struct Number(pub f64);

impl Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let number = self.0;
        if number.is_nan() {
            return f.write_str("NaN");
        }
        if number.is_infinite() {
            return f.write_str(if number > 0.0 { "+Inf" } else { "-Inf" });
        }
        if number != 0.0 && !(1e-4..1e21).contains(&number.abs()) {
            let text = format!("{number:e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            return write!(f, "{digits}e{sign}{exponent:0>2}");
        }
        write!(f, "{number}")
    }
}
