//! A pod as the controllers see it: only the fields they use, decoded straight from the watch, so
//! that ten thousand pods stay small.

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{Affinity, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// The annotation that says how dear a pod's deletion is.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// A pod; what is not listed here is dropped when it is read.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Pod {
    /// Names, labels, owners and times.
    #[serde(default, deserialize_with = "lean_meta")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    #[serde(default)]
    pub spec: PodSpec,
    /// What its kubelet reports.
    #[serde(default)]
    pub status: PodStatus,
}

/// What was asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The node it was placed on.
    pub node_name: Option<String>,
    /// Who places it.
    pub scheduler_name: Option<String>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// Containers that run before, or beside, the others.
    pub init_containers: Vec<Container>,
    /// What the pod costs beyond its containers.
    pub overhead: BTreeMap<String, Quantity>,
    /// Labels that its node must have.
    pub node_selector: BTreeMap<String, String>,
    /// Further wishes for its place.
    pub affinity: Option<Box<Affinity>>,
    /// Taints that it bears.
    pub tolerations: Vec<Toleration>,
    /// Reasons not to place it yet.
    pub scheduling_gates: Vec<Gate>,
    /// Who goes first.
    pub priority: Option<i32>,
    /// Its host name, if not its own name.
    pub hostname: Option<String>,
    /// The service that gives it a DNS name.
    pub subdomain: Option<String>,
}

/// A reason not to place a pod yet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Gate {
    /// Its name.
    pub name: String,
}

/// A container of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// What it needs.
    pub resources: Resources,
    /// Its ports.
    pub ports: Vec<Port>,
    /// `Always` makes an init container a sidecar.
    pub restart_policy: Option<String>,
}

/// What a container needs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// What it is sure to get.
    pub requests: BTreeMap<String, Quantity>,
}

/// A port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Port {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its number.
    pub container_port: i32,
    /// The number on the node, if it needs one there.
    pub host_port: Option<i32>,
    /// `TCP` if absent.
    pub protocol: Option<String>,
}

/// What the kubelet of a pod reports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Where in its life it is.
    pub phase: Phase,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// Its containers' state.
    pub container_statuses: Vec<ContainerStatus>,
    /// Its init containers' state.
    pub init_container_statuses: Vec<ContainerStatus>,
    /// Its address.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
}

/// Where in its life a pod is, in the order in which a scale-down takes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Phase {
    /// Not started yet.
    #[default]
    Pending,
    /// Its node cannot tell.
    Unknown,
    /// Started and not ended.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Which.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Since when.
    pub last_transition_time: Option<Time>,
    /// Why, in a word.
    pub reason: Option<String>,
    /// Why, in words.
    pub message: Option<String>,
}

/// The state of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// Which.
    pub name: String,
    /// How often it was started again.
    pub restart_count: i32,
}

impl Pod {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Its uid.
    #[must_use]
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// The node it is on, if it was placed.
    #[must_use]
    pub fn node(&self) -> Option<&str> {
        self.spec.node_name.as_deref().filter(|name| !name.is_empty())
    }

    /// Whether its deletion was asked for.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether it has ended, well or badly.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        matches!(self.status.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether it counts for its owner: it has not ended and is not being deleted.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.is_ended() && !self.is_terminating()
    }

    /// A condition.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether it is ready to serve.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|condition| condition.status == "True")
    }

    /// Since when it is ready.
    #[must_use]
    pub fn ready_since(&self) -> Option<Timestamp> {
        let ready = self.condition("Ready").filter(|condition| condition.status == "True")?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    }

    /// When, if it stays ready, it will have been so for long enough; `None` while it is not ready.
    #[must_use]
    pub fn available_at(&self, min_ready_seconds: i32) -> Option<Timestamp> {
        if !self.is_ready() {
            return None;
        }
        if min_ready_seconds <= 0 {
            return Some(Timestamp::MIN);
        }
        let since = self.ready_since()?;
        let wait = Duration::from_secs(u64::try_from(min_ready_seconds).unwrap_or(0));
        Some(since.saturating_add(wait).unwrap_or(Timestamp::MAX))
    }

    /// Whether it has been ready for long enough.
    #[must_use]
    pub fn is_available(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        self.available_at(min_ready_seconds).is_some_and(|at| at <= now)
    }

    /// How dear its deletion is; nonsense counts as nothing.
    #[must_use]
    pub fn deletion_cost(&self) -> i32 {
        let text = self.metadata.annotations.as_ref().and_then(|all| all.get(DELETION_COST));
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The most restarts of any container, and of any sidecar.
    #[must_use]
    pub fn restarts(&self) -> (i32, i32) {
        let most = |counts: &mut dyn Iterator<Item = i32>| counts.max().unwrap_or(0).max(0);
        let is_sidecar = |name: &str| {
            self.spec.init_containers.iter().any(|container| {
                container.name == name && container.restart_policy.as_deref() == Some("Always")
            })
        };
        let regular = most(&mut self.status.container_statuses.iter().map(|c| c.restart_count));
        let init = self.status.init_container_statuses.iter();
        let sidecar = most(&mut init.filter(|c| is_sidecar(&c.name)).map(|c| c.restart_count));
        (regular, sidecar)
    }
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind(_: &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group(_: &()) -> Cow<'_, str> {
        "".into()
    }

    fn version(_: &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural(_: &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The owner that controls an object.
#[must_use]
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.as_ref()?.iter().find(|owner| owner.controller == Some(true))
}

/// The labels of an object, or none.
#[must_use]
pub fn labels_of(meta: &ObjectMeta) -> &BTreeMap<String, String> {
    static NONE: BTreeMap<String, String> = BTreeMap::new();
    meta.labels.as_ref().unwrap_or(&NONE)
}

/// Reads metadata without the managed fields, which are the larger part of it.
pub fn lean_meta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Lean {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        generation: Option<i64>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<String, String>>,
        owner_references: Option<Vec<OwnerReference>>,
        finalizers: Option<Vec<String>>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
    }
    let lean = Lean::deserialize(deserializer)?;
    Ok(ObjectMeta {
        name: lean.name,
        namespace: lean.namespace,
        uid: lean.uid,
        resource_version: lean.resource_version,
        generation: lean.generation,
        labels: lean.labels,
        annotations: lean.annotations,
        owner_references: lean.owner_references,
        finalizers: lean.finalizers,
        creation_timestamp: lean.creation_timestamp,
        deletion_timestamp: lean.deletion_timestamp,
        deletion_grace_period_seconds: lean.deletion_grace_period_seconds,
        ..ObjectMeta::default()
    })
}
