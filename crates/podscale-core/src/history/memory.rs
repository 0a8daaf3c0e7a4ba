//! What rules beyond a native autoscaler's remember from one pass to the next.

use crate::model::{Metric, MetricTarget, Milli};
use crate::predict::Demand;
use crate::time::Time;
use serde::Serialize;

/// What was asked for is kept no more often than this, which is an hour of decisions fifteen seconds apart.
pub const MAX_ASKED: usize = 240;

/// Last answers of no more metrics than these are kept.
pub const MAX_LAST_ANSWERS: usize = 64;

/// What is remembered beside recommendations and scale events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// When the target was last found active, where idle targets get another size.
    pub last_active: Option<Time>,
    /// Since when no size could be computed, where that leads to a fallback.
    pub metrics_gone_since: Option<Time>,
    /// What metrics asked for last, where that stands in for a value that is missing; at most
    /// [`MAX_LAST_ANSWERS`].
    pub last_answers: Vec<LastAnswer>,
    /// How often in a row triggers have failed, where something stands in for them after that; at most
    /// [`MAX_LAST_ANSWERS`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failures>,
    /// What the metrics asked for last, where sizes are forecast; the forecaster learns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<Demand>,
    /// What the metrics asked for in the window, where sizes follow its mean; at most [`MAX_ASKED`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// The burst that is on, where sizes follow the mean of a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// The room beside the demand, where it is learned from how often the demand was more than the pods are for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<Room>,
}

/// Room beside the demand, as it was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Room {
    /// In millionths of the demand; never less than nothing.
    pub part: i64,
    /// When it was last learned.
    pub at: Time,
}

/// How often in a row a trigger has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Failures {
    /// Which trigger, as [`Failures::key`] gives it.
    pub trigger: u32,
    /// How often.
    pub count: u32,
}

impl Failures {
    /// A number that tells a trigger from the others of an autoscaler by the name of its metric.
    #[must_use]
    pub fn key(name: &str) -> u32 {
        fold(name.bytes())
    }
}

/// FNV-1a, folded to half its size.
fn fold(bytes: impl Iterator<Item = u8>) -> u32 {
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ (hash >> 32)) as u32
}

/// What the metrics asked for at a moment, before anything was rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// How many replicas.
    pub replicas: Milli,
    /// When.
    pub at: Time,
}

/// A demand far beyond what the pods could serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Burst {
    /// When it was last seen.
    pub last: Time,
    /// The size that it has led to, which does not go down while it is on.
    pub replicas: i32,
}

/// What a metric asked for when it last had a value. The size is kept rather than the value: a value
/// per pod, applied again to what it has led to, would ask for more and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LastAnswer {
    /// Which metric, as [`LastAnswer::key`] gives it.
    pub metric: u32,
    /// The size that it asked for.
    pub replicas: i32,
    /// When.
    pub at: Time,
}

impl LastAnswer {
    /// A number that tells a metric with its target from the others of an autoscaler, so that an
    /// answer is not taken for that of another metric after an edit.
    #[must_use]
    pub fn key(metric: &Metric) -> u32 {
        let (kind, number) = match metric.target {
            MetricTarget::Value(value) => (1u8, value.0),
            MetricTarget::AverageValue(value) => (2, value.0),
            MetricTarget::Utilization(percent) => (3, i64::from(percent)),
            MetricTarget::Unset => (0, 0),
        };
        fold(metric.title.bytes().chain([kind]).chain(number.to_le_bytes()))
    }
}
