//! Metrics in plain numbers: CPU in thousandths of a core, memory in bytes.

use crate::answer::window_text;
use jiff::Timestamp;
use podscale_api::Labels;
use serde::{Serialize, Serializer};
use std::time::Duration;

pub mod server;

/// What something used, in whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// CPU: 1000 is one core.
    pub cpu: u64,
    /// Memory in bytes.
    pub memory: u64,
}

impl Resources {
    /// The nearest whole numbers; what cannot be is zero.
    #[must_use]
    pub fn rounded(cpu_millis: f64, memory_bytes: f64) -> Resources {
        // Casts saturate, so nothing wraps around.
        Resources { cpu: cpu_millis.round() as u64, memory: memory_bytes.round() as u64 }
    }
}

/// Which object metrics are of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// Its name.
    pub name: String,
    /// Its namespace, if it has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its labels.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

/// What the containers of a pod used in the window that ends at the timestamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PodMetrics {
    /// Which pod.
    pub metadata: Metadata,
    /// The end of the window.
    #[serde(serialize_with = "time")]
    pub timestamp: Timestamp,
    /// How long the window is.
    #[serde(serialize_with = "window")]
    pub window: Duration,
    /// Each container.
    pub containers: Vec<ContainerMetrics>,
}

/// What a container used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ContainerMetrics {
    /// Its name.
    pub name: String,
    /// How much.
    pub resources: Resources,
}

/// What a node used in the window that ends at the timestamp.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeMetrics {
    /// Which node.
    pub metadata: Metadata,
    /// The end of the window.
    #[serde(serialize_with = "time")]
    pub timestamp: Timestamp,
    /// How long the window is.
    #[serde(serialize_with = "window")]
    pub window: Duration,
    /// How much.
    pub resources: Resources,
}

fn time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.0}"))
}

fn window<S: Serializer>(window: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&window_text(*window))
}
