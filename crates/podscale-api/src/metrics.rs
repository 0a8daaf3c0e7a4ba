//! What the three metrics APIs answer: resource, custom and external metrics.

use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::quantity::{ParseQuantityError, Quantity};
use crate::selector::LabelSelector;
use crate::serde_form::{list, null_default};
use crate::time::{GoDuration, Timestamp};

mod usage;
pub use usage::Usage;

/// What a pod's containers use (`metrics.k8s.io/v1beta1`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodMetrics {
    /// Which pod.
    #[serde(deserialize_with = "null_default")]
    pub metadata: MetricsMeta,
    /// The end of the window.
    pub timestamp: Option<Timestamp>,
    /// How long was measured.
    #[serde(deserialize_with = "null_default")]
    pub window: GoDuration,
    /// Each container on its own.
    #[serde(deserialize_with = "list")]
    pub containers: Vec<ContainerMetrics>,
}

impl PodMetrics {
    /// Why one of the amounts cannot be read; whoever reads this pod's metrics gets none at all then.
    pub fn error(&self) -> Option<ParseQuantityError> {
        self.containers.iter().find_map(|container| container.usage.error())
    }
}

/// Which pod a measurement is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MetricsMeta {
    /// The pod's name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Box<str>,
    /// The pod's namespace.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: Box<str>,
    /// The pod's labels.
    #[serde(skip_serializing_if = "Labels::is_empty", deserialize_with = "null_default")]
    pub labels: Labels,
}

/// What one container uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerMetrics {
    /// The container's name.
    pub name: Box<str>,
    /// What it uses.
    #[serde(deserialize_with = "null_default")]
    pub usage: Usage,
}

/// The value of one metric for one object; reads `custom.metrics.k8s.io` v1beta1 and v1beta2,
/// writes v1beta2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "AnyMetricValue")]
pub struct MetricValue {
    /// The object that it is about.
    pub described_object: ObjectReference,
    /// Which metric.
    pub metric: CustomMetricIdentifier,
    /// When it was measured.
    pub timestamp: Option<Timestamp>,
    /// Over how long it was measured, if it is a rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<i64>,
    /// The value.
    pub value: Quantity,
}

/// A custom metric's name and the labels of the series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomMetricIdentifier {
    /// Its name.
    pub name: Box<str>,
    /// The labels, in the form of a selector; `null` if there are none.
    pub selector: Option<LabelSelector>,
}

/// An object of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Its kind.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: Box<str>,
    /// Its namespace.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: Box<str>,
    /// Its name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Box<str>,
    /// Its group and version.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub api_version: Box<str>,
}

/// The fields of both versions side by side.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AnyMetricValue {
    #[serde(deserialize_with = "null_default")]
    described_object: ObjectReference,
    metric: Option<CustomMetricIdentifier>,
    metric_name: Option<Box<str>>,
    selector: Option<LabelSelector>,
    timestamp: Option<Timestamp>,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: Quantity,
}

impl From<AnyMetricValue> for MetricValue {
    fn from(any: AnyMetricValue) -> Self {
        let metric = any.metric.unwrap_or_else(|| CustomMetricIdentifier {
            name: any.metric_name.unwrap_or_default(),
            selector: any.selector,
        });
        MetricValue {
            described_object: any.described_object,
            metric,
            timestamp: any.timestamp,
            window_seconds: any.window_seconds,
            value: any.value,
        }
    }
}

/// The value of one series from outside the cluster (`external.metrics.k8s.io/v1beta1`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExternalMetricValue {
    /// Which metric.
    pub metric_name: Box<str>,
    /// Which series of it.
    #[serde(deserialize_with = "null_default")]
    pub metric_labels: Labels,
    /// When it was measured.
    pub timestamp: Option<Timestamp>,
    /// Over how long it was measured, if it is a rate.
    #[serde(rename = "window", skip_serializing_if = "Option::is_none")]
    pub window_seconds: Option<i64>,
    /// The value.
    pub value: Quantity,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_custom_metrics_read_alike() {
        let v1beta1 = r#"{"describedObject":{"kind":"Pod","namespace":"d","name":"p","apiVersion":"/v1"},"metricName":"m","timestamp":"2000-01-01T00:00:00Z","window":60,"value":"1500m","selector":{"matchLabels":{"a":"b"}}}"#;
        let v1beta2 = r#"{"describedObject":{"kind":"Pod","namespace":"d","name":"p","apiVersion":"/v1"},"metric":{"name":"m","selector":{"matchLabels":{"a":"b"}}},"timestamp":"2000-01-01T00:00:00Z","windowSeconds":60,"value":"1500m"}"#;
        for text in [v1beta1, v1beta2] {
            let value: MetricValue = serde_json::from_str(text).expect("valid");
            assert_eq!(serde_json::to_string(&value).expect("writes"), v1beta2);
        }
    }

    #[test]
    fn written_as_the_apis_do() {
        for text in [
            r#"{"metadata":{"name":"p","namespace":"d"},"timestamp":"2000-01-01T00:00:00Z","window":"1m0s","containers":[{"name":"c","usage":{"cpu":"1m","memory":"1Mi"}}]}"#,
            r#"{"metadata":{},"timestamp":null,"window":"0s","containers":[]}"#,
        ] {
            let value: PodMetrics = serde_json::from_str(text).expect("valid");
            assert_eq!(serde_json::to_string(&value).expect("writes"), text);
        }
        let text = r#"{"metricName":"m","metricLabels":{},"timestamp":"2000-01-01T00:00:00Z","window":5,"value":"1"}"#;
        let value: ExternalMetricValue = serde_json::from_str(text).expect("valid");
        assert_eq!(serde_json::to_string(&value).expect("writes"), text);
    }
}
