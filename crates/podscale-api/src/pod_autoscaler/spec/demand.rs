//! What a PodAutoscaler says of queues, of the demand of a window, and of the demand to come.

use crate::quantity::Quantity;
use serde::{Deserialize, Serialize};

/// How a queue is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Queue {
    /// The name of the metric that is how much waits.
    pub length: String,
    /// The name of the metric that is how much arrives in a second.
    pub arrivals: String,
    /// How much one pod gets through in a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_second: Option<Quantity>,
    /// Within which time what waits is to be served; a duration, 60s by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
}

/// How sizes follow the mean demand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Window {
    /// Over how long the demand is averaged; a duration, 60s by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stable: Option<String>,
    /// Over how long it is averaged to see a burst; a duration, 6s by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<String>,
    /// From how many percent of the ready pods on it is a burst; 200 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic_threshold_percent: Option<i32>,
}

/// How forecasts are used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Predict {
    /// How many percent of the demands the margin for bursts covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<i32>,
    /// Within which time pods must be needed again to be kept; a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_in_guard: Option<String>,
}

/// How the size follows where the demand is going.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lead {
    /// How many percent of the demand are added at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_percent: Option<i32>,
}

/// How much room there is for what the demand usually gains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Headroom {
    /// How many percent of past gains it is enough for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<i32>,
    /// How many percent of the demand it is at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_percent: Option<i32>,
    /// In how many thousandths of the time the demand may be above the ready pods; then the room is learned so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overload_permille: Option<i32>,
}
