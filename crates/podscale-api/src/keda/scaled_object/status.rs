//! What the controller reports about a ScaledObject.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::keda::{Condition, TriggerActivity};
use crate::serde_form::{list, null_default};
use crate::time::Timestamp;

/// What the controller last found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaledObjectStatus {
    /// The workload's group, version and kind, such as `apps/v1.Deployment`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scale_target_kind: String,
    /// The same with the name in paths.
    #[serde(rename = "scaleTargetGVKR", skip_serializing_if = "Option::is_none")]
    pub scale_target_gvkr: Option<TargetResource>,
    /// The size that the workload had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original_replica_count: Option<i32>,
    /// When a trigger was last active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active_time: Option<Timestamp>,
    /// The metrics of triggers.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub external_metric_names: Vec<String>,
    /// The resources of pods that are measured.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub resource_metric_names: Vec<String>,
    /// The metric that a formula makes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub composite_scaler_name: String,
    /// In the order in which they appeared.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub conditions: Vec<Condition>,
    /// How each metric fares, where there is a fallback.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_default")]
    pub health: BTreeMap<String, Health>,
    /// Which metrics are active.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_default")]
    pub triggers_activity: BTreeMap<String, TriggerActivity>,
    /// The size that a pause asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_replica_count: Option<i32>,
    /// The HPA's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hpa_name: String,
    /// The distinct types of triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers_types: Option<String>,
    /// The distinct names of what triggers refer to for credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentications_types: Option<String>,
}

/// A resource of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetResource {
    /// Its group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its name in paths.
    pub resource: String,
}

/// How a metric fares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Health {
    /// How often it failed in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_of_failures: Option<i32>,
    /// `Happy` or `Failing`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
}
