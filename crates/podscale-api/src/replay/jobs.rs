//! Decides the steps of a ScaledJob's Recording anew, each on the status that the one before it left.

use crate::keda::scaled_job::ScaledJob;
use crate::recording::{JobsErrors, JobsRecording, JobsStep, RecordedJobsDecision};
use crate::translate::scaled_job::rules;
use crate::translate::scaled_job::status::{Found, Polled, events, to_wire};
use podscale_core::jobs::{self, JobPlan};

/// The state of one ScaledJob between two steps.
pub struct JobsReplayer {
    object: ScaledJob,
}

/// One step, decided anew.
pub struct JobsReplayed {
    /// The decision in the form of the recording.
    pub outcome: RecordedJobsDecision,
    /// The decision in words.
    pub lines: Vec<String>,
    /// How many unfinished Jobs there are then.
    pub unfinished: i32,
}

impl JobsReplayer {
    /// At the beginning of a Recording.
    #[must_use]
    pub fn new(recording: &JobsRecording) -> JobsReplayer {
        JobsReplayer { object: recording.autoscaler.clone() }
    }

    /// Decides a step and takes over what it leads to.
    pub fn step(&mut self, step: &JobsStep) -> JobsReplayed {
        if let Some(spec) = &step.spec {
            self.object.spec = spec.clone();
            self.object.metadata.generation = self.object.metadata.generation.saturating_add(1);
        }
        let no_errors = JobsErrors::default();
        let errors = step.errors.as_ref().unwrap_or(&no_errors);
        let (found, lines) = match (step.paused, &errors.check) {
            (true, _) => (Found::Paused, vec!["it is paused, so nothing is done".to_owned()]),
            (false, Some(why)) => (Found::Refused(why), vec![format!("it cannot be used: {why}")]),
            (false, None) => return self.polled(step, errors),
        };
        self.conclude(step, errors, found, JobPlan::default(), lines)
    }

    fn polled(&mut self, step: &JobsStep, errors: &JobsErrors) -> JobsReplayed {
        let snapshot = step.snapshot(rules(&self.object.spec));
        let plan = jobs::decide(&snapshot);
        let refusal = errors.create_jobs.as_deref();
        let created = match step.withheld {
            Some(_) => 0,
            None => {
                let wanted = u32::try_from(plan.create).unwrap_or(0);
                wanted.saturating_sub(errors.jobs_not_created) as usize
            }
        };
        let lines = jobs::lines(&snapshot, plan);
        let found = Found::Polled(Polled { snapshot: &snapshot, plan, created, refusal });
        self.conclude(step, errors, found, plan, lines)
    }

    fn conclude(
        &mut self,
        step: &JobsStep,
        errors: &JobsErrors,
        found: Found<'_>,
        plan: JobPlan,
        lines: Vec<String>,
    ) -> JobsReplayed {
        let created = match found {
            Found::Polled(polled) => polled.created,
            Found::Paused | Found::Refused(_) => 0,
        };
        let status = to_wire(&self.object, found, step.time.0);
        let is_silent = step.withheld.is_some();
        let sent = if is_silent { Vec::new() } else { events(&self.object, found, &status) };
        let is_new = self.object.status.as_ref() != Some(&status);
        let written = is_new && !is_silent && errors.update_status.is_none();
        if written {
            self.object.status = Some(status);
        }
        let stored = self.object.status.clone().unwrap_or_default();
        let outcome = RecordedJobsDecision::of(plan, created, written, &stored, &sent);
        let unfinished = step.jobs.unfinished.saturating_add(outcome.created);
        JobsReplayed { outcome, lines, unfinished }
    }
}
