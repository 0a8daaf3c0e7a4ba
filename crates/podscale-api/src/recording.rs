//! Recordings: one autoscaler's inputs over time with the decisions made, one JSON object per line.

use podscale_core::model::Settings;
use podscale_core::{Event, Withheld};
use serde::{Deserialize, Serialize, Serializer};

use crate::hpa::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, HorizontalPodAutoscalerStatus,
    KIND as HPA,
};
use crate::labels::Labels;
use crate::metrics::{ExternalMetricValue, MetricValue, PodMetrics};
use crate::observe::Other;
use crate::pod::Pod;
use crate::serde_form::{is_zero, null_default};
use crate::time::{ExactTimestamp, GoDuration};

mod answer;
mod jobs;
mod origin;
mod past;
mod read;
#[cfg(test)]
mod tests;
mod withheld;
mod write;

pub use answer::{RecordedAnswer, RecordedValue};
pub use jobs::{
    JobsErrors, JobsRecording, JobsStep, RecordedJobs, RecordedJobsDecision, RecordedLoad,
    recorded, recorded_spec,
};
pub use origin::{ORIGIN, Origin};
pub use past::{
    RecordedHistory, RecordedLastAnswer, RecordedMemory, RecordedRecommendation, RecordedScaleEvent,
};
pub use read::{AnyRecording, Line, RecordingError, RecordingReader};
pub use write::{Recorded, RecordingWriter};

/// Group and version of Recordings.
pub const API_VERSION: &str = "podscale.dev/v1alpha1";
/// The kind of Recordings.
pub const KIND: &str = "Recording";

/// One autoscaler's inputs over time, with the decisions made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Recording {
    /// [`API_VERSION`]
    pub api_version: String,
    /// [`KIND`]
    pub kind: String,
    /// Its name and what it is about.
    #[serde(default)]
    pub metadata: RecordingMeta,
    /// The settings that hold for all autoscalers of a controller.
    #[serde(default)]
    pub controller: ControllerSettings,
    /// The autoscaler at the beginning, as stored (defaulted).
    pub autoscaler: HorizontalPodAutoscaler,
    /// What earlier decisions left behind; nothing if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<RecordedHistory>,
    /// One pass over the autoscaler after the other.
    #[serde(default)]
    pub steps: Vec<Step>,
}

/// A Recording's name and what it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordingMeta {
    /// Unique within a file.
    pub name: String,
    /// For choosing Recordings.
    #[serde(skip_serializing_if = "Labels::is_empty", deserialize_with = "null_default")]
    pub labels: Labels,
    /// For reading about them.
    #[serde(skip_serializing_if = "Labels::is_empty", deserialize_with = "null_default")]
    pub annotations: Labels,
}

/// The settings that hold for all autoscalers of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerSettings {
    /// How far a ratio may be off before anything moves.
    #[serde(serialize_with = "shortest_number")]
    pub tolerance: f64,
    /// How far back recommendations hold up a scale-down.
    #[serde(serialize_with = "short_duration")]
    pub downscale_stabilization: GoDuration,
    /// How long after a pod's start its cpu samples may come from starting up.
    #[serde(serialize_with = "short_duration")]
    pub cpu_initialization_period: GoDuration,
    /// Up to how long after its start an unready pod counts as never having been ready.
    #[serde(serialize_with = "short_duration")]
    pub initial_readiness_delay: GoDuration,
}

/// One pass over the autoscaler: what was there, and what was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// When; time stands still within a step.
    pub time: ExactTimestamp,
    /// A new spec from this step on, with the next generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<HorizontalPodAutoscalerSpec>,
    /// What is new about the target's scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<RecordedScale>,
    /// The other autoscalers of the namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub other_autoscalers: Vec<OtherAutoscaler>,
    /// The pods of the namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub pods: Vec<Pod>,
    /// What the resource metrics API has.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub pod_metrics: Vec<PodMetrics>,
    /// What the custom metrics API has.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub custom_metrics: Vec<MetricValue>,
    /// What the external metrics API has.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub external_metrics: Vec<ExternalMetricValue>,
    /// What single metrics were answered where the lists above cannot say it: the answer came from
    /// another source than Kubernetes' APIs, the metric's selector of series has been applied, or
    /// only this metric failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "answer::answers")]
    pub answers: Vec<RecordedAnswer>,
    /// When the write of the scale ended; by the rules for conflicts if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<ExactTimestamp>,
    /// Why the target was not given its new size, where that was on purpose.
    #[serde(
        default,
        alias = "scalePutOff",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "withheld::scale"
    )]
    pub scale_withheld: Option<Withheld>,
    /// Why a new status was not written, where that was on purpose.
    #[serde(
        default,
        alias = "statusPutOff",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "withheld::status"
    )]
    pub status_withheld: Option<Withheld>,
    /// Calls that fail in this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<StepErrors>,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<RecordedDecision>,
    /// What is decided where conversions to integers saturate, if that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_saturating: Option<RecordedDecision>,
}

