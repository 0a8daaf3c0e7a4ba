//! Decides one recording anew and notes where the outcome differs.

use podscale_api::recording::{AnyRecording, JobsRecording, Recording, RecordingMeta};
use podscale_api::replay::Replayer;
use podscale_api::replay::difference::{Difference, by_field, differences};
use podscale_api::replay::jobs::{JobsReplayed, JobsReplayer};
use podscale_api::time::format_rfc3339_exact;
use podscale_core::explain;

/// What is replayed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection<'a> {
    /// Only recordings of these names; all if empty.
    pub names: &'a [String],
    /// Only this step; all if `None`.
    pub step: Option<usize>,
    /// Whether each step is explained in words.
    pub explain: bool,
}

impl Selection<'_> {
    /// Whether a recording of this name is selected. Those of live decisions are called by the
    /// autoscaler and the time when they began; the autoscaler is enough.
    fn takes(&self, name: &str) -> bool {
        let meant = |wanted: &String| match name.strip_prefix(wanted.as_str()) {
            Some(rest) => rest.is_empty() || rest.starts_with(' '),
            None => false,
        };
        self.names.is_empty() || self.names.iter().any(meant)
    }

    /// Whether the step at this place is selected.
    fn takes_step(&self, place: usize) -> bool {
        self.step.is_none_or(|wanted| wanted == place)
    }
}

/// One recording, decided anew.
#[derive(Debug)]
pub(super) struct Judged {
    /// Its name.
    pub name: String,
    /// What it is about, if it says so.
    pub description: Option<String>,
    /// How many steps were selected.
    pub steps: usize,
    /// How many of them have a recorded decision.
    pub decisions: usize,
    /// How many of those agree.
    pub agree: usize,
    /// The steps worth showing: those that differ, and all selected ones if they are explained.
    pub shown: Vec<JudgedStep>,
}

/// One step, decided anew.
#[derive(Debug)]
pub(super) struct JudgedStep {
    /// Its place in the recording, from 0.
    pub place: usize,
    /// Its time.
    pub time: String,
    /// The size that the target has in the end, or how many unfinished Jobs there are.
    pub replicas: i32,
    /// Where the outcome differs from the recorded one.
    pub verdict: Verdict,
    /// The decision in words, if asked for.
    pub lines: Vec<String>,
}

/// How a step compares with its recorded decision.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is the same.
    Agrees,
    /// It is not.
    Differs(Vec<Difference>),
    /// Nothing was recorded for it.
    NotRecorded,
}

/// Decides a recording anew; `None` if it is not selected.
pub(super) fn judge(recording: &AnyRecording, selection: &Selection<'_>) -> Option<Judged> {
    if !selection.takes(recording.name()) {
        return None;
    }
    Some(match recording {
        AnyRecording::Scale(recording) => judge_sizes(recording, selection),
        AnyRecording::Jobs(recording) => judge_jobs(recording, selection),
    })
}

fn judge_sizes(recording: &Recording, selection: &Selection<'_>) -> Judged {
    let mut judged = Judged::of(&recording.metadata);
    let mut replayer = Replayer::new(recording);
    for (place, step) in recording.steps.iter().enumerate() {
        let is_explained = selection.explain && selection.takes_step(place);
        let (outcome, lines) = replayer.step(step, |replayed| {
            let (steps, snapshot) = (&replayed.decision.steps, replayed.snapshot);
            let words = || explain::lines(steps, snapshot.autoscaler, snapshot.now);
            let lines = is_explained.then(words);
            (replayed.outcome, lines.unwrap_or_default())
        });
        let compare = |expected| differences(expected, &outcome);
        let verdict = Verdict::of(step.expected().map(compare));
        let (time, replicas) = (format_rfc3339_exact(step.time.0), outcome.replicas);
        judged.add(JudgedStep { place, time, replicas, verdict, lines }, selection);
    }
    judged
}

fn judge_jobs(recording: &JobsRecording, selection: &Selection<'_>) -> Judged {
    let mut judged = Judged::of(&recording.metadata);
    let mut replayer = JobsReplayer::new(recording);
    for (place, step) in recording.steps.iter().enumerate() {
        let JobsReplayed { outcome, lines, unfinished: replicas } = replayer.step(step);
        let compare = |expected| by_field(expected, &outcome);
        let verdict = Verdict::of(step.decision.as_ref().map(compare));
        let time = format_rfc3339_exact(step.time.0);
        judged.add(JudgedStep { place, time, replicas, verdict, lines }, selection);
    }
    judged
}

impl Judged {
    /// Of a recording of which nothing was decided yet.
    fn of(metadata: &RecordingMeta) -> Judged {
        Judged {
            name: metadata.name.clone(),
            description: metadata.annotations.get("description").map(str::to_owned),
            steps: 0,
            decisions: 0,
            agree: 0,
            shown: Vec::new(),
        }
    }

    /// Takes in a step, if it is selected.
    fn add(&mut self, step: JudgedStep, selection: &Selection<'_>) {
        if !selection.takes_step(step.place) {
            return;
        }
        self.steps += 1;
        self.decisions += usize::from(!matches!(step.verdict, Verdict::NotRecorded));
        self.agree += usize::from(matches!(step.verdict, Verdict::Agrees));
        if selection.explain || matches!(step.verdict, Verdict::Differs(_)) {
            self.shown.push(step);
        }
    }
}

impl Verdict {
    /// Of the differences from what was recorded, if anything was.
    fn of(differences: Option<Vec<Difference>>) -> Verdict {
        match differences {
            None => Verdict::NotRecorded,
            Some(differences) if differences.is_empty() => Verdict::Agrees,
            Some(differences) => Verdict::Differs(differences),
        }
    }
}
