//! Targets of autoscalers and their pods, as objects of the API and as the harness keeps them. No
//! workload controller runs: the harness makes the pods itself, so that both clusters have the same pods
//! with the same names at the same moment.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Kinds with a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Deployment,
    StatefulSet,
    ReplicaSet,
    ReplicationController,
    /// A custom resource with a scale subresource.
    Widget,
    /// Served by the tests' own aggregated API server, which answers at `/scale` as it is told.
    Gadget,
}

pub const WIDGET_GROUP: &str = "widgets.test.podscale.dev";
pub const GADGET_GROUP: &str = "gadgets.test.podscale.dev";

impl Kind {
    /// Those that the API server stores.
    pub const STORED: [Kind; 5] = [
        Kind::Deployment,
        Kind::StatefulSet,
        Kind::ReplicaSet,
        Kind::ReplicationController,
        Kind::Widget,
    ];

    pub fn version(self) -> &'static str {
        match self {
            Kind::Deployment | Kind::StatefulSet | Kind::ReplicaSet => "apps/v1",
            Kind::ReplicationController => "v1",
            Kind::Widget => "widgets.test.podscale.dev/v1",
            Kind::Gadget => "gadgets.test.podscale.dev/v1",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Deployment => "Deployment",
            Kind::StatefulSet => "StatefulSet",
            Kind::ReplicaSet => "ReplicaSet",
            Kind::ReplicationController => "ReplicationController",
            Kind::Widget => "Widget",
            Kind::Gadget => "Gadget",
        }
    }
}

/// The workload's own selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selects {
    /// `app=NAME`.
    App,
    /// Sets: `app in (NAME),tier notin (a,b)`.
    Sets,
    /// `tier=TIER`, which other workloads may select as well.
    Tier,
}

/// What the pods of a workload request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    /// Every container requests cpu and memory.
    Each,
    /// Only the first container does.
    First,
    Nobody,
    /// The pod as a whole does.
    Pod,
    /// Every container does, and a restartable init container as well.
    Sidecar,
}

/// A workload.
#[derive(Clone, Debug)]
pub struct Target {
    pub kind: Kind,
    pub name: String,
    pub replicas: i32,
    pub tier: String,
    pub selects: Selects,
    /// How many containers its pods have.
    pub containers: usize,
    pub requests: Requests,
}

impl Target {
    pub fn new(kind: Kind, name: &str, replicas: i32) -> Target {
        Target {
            kind,
            name: name.to_owned(),
            replicas,
            tier: format!("{name}-tier"),
            selects: Selects::App,
            containers: 1,
            requests: Requests::Each,
        }
    }

    pub fn labels(&self) -> BTreeMap<String, String> {
        let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        [label("app", &self.name), label("tier", &self.tier)].into()
    }

    /// The selector as a custom resource writes it.
    pub fn selector_text(&self) -> String {
        match self.selects {
            Selects::App => format!("app={}", self.name),
            Selects::Sets => format!("app in ({}),tier notin (a,b)", self.name),
            Selects::Tier => format!("tier={}", self.tier),
        }
    }

    fn selector(&self) -> Value {
        match self.selects {
            Selects::App => json!({"matchLabels": {"app": self.name}}),
            Selects::Sets => json!({"matchExpressions": [
                {"key": "app", "operator": "In", "values": [self.name]},
                {"key": "tier", "operator": "NotIn", "values": ["a", "b"]}]}),
            Selects::Tier => json!({"matchLabels": {"tier": self.tier}}),
        }
    }

    /// The object to create; nothing for a Gadget, which no API server stores.
    pub fn manifest(&self) -> Option<Value> {
        let template = json!({"metadata": {"labels": self.labels()}, "spec": self.pod_spec()});
        let mut spec = json!({"replicas": self.replicas});
        match self.kind {
            Kind::Gadget => return None,
            Kind::Widget => {}
            Kind::ReplicationController => {
                spec["selector"] = json!({"app": self.name});
                spec["template"] = template;
            }
            _ => {
                spec["selector"] = self.selector();
                spec["template"] = template;
            }
        }
        Some(json!({"apiVersion": self.kind.version(), "kind": self.kind.name(),
            "metadata": {"name": self.name}, "spec": spec}))
    }

