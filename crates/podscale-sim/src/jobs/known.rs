//! Scores of Jobs of which it is known how many there were and what they took: nothing is decided, and no Job is simulated.

use super::queue::Queue;
use super::work::Inherited;
use crate::environment::seconds;
use crate::plan::{Plan, PlanError};
use crate::request_time::RequestTimes;
use crate::score::{Pods, Recorder, Run};
use crate::workload::Slot;
use podscale_core::{Span, Time};

/// What was known at one poll, and until the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownPoll {
    /// When, counted from the start.
    pub at: Span,
    /// Jobs that were not finished, before any were created.
    pub unfinished: i32,
    /// Those of them that worked.
    pub working: i32,
    /// How many were created.
    pub created: i32,
    /// How many items a second Jobs took until the next poll.
    pub taken_per_second: f64,
}

/// Items that come, or are taken, one after the other at a rate.
struct Evenly {
    part: f64,
}

impl Evenly {
    /// Whole items, where so many are expected.
    fn next(&mut self, expected: f64) -> u64 {
        self.part += expected.max(0.0);
        // The cast saturates.
        let whole = self.part as u64;
        self.part -= whole as f64;
        whole
    }
}

/// Scores what was known under the load of a plan, from what was there at the beginning; polls are in order of time.
///
/// # Errors
/// The plan makes no sense.
pub fn known_jobs(
    plan: &Plan,
    inherited: Inherited,
    polls: &[KnownPoll],
) -> Result<Run, PlanError> {
    let rate = plan.flow()?.rps_per_pod();
    let times = RequestTimes::new(&plan.workload, rate, plan.objective_seconds);
    let begun = Plan { replicas: inherited.jobs.running, ..plan.clone() };
    let mut queue = Queue::default();
    queue.add(0.0, inherited.items, u64::MAX);
    let mut known = Known {
        plan,
        rate,
        queue,
        recorder: Recorder::new(&begun, times, rate),
        coming: Evenly { part: 0.0 },
        // Of an item that is taken within some time the middle of it is the best guess.
        taking: Evenly { part: 0.5 },
        created: u64::from(inherited.jobs.running.max(0).unsigned_abs()),
    };
    let end = plan.start.after(plan.length);
    let mut now = plan.start;
    for (place, poll) in polls.iter().enumerate() {
        let next = polls.get(place + 1);
        let until = next.map_or(end, |next| plan.start.after(next.at)).min(end);
        known.create(now, poll);
        now = known.pass_time(now, until, poll, next.unwrap_or(poll));
    }
    let late = known
        .queue
        .waiting_longer_than(plan.objective_seconds, end.since(plan.start).0 as f64 / 1e6);
    let mut run = known.recorder.finish(late as f64, known.created);
    run.scores.reversals_per_hour = f64::NAN;
    Ok(run)
}

struct Known<'a> {
    plan: &'a Plan,
    rate: f64,
    queue: Queue,
    recorder: Recorder,
    coming: Evenly,
    taking: Evenly,
    created: u64,
}

