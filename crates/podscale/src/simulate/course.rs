//! How the size went in a run: of a ScaledJob, how many unfinished Jobs there were after each poll.

use podscale_core::jobs::{JobPlan, JobSnapshot, lines};
use podscale_core::{Span, Time};
use podscale_sim::jobs::PollObserver;
use podscale_sim::{Plan, Run};

/// Of so many steps it is kept why they were made.
const MOST_REASONS: usize = 20_000;

/// One size.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// From when on, counted from the start.
    pub at: Span,
    /// Which.
    pub size: i32,
    /// Why, in words.
    pub why: Vec<String>,
}

/// The sizes of a run, in order of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    start: Time,
    /// The size at the beginning.
    pub first: i32,
    /// Those that differ from the one before them.
    pub steps: Vec<Step>,
}

impl Course {
    /// One that begins with this size.
    #[must_use]
    pub fn new(start: Time, first: i32) -> Course {
        Course { start, first, steps: Vec::new() }
    }

    /// The changes of a run that was to keep them.
    #[must_use]
    pub fn of_changes(run: &Run, plan: &Plan) -> Course {
        let step = |change: &podscale_sim::score::Change| Step {
            at: change.at.since(plan.start),
            size: change.to,
            why: change.why.clone(),
        };
        let steps = run.changes.iter().map(step).collect();
        Course { steps, ..Course::new(plan.start, plan.replicas) }
    }

    /// The size at each of these times, which are in order.
    pub fn at<'a>(&'a self, times: impl Iterator<Item = Span> + 'a) -> impl Iterator<Item = i32> {
        let mut steps = self.steps.iter().peekable();
        let mut size = self.first;
        times.map(move |at| {
            while let Some(step) = steps.next_if(|step| step.at <= at) {
                size = step.size;
            }
            size
        })
    }
}

impl PollObserver for Course {
    fn polled(&mut self, now: Time, snapshot: &JobSnapshot, plan: JobPlan) {
        let size = snapshot.counts.running.saturating_add(plan.create);
        if self.steps.last().map_or(self.first, |last| last.size) == size {
            return;
        }
        let keeps = self.steps.len() < MOST_REASONS;
        let why = if keeps { lines(snapshot, plan) } else { Vec::new() };
        self.steps.push(Step { at: now.since(self.start), size, why });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_holds_until_the_next() {
        let mut course = Course::new(Time(0), 2);
        for (second, size) in [(10, 5), (20, 3)] {
            course.steps.push(Step { at: Span::seconds(second), size, why: Vec::new() });
        }
        let times = [0, 9, 10, 15, 20, 99].map(Span::seconds);
        assert_eq!(course.at(times.into_iter()).collect::<Vec<_>>(), [2, 2, 5, 5, 3, 3]);
    }
}