    fn pod_spec(&self) -> Value {
        let resources = json!({"requests": {"cpu": "100m", "memory": "64Mi"}});
        let container = |(number, name): (usize, &String)| {
            let requested = match self.requests {
                Requests::Each | Requests::Sidecar => true,
                Requests::First => number == 0,
                Requests::Nobody | Requests::Pod => false,
            };
            let resources = if requested { resources.clone() } else { json!({}) };
            json!({"name": name, "image": "none", "resources": resources})
        };
        let names = container_names(self.containers);
        let containers: Vec<Value> = names.iter().enumerate().map(container).collect();
        let mut spec = json!({"containers": containers});
        match self.requests {
            Requests::Pod => spec["resources"] = resources,
            Requests::Sidecar => {
                spec["initContainers"] = json!([{"name": "proxy", "image": "none",
                    "restartPolicy": "Always", "resources": resources}]);
            }
            _ => {}
        }
        spec
    }

    /// A pod of this workload, ready.
    pub fn pod(&self) -> Pod {
        Pod {
            owner: Some(self.name.clone()),
            labels: self.labels(),
            spec: self.pod_spec(),
            containers: match self.requests {
                Requests::Sidecar => {
                    [vec!["proxy".to_owned()], container_names(self.containers)].concat()
                }
                _ => container_names(self.containers),
            },
            life: Life::Ready,
            terminating: false,
        }
    }
}

fn container_names(count: usize) -> Vec<String> {
    ["app", "sidecar", "third"].iter().take(count).map(|name| (*name).to_owned()).collect()
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {}", self.kind.name(), self.name, self.replicas)?;
        write!(f, ", selects {}", self.selector_text())?;
        match (self.containers, self.requests) {
            (1, Requests::Each) => Ok(()),
            (containers, Requests::Each) => write!(f, ", {containers} containers"),
            (containers, requests) => {
                write!(f, ", {containers} containers, requests: {requests:?}")
            }
        }
    }
}

/// What became of a pod. All times are far from now, so that no decision depends on its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Not scheduled.
    Pending,
    Ready,
    /// Unready since it started.
    NeverReady,
    /// Unready, but was ready for a while.
    WasReady,
    /// Within its initialisation period, which never ends: it starts in the future.
    Starting,
    /// The same, and not ready.
    StartingUnready,
    /// Running, without a start time or conditions.
    Unreported,
    /// Ready is Unknown, as when its node is lost.
    Lost,
    Failed,
    Succeeded,
}

impl Life {
    pub const ALL: [Life; 10] = [
        Life::Pending,
        Life::Ready,
        Life::NeverReady,
        Life::WasReady,
        Life::Starting,
        Life::StartingUnready,
        Life::Unreported,
        Life::Lost,
        Life::Failed,
        Life::Succeeded,
    ];

    /// Whether a workload controller would count it.
    pub fn is_active(self) -> bool {
        !matches!(self, Life::Failed | Life::Succeeded)
    }

    /// The status of the pod.
    pub fn status(self) -> Value {
        const LONG_AGO: &str = "2020-01-01T00:00:00Z";
        const LATER: &str = "2020-01-01T01:00:00Z";
        const FUTURE: &str = "2099-01-01T00:00:00Z";
        let running = |start: &str, ready: &str, since: &str| {
            json!({"phase": "Running", "startTime": start, "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": since}]})
        };
        match self {
            Life::Pending => json!({"phase": "Pending", "startTime": null, "conditions": null}),
            Life::Ready => running(LONG_AGO, "True", LONG_AGO),
            Life::NeverReady => running(LONG_AGO, "False", LONG_AGO),
            Life::WasReady => running(LONG_AGO, "False", LATER),
            Life::Starting => running(FUTURE, "True", LONG_AGO),
            Life::StartingUnready => running(FUTURE, "False", LONG_AGO),
            Life::Unreported => json!({"phase": "Running", "startTime": null, "conditions": null}),
            Life::Lost => running(LONG_AGO, "Unknown", LATER),
            Life::Failed => json!({"phase": "Failed", "startTime": LONG_AGO, "conditions": null}),
            Life::Succeeded => {
                json!({"phase": "Succeeded", "startTime": LONG_AGO, "conditions": null})
            }
        }
    }
}

/// A pod.
#[derive(Clone, Debug)]
pub struct Pod {
    /// The workload that counts it.
    pub owner: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub spec: Value,
    pub containers: Vec<String>,
    pub life: Life,
    /// Whether it was deleted, but is still there.
    pub terminating: bool,
}

/// Keeps a terminating pod in existence.
pub const FINALIZER: &str = "test.podscale.dev/keep";

impl Pod {
    pub fn manifest(&self, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": self.labels}, "spec": self.spec})
    }
}
