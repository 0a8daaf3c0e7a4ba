//! What earlier decisions left behind when a Recording begins.

use crate::serde_form::null_default;
use crate::time::ExactTimestamp;
use podscale_core::History;
use podscale_core::history::{MAX_ENTRIES, Recommendation, ScaleEvent};
use serde::{Deserialize, Serialize};

/// The memory of an autoscaler at the beginning of a Recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedHistory {
    /// The sizes that metrics asked for, in the order of their slots.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub recommendations: Vec<RecordedRecommendation>,
    /// The changes towards more replicas.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub scale_ups: Vec<RecordedScaleEvent>,
    /// The changes towards fewer replicas.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub scale_downs: Vec<RecordedScaleEvent>,
}

/// A size that metrics asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRecommendation {
    /// When.
    pub time: ExactTimestamp,
    /// The size.
    pub replicas: i32,
}

/// A change of size that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedScaleEvent {
    /// When.
    pub time: ExactTimestamp,
    /// By how many replicas, without a sign.
    pub change: i32,
    /// Whether it was once found older than every policy's period.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outdated: bool,
}

impl From<&History> for RecordedHistory {
    fn from(history: &History) -> RecordedHistory {
        let events = |events: &[ScaleEvent]| {
            let event = |e: &ScaleEvent| RecordedScaleEvent {
                time: ExactTimestamp(e.at),
                change: e.change,
                outdated: e.outdated,
            };
            events.iter().map(event).collect()
        };
        let recommendation = |r: &Recommendation| RecordedRecommendation {
            time: ExactTimestamp(r.at),
            replicas: r.replicas,
        };
        RecordedHistory {
            recommendations: history.recommendations.iter().map(recommendation).collect(),
            scale_ups: events(&history.ups),
            scale_downs: events(&history.downs),
        }
    }
}

impl From<&RecordedHistory> for History {
    /// Lists that are too long for a history are cut off.
    fn from(recorded: &RecordedHistory) -> History {
        let events = |events: &[RecordedScaleEvent]| {
            let event = |e: &RecordedScaleEvent| ScaleEvent {
                at: e.time.0,
                change: e.change,
                outdated: e.outdated,
            };
            events.iter().take(MAX_ENTRIES).map(event).collect()
        };
        let recommendation =
            |r: &RecordedRecommendation| Recommendation { at: r.time.0, replicas: r.replicas };
        let recommendations = recorded.recommendations.iter().take(MAX_ENTRIES);
        History {
            recommendations: recommendations.map(recommendation).collect(),
            ups: events(&recorded.scale_ups),
            downs: events(&recorded.scale_downs),
            memory: None,
        }
    }
}
