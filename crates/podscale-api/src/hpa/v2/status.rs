//! What the controller reports about an `autoscaling/v2` autoscaler.

use serde::{Deserialize, Serialize};

use super::{CrossVersionObjectReference, MetricIdentifier};
use crate::quantity::Quantity;
use crate::serde_form::{is_zero, list, null_default, optional_list};
use crate::time::Timestamp;

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
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_default")]
    pub current_replicas: i32,
    /// The count that was asked for.
    #[serde(deserialize_with = "null_default")]
    pub desired_replicas: i32,
    /// What each metric showed; `null` when none was read.
    #[serde(deserialize_with = "optional_list")]
    pub current_metrics: Option<Vec<MetricStatus>>,
    /// Whether it can scale, does scale and is limited, in the order in which they appeared.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub conditions: Vec<Condition>,
}

/// One aspect of the autoscaler's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// `AbleToScale`, `ScalingActive`, `ScalingLimited` or `ScaledToZero`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// When `status` last changed.
    pub last_transition_time: Option<Timestamp>,
    /// In one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// In a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation of the spec that this condition is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What one metric showed: the field that `type` names is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricStatus {
    /// One of [`super::metric_type`], or empty for a metric that failed.
    pub r#type: String,
    /// A metric of one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Box<ObjectMetricStatus>>,
    /// A metric of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<Box<PodsMetricStatus>>,
    /// A resource of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricStatus>,
    /// A resource of one container of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_resource: Option<Box<ContainerResourceMetricStatus>>,
    /// A metric from outside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<Box<ExternalMetricStatus>>,
}

/// What a metric of one object showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMetricStatus {
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric: MetricIdentifier,
    /// Its value.
    #[serde(deserialize_with = "null_default")]
    pub current: MetricValueStatus,
    /// The object that it is about.
    #[serde(deserialize_with = "null_default")]
    pub described_object: CrossVersionObjectReference,
}

/// What a metric of each pod showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodsMetricStatus {
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric: MetricIdentifier,
    /// Its average.
    #[serde(deserialize_with = "null_default")]
    pub current: MetricValueStatus,
}

/// What a resource of each pod showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceMetricStatus {
    /// `cpu`, `memory` and so on.
    pub name: String,
    /// Its average.
    #[serde(deserialize_with = "null_default")]
    pub current: MetricValueStatus,
}

/// What a resource of one container of each pod showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerResourceMetricStatus {
    /// `cpu`, `memory` and so on.
    pub name: String,
    /// Its average.
    #[serde(deserialize_with = "null_default")]
    pub current: MetricValueStatus,
    /// The container's name.
    pub container: String,
}

/// What a metric from outside the cluster showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalMetricStatus {
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric: MetricIdentifier,
    /// Its value.
    #[serde(deserialize_with = "null_default")]
    pub current: MetricValueStatus,
}

/// A value as it was found, in the forms that apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricValueStatus {
    /// The value as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// The value per pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Quantity>,
    /// The percentage of what was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
}