/// What is new about the target's scale; the rest is as the last step left it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedScale {
    /// The count that is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<RecordedScaleSpec>,
    /// The count that is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RecordedScaleStatus>,
}

/// The count that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedScaleSpec {
    /// As the last step left it if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// The count that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedScaleStatus {
    /// The pods given that are not Failed if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// As before if absent; an empty one is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
}

/// Another autoscaler of the namespace and the pods of its target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherAutoscaler {
    /// Its name, with its kind and a slash before it unless it is an HPA.
    pub name: String,
    /// Its target's selector.
    pub selector: String,
}

impl OtherAutoscaler {
    /// One of this kind and name.
    #[must_use]
    pub fn new(kind: &str, name: &str, selector: &str) -> OtherAutoscaler {
        let name = if kind == HPA { name.to_owned() } else { format!("{kind}/{name}") };
        OtherAutoscaler { name, selector: selector.to_owned() }
    }

    /// As what decides about pods sees it.
    #[must_use]
    pub fn as_other(&self) -> Other<'_> {
        let (kind, name) = self.name.split_once('/').unwrap_or((HPA, &self.name));
        Other { kind, name, selector: &self.selector }
    }
}

/// Calls that fail in a step, with what they answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StepErrors {
    /// Finding the resource of the target's kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_mapping: Option<String>,
    /// Reading the target's scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get_scale: Option<String>,
    /// Reading resource metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_metrics: Option<String>,
    /// Reading custom metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_metrics: Option<String>,
    /// Reading external metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_metrics: Option<String>,
    /// Writing the target's scale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_scale: Option<String>,
    /// How often writing the scale first meets a conflict.
    #[serde(skip_serializing_if = "is_zero")]
    pub update_scale_conflicts: u32,
    /// Writing the autoscaler's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_status: Option<String>,
}

/// What was decided in a step, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedDecision {
    /// The target's count afterwards.
    pub replicas: i32,
    /// Whether that is a change.
    pub rescaled: bool,
    /// What the pass over the autoscaler ended with, if not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the status was written.
    pub status_written: bool,
    /// The status as it is stored afterwards.
    pub status: HorizontalPodAutoscalerStatus,
    /// In the order in which they were sent.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub events: Vec<RecordedEvent>,
}

/// A Kubernetes Event about the autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedEvent {
    /// `Normal` or `Warning`.
    pub r#type: String,
    /// In one word.
    pub reason: String,
    /// In a sentence.
    pub message: String,
}

impl From<&Event> for RecordedEvent {
    fn from(event: &Event) -> RecordedEvent {
        RecordedEvent {
            r#type: event.type_name().to_owned(),
            reason: event.reason.to_string(),
            message: event.message.clone(),
        }
    }
}

impl Step {
    /// The decision that ours must equal: the saturating one where there is one.
    pub fn expected(&self) -> Option<&RecordedDecision> {
        self.decision_saturating.as_ref().or(self.decision.as_ref())
    }
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Settings::default().into()
    }
}

impl From<Settings> for ControllerSettings {
    fn from(settings: Settings) -> Self {
        ControllerSettings {
            tolerance: settings.tolerance,
            downscale_stabilization: GoDuration::from_span(settings.downscale_stabilization),
            cpu_initialization_period: GoDuration::from_span(settings.cpu_initialization_period),
            initial_readiness_delay: GoDuration::from_span(settings.initial_readiness_delay),
        }
    }
}

impl From<ControllerSettings> for Settings {
    fn from(settings: ControllerSettings) -> Self {
        Settings {
            tolerance: settings.tolerance,
            downscale_stabilization: settings.downscale_stabilization.to_span(),
            cpu_initialization_period: settings.cpu_initialization_period.to_span(),
            initial_readiness_delay: settings.initial_readiness_delay.to_span(),
        }
    }
}

fn short_duration<S: Serializer>(duration: &GoDuration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&duration.to_short_string())
}

/// Whole numbers without a point, as people write them.
fn shortest_number<S: Serializer>(number: &f64, out: S) -> Result<S::Ok, S::Error> {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        out.serialize_i64(*number as i64)
    } else {
        out.serialize_f64(*number)
    }
}
