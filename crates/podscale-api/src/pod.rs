//! Pods, as much of them as autoscaling needs.

use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::meta::OwnerReference;
use crate::resources::ResourceList;
use crate::serde_form::{list, null_default};
use crate::time::Timestamp;

mod conditions;
mod deletion_cost;
mod requests;

pub use deletion_cost::{DELETION_COST, DeletionCost, OWN_DELETION_COST};

/// A core/v1 Pod without what autoscaling does not need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Who it is.
    #[serde(deserialize_with = "null_default")]
    pub metadata: PodMeta,
    /// What it runs.
    #[serde(deserialize_with = "null_default")]
    pub spec: PodSpec,
    /// How it does.
    #[serde(deserialize_with = "null_default")]
    pub status: PodStatus,
}

/// Who a pod is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMeta {
    /// Unique within the namespace.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Box<str>,
    /// Where it lives.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: Box<str>,
    /// Which pod of that name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: Box<str>,
    /// When it is to be gone, once deletion was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// How long it may take to end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// What selectors look at.
    #[serde(skip_serializing_if = "Labels::is_empty", deserialize_with = "null_default")]
    pub labels: Labels,
    /// The objects that it belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub owner_references: Vec<OwnerReference>,
    /// What deleting it costs.
    #[serde(rename = "annotations", skip_serializing_if = "DeletionCost::is_unset")]
    pub deletion_cost: DeletionCost,
}

/// What a pod runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The node that it is on, once it has one.
    #[serde(skip_serializing_if = "str::is_empty", deserialize_with = "null_default")]
    pub node_name: Box<str>,
    /// Those that run before the others, or, if they restart always, beside them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub init_containers: Vec<Container>,
    /// Those that do the work.
    #[serde(deserialize_with = "list")]
    pub containers: Vec<Container>,
    /// What running a pod of this kind costs on top.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_default")]
    pub overhead: ResourceList,
    /// What the pod as a whole requests and is limited to.
    #[serde(
        skip_serializing_if = "ResourceRequirements::is_empty",
        deserialize_with = "null_default"
    )]
    pub resources: ResourceRequirements,
}

/// One container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// Unique within the pod.
    pub name: Box<str>,
    /// What it requests and is limited to.
    #[serde(
        skip_serializing_if = "ResourceRequirements::is_empty",
        deserialize_with = "null_default"
    )]
    pub resources: ResourceRequirements,
    /// `Always` makes an init container run beside the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<Box<str>>,
}

/// What a container or a pod requests and is limited to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceRequirements {
    /// Never more than this.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_default")]
    pub limits: ResourceList,
    /// Always at least this.
    #[serde(skip_serializing_if = "ResourceList::is_empty", deserialize_with = "null_default")]
    pub requests: ResourceList,
}

/// How a pod does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// Where it is in its life; not set before it was looked at.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "conditions::phase")]
    pub phase: Option<PodPhase>,
    /// The Ready condition; others are not kept.
    #[serde(rename = "conditions", with = "conditions", skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyCondition>,
    /// When its node began to run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// Not started yet.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, at least one badly.
    Failed,
    /// Not known, or a word that is not known here.
    #[serde(other)]
    Unknown,
}

/// Whether a pod takes traffic, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyCondition {
    /// Whether it does.
    pub status: ConditionStatus,
    /// Since when.
    pub last_transition_time: Option<Timestamp>,
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known, or a word that is not known here.
    #[default]
    #[serde(other)]
    Unknown,
}

impl ResourceRequirements {
    /// Whether nothing is requested or limited.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.requests.is_empty()
    }
}

impl Container {
    /// Whether, as an init container, it keeps running beside the others.
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }
}
