//! `autoscaling/v2`: the object and its spec. What the controller reports is in [`status`].

use serde::{Deserialize, Serialize};

use crate::meta::{LeanMeta, ObjectMeta};
use crate::quantity::Quantity;
use crate::selector::LabelSelector;
use crate::serde_form::{is_none_or_empty, list, null_default};

pub mod status;

pub use status::{
    Condition, ContainerResourceMetricStatus, ExternalMetricStatus, HorizontalPodAutoscalerStatus,
    MetricStatus, MetricValueStatus, ObjectMetricStatus, PodsMetricStatus, ResourceMetricStatus,
};

/// Group and version of these types.
pub const API_VERSION: &str = "autoscaling/v2";
/// The kind of these objects.
pub const KIND: &str = "HorizontalPodAutoscaler";

/// The names of metric sources.
pub mod metric_type {
    /// A metric of one object.
    pub const OBJECT: &str = "Object";
    /// A metric of each pod.
    pub const PODS: &str = "Pods";
    /// A resource of each pod.
    pub const RESOURCE: &str = "Resource";
    /// A resource of one container of each pod.
    pub const CONTAINER_RESOURCE: &str = "ContainerResource";
    /// A metric from outside the cluster.
    pub const EXTERNAL: &str = "External";
}

/// The names of target types.
pub mod target_type {
    /// A percentage of what was requested.
    pub const UTILIZATION: &str = "Utilization";
    /// A value as it is.
    pub const VALUE: &str = "Value";
    /// A value per pod.
    pub const AVERAGE_VALUE: &str = "AverageValue";
}

/// Scales a workload by metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscaler {
    /// `HorizontalPodAutoscaler`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v2`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name and so on.
    #[serde(deserialize_with = "null_default")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(deserialize_with = "null_default")]
    pub spec: HorizontalPodAutoscalerSpec,
    /// What the controller last found and did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<HorizontalPodAutoscalerStatus>,
}

/// An autoscaler that is read in little time and kept in little space: see [`LeanMeta`].
#[derive(Debug, Deserialize)]
#[serde(from = "LeanWire")]
pub struct Lean(pub HorizontalPodAutoscaler);

#[derive(Default, Deserialize)]
#[serde(default)]
struct LeanWire {
    #[serde(deserialize_with = "null_default")]
    metadata: LeanMeta,
    #[serde(deserialize_with = "null_default")]
    spec: HorizontalPodAutoscalerSpec,
    status: Option<HorizontalPodAutoscalerStatus>,
}

impl From<LeanWire> for Lean {
    fn from(LeanWire { metadata, spec, status }: LeanWire) -> Lean {
        let metadata = metadata.into();
        let (kind, api_version) = (KIND.to_owned(), API_VERSION.to_owned());
        Lean(HorizontalPodAutoscaler { kind, api_version, metadata, spec, status })
    }
}

/// What is scaled, between which bounds, by which metrics and how fast.
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
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub metrics: Vec<MetricSpec>,
    /// How fast, and how steadily.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}

/// Another object of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CrossVersionObjectReference {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its group and version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
}

/// One metric and its target: the field that `type` names is set. The rarer ones are boxed, since every
/// metric has room for all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricSpec {
    /// One of [`metric_type`].
    pub r#type: String,
    /// A metric of one object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Box<ObjectMetricSource>>,
    /// A metric of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<Box<PodsMetricSource>>,
    /// A resource of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceMetricSource>,
    /// A resource of one container of each pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_resource: Option<Box<ContainerResourceMetricSource>>,
    /// A metric from outside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external: Option<Box<ExternalMetricSource>>,
}

/// A metric that describes one object of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMetricSource {
    /// The object that the metric is about.
    #[serde(deserialize_with = "null_default")]
    pub described_object: CrossVersionObjectReference,
    /// What it should be.
    #[serde(deserialize_with = "null_default")]
    pub target: MetricTarget,
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric: MetricIdentifier,
}

/// A metric that each pod has, averaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodsMetricSource {
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric: MetricIdentifier,
    /// What it should be.
    #[serde(deserialize_with = "null_default")]
    pub target: MetricTarget,
}

/// A resource that each pod uses, averaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceMetricSource {
    /// `cpu`, `memory` and so on.
    pub name: String,
    /// What it should be.
    #[serde(deserialize_with = "null_default")]
    pub target: MetricTarget,
}

/// A resource that one container of each pod uses, averaged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerResourceMetricSource {
    /// `cpu`, `memory` and so on.
    pub name: String,
    /// What it should be.
    #[serde(deserialize_with = "null_default")]
    pub target: MetricTarget,
    /// The container's name.
    pub container: String,
}

/// A metric from outside the cluster; all its series are added up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalMetricSource {
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub metric: MetricIdentifier,
    /// What it should be.
    #[serde(deserialize_with = "null_default")]
    pub target: MetricTarget,
}

/// A metric's name and which of its series are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricIdentifier {
    /// Its name.
    pub name: String,
    /// All series if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// What a metric should be: the field that `type` names is set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MetricTarget {
    /// One of [`target_type`].
    pub r#type: String,
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

/// How fast and how steadily, for each direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscalerBehavior {
    /// When adding pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<HpaScalingRules>,
    /// When removing pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<HpaScalingRules>,
}

/// The rules of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HpaScalingRules {
    /// How far back recommendations count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stabilization_window_seconds: Option<i32>,
    /// `Max`, `Min` or `Disabled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub select_policy: Option<String>,
    /// Limits; an empty list is not the same as none before defaulting.
    #[serde(skip_serializing_if = "is_none_or_empty")]
    pub policies: Option<Vec<HpaScalingPolicy>>,
    /// How far from the target, as a share of it, is still on target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Quantity>,
}

/// A limit on change within a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HpaScalingPolicy {
    /// `Pods` or `Percent`.
    pub r#type: String,
    /// How many, or how many percent.
    #[serde(deserialize_with = "null_default")]
    pub value: i32,
    /// Within how long.
    #[serde(deserialize_with = "null_default")]
    pub period_seconds: i32,
}
