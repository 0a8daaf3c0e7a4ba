//! Decisions about Jobs, put together into Recordings for as long as each follows from the one before it.

use super::segment::recording_name;
use crate::controller::observer::{JobsDecided, StatusStored};
use crate::dialect::Key;
use podscale_api::keda::scaled_job::{ScaledJob, ScaledJobSpec, ScaledJobStatus};
use podscale_api::recording::{
    API_VERSION, AnyRecording, JobsErrors, JobsRecording, JobsStep, KIND, RecordedJobsDecision,
    RecordingMeta, recorded,
};
use podscale_api::time::ExactTimestamp;
use podscale_api::translate::scaled_job::status::Found;
use podscale_core::Time;

/// One decision with what it was made on.
pub(super) struct JobsEntry {
    pub(super) key: Key,
    gap: u64,
    now: Time,
    /// The object that was decided on.
    object: ScaledJob,
    /// The decision and what it was made on, without a spec.
    step: JobsStep,
}

impl JobsEntry {
    /// Of a decision, after so many gaps.
    pub(super) fn of(decided: &JobsDecided<'_>, gap: u64) -> JobsEntry {
        let mut step = JobsStep::at(ExactTimestamp(decided.now));
        let mut errors = JobsErrors::default();
        match decided.found {
            Found::Paused => step.paused = true,
            Found::Refused(why) => errors.check = Some(why.to_owned()),
            Found::Polled(polled) => {
                step.note(polled.snapshot);
                errors.create_jobs = polled.refusal.map(str::to_owned);
                let missing = decided.wanted().saturating_sub(decided.created());
                if decided.withheld.is_none() {
                    errors.jobs_not_created = u32::try_from(missing).unwrap_or(0);
                }
            }
        }
        if let StatusStored::Failed(why) = decided.stored {
            errors.update_status = Some(why.to_owned());
        }
        step.withheld = decided.withheld;
        step.errors = (errors != JobsErrors::default()).then_some(errors);
        let (written, before) = match decided.stored {
            StatusStored::Written => (true, Some(decided.status)),
            StatusStored::Left | StatusStored::Failed(_) => (false, decided.object.status.as_ref()),
        };
        let nothing = ScaledJobStatus::default();
        let stored = before.unwrap_or(&nothing);
        let created = usize::try_from(decided.created()).unwrap_or(0);
        let decision =
            RecordedJobsDecision::of(decided.plan(), created, written, stored, decided.events);
        step.decision = Some(decision);
        JobsEntry {
            key: decided.key.clone(),
            gap,
            now: decided.now,
            object: recorded(decided.object),
            step,
        }
    }
}

/// A Recording that may go on.
pub(super) struct JobsSegment {
    recording: JobsRecording,
    gap: u64,
    /// What the next poll must find for its decision to follow from the last one.
    uid: String,
    generation: i64,
    spec: ScaledJobSpec,
    status: ScaledJobStatus,
}

impl JobsSegment {
    pub(super) fn begin(entry: &JobsEntry) -> JobsSegment {
        let ScaledJob { metadata, spec, status, .. } = &entry.object;
        let name = recording_name(&entry.key, entry.now);
        JobsSegment {
            gap: entry.gap,
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            spec: spec.clone(),
            status: status.clone().unwrap_or_default(),
            recording: JobsRecording {
                api_version: API_VERSION.to_owned(),
                kind: KIND.to_owned(),
                metadata: RecordingMeta { name, ..RecordingMeta::default() },
                autoscaler: entry.object.clone(),
                steps: Vec::new(),
            },
        }
    }

    pub(super) fn continues_with(&self, entry: &JobsEntry) -> bool {
        let ScaledJob { metadata, spec, status, .. } = &entry.object;
        let next = if *spec == self.spec { self.generation } else { self.generation + 1 };
        entry.gap == self.gap
            && metadata.uid == self.uid
            && metadata.generation == next
            && status.clone().unwrap_or_default() == self.status
    }

    pub(super) fn step_count(&self) -> usize {
        self.recording.steps.len()
    }

    /// Adds a step; about how many bytes it has.
    pub(super) fn add(&mut self, entry: JobsEntry) -> usize {
        let JobsEntry { object: ScaledJob { metadata, spec, .. }, mut step, .. } = entry;
        if spec != self.spec {
            step.spec = Some(spec.clone());
            (self.spec, self.generation) = (spec, metadata.generation);
        }
        if let Some(decision) = &step.decision {
            self.status.clone_from(&decision.status);
        }
        let size = serde_json::to_vec(&step).map_or(0, |text| text.len());
        self.recording.steps.push(step);
        size
    }

    pub(super) fn end(self) -> AnyRecording {
        AnyRecording::Jobs(Box::new(self.recording))
    }
}