impl Known<'_> {
    fn create(&mut self, now: Time, poll: &KnownPoll) {
        if poll.created > 0 {
            let to = poll.unfinished.saturating_add(poll.created);
            self.recorder.changed(now, poll.unfinished, to, Vec::new());
            self.created += u64::from(poll.created.unsigned_abs());
        }
    }

    /// Lets items come and be taken between two polls, slot by slot; gives when that ends.
    fn pass_time(&mut self, from: Time, until: Time, poll: &KnownPoll, next: &KnownPoll) -> Time {
        let slot = seconds(self.plan.environment.slot_seconds).max(Span(1));
        let whole = until.since(from).0 as f64;
        let between = |from: i32, to: i32, part: f64| {
            f64::from(from) + (f64::from(to) - f64::from(from)) * part
        };
        let begin = poll.unfinished.saturating_add(poll.created);
        let mut now = from;
        while now < until {
            let to = now.after(slot).min(until);
            let length = to.since(now).0 as f64 / 1e6;
            let middle = now.after(Span(to.since(now).0 / 2));
            let part = middle.since(from).0 as f64 / whole;
            let existing = between(begin, next.unfinished, part);
            let capacity_rps = between(poll.working, next.working, part) * self.rate;
            // The cast saturates.
            self.recorder.set_size(existing.round() as i32);
            let pods = Pods { existing, created: self.created };
            self.slot((to, length), middle, poll.taken_per_second, capacity_rps, pods);
            now = to;
        }
        until.max(from)
    }

    fn slot(
        &mut self,
        (to, length): (Time, f64),
        middle: Time,
        taken_per_second: f64,
        capacity_rps: f64,
        pods: Pods,
    ) {
        let since = |at: Time| at.since(self.plan.start).0 as f64 / 1e6;
        let (at, end) = (since(middle), since(to));
        let rate = self.plan.load.rate(middle.since(self.plan.start));
        let came = self.coming.next(rate * length);
        self.queue.add(at, came, u64::MAX);
        let wanted = self.taking.next(taken_per_second * length);
        let scored = self.recorder.is_scored(to);
        let (mut taken, mut slow) = (0, 0.0);
        while taken < wanted {
            let Some(first) = self.queue.first() else { break };
            let items = first.items.min(wanted - taken);
            self.queue.take(items);
            slow += self.recorder.waited((at - first.came).max(0.0), items as f64, scored);
            taken += items;
        }
        // What was to be taken and has not come yet is taken when it comes.
        self.taking.part += (wanted - taken) as f64;
        let slot = Slot {
            seconds: length,
            arrived: came as f64,
            served: taken as f64,
            dropped: 0.0,
            waiting: self.queue.waiting() as f64,
            capacity_rps,
        };
        let oldest = self.queue.oldest_seconds(end);
        self.recorder.count(to, &slot, rate, pods, slow, oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{Arrivals, Environment};
    use crate::plan::{Detail, PodTemplate};
    use podscale_core::jobs::JobCounts;
    use std::collections::BTreeMap;

    fn plan(rate: f64) -> Plan {
        let workload = r#"{"kind":"consumer","rpsPerPod":0.5,"cpuMsPerRequest":10}"#;
        Plan {
            workload: serde_json::from_str(workload).unwrap(),
            template: PodTemplate::default(),
            environment: Environment { arrivals: Arrivals::Even, ..Environment::default() },
            metrics: BTreeMap::new(),
            load: crate::Load::constant(rate),
            start: Time(1_700_000_000_000_000),
            length: Span::seconds(300),
            warm_up: Span(0),
            replicas: 0,
            objective_seconds: 60.0,
            seed: 1,
            detail: Detail { points: 10, changes: true, ..Detail::default() },
        }
    }

    fn poll(at: i64, (unfinished, created): (i32, i32), taken_per_second: f64) -> KnownPoll {
        let at = Span::seconds(at);
        KnownPoll { at, unfinished, working: unfinished, created, taken_per_second }
    }

    #[test]
    fn what_was_known_is_scored() {
        // Nothing is taken for a hundred seconds, and then twice what comes.
        let polls = [
            poll(0, (0, 0), 0.0),
            poll(100, (0, 4), 2.0),
            poll(200, (4, 0), 1.0),
            poll(300, (0, 0), 0.0),
        ];
        let run = known_jobs(&plan(1.0), Inherited::default(), &polls).unwrap();
        assert_eq!(run.scores.requests, 300.0);
        assert_eq!(run.scores.pods_started, 4);
        // Four for a hundred seconds, and then fewer and fewer.
        assert!((run.scores.pod_hours - 600.0 / 3600.0).abs() < 1e-6, "{:?}", run.scores);
        assert!((99.0..101.0).contains(&run.scores.queue_age_most_seconds), "{:?}", run.scores);
        // Of the first eighty items each waits for more than a minute: a hundred seconds less half of what came before.
        assert!((run.scores.violations - 80.0 / 300.0).abs() < 0.02, "{:?}", run.scores);
        assert_eq!(run.changes.len(), 1);
        assert!(run.points[0].replicas == 0.0 && run.points[4].replicas == 4.0);
        assert!(run.scores.reversals_per_hour.is_nan());
    }

    #[test]
    fn what_was_there_is_taken_first_and_nothing_is_taken_that_has_not_come() {
        let inherited = Inherited { items: 50, jobs: JobCounts { running: 2, pending: 0 } };
        let polls = [poll(0, (2, 0), 1.0), poll(100, (2, 0), 1.0)];
        let run = known_jobs(&plan(0.0), inherited, &polls).unwrap();
        assert_eq!((run.scores.requests, run.scores.pods_started), (0.0, 0));
        assert_eq!(run.points.last().map(|point| point.waiting), Some(0.0));
        assert!((run.scores.pod_hours - 2.0 * 300.0 / 3600.0).abs() < 1e-6, "{:?}", run.scores);
    }
}
