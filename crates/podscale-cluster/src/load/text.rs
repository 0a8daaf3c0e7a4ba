//! The load model's numbers as Prometheus reads them.

use super::{LoadState, WorkloadState};
use podscale_metrics::exposition::write::{Label, Number};
use std::fmt::Write;

type Family = (&'static str, &'static str, &'static str, fn(&WorkloadState) -> f64);

const FAMILIES: [Family; 8] = [
    ("workload_offered_requests_per_second", "gauge", "Requests that arrive.", |w| w.offered_rps),
    ("workload_served_requests_per_second", "gauge", "Requests that are served.", |w| w.served_rps),
    ("workload_arrived_requests_total", "counter", "Requests that arrived.", |w| w.totals.arrived),
    ("workload_served_requests_total", "counter", "Requests that were served.", |w| {
        w.totals.served
    }),
    (
        "workload_dropped_requests_total",
        "counter",
        "Requests that were refused, gave up or were lost.",
        |w| w.totals.dropped,
    ),
    ("workload_queue_length", "gauge", "Work that waits.", |w| w.queue),
    ("workload_latency_seconds", "gauge", "How long a request takes.", |w| w.latency_seconds),
    ("workload_pods_running", "gauge", "Pods whose containers run.", |w| w.pods.len() as f64),
];

/// All series, in exposition text. Writing to a string cannot fail.
#[must_use]
pub fn exposition(state: &LoadState) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in FAMILIES {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for workload in &state.workloads {
            let (namespace, workload_name) = (Label(&workload.namespace), Label(&workload.name));
            let number = Number(value(workload));
            let _ = writeln!(
                text,
                "{name}{{namespace=\"{namespace}\",workload=\"{workload_name}\"}} {number}"
            );
        }
    }
    let name = "pod_requests_per_second";
    let _ = write!(text, "# HELP {name} Requests that a pod serves.\n# TYPE {name} gauge\n");
    for workload in &state.workloads {
        for pod in &workload.pods {
            let _ = writeln!(
                text,
                "{name}{{namespace=\"{}\",pod=\"{}\",workload=\"{}\"}} {}",
                Label(&workload.namespace),
                Label(&pod.name),
                Label(&workload.name),
                Number(pod.rps)
            );
        }
    }
    text
}
