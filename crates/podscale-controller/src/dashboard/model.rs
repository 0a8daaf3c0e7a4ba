//! What the dashboard shows: plain values, in words where people read them.

use crate::controller::outcome::OutcomeKind;
use crate::dialect::Kind;
use crate::dialect::hpa::HPA;
use podscale_core::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One autoscaler as it stands after its latest decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerView {
    /// By what the dashboard knows it, see [`key_text`].
    pub key: String,
    /// The object's namespace.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object's kind, for instance `HorizontalPodAutoscaler`.
    pub kind: String,
    /// What is scaled, as `Deployment/web`; `Jobs` where Jobs are created.
    pub target: String,
    /// The fewest replicas it may set.
    pub min: i32,
    /// The most replicas it may set.
    pub max: i32,
    /// How many replicas the target has.
    pub current: i32,
    /// How many it should have.
    pub desired: i32,
    /// Each metric against its target, in the order of the spec.
    pub metrics: Vec<MetricView>,
    /// The conditions of its status.
    pub conditions: Vec<ConditionView>,
    /// When the target was last given another size.
    #[serde(serialize_with = "optional_milliseconds", deserialize_with = "maybe_time")]
    pub last_scale: Option<Time>,
    /// Which other controller or autoscaler is in its way, if nothing is done for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<String>,
}

/// By what the dashboard knows an object: `namespace/name`, and for any other kind than
/// HorizontalPodAutoscaler `namespace/name/resource`, since objects of several kinds can share a name.
pub(super) fn key_text(kind: &Kind, namespace: &str, name: &str) -> String {
    if *kind == HPA {
        format!("{namespace}/{name}")
    } else {
        format!("{namespace}/{name}/{}", kind.resource)
    }
}

/// One metric against its target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricView {
    /// What is measured, in few words.
    pub name: String,
    /// The unit of the numbers below.
    pub unit: Unit,
    /// What it says now; `None` where it was not read, or has no pods to be shared among.
    pub value: Option<f64>,
    /// What it is compared with; `None` where the spec gives nothing usable.
    pub goal: Option<f64>,
    /// The value in words, for instance `62%`.
    pub current: String,
    /// The goal in words, for instance `50%`.
    pub target: String,
    /// How far the value is from the goal as the decision saw it: above one asks for more.
    pub ratio: Option<f64>,
    /// What that means.
    pub state: MetricState,
}

/// The unit of a metric's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    /// Percent of what the pods requested.
    Percent,
    /// Cores of processors.
    Cores,
    /// Bytes.
    Bytes,
    /// Anything else that can be counted.
    Count,
}

/// What a metric asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MetricState {
    /// More replicas.
    Above,
    /// Nothing: it is close enough to its target.
    Near,
    /// Fewer replicas.
    Below,
    /// It is an average per pod, and there are no pods to share it among.
    NoPods,
    /// It could not be read.
    Unread,
    /// It was not to be read: a pause, a hold or a bound decided without it, or nothing could be decided.
    NotAsked,
}

/// One condition of an autoscaler's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionView {
    /// Which one, for instance `AbleToScale`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Since when.
    #[serde(serialize_with = "optional_milliseconds", deserialize_with = "maybe_time")]
    pub since: Option<Time>,
}

/// One decision in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionView {
    /// When it was made.
    #[serde(serialize_with = "milliseconds", deserialize_with = "time")]
    pub time: Time,
    /// The size the target had.
    pub from: i32,
    /// The size that was decided; the same where nothing changes.
    pub to: i32,
    /// Whether the target was given its new size.
    pub rescaled: bool,
    /// What kind of outcome it was.
    pub outcome: OutcomeKind,
    /// The outcome's reason in one line.
    pub reason: String,
    /// Each step in words, in order.
    pub lines: Vec<String>,
}

/// One autoscaler with its latest outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The autoscaler.
    #[serde(flatten)]
    pub view: AutoscalerView,
    /// What kind of outcome its latest decision had.
    pub outcome: OutcomeKind,
    /// The outcome's reason in one line.
    pub reason: String,
    /// The target's size over time, evenly spread.
    pub trend: Vec<i32>,
}

fn milliseconds<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_i64(time.0.div_euclid(1000))
}

fn optional_milliseconds<S: Serializer>(
    time: &Option<Time>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => milliseconds(time, serializer),
        None => serializer.serialize_none(),
    }
}

fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    i64::deserialize(deserializer).map(|milliseconds| Time(milliseconds.saturating_mul(1000)))
}

fn maybe_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let milliseconds = Option::<i64>::deserialize(deserializer)?;
    Ok(milliseconds.map(|milliseconds| Time(milliseconds.saturating_mul(1000))))
}
