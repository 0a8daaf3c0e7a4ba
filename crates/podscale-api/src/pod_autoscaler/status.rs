//! What the controller reports about a PodAutoscaler. What each field means is said in `fields`.

use serde::{Deserialize, Serialize};

use crate::hpa::v2;
use crate::serde_form::{list, null_default};
use crate::time::Timestamp;

/// How long the name of an event source's metric may be.
pub const MOST_NAME_CHARS: u32 = 512;
/// How many decisions a status keeps.
pub const MOST_DECISIONS: usize = 10;

/// What the controller last found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAutoscalerStatus {
    /// The generation of the spec that this is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the count was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_scale_time: Option<Timestamp>,
    /// The count that was found.
    #[serde(deserialize_with = "null_default")]
    pub current_replicas: i32,
    /// The count that was asked for.
    #[serde(deserialize_with = "null_default")]
    pub desired_replicas: i32,
    /// The target as kind and name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reference: String,
    /// Each metric's value and target in one line.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub targets: String,
    /// What it does now.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mode: String,
    /// What matters most of its conditions, in a word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The schedule that is in force.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub active_schedule: String,
    /// The fewest replicas now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// The most replicas now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
    /// What each metric showed.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub current_metrics: Vec<MetricStatus>,
    /// The last changes of size, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub decisions: Vec<DecisionStatus>,
    /// Whether it can scale, does scale and is limited.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub conditions: Vec<v2::Condition>,
}

/// What one metric showed: the field that `type` names is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricStatus {
    /// As an HPA has it.
    #[serde(flatten)]
    pub hpa: v2::MetricStatus,
    /// What the spec calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The result of a query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<Box<PrometheusStatus>>,
    /// The value of an event source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Box<TriggerStatus>>,
}

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrometheusStatus {
    /// The address of another Prometheus than the controller's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The query.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// What it gave.
    #[serde(deserialize_with = "null_default")]
    pub current: v2::MetricValueStatus,
}

/// The value of an event source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TriggerStatus {
    /// Which kind of event source it is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub r#type: String,
    /// The name of its metric.
    pub metric: String,
    /// What it gave.
    #[serde(deserialize_with = "null_default")]
    pub current: v2::MetricValueStatus,
}

/// A change of size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DecisionStatus {
    /// When.
    pub time: Timestamp,
    /// The size before.
    #[serde(deserialize_with = "null_default")]
    pub from: i32,
    /// The size after.
    #[serde(deserialize_with = "null_default")]
    pub to: i32,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}
