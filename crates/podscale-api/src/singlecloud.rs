//! Singlecloud's autoscaler: its form on the wire, what is wrong with one, and the native autoscaler that it
//! stands for.
//!
//! Metrics by name and labels become metrics of pods under an [`Alias`], so that the native object alone says
//! which rules it needs.

pub mod alias;
mod from_hpa;
mod read;
mod to_hpa;

pub use alias::{Alias, aliases};
pub use from_hpa::{from_hpa, left_out};
pub use read::{READ_ONLY, Read, is_autoscaler, namespace_of, read, read_all};
pub use to_hpa::{to_hpa, to_hpa_all, update_hpa};

use crate::labels::Labels;
use crate::serde_form::is_zero;
use crate::time::Timestamp;
use serde::Serialize;
use thiserror::Error;

/// The type of the resource.
pub const TYPE: &str = "horizontalpodautoscaler";
/// The name of the resource in paths.
pub const RESOURCES: &str = "horizontalpodautoscalers";
/// The kinds of targets.
pub const TARGET_KINDS: [&str; 2] = ["deployment", "statefulset"];
/// The resources that can be a metric.
pub const RESOURCE_NAMES: [&str; 2] = ["cpu", "memory"];
/// The types of targets of resources.
pub const TARGET_TYPES: [&str; 2] = ["Utilization", "AverageValue"];
/// The annotation of an HPA that says which object the workload was when it was made for it, so that it is
/// known to be gone even if nobody saw it go.
pub const TARGET_UID: &str = "podscale.dev/singlecloud-target-uid";

/// The path of all autoscalers of a namespace.
pub fn collection(cluster: &str, namespace: &str) -> String {
    format!("/apis/zcloud.cn/v1/clusters/{cluster}/namespaces/{namespace}/{RESOURCES}")
}

/// An autoscaler as clients write and read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Autoscaler {
    /// The name, once it is stored.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// [`TYPE`], once it is stored.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub r#type: String,
    /// What can be done with it, and where.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub links: Labels,
    /// When it was stored first.
    pub creation_timestamp: Option<Timestamp>,
    /// When it is to be gone, once deletion was asked for.
    pub deletion_timestamp: Option<Timestamp>,
    /// Unique in its namespace.
    pub name: String,
    /// One of [`TARGET_KINDS`].
    pub scale_target_kind: String,
    /// The workload.
    pub scale_target_name: String,
    /// Never fewer than this.
    pub min_replicas: i32,
    /// Never more than this.
    pub max_replicas: i32,
    /// Cpu and memory of the pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_metrics: Vec<ResourceMetric>,
    /// Other metrics of the pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom_metrics: Vec<CustomMetric>,
    /// What the controller found; clients cannot set it.
    pub status: Status,
}

/// What pods use of a resource, or are meant to use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMetric {
    /// One of [`RESOURCE_NAMES`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_name: String,
    /// One of [`TARGET_TYPES`]; empty in a status.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target_type: String,
    /// The amount of each pod, with its unit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub average_value: String,
    /// The percentage of what was requested.
    #[serde(skip_serializing_if = "is_zero")]
    pub average_utilization: i32,
}

/// A metric of pods by its name and labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMetric {
    /// The series.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metric_name: String,
    /// The labels that it has.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The value of each pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub average_value: String,
}

/// What the controller last found and wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The size that was found.
    #[serde(skip_serializing_if = "is_zero")]
    pub current_replicas: i32,
    /// The size that is wanted.
    #[serde(skip_serializing_if = "is_zero")]
    pub desired_replicas: i32,
    /// What the metrics showed.
    pub current_metrics: CurrentMetrics,
}

/// What the metrics of an autoscaler showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentMetrics {
    /// Cpu and memory of the pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_metrics: Vec<ResourceMetric>,
    /// Other metrics of the pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom_metrics: Vec<CustomMetric>,
}

/// What is wrong with an autoscaler, in singlecloud's words, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Invalid {
    /// The field, such as `resourceMetrics[0].targetType`; empty if it is the whole.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

impl Invalid {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Invalid {
        Invalid { field: field.into(), message: message.into() }
    }
}

#[cfg(test)]
mod tests;
