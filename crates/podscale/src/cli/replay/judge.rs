//! Decides one recording anew and notes where the outcome differs.

use podscale_api::recording::{RecordedDecision, Recording};
use podscale_api::replay::Replayer;
use podscale_api::replay::difference::{Difference, differences};
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
    /// The size that the target has in the end.
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
pub(super) fn judge(recording: &Recording, selection: &Selection<'_>) -> Option<Judged> {
    let name = &recording.metadata.name;
    if !selection.takes(name) {
        return None;
    }
    let mut judged = Judged {
        name: name.clone(),
        description: recording.metadata.annotations.get("description").map(str::to_owned),
        steps: 0,
        decisions: 0,
        agree: 0,
        shown: Vec::new(),
    };
    let mut replayer = Replayer::new(recording);
    for (place, step) in recording.steps.iter().enumerate() {
        let selected = selection.step.is_none_or(|wanted| wanted == place);
        let explained = selected && selection.explain;
        let (outcome, lines) = replayer.step(step, |replayed| {
            let (steps, snapshot) = (&replayed.decision.steps, replayed.snapshot);
            let words = || explain::lines(steps, snapshot.autoscaler, snapshot.now);
            let lines = explained.then(words);
            (replayed.outcome, lines.unwrap_or_default())
        });
        if !selected {
            continue;
        }
        judged.steps += 1;
        let verdict = compare(step.expected(), &outcome);
        judged.decisions += usize::from(!matches!(verdict, Verdict::NotRecorded));
        judged.agree += usize::from(matches!(verdict, Verdict::Agrees));
        if explained || matches!(verdict, Verdict::Differs(_)) {
            let time = format_rfc3339_exact(step.time.0);
            let replicas = outcome.replicas;
            judged.shown.push(JudgedStep { place, time, replicas, verdict, lines });
        }
    }
    Some(judged)
}

fn compare(expected: Option<&RecordedDecision>, got: &RecordedDecision) -> Verdict {
    let Some(expected) = expected else { return Verdict::NotRecorded };
    let differences = differences(expected, got);
    if differences.is_empty() { Verdict::Agrees } else { Verdict::Differs(differences) }
}
