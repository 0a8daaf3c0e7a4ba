//! What earlier decisions left behind when a Recording begins.

use crate::serde_form::null_default;
use crate::time::ExactTimestamp;
use podscale_core::history::{
    Asked, Burst, Failures, LastAnswer, MAX_ASKED, MAX_ENTRIES, MAX_LAST_ANSWERS, Memory,
    Recommendation, Room, ScaleEvent,
};
use podscale_core::model::Milli;
use podscale_core::predict::{Demand, Forecaster};
use podscale_core::{History, Span};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

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
    /// What only rules beyond a native autoscaler's remember.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<RecordedMemory>,
    /// What was learned of the demand, where sizes are forecast: the version of its form, a colon, and its bytes in
    /// hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "readable")]
    pub forecaster: Option<String>,
}

/// What only rules beyond a native autoscaler's remember.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedMemory {
    /// When the target was last found active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active: Option<ExactTimestamp>,
    /// Since when no size could be computed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics_gone_since: Option<ExactTimestamp>,
    /// What metrics asked for last.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub last_answers: Vec<RecordedLastAnswer>,
    /// How often in a row triggers have failed.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub failures: Vec<RecordedFailures>,
    /// What the metrics asked for last, where sizes are forecast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<RecordedDemand>,
    /// What the metrics asked for in the window, where sizes follow its mean.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub asked: Vec<RecordedAsked>,
    /// The burst that is on, where sizes follow the mean of a window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<RecordedRecommendation>,
    /// The room beside the demand, where it is learned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<RecordedRoom>,
}

/// Room beside the demand, as it was learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedRoom {
    /// When.
    pub time: ExactTimestamp,
    /// In millionths of the demand.
    pub part: u64,
}

/// How often in a row a trigger has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedFailures {
    /// Which trigger, as a number made from its metric's name.
    pub trigger: u32,
    /// How often.
    pub count: u32,
}

/// What the metrics asked for at a moment of a window, before anything was rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedAsked {
    /// When.
    pub time: ExactTimestamp,
    /// Thousandths of a replica.
    pub milli_replicas: i64,
}

/// What the metrics asked for at a moment, before anything was rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedDemand {
    /// When.
    pub time: ExactTimestamp,
    /// Thousandths of a replica.
    pub milli_replicas: i64,
    /// How long a new pod needed to become ready, in microseconds.
    pub horizon_micros: i64,
}

impl From<Demand> for RecordedDemand {
    fn from(demand: Demand) -> RecordedDemand {
        RecordedDemand {
            time: ExactTimestamp(demand.at),
            milli_replicas: demand.replicas.0,
            horizon_micros: demand.horizon.0,
        }
    }
}

impl From<RecordedDemand> for Demand {
    fn from(recorded: RecordedDemand) -> Demand {
        Demand {
            at: recorded.time.0,
            replicas: Milli(recorded.milli_replicas),
            horizon: Span(recorded.horizon_micros),
        }
    }
}

/// What a metric asked for when it last had a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedLastAnswer {
    /// When.
    pub time: ExactTimestamp,
    /// Which metric, as a number made from its title and target.
    pub metric: u32,
    /// The size.
    pub replicas: i32,
}

impl From<&Memory> for RecordedMemory {
    fn from(memory: &Memory) -> RecordedMemory {
        let answer = |a: &LastAnswer| RecordedLastAnswer {
            time: ExactTimestamp(a.at),
            metric: a.metric,
            replicas: a.replicas,
        };
        let asked = |asked: &Asked| RecordedAsked {
            time: ExactTimestamp(asked.at),
            milli_replicas: asked.replicas.0,
        };
        RecordedMemory {
            last_active: memory.last_active.map(ExactTimestamp),
            metrics_gone_since: memory.metrics_gone_since.map(ExactTimestamp),
            last_answers: memory.last_answers.iter().map(answer).collect(),
            failures: memory
                .failures
                .iter()
                .map(|f| RecordedFailures { trigger: f.trigger, count: f.count })
                .collect(),
            demand: memory.demand.map(RecordedDemand::from),
            asked: memory.asked.iter().map(asked).collect(),
            burst: memory.burst.map(|burst| RecordedRecommendation {
                time: ExactTimestamp(burst.last),
                replicas: burst.replicas,
            }),
            room: memory.room.map(|room| RecordedRoom {
                time: ExactTimestamp(room.at),
                part: room.part.max(0).cast_unsigned(),
            }),
        }
    }
}

