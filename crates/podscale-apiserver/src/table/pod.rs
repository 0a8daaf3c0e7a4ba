//! Rows of pods: the status column sums up phase, conditions and the containers' states.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Column, Row, age, age_cell, integer, list, name_cell, or_else, text};

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Ready", "Ready containers of all that keep running."),
        Column::text("Status", "What the pod's containers are doing, in a word."),
        Column::text("Restarts", "How often containers were restarted, and when last."),
        Column::age(),
        Column::wide("IP", "Address of the pod."),
        Column::wide("Node", "Node that the pod runs on."),
        Column::wide("Nominated Node", "Node on which room is being made for the pod."),
        Column::wide("Readiness Gates", "Conditions that readiness also waits for."),
    ]
}

pub(super) fn row(pod: &Value, now: Timestamp) -> Row {
    let summary = Summary::of(pod);
    let restarts = match summary.restarts {
        Restarts { count, last: Some(last) } if count != 0 => {
            format!("{count} ({} ago)", age::human_duration(now.duration_since(last).as_secs()))
        }
        Restarts { count, .. } => count.to_string(),
    };
    let ip = match list(pod, "/status/podIPs").first() {
        Some(first) => text(first, "/ip"),
        None => text(pod, "/status/podIP"),
    };
    let cells = vec![
        name_cell(pod),
        format!("{}/{}", summary.ready, summary.containers).into(),
        summary.reason.into(),
        restarts.into(),
        age_cell(pod, now),
        or_else(ip, "<none>").into(),
        or_else(text(pod, "/spec/nodeName"), "<none>").into(),
        or_else(text(pod, "/status/nominatedNodeName"), "<none>").into(),
        readiness_gates(pod).into(),
    ];
    Row { cells, conditions: completed(text(pod, "/status/phase")) }
}

/// Tells clients that the pod has run to its end, so that they may hide it.
fn completed(phase: &str) -> Option<Value> {
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| condition_status(pod, text(gate, "/conditionType")) == Some("True"))
        .count();
    format!("{open}/{}", gates.len())
}

fn condition_status<'a>(pod: &'a Value, kind: &str) -> Option<&'a str> {
    list(pod, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
        .map(|condition| text(condition, "/status"))
}

#[derive(Debug, Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count = self.count.saturating_add(integer(status, "/restartCount"));
        let finished = text(status, "/lastState/terminated/finishedAt").parse().ok();
        self.last = self.last.max(finished);
    }
}

struct Summary {
    containers: usize,
    ready: usize,
    reason: String,
    restarts: Restarts,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let init_specs = list(pod, "/spec/initContainers");
        let sidecars = init_specs.iter().filter(|container| is_sidecar(container)).count();
        let mut summary = Self {
            containers: list(pod, "/spec/containers").len() + sidecars,
            ready: 0,
            reason: phase_reason(pod).to_owned(),
            restarts: Restarts::default(),
        };
        let sidecar_restarts = summary.look_at_init_containers(pod, init_specs);
        if let Some(restarts) = sidecar_restarts {
            summary.restarts = restarts;
            summary.look_at_containers(pod);
        }
        if pod.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
            if text(pod, "/status/reason") == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(text(pod, "/status/phase"), "Failed" | "Succeeded") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Stops at the first init container that holds the pod up. Gives the restarts of the sidecars
    /// if the ordinary containers are what counts from here on.
    fn look_at_init_containers(&mut self, pod: &Value, specs: &[Value]) -> Option<Restarts> {
        let mut sidecar_restarts = Restarts::default();
        let mut held_up = false;
        for (index, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
            let name = text(status, "/name");
            let sidecar =
                specs.iter().rev().any(|spec| text(spec, "/name") == name && is_sidecar(spec));
            self.restarts.add(status);
            if sidecar {
                sidecar_restarts.add(status);
            }
            let terminated = status.pointer("/state/terminated").filter(|state| !state.is_null());
            if terminated.is_some_and(|state| integer(state, "/exitCode") == 0) {
                continue;
            }
            if sidecar && flag(status, "/started") {
                self.ready += usize::from(flag(status, "/ready"));
                continue;
            }
            let waiting = text(status, "/state/waiting/reason");
            self.reason = match terminated {
                Some(state) => format!("Init:{}", end_reason(state)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => {
                    format!("Init:{waiting}")
                }
                None => format!("Init:{index}/{}", specs.len()),
            };
            held_up = true;
            break;
        }
        (!held_up || condition_status(pod, "Initialized") == Some("True"))
            .then_some(sidecar_restarts)
    }

    /// The first container in the list has the last word.
    fn look_at_containers(&mut self, pod: &Value) {
        let mut running = false;
        let mut failure = None;
        for status in list(pod, "/status/containerStatuses").iter().rev() {
            self.restarts.add(status);
            let waiting = text(status, "/state/waiting/reason");
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(state) =
                status.pointer("/state/terminated").filter(|state| !state.is_null())
            {
                self.reason = end_reason(state);
                if integer(state, "/exitCode") != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if flag(status, "/ready")
                && status.pointer("/state/running").is_some_and(|state| !state.is_null())
            {
                running = true;
                self.ready += 1;
            }
        }
        // A container that ended well does not speak for those that still run or that failed.
        if self.reason == "Completed" {
            if running && condition_status(pod, "Ready") == Some("True") {
                self.reason = "Running".to_owned();
            } else if let Some(failure) = failure {
                self.reason = failure;
            } else if running {
                self.reason = "NotReady".to_owned();
            }
        }
    }
}

fn phase_reason(pod: &Value) -> &str {
    let gated = list(pod, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == "PodScheduled"
            && text(condition, "/reason") == "SchedulingGated"
    });
    if gated {
        return "SchedulingGated";
    }
    or_else(text(pod, "/status/reason"), text(pod, "/status/phase"))
}

/// Why a container ended: its reason, else the signal, else the exit code.
fn end_reason(terminated: &Value) -> String {
    match (text(terminated, "/reason"), integer(terminated, "/signal")) {
        ("", 0) => format!("ExitCode:{}", integer(terminated, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn is_sidecar(init_container: &Value) -> bool {
    text(init_container, "/restartPolicy") == "Always"
}

fn flag(value: &Value, pointer: &str) -> bool {
    value.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}
