//! What single metrics were answered: in one form for every source, or in that of a Kubernetes API.

use std::fmt;

use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::metrics::{ExternalMetricValue, MetricValue, ObjectReference, PodMetrics};
use crate::quantity::Quantity;
use crate::serde_form::null_default;
use crate::time::{ExactTimestamp, GoDuration};

/// What one metric's source answered, with the metric's selector of series applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedAnswer {
    /// The metric's place in the spec, from 0.
    pub metric: u32,
    /// Which source answered, such as `prometheus`; for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// When it answered: the time of all values that have none of their own; the step's if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<ExactTimestamp>,
    /// What it answered. If present, even without any value, it is the whole answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<RecordedValue>>,
    /// What the resource metrics API has.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub pod_metrics: Vec<PodMetrics>,
    /// What the custom metrics API has.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub custom_metrics: Vec<MetricValue>,
    /// What the external metrics API has.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub external_metrics: Vec<ExternalMetricValue>,
    /// Whether the source says that there is something to do, where it is a trigger of an event source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<bool>,
    /// What the inputs of a formula say, in their order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<RecordedAnswer>>,
    /// Why there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One value that a source measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedValue {
    /// How much.
    pub value: Quantity,
    /// When the measurement ended; the answer's time if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<ExactTimestamp>,
    /// How long it lasted; no time at all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<GoDuration>,
    /// The labels of the series; for people.
    #[serde(default, skip_serializing_if = "Labels::is_empty", deserialize_with = "null_default")]
    pub labels: Labels,
    /// The pod of the autoscaler's namespace that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// The other object that it is about, if it is about one; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectReference>,
}

/// Reads answers as a list, or in the older form of a map by the metrics' places.
pub(super) fn answers<'de, D>(deserializer: D) -> Result<Vec<RecordedAnswer>, D::Error>
where
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(AnswersVisitor)
}

struct AnswersVisitor;

impl<'de> Visitor<'de> for AnswersVisitor {
    type Value = Vec<RecordedAnswer>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of answers, or a map of them by the metrics' places")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(answer) = seq.next_element()? {
            add(&mut all, answer)?;
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some((metric, answer)) = map.next_entry::<u32, RecordedAnswer>()? {
            add(&mut all, RecordedAnswer { metric, ..answer })?;
        }
        Ok(all)
    }
}

fn add<E: Error>(all: &mut Vec<RecordedAnswer>, answer: RecordedAnswer) -> Result<(), E> {
    if all.iter().any(|other| other.metric == answer.metric) {
        return Err(E::custom(format!("metric {} is answered twice", answer.metric)));
    }
    all.push(answer);
    Ok(())
}
