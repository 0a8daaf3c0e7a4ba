//! A simulated run of a ScaledJob as a Recording.

use podscale_api::keda::scaled_job::ScaledJob;
use podscale_api::recording::{
    API_VERSION, JobsRecording, JobsStep, KIND, RecordedJobsDecision, RecordingMeta, recorded,
};
use podscale_api::time::ExactTimestamp;
use podscale_api::translate::scaled_job::status::{Found, Polled, events, to_wire};
use podscale_core::Time;
use podscale_core::jobs::{JobPlan, JobSnapshot};
use podscale_sim::jobs::PollObserver;

/// Writes down every poll of a run.
pub(super) struct JobsRecorder {
    recording: JobsRecording,
    /// The object as it is stored between two polls.
    job: ScaledJob,
}

impl JobsRecorder {
    /// At the beginning of a run of this object.
    pub(super) fn new(job: &ScaledJob, name: &str) -> JobsRecorder {
        let recording = JobsRecording {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metadata: RecordingMeta { name: name.to_owned(), ..RecordingMeta::default() },
            autoscaler: recorded(job),
            steps: Vec::new(),
        };
        JobsRecorder { job: recording.autoscaler.clone(), recording }
    }

    /// The run so far.
    pub(super) fn finish(self) -> JobsRecording {
        self.recording
    }
}

impl PollObserver for JobsRecorder {
    fn polled(&mut self, now: Time, snapshot: &JobSnapshot, plan: JobPlan) {
        let mut step = JobsStep::at(ExactTimestamp(now));
        step.note(snapshot);
        let created = usize::try_from(plan.create).unwrap_or(0);
        let found = Found::Polled(Polled { snapshot, plan, created, refusal: None });
        let status = to_wire(&self.job, found, now);
        let sent = events(&self.job, found, &status);
        let written = self.job.status.as_ref() != Some(&status);
        self.job.status = Some(status);
        let stored = self.job.status.clone().unwrap_or_default();
        step.decision = Some(RecordedJobsDecision::of(plan, created, written, &stored, &sent));
        self.recording.steps.push(step);
    }
}