impl From<&RecordedMemory> for Memory {
    fn from(recorded: &RecordedMemory) -> Memory {
        let answer = |a: &RecordedLastAnswer| LastAnswer {
            at: a.time.0,
            metric: a.metric,
            replicas: a.replicas,
        };
        let asked = |asked: &RecordedAsked| Asked {
            at: asked.time.0,
            replicas: Milli(asked.milli_replicas),
        };
        Memory {
            last_active: recorded.last_active.map(|time| time.0),
            metrics_gone_since: recorded.metrics_gone_since.map(|time| time.0),
            last_answers: recorded.last_answers.iter().take(MAX_LAST_ANSWERS).map(answer).collect(),
            failures: recorded
                .failures
                .iter()
                .take(MAX_LAST_ANSWERS)
                .map(|f| Failures { trigger: f.trigger, count: f.count })
                .collect(),
            demand: recorded.demand.map(Demand::from),
            asked: recorded.asked.iter().take(MAX_ASKED).map(asked).collect(),
            burst: recorded.burst.map(|b| Burst { last: b.time.0, replicas: b.replicas }),
            room: recorded.room.map(|room| Room {
                part: i64::try_from(room.part).unwrap_or(i64::MAX),
                at: room.time.0,
            }),
        }
    }
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
            memory: history.memory.as_deref().map(RecordedMemory::from),
            forecaster: history.forecaster.as_deref().map(to_text),
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
            memory: recorded.memory.as_ref().map(|memory| Box::new(Memory::from(memory))),
            forecaster: recorded.forecaster.as_deref().and_then(learned).map(Box::new),
        }
    }
}

fn to_text(learned: &Forecaster) -> String {
    let bytes = learned.to_bytes();
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    std::iter::once(format!("{}:", Forecaster::VERSION)).chain(digits).collect()
}

/// What was learned, if the text says it.
fn learned(text: &str) -> Option<Forecaster> {
    let (version, digits) = text.split_once(':')?;
    let known = version.parse() == Ok(Forecaster::VERSION);
    Forecaster::from_bytes(&from_hex(digits).filter(|_| known)?).ok()
}

/// A text that says what was learned. Any other is refused: a replay that learns anew would decide otherwise, and
/// nobody would know why.
fn readable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    match &text {
        Some(said) if learned(said).is_none() => Err(D::Error::custom(
            "what was learned of the demand cannot be read: it is damaged, or of another version of Podscale",
        )),
        _ => Ok(text),
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| u8::try_from(digit.to_digit(16)?).ok()).collect();
    let pairs = digits?;
    let pairs = pairs.chunks_exact(2);
    pairs.remainder().is_empty().then(|| pairs.map(|pair| (pair[0] << 4) | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::Time;

    fn demand(minute: i64) -> Demand {
        let at = Time(minute * 60_000_000);
        Demand { replicas: Milli(1000 + minute), at, horizon: Span::seconds(60) }
    }

    #[test]
    fn a_memory_survives_a_recording() {
        let answer = LastAnswer { metric: 7, replicas: 3, at: Time(1_000_500) };
        let memory = Memory {
            last_active: Some(Time(2_000_000)),
            metrics_gone_since: None,
            last_answers: vec![answer],
            failures: vec![Failures { trigger: 9, count: 4 }],
            demand: Some(demand(59)),
            asked: vec![Asked { replicas: Milli(2500), at: Time(3) }],
            burst: Some(Burst { last: Time(4), replicas: 9 }),
            room: Some(Room { part: 70_000, at: Time(5) }),
        };
        let mut forecaster = Forecaster::default();
        (0..60).for_each(|minute| forecaster.observe(demand(minute)));
        let history = History {
            memory: Some(Box::new(memory)),
            forecaster: Some(Box::new(forecaster)),
            ..History::default()
        };
        let text = serde_json::to_string(&RecordedHistory::from(&history)).expect("JSON");
        let read: RecordedHistory = serde_json::from_str(&text).expect("JSON");
        assert_eq!(History::from(&read), history);
        let native: RecordedHistory = serde_json::from_str("{}").expect("JSON");
        assert_eq!(History::from(&native), History::default());
        let form = format!("\"forecaster\":\"{}:", Forecaster::VERSION);
        assert!(text.contains(&form), "{text}");
        // Without a version, as earlier ones wrote it, with another one, cut off, longer, and no bytes at all.
        let whole = form.as_str();
        for (part, other) in [
            (whole, "\"forecaster\":\""),
            (whole, "\"forecaster\":\"3:"),
            (whole, "\"forecaster\":\"x:"),
            (whole, "\"forecaster\":\"4:0"),
            (whole, "\"forecaster\":\"4:00"),
            ("\"}", "00\"}"),
            (whole, "\"forecaster\":\"4:zz"),
        ] {
            let broken = text.replace(part, other);
            let error = serde_json::from_str::<RecordedHistory>(&broken).map_err(|e| e.to_string());
            let error = error.expect_err(other);
            assert!(error.starts_with("what was learned of the demand cannot be read"), "{error}");
        }
    }
}
