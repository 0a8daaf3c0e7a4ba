//! Recordings of ScaledJobs: no target has a size there, so that a step says which Jobs there were and what triggers
//! said, and its decision how many Jobs were created.

use podscale_core::jobs::{JobCounts, JobPlan, JobRules, JobSnapshot, JobTrigger, Load};
use podscale_core::model::Milli;
use podscale_core::{Event, Withheld};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::{RecordedEvent, RecordingMeta, withheld};
use crate::keda::scaled_job::{ScaledJob, ScaledJobSpec, ScaledJobStatus};
use crate::meta::ObjectMeta;
use crate::quantity::{Format, Quantity};
use crate::serde_form::{is_zero, null_default};
use crate::time::ExactTimestamp;

/// One ScaledJob's inputs over time, with the decisions made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobsRecording {
    /// [`super::API_VERSION`]
    pub api_version: String,
    /// [`super::KIND`]
    pub kind: String,
    /// Its name and what it is about.
    #[serde(default)]
    pub metadata: RecordingMeta,
    /// The ScaledJob at the beginning, see [`recorded`].
    pub autoscaler: ScaledJob,
    /// One poll after the other.
    #[serde(default)]
    pub steps: Vec<JobsStep>,
}

/// One poll of a ScaledJob: what was there, and what was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobsStep {
    /// When.
    pub time: ExactTimestamp,
    /// A new spec from this step on, with the next generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<ScaledJobSpec>,
    /// Whether a person had paused it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// The Jobs that there were.
    #[serde(default, skip_serializing_if = "RecordedJobs::is_none")]
    pub jobs: RecordedJobs,
    /// What the metrics of triggers said, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub answers: Vec<RecordedLoad>,
    /// Why nothing was written, where that was on purpose.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "withheld::scale"
    )]
    pub withheld: Option<Withheld>,
    /// What failed in this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<JobsErrors>,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<RecordedJobsDecision>,
}

/// The unfinished Jobs of a ScaledJob.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedJobs {
    /// All of them.
    pub unfinished: i32,
    /// Those of which no pod runs yet.
    pub pending: i32,
}

impl RecordedJobs {
    fn is_none(&self) -> bool {
        *self == RecordedJobs::default()
    }
}

/// What one metric of a trigger said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedLoad {
    /// The metric's name.
    pub metric: String,
    /// How much there was to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Quantity>,
    /// How much of it one Job does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_job: Option<Quantity>,
    /// Whether that was enough to begin with.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub active: bool,
    /// Why there was no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What failed in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JobsErrors {
    /// The object cannot be used, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// Creating Jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_jobs: Option<String>,
    /// How many Jobs were not created for that.
    #[serde(skip_serializing_if = "is_zero")]
    pub jobs_not_created: u32,
    /// Writing the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_status: Option<String>,
}

/// What was decided in a step, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedJobsDecision {
    /// Whether there was anything to do.
    pub active: bool,
    /// How many Jobs were to be created.
    pub create: i32,
    /// How many were.
    pub created: i32,
    /// Whether the status was written.
    pub status_written: bool,
    /// The status as it is stored afterwards.
    pub status: ScaledJobStatus,
    /// In the order in which they were sent.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub events: Vec<RecordedEvent>,
}

/// A ScaledJob in the form that Recordings hold: without what its Jobs are made of, which has no part in decisions and
/// may hold what is nobody's business.
#[must_use]
pub fn recorded(object: &ScaledJob) -> ScaledJob {
    let ObjectMeta { name, namespace, uid, generation, .. } = object.metadata.clone();
    ScaledJob {
        metadata: ObjectMeta { name, namespace, uid, generation, ..ObjectMeta::default() },
        spec: recorded_spec(&object.spec),
        ..object.clone()
    }
}

/// A spec in the form that Recordings hold.
#[must_use]
pub fn recorded_spec(spec: &ScaledJobSpec) -> ScaledJobSpec {
    ScaledJobSpec { job_target_ref: serde_json::json!({}), ..spec.clone() }
}

impl JobsStep {
    /// A step at which nothing is known.
    #[must_use]
    pub fn at(time: ExactTimestamp) -> JobsStep {
        JobsStep {
            time,
            spec: None,
            paused: false,
            jobs: RecordedJobs::default(),
            answers: Vec::new(),
            withheld: None,
            errors: None,
            decision: None,
        }
    }

    /// Takes in what was known.
    pub fn note(&mut self, snapshot: &JobSnapshot) {
        let JobCounts { running: unfinished, pending } = snapshot.counts;
        self.jobs = RecordedJobs { unfinished, pending };
        self.answers = snapshot.triggers.iter().map(RecordedLoad::from).collect();
    }

    /// What was known, to be decided by these rules.
    #[must_use]
    pub fn snapshot(&self, rules: JobRules) -> JobSnapshot {
        let RecordedJobs { unfinished: running, pending } = self.jobs;
        let triggers = self.answers.iter().map(JobTrigger::from).collect();
        JobSnapshot { rules, counts: JobCounts { running, pending }, triggers }
    }
}

impl From<&JobTrigger> for RecordedLoad {
    fn from(JobTrigger { metric, answer }: &JobTrigger) -> RecordedLoad {
        let metric = metric.to_string();
        let quantity = |Milli(milli): Milli| Some(Quantity::from_milli(milli, Format::DecimalSi));
        match answer {
            Ok(Load { amount, per_job, active }) => {
                let (value, per_job) = (quantity(*amount), quantity(*per_job));
                RecordedLoad { metric, value, per_job, active: *active, error: None }
            }
            Err(error) => {
                let error = Some(error.to_string());
                RecordedLoad { metric, error, ..RecordedLoad::default() }
            }
        }
    }
}

impl From<&RecordedLoad> for JobTrigger {
    fn from(recorded: &RecordedLoad) -> JobTrigger {
        let milli =
            |quantity: &Option<Quantity>| Milli(quantity.as_ref().map_or(0, Quantity::milli_value));
        let load = Load {
            amount: milli(&recorded.value),
            per_job: milli(&recorded.per_job),
            active: recorded.active,
        };
        let answer = recorded.error.as_deref().map_or(Ok(load), |error| Err(Arc::from(error)));
        JobTrigger { metric: recorded.metric.as_str().into(), answer }
    }
}

impl RecordedJobsDecision {
    /// The decision of a poll in the form of a Recording. `stored` is the status as it is afterwards.
    #[must_use]
    pub fn of(
        plan: JobPlan,
        created: usize,
        status_written: bool,
        stored: &ScaledJobStatus,
        events: &[Event],
    ) -> RecordedJobsDecision {
        RecordedJobsDecision {
            active: plan.active,
            create: plan.create,
            created: i32::try_from(created).unwrap_or(i32::MAX),
            status_written,
            status: stored.clone(),
            events: events.iter().map(RecordedEvent::from).collect(),
        }
    }
}
