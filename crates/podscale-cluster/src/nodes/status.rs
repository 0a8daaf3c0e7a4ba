//! What a node reports of a pod, as a patch of its status.

use super::lifecycle::{Life, Stage};
use super::pod::{Container, Facts};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::net::IpAddr;

/// The exit code of a container that crashed.
const CRASH_CODE: i32 = 1;

/// A strategic merge patch that makes the status of this pod (and of no later one with its name)
/// what its life is now.
#[must_use]
pub fn patch(facts: &Facts, life: &Life, host: IpAddr, ip: IpAddr) -> Value {
    let report = Report { facts, life };
    let mut status = Map::new();
    let mut set = |key: &str, value: Value| status.insert(key.to_owned(), value);
    set("phase", report.phase().into());
    set("startTime", seconds(life.taken).into());
    set("hostIP", host.to_string().into());
    set("hostIPs", json!([{"ip": host.to_string()}]));
    if life.started.is_some() {
        set("podIP", ip.to_string().into());
        set("podIPs", json!([{"ip": ip.to_string()}]));
    }
    set("conditions", report.conditions());
    let containers = facts.containers.iter().map(|container| report.container(container));
    set("containerStatuses", containers.collect());
    if let Some(generation) = facts.generation {
        set("observedGeneration", generation.into());
    }
    json!({"metadata": {"uid": &*facts.uid}, "status": status})
}

/// A time as Kubernetes writes it, without fractions of a second.
#[must_use]
pub fn seconds(time: Timestamp) -> String {
    format!("{time:.0}")
}

struct Report<'a> {
    facts: &'a Facts,
    life: &'a Life,
}

impl Report<'_> {
    fn phase(&self) -> &'static str {
        match self.life.stage {
            Stage::Creating => "Pending",
            Stage::Running { .. } | Stage::BackOff => "Running",
            Stage::Failed => "Failed",
            Stage::Succeeded => "Succeeded",
            Stage::Stopping if self.life.started.is_some() => "Running",
            Stage::Stopping => "Pending",
        }
    }

    fn conditions(&self) -> Value {
        let life = self.life;
        let ready = life.ready();
        let why = self.why_unready();
        let sandbox = life.started.unwrap_or(life.taken);
        json!([
            condition("PodReadyToStartContainers", life.started.is_some(), sandbox, None),
            condition("Initialized", true, life.taken, None),
            condition("Ready", ready, life.ready_changed, why.as_ref()),
            condition("ContainersReady", ready, life.ready_changed, why.as_ref()),
            condition("PodScheduled", true, life.taken, None),
        ])
    }

    /// Reason and message of a pod that is not ready.
    fn why_unready(&self) -> Option<(&'static str, String)> {
        match self.life.stage {
            Stage::Running { ready: true } => None,
            Stage::Failed => Some(("PodFailed", String::new())),
            Stage::Succeeded => Some(("PodCompleted", String::new())),
            Stage::Creating | Stage::Running { .. } | Stage::BackOff | Stage::Stopping => {
                let names: Vec<&str> = self.facts.containers.iter().map(|c| &*c.name).collect();
                let message = format!("containers with unready status: [{}]", names.join(" "));
                Some(("ContainersNotReady", message))
            }
        }
    }

    fn container(&self, container: &Container) -> Value {
        let life = self.life;
        let running = life.running();
        let mut status = json!({
            "name": &*container.name,
            "image": &*container.image,
            "imageID": "",
            "ready": life.ready(),
            "started": running,
            "restartCount": life.restarts,
            "state": self.state(container),
            "lastState": {},
        });
        if life.started.is_some() {
            status["imageID"] = format!("podscale://{}", container.image).into();
            status["containerID"] = self.container_id(container, life.restarts).into();
        }
        let is_over = matches!(life.stage, Stage::Failed | Stage::Succeeded);
        if life.ended.is_some() && !is_over {
            status["lastState"] = self.terminated(container);
        }
        status
    }

    fn state(&self, container: &Container) -> Value {
        match self.life.stage {
            Stage::Running { .. } | Stage::Stopping if self.life.running() => {
                let started = self.life.started.unwrap_or(self.life.since);
                json!({"running": {"startedAt": seconds(started)}})
            }
            Stage::BackOff => {
                let facts = self.facts;
                let message = format!(
                    "back-off restarting failed container={} pod={}_{}({})",
                    container.name, facts.name, facts.namespace, facts.uid
                );
                json!({"waiting": {"reason": "CrashLoopBackOff", "message": message}})
            }
            Stage::Failed | Stage::Succeeded => self.terminated(container),
            Stage::Creating | Stage::Running { .. } | Stage::Stopping => {
                json!({"waiting": {"reason": "ContainerCreating"}})
            }
        }
    }

    fn terminated(&self, container: &Container) -> Value {
        let life = self.life;
        let failed = life.stage != Stage::Succeeded;
        let ended = life.ended.unwrap_or(life.since);
        let run = if life.running() { life.restarts.saturating_sub(1) } else { life.restarts };
        json!({"terminated": {
            "exitCode": if failed { CRASH_CODE } else { 0 },
            "reason": if failed { "Error" } else { "Completed" },
            "startedAt": seconds(life.started.unwrap_or(ended).min(ended)),
            "finishedAt": seconds(ended),
            "containerID": self.container_id(container, run),
        }})
    }

    fn container_id(&self, container: &Container, restarts: u32) -> String {
        format!("podscale://{}/{}/{restarts}", self.facts.uid, container.name)
    }
}

fn condition(
    kind: &str,
    status: bool,
    since: Timestamp,
    why: Option<&(&'static str, String)>,
) -> Value {
    let status = if status { "True" } else { "False" };
    // Nulls remove what an earlier report said.
    let (reason, message) = match why {
        Some((reason, message)) if message.is_empty() => (json!(reason), Value::Null),
        Some((reason, message)) => (json!(reason), json!(message)),
        None => (Value::Null, Value::Null),
    };
    json!({
        "type": kind, "status": status, "lastProbeTime": null,
        "lastTransitionTime": seconds(since), "reason": reason, "message": message,
    })
}
