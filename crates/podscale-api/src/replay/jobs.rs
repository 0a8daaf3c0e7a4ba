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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{AnyRecording, Line, RecordingReader, RecordingWriter};
    use crate::replay::difference::by_field;
    use serde_json::{Value, json};

    /// A queue that fills, a quota, a pause, and a mistake.
    fn recording() -> Value {
        let step = |second: u32, known: Value| {
            let mut step = json!({"time": format!("2000-01-01T00:00:{second:02}Z")});
            for (field, value) in known.as_object().expect("fields") {
                step[field] = value.clone();
            }
            step
        };
        let answer = |value: &str, active: bool| {
            json!([{"metric": "s0-queue", "value": value,
            "perJob": "2", "active": active}])
        };
        json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "Recording",
        "metadata": {"name": "shop/mail ScaledJob"},
        "autoscaler": {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob",
            "metadata": {"name": "mail", "namespace": "shop", "generation": 1},
            "spec": {"maxReplicaCount": 5, "triggers": [{"type": "redis", "metadata": {}}]}},
        "steps": [
            step(10, json!({"answers": answer("0", false)})),
            step(20, json!({"answers": answer("7", true)})),
            step(30, json!({"answers": answer("100", true), "jobs": {"unfinished": 4, "pending": 1}})),
            step(40, json!({"answers": answer("100", true), "jobs": {"unfinished": 1},
                "errors": {"createJobs": "no quota", "jobsNotCreated": 3}})),
            step(50, json!({"paused": true})),
            step(51, json!({"errors": {"check": "no triggers"}})),
            step(52, json!({"answers": [{"metric": "s0-queue", "error": "no route"}],
                "spec": {"maxReplicaCount": 9, "triggers": [{"type": "redis", "metadata": {}}]}})),
            step(53, json!({"answers": answer("8", true), "withheld": "dryRun"})),
        ]})
    }

    fn parsed(value: &Value) -> JobsRecording {
        let line = Line { number: 1, bytes: value.to_string().into_bytes() };
        match line.parse_any().expect("a recording") {
            AnyRecording::Jobs(recording) => *recording,
            AnyRecording::Scale(_) => panic!("it is of a ScaledJob"),
        }
    }

    /// What is decided, step by step.
    fn decided(recording: &JobsRecording) -> Vec<RecordedJobsDecision> {
        let mut replayer = JobsReplayer::new(recording);
        recording.steps.iter().map(|step| replayer.step(step).outcome).collect()
    }

    #[test]
    fn steps_are_decided_by_what_was_known_and_by_the_status_before() {
        let told = |decision: &RecordedJobsDecision| {
            let ready = decision.status.conditions.iter().find(|it| it.r#type == "Ready");
            let ready = ready.map_or("", |ready| ready.reason.as_str());
            let events: Vec<&str> =
                decision.events.iter().map(|event| event.reason.as_str()).collect();
            format!("{}/{} {ready} {}", decision.created, decision.create, events.join(" "))
        };
        let found: Vec<String> = decided(&parsed(&recording())).iter().map(told).collect();
        assert_eq!(
            found,
            [
                "0/0 ScaledJobReady ScaledJobReady",
                "4/4 ScaledJobReady ScaledJobActive KEDAJobsCreated",
                "1/1 ScaledJobReady KEDAJobsCreated",
                "1/4 KEDAJobCreateFailed KEDAJobsCreated KEDAJobCreateFailed",
                "0/0 ScaledJobReady ScaledJobPaused KEDAScalersStopped ScaledJobReady",
                "0/0 ScaledJobCheckFailed ScaledJobUnpaused ScaledJobCheckFailed",
                "0/0 TriggerError KEDAScalerFailed",
                "0/4 TriggerError ",
            ]
        );
    }

    #[test]
    fn what_is_written_is_read_again_and_agrees_and_a_change_is_found() {
        let mut recording = parsed(&recording());
        for (step, decision) in recording.steps.iter_mut().zip(decided(&parsed(&self::recording())))
        {
            step.decision = Some(decision);
        }
        let mut writer = RecordingWriter::plain(Vec::new());
        writer.write(&recording).expect("written");
        let bytes = writer.finish().expect("all of it");
        assert_eq!(RecordingReader::new(&*bytes).expect("lines").count(), 0, "no size was set");
        let mut lines = RecordingReader::new(&*bytes).expect("lines");
        let line = lines.next_line().expect("read").expect("a line");
        let AnyRecording::Jobs(again) = line.parse_any().expect("a recording") else {
            panic!("it is of a ScaledJob");
        };
        assert_eq!(*again, recording);
        let differing = |recording: &JobsRecording| -> Vec<String> {
            let pairs = recording.steps.iter().zip(decided(recording));
            let all = pairs.flat_map(|(step, got)| {
                by_field(step.decision.as_ref().expect("a decision"), &got)
            });
            all.map(|difference| difference.field).collect()
        };
        assert_eq!(differing(&again), [""; 0]);
        recording.steps[1].jobs.unfinished = 1;
        let found = differing(&recording);
        assert_eq!(found, ["create", "created", "events[1].message"]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let mut wrong = recording();
        wrong["steps"][2]["jobs"]["unfinished"] = json!("many");
        let line = Line { number: 3, bytes: wrong.to_string().into_bytes() };
        let error = line.parse_any().expect_err("no number").to_string();
        assert!(error.contains("line 3") && error.contains("steps[2].jobs.unfinished"), "{error}");
    }
}
