//! What a PodAutoscaler wants. What each field means is said in `fields`, and not repeated here.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::hpa::v2::{self, CrossVersionObjectReference};
use crate::quantity::Quantity;
use crate::serde_form::{list, null_default};
use crate::time::Timestamp;

mod demand;
mod trigger;

pub use demand::{Headroom, Lead, Predict, Queue, Window};
pub use trigger::TriggerSource;

/// The names of metric sources that the HPA does not have.
pub mod metric_type {
    /// A query, asked of Prometheus directly.
    pub const PROMETHEUS: &str = "Prometheus";
    /// An event source, as KEDA's triggers name them.
    pub const TRIGGER: &str = "Trigger";
}

/// What is scaled, between which bounds, by which metrics and how fast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAutoscalerSpec {
    /// The workload.
    #[serde(deserialize_with = "null_default")]
    pub scale_target_ref: CrossVersionObjectReference,
    /// Never fewer than this; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Never more than this.
    #[serde(deserialize_with = "null_default")]
    pub max_replicas: i32,
    /// What is measured.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub metrics: Vec<Metric>,
    /// `Max`, `Min`, `Average` or `Expression`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub combine: Option<String>,
    /// The replicas as an expression over the metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// How fast, and how steadily.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<Behavior>,
    /// Other bounds at certain times.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub schedules: Vec<Schedule>,
    /// `Active`, `DryRun` or `Paused`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Until when the mode holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_until: Option<Timestamp>,
    /// Directions in which nothing moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// The size that is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// `Owned` or `Selector`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selection: Option<String>,
    /// How it goes idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_to_zero: Option<ScaleToZero>,
    /// For how long a pod's values do not count; a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<String>,
    /// How often it is decided; a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_period: Option<String>,
    /// The size without metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
    /// How pods get a deletion cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_deletion_cost: Option<PodDeletionCost>,
    /// How a queue is served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// How sizes follow the mean demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// `Balanced`, `Cheap` or `Safe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How long a new pod needs to become ready; a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_up_time: Option<String>,
    /// How forecasts are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predict: Option<Predict>,
    /// How the size follows where the demand is going.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<Lead>,
    /// How much room there is for what the demand usually gains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Headroom>,
}

impl PodAutoscalerSpec {
    /// What an expression may call the metrics, by their places.
    #[must_use]
    pub fn metric_names(&self) -> Vec<Option<&str>> {
        self.metrics.iter().map(|metric| metric.name.as_deref()).collect()
    }

    /// The place of the metric by which pods get a deletion cost; one that has a value for each pod.
    #[must_use]
    pub fn deletion_cost_by(&self) -> Option<usize> {
        let name = Some(self.pod_deletion_cost.as_ref()?.metric.as_str());
        let of_pods = |metric: &Metric| PER_POD.contains(&metric.hpa.r#type.as_str());
        self.metrics.iter().position(|metric| metric.name.as_deref() == name && of_pods(metric))
    }

    /// The metrics that event sources give, with their places.
    pub fn triggers(&self) -> impl Iterator<Item = (usize, &Metric, &TriggerSource)> {
        let metrics = self.metrics.iter().enumerate();
        metrics.filter_map(|(place, metric)| Some((place, metric, metric.event_source()?)))
    }

    /// The place of a metric by its name; one that has one value for all pods.
    #[must_use]
    pub fn whole_metric(&self, name: &str) -> Option<usize> {
        let of_pods = |metric: &Metric| PER_POD.contains(&metric.hpa.r#type.as_str());
        let named = |metric: &Metric| metric.name.as_deref() == Some(name) && !of_pods(metric);
        self.metrics.iter().position(named)
    }
}

/// The types of metrics that have a value for each pod.
const PER_POD: [&str; 3] =
    [v2::metric_type::RESOURCE, v2::metric_type::CONTAINER_RESOURCE, v2::metric_type::PODS];

/// How much of a query stands for a metric that has no name.
const TITLE_CHARS: usize = 60;

/// How a query is called: by the metric's name, or else by its beginning.
#[must_use]
pub fn query_title(name: Option<&str>, query: &str) -> String {
    match name {
        Some(name) => name.to_owned(),
        None if query.chars().count() > TITLE_CHARS => {
            format!("{}…", query.chars().take(TITLE_CHARS).collect::<String>())
        }
        None => query.to_owned(),
    }
}

/// One metric and its target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metric {
    /// The metric as an HPA has it.
    #[serde(flatten)]
    pub hpa: v2::MetricSpec,
    /// What expressions call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<Box<PrometheusSource>>,
    /// An event source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Box<TriggerSource>>,
    /// Values older than this count as missing; a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<String>,
    /// What to do while there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_missing: Option<OnMissing>,
    /// `Requests` or `Limits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilization_of: Option<String>,
    /// `Average`, `Max` or a percentile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<String>,
    /// Above this the workload is needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<Quantity>,
    /// Between them nothing moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermarks: Option<Box<Watermarks>>,
}

impl From<v2::MetricSpec> for Metric {
    fn from(hpa: v2::MetricSpec) -> Metric {
        Metric { hpa, ..Metric::default() }
    }
}

/// What to do while a metric has no value: a word, or a number of replicas to propose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum OnMissing {
    /// It proposes so many replicas.
    Replicas(i32),
    /// `Hold`, `Ignore` or `LastValue`.
    Word(String),
}

