//! `autoscaling/v1`: cpu utilization alone; everything else travels in annotations.

use serde::{Deserialize, Serialize};

use super::v2::CrossVersionObjectReference;
use crate::meta::ObjectMeta;
use crate::serde_form::null_default;
use crate::time::Timestamp;

/// Group and version of these types.
pub const API_VERSION: &str = "autoscaling/v1";

/// Scales a workload by its cpu utilization.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscaler {
    /// `HorizontalPodAutoscaler`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name and so on.
    #[serde(deserialize_with = "null_default")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(deserialize_with = "null_default")]
    pub spec: HorizontalPodAutoscalerSpec,
    /// What the controller last found and did.
    #[serde(deserialize_with = "null_default")]
    pub status: HorizontalPodAutoscalerStatus,
}

/// What is scaled, between which bounds and for which utilization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscalerSpec {
    /// The workload.
    #[serde(deserialize_with = "null_default")]
    pub scale_target_ref: CrossVersionObjectReference,
    /// Never fewer than this; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Never more than this.
    #[serde(deserialize_with = "null_default")]
    pub max_replicas: i32,
    /// Wanted utilization in percent of the request.
    #[serde(rename = "targetCPUUtilizationPercentage", skip_serializing_if = "Option::is_none")]
    pub target_cpu_utilization_percentage: Option<i32>,
}

/// What the controller last found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscalerStatus {
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
    /// Utilization that was found, in percent of the request.
    #[serde(rename = "currentCPUUtilizationPercentage", skip_serializing_if = "Option::is_none")]
    pub current_cpu_utilization_percentage: Option<i32>,
}
