//! What was recorded of KEDA, what is known to be different on purpose, and what else is different.

use super::drive::Outcome;
use super::scenario::{Scenario, folder};
use super::seen::Seen;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// What stands for something that is not seen at all.
const NOTHING: &str = "(nothing)";

/// What was seen in each step of each scenario.
#[derive(Default)]
pub struct Recorded(BTreeMap<(String, String), Seen>);

/// A line of the recording.
#[derive(Deserialize, Serialize)]
struct Line {
    scenario: String,
    step: String,
    seen: Seen,
}

impl Recorded {
    /// What is kept in the repository.
    pub fn read() -> Result<Recorded> {
        let text = std::fs::read_to_string(file()).with_context(|| file().display().to_string())?;
        let lines = text.lines().map(serde_json::from_str::<Line>);
        let steps = lines.map(|line| line.map(|line| ((line.scenario, line.step), line.seen)));
        Ok(Recorded(steps.collect::<Result<_, _>>()?))
    }

    /// Puts it in the place of what is kept in the repository, in the order of the timeline.
    pub fn write(&self, scenarios: &[Scenario]) -> Result<()> {
        let mut text = String::new();
        for scenario in scenarios {
            for step in &scenario.steps {
                let (scenario, step) = (scenario.name.clone(), step.step.clone());
                let seen = self.step(&scenario, &step).cloned().unwrap_or_default();
                text += &serde_json::to_string(&Line { scenario, step, seen })?;
                text.push('\n');
            }
        }
        Ok(std::fs::write(file(), text)?)
    }

    /// Adds the steps of a scenario.
    pub fn add(&mut self, scenario: &str, outcomes: Vec<Outcome>) {
        let steps = outcomes.into_iter();
        self.0.extend(steps.map(|one| ((scenario.to_owned(), one.step), one.seen)));
    }

    /// Takes all of another, in the place of what it has of the same steps.
    pub fn replace(&mut self, other: Recorded) {
        self.0.extend(other.0);
    }

    /// What was seen in a step.
    pub fn step(&self, scenario: &str, step: &str) -> Option<&Seen> {
        self.0.get(&(scenario.to_owned(), step.to_owned()))
    }

    /// All steps of all scenarios.
    pub fn steps(&self) -> impl Iterator<Item = (&str, &str, &Seen)> {
        self.0.iter().map(|((scenario, step), seen)| (scenario.as_str(), step.as_str(), seen))
    }
}

fn file() -> PathBuf {
    folder().join("golden.jsonl")
}

/// Something that one sees and the other does not, or sees differently.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    pub scenario: String,
    step: String,
    about: String,
    keda: String,
    podscale: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { scenario, step, about, keda, podscale } = self;
        write!(f, "{scenario}, {step}, {about}:\n    keda     {keda}\n    podscale {podscale}")
    }
}

/// A difference on purpose, with patterns in which `*` stands for anything.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub struct Known {
    #[serde(default = "anything", rename = "in")]
    scenario: String,
    #[serde(default = "anything")]
    step: String,
    about: String,
    #[serde(default = "anything")]
    keda: String,
    #[serde(default = "anything")]
    podscale: String,
    /// Whether it is different only sometimes.
    #[serde(default)]
    by_chance: bool,
    /// Why; the sentence is in `docs/keda.md`, too.
    pub why: String,
}

fn anything() -> String {
    "*".to_owned()
}

/// All of them, as `e2e/keda/differences.yaml` has them.
pub static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let text = std::fs::read_to_string(folder().join("differences.yaml")).expect("a file");
    serde_saphyr::from_str(&text).expect("a list of known differences")
});

impl Known {
    fn covers(&self, difference: &Difference) -> bool {
        matches(&self.scenario, &difference.scenario)
            && matches(&self.step, &difference.step)
            && matches(&self.about, &difference.about)
            && matches(&self.keda, &difference.keda)
            && matches(&self.podscale, &difference.podscale)
    }
}

/// Whether a text is as a pattern says.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            rest.is_empty() || ends.into_iter().any(|at| matches(rest, &text[at..]))
        }),
    }
}

/// Every difference, known or not.
pub fn all_differences(
    scenario: &str,
    step: &str,
    keda: &Seen,
    podscale: &Seen,
) -> Vec<Difference> {
    let subjects: BTreeSet<&String> = keda.keys().chain(podscale.keys()).collect();
    let line =
        |seen: &Seen, about: &str| seen.get(about).map_or(NOTHING, String::as_str).to_owned();
    let both = subjects.into_iter().map(|about| Difference {
        scenario: scenario.to_owned(),
        step: step.to_owned(),
        about: about.clone(),
        keda: line(keda, about),
        podscale: line(podscale, about),
    });
    both.filter(|one| one.keda != one.podscale).collect()
}

/// The differences that nobody knows of.
pub fn differences(scenario: &str, step: &str, keda: &Seen, podscale: &Seen) -> Vec<Difference> {
    let mut all = all_differences(scenario, step, keda, podscale);
    all.retain(|difference| !KNOWN.iter().any(|known| known.covers(difference)));
    all
}

/// What is listed as different and is not, in none of these differences.
pub fn no_longer_different<'a>(all: &[Difference]) -> Vec<&'a Known> {
    let is_seen = |known: &Known| all.iter().any(|one| known.covers(one));
    KNOWN.iter().filter(|known| !known.by_chance && !is_seen(known)).collect()
}