impl From<OnMissing> for Value {
    fn from(by: OnMissing) -> Value {
        match by {
            OnMissing::Replicas(replicas) => json!({"replicas": replicas}),
            OnMissing::Word(word) => word.into(),
        }
    }
}

impl TryFrom<Value> for OnMissing {
    type Error = String;

    /// A bare number stands for so many replicas, too.
    fn try_from(given: Value) -> Result<OnMissing, String> {
        let count = match &given {
            Value::String(word) => return Ok(OnMissing::Word(word.clone())),
            Value::Object(fields) if fields.len() == 1 => fields.get("replicas"),
            number => Some(number),
        };
        let count = count.and_then(Value::as_i64).and_then(|count| i32::try_from(count).ok());
        count
            .map(OnMissing::Replicas)
            .ok_or_else(|| format!("onMissing cannot be {given}, only {ON_MISSING}"))
    }
}

/// What a metric may do while it has no value, in words.
pub const ON_MISSING: &str = "Hold, Ignore, LastValue or {replicas: N} with an N from 0 on";

/// A query that is asked of Prometheus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrometheusSource {
    /// The address of another Prometheus than the controller's.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// The query.
    pub query: String,
    /// What it should be.
    #[serde(deserialize_with = "null_default")]
    pub target: v2::MetricTarget,
}

/// Values between which nothing moves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Watermarks {
    /// Nothing is added at or below this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<Quantity>,
    /// Nothing is removed at or above this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<Quantity>,
}

/// How fast and how steadily, for each direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Behavior {
    /// When adding pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScalingRules>,
    /// When removing pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<ScalingRules>,
}

/// The rules of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingRules {
    /// The rules that an HPA has.
    #[serde(flatten)]
    pub hpa: v2::HpaScalingRules,
    /// For how long after a change nothing moves this way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forbidden_window_seconds: Option<i32>,
    /// How far one step leads; only when adding pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<UpLimit>,
}

/// How far one step leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpLimit {
    /// How many times as many pods as there are; 2 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<Quantity>,
    /// So many are always allowed; 4 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<i32>,
}

/// Other bounds for a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Schedule {
    /// What the status calls it.
    pub name: String,
    /// The time zone of the expressions; UTC by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// When it begins; a cron expression.
    pub start: String,
    /// When it ends; a cron expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<String>,
    /// How long it lasts; a duration, in place of `end`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The fewest replicas meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// The most replicas meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
    /// For how long the bounds move gradually; a duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<String>,
}

/// Directions in which nothing moves; one that is there is paused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pause {
    /// No pods are added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<Until>,
    /// No pods are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<Until>,
}

/// How long something holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Until {
    /// Until when; for ever if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A size that is held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hold {
    /// How many replicas.
    #[serde(deserialize_with = "null_default")]
    pub replicas: i32,
    /// Until when; for ever if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// How a target goes idle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleToZero {
    /// How many replicas stay; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_replicas: Option<i32>,
    /// For how long nothing may be above its activation; a duration, 5m by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cool_down: Option<String>,
    /// `LeaveAlone` or `Wake`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_by_others: Option<String>,
}

/// The size when no metric could be read for longer than a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fallback {
    /// How many replicas.
    #[serde(deserialize_with = "null_default")]
    pub replicas: i32,
    /// After how long; a duration, 3m by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// How pods get a deletion cost before the size goes down.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDeletionCost {
    /// The name of the metric that says how busy a pod is.
    pub metric: String,
}
