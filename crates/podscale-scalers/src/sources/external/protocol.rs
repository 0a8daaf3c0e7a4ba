//! The messages of KEDA's service `externalscaler.ExternalScaler`.

use prost::Message;
use std::collections::BTreeMap;

/// The path of a method.
pub(super) fn method(name: &str) -> String {
    format!("externalscaler.ExternalScaler/{name}")
}

/// Which object is asked about.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScaledObjectRef {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) namespace: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(super) scaler_metadata: BTreeMap<String, String>,
}

/// Whether there is something to do.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct IsActiveResponse {
    #[prost(bool, tag = "1")]
    pub(super) result: bool,
}

/// What is scaled by.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetMetricSpecResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) metric_specs: Vec<MetricSpec>,
}

/// A metric and its target.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricSpec {
    #[prost(string, tag = "1")]
    pub(super) metric_name: String,
    #[prost(int64, tag = "2")]
    pub(super) target_size: i64,
    #[prost(double, tag = "3")]
    pub(super) target_size_float: f64,
}

/// Which metric is asked for.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetMetricsRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) scaled_object_ref: Option<ScaledObjectRef>,
    #[prost(string, tag = "2")]
    pub(super) metric_name: String,
}

/// Values of a metric.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GetMetricsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) metric_values: Vec<MetricValue>,
}

/// One value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct MetricValue {
    #[prost(string, tag = "1")]
    pub(super) metric_name: String,
    #[prost(int64, tag = "2")]
    pub(super) metric_value: i64,
    #[prost(double, tag = "3")]
    pub(super) metric_value_float: f64,
}

impl MetricSpec {
    /// The target: the number with decimals, if there is one.
    pub(super) fn target(&self) -> f64 {
        either(self.target_size_float, self.target_size)
    }
}

impl GetMetricsResponse {
    /// All values together, as external metrics count.
    pub(super) fn total(&self) -> f64 {
        let values = self.metric_values.iter();
        let values = values.map(|value| either(value.metric_value_float, value.metric_value));
        values.fold(0.0, |total, value| total + value)
    }
}

fn either(float: f64, integer: i64) -> f64 {
    if float > 0.0 { float } else { integer as f64 }
}
