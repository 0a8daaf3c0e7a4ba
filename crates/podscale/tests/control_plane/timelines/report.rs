//! What differs, for those who mend it: each difference once, at the first step that shows it.

use super::change::Timeline;
use super::execute::Found;
use super::state::Difference;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The differences of several runs of a timeline.
pub struct Report<'a> {
    timeline: &'a Timeline,
    repeated: Vec<&'a Found>,
    transient: Vec<&'a Found>,
}

impl<'a> Report<'a> {
    /// A difference repeats if every run has it after the same step; of events, which stay, after any.
    pub fn new(timeline: &'a Timeline, first: &'a [Found], others: &[Vec<Found>]) -> Report<'a> {
        let is_again = |found: &Found| {
            others.iter().all(|run| {
                run.iter().any(|other| {
                    let subject = &found.difference.subject;
                    let same_step = other.step == found.step || subject.contains(" event ");
                    same_step && other.difference.subject == *subject
                })
            })
        };
        let (repeated, transient) = first.iter().partition(|found| is_again(found));
        Report { timeline, repeated, transient }
    }

    pub fn has_repeated(&self) -> bool {
        !self.repeated.is_empty()
    }

    /// Differences that were there only once.
    pub fn transient(&self, name: &str) -> String {
        let mut text = String::new();
        for found in &self.transient {
            let (step, difference) = (found.step, &found.difference);
            let _ = writeln!(text, "{name}: only once, step {step}: {}", difference.subject);
            let _ = writeln!(text, "    upstream: {}", difference.upstream);
            let _ = writeln!(text, "    podscale: {}", difference.podscale);
        }
        text
    }

    /// Differences that were there every time, and what happened until then; none if there are none.
    pub fn repeated(&self) -> Option<String> {
        let mut by_difference: BTreeMap<&Difference, Vec<&Found>> = BTreeMap::new();
        for &found in &self.repeated {
            by_difference.entry(&found.difference).or_default().push(found);
        }
        let last =
            by_difference.values().filter_map(|all| all.first()).map(|found| found.step).max()?;
        let mut text = format!("{} differences that repeat\n", by_difference.len());
        for (number, step) in self.timeline.0.iter().enumerate().take(last + 1) {
            let _ = writeln!(text, "step {number}:\n  {step}");
            let here = by_difference.values().filter_map(|all| Some((all.first()?, all.len())));
            for (found, count) in here.filter(|(found, _)| found.step == number) {
                let difference = &found.difference;
                let again = if count > 1 { format!(" (in {count} steps)") } else { String::new() };
                let _ = writeln!(text, "  !! {}{again}", difference.subject);
                let _ = writeln!(text, "      upstream: {}", difference.upstream);
                let _ = writeln!(text, "      podscale: {}", difference.podscale);
            }
        }
        Some(text)
    }
}
