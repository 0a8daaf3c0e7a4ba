//! `autoscaling/v2alpha1` of Kubernetes 1.6 and 1.7: several metrics, but no selectors, nothing from outside
//! the cluster, no single containers and no value per pod of an object.

use serde::{Deserialize, Serialize};

use super::v2::{Condition, CrossVersionObjectReference};
pub use super::v2beta1::{ResourceMetricSource, ResourceMetricStatus};
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;
use crate::serde_form::{null_default, null_if_empty};
use crate::time::Timestamp;

/// Group and version of these types.
pub const API_VERSION: &str = "autoscaling/v2alpha1";

/// Scales a workload by metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscaler {
    /// `HorizontalPodAutoscaler`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v2alpha1`
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

/// What is scaled, between which bounds and by which metrics.
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
    /// The largest count that any of these asks for is taken.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub metrics: Vec<MetricSpec>,
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
    /// What each metric showed.
    pub current_metrics: Option<Vec<MetricStatus>>,
    /// Whether it can scale, does scale and is limited; since 1.7.
    #[serde(deserialize_with = "null_default", serialize_with = "null_if_empty")]
    pub conditions: Vec<Condition>,
}

/// One metric and its target: the field that `type` names is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricSpec {
    /// Name of the source.
    #[serde(deserialize_with = "null_default")]
    pub r#type: String,
    /// A metric of one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectMetricSource>,
    /// A metric of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsMetricSource>,
    /// A resource of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricSource>,
}

/// A metric that describes one object of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMetricSource {
    /// The object that the metric is about.
    #[serde(deserialize_with = "null_default")]
    pub target: CrossVersionObjectReference,
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric_name: String,
    /// Wanted value.
    #[serde(deserialize_with = "null_default")]
    pub target_value: Quantity,
}

/// A metric that each pod has, averaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodsMetricSource {
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric_name: String,
    /// Wanted average.
    #[serde(deserialize_with = "null_default")]
    pub target_average_value: Quantity,
}

/// What one metric showed: the field that `type` names is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricStatus {
    /// Name of the source.
    #[serde(deserialize_with = "null_default")]
    pub r#type: String,
    /// A metric of one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectMetricStatus>,
    /// A metric of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsMetricStatus>,
    /// A resource of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricStatus>,
}

/// What a metric of one object showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMetricStatus {
    /// The object that it is about.
    #[serde(deserialize_with = "null_default")]
    pub target: CrossVersionObjectReference,
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric_name: String,
    /// Its value.
    #[serde(deserialize_with = "null_default")]
    pub current_value: Quantity,
}

/// What a metric of each pod showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodsMetricStatus {
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric_name: String,
    /// Its average.
    #[serde(deserialize_with = "null_default")]
    pub current_average_value: Quantity,
}
