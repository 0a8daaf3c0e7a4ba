//! Counts while a run goes on.

use super::age::Age;
use super::{Change, Moment, Point, Run, Scores};
use crate::plan::Plan;
use crate::request_time::RequestTimes;
use crate::workload::{Coming, Flow, Kind, Slot, Totals};
use podscale_core::{Span, Time};

/// The most changes of size that are kept.
const MAX_CHANGES: usize = 20_000;
/// A minute with fewer requests is no measure of anything.
const MINUTE_REQUESTS: f64 = 10.0;
const MINUTE: i64 = Span::seconds(60).0;

/// How many pods there are, and how many were ever created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pods {
    /// On average, where they are not the same all the time.
    pub(crate) existing: f64,
    pub(crate) created: u64,
}

/// Counts while a run goes on.
pub(crate) struct Recorder {
    start: Time,
    scored_from: Time,
    end: Time,
    kind: Kind,
    rps_per_pod: f64,
    without_requests: bool,
    keeps_changes: bool,
    times: RequestTimes,
    age: Age,
    waited: f64,
    /// Pods that had been created when scoring began.
    created_before: u64,
    sums: Sums,
    minute: Minute,
    replicas: i32,
    direction: i32,
    points: Points,
    changes: Vec<Change>,
    moment: Option<Moment>,
}

/// Sums over what is scored.
#[derive(Clone, Copy, Default)]
struct Sums {
    seconds: f64,
    arrived: f64,
    dropped: f64,
    slow: f64,
    pod_seconds: f64,
    below_seconds: f64,
    age_seconds: f64,
    oldest: f64,
    changes: u64,
    reversals: u64,
    decisions: u64,
}

impl Sums {
    fn add(&mut self, slot: &Slot, rate: f64, existing: f64, slow: f64, pile_seconds: f64) {
        self.seconds += slot.seconds;
        self.arrived += slot.arrived;
        self.dropped += slot.dropped;
        self.slow += slow;
        self.pod_seconds += existing * slot.seconds;
        self.below_seconds += if rate > slot.capacity_rps { slot.seconds } else { 0.0 };
        self.age_seconds += pile_seconds * slot.seconds;
        self.oldest = if pile_seconds > self.oldest { pile_seconds } else { self.oldest };
    }

    /// Adds slots in which nothing waits; how many requests were slow is added by whom that is known to.
    fn add_calm(&mut self, slots: &Coming<'_>, capacity_rps: f64, existing: f64) {
        // Kept at hand until the end: what is written in every slot is slow to be read in the next.
        let Sums { mut seconds, mut arrived, mut pod_seconds, mut below_seconds, .. } = *self;
        let columns = slots.seconds.iter().zip(slots.arrivals).zip(slots.rates);
        for ((of_slot, arrivals), rate) in columns {
            seconds += of_slot;
            arrived += arrivals;
            pod_seconds += existing * of_slot;
            below_seconds += if *rate > capacity_rps { *of_slot } else { 0.0 };
        }
        *self = Sums { seconds, arrived, pod_seconds, below_seconds, ..*self };
    }
}

/// The minute that is being counted, and the worst one so far.
#[derive(Default)]
struct Minute {
    /// When it ends, counted from the start.
    end: i64,
    requests: f64,
    bad: f64,
    worst: f64,
}

impl Minute {
    fn add(&mut self, since_start: Span, requests: f64, bad: f64) {
        if since_start.0 > self.end {
            self.close();
            self.end = (since_start.0.saturating_sub(1) / MINUTE + 1).saturating_mul(MINUTE);
        }
        self.requests += requests;
        self.bad += bad;
    }

    fn close(&mut self) {
        if self.requests >= MINUTE_REQUESTS {
            self.worst = self.worst.max((self.bad / self.requests).min(1.0));
        }
        (self.requests, self.bad) = (0.0, 0.0);
    }
}

/// The course of a run, in even steps.
#[derive(Default)]
struct Points {
    step: i64,
    done: Vec<Point>,
    number: i64,
    /// When the step ends that is being counted, from the start.
    end: i64,
    seconds: f64,
    requests: f64,
    sum: Point,
}

impl Points {
    /// Adds a part of a slot; all sums are over time, but for what went wrong.
    fn add(&mut self, since_start: Span, seconds: f64, of: Point, requests: f64, bad: f64) {
        if since_start.0 > self.end {
            self.close();
            self.number = (since_start.0 - 1) / self.step;
            self.end = self.number.saturating_add(1).saturating_mul(self.step);
        }
        self.seconds += seconds;
        self.requests += requests;
        self.sum.offered_rps += of.offered_rps * seconds;
        self.sum.capacity_rps += of.capacity_rps * seconds;
        self.sum.replicas += of.replicas * seconds;
        self.sum.ready += of.ready * seconds;
        self.sum.waiting += of.waiting * seconds;
        self.sum.violations += bad;
    }

    fn close(&mut self) {
        if self.seconds > 0.0 {
            let mean = |sum: f64| sum / self.seconds;
            let sum = self.sum;
            self.done.push(Point {
                seconds: (self.number * self.step) as f64 / 1e6,
                offered_rps: mean(sum.offered_rps),
                capacity_rps: mean(sum.capacity_rps),
                replicas: mean(sum.replicas),
                ready: mean(sum.ready),
                waiting: mean(sum.waiting),
                violations: (sum.violations / self.requests.max(1e-9)).min(1.0),
            });
        }
        (self.seconds, self.requests, self.sum) = (0.0, 0.0, Point::default());
    }
}

impl Recorder {
    pub(crate) fn new(plan: &Plan, times: RequestTimes, rps_per_pod: f64) -> Recorder {
        let points = i64::try_from(plan.detail.points).unwrap_or(i64::MAX);
        let step = match points {
            0 => 0,
            points => (plan.length.0 / points).max(1),
        };
        Recorder {
            start: plan.start,
            scored_from: plan.start.after(plan.warm_up),
            end: plan.start.after(plan.length),
            kind: plan.workload.kind,
            rps_per_pod,
            without_requests: plan.detail.without_requests,
            keeps_changes: plan.detail.changes,
            times,
            age: Age::default(),
            waited: 0.0,
            created_before: u64::from(plan.replicas.max(0).cast_unsigned()),
            sums: Sums::default(),
            minute: Minute::default(),
            replicas: plan.replicas,
            direction: 0,
            points: Points { step, end: step, ..Points::default() },
            changes: Vec::new(),
            moment: None,
        }
    }

    /// Takes in a slot that ended at this time.
    pub(crate) fn slot(&mut self, end: Time, slot: &Slot, rate: f64, pods: Pods, totals: Totals) {
        let pile_seconds = self.pile(end, slot, totals);
        let slow = match self.without_requests {
            true => 0.0,
            false => self.times.add(slot, pile_seconds, self.is_scored(end)),
        };
        self.count(end, slot, rate, pods, slow, pile_seconds);
    }

    /// Whether slots can be taken in by [`Recorder::calm_slots`] if nothing waits in them.
    pub(crate) fn is_calm(&self, slots: &Coming<'_>) -> bool {
        let first =
            slots.ends.first().is_some_and(|since| self.is_scored(self.start.after(*since)));
        first && self.waited <= 0.0
    }

    /// Takes in slots in which nothing waits and all that comes is served: as [`Recorder::slot`] does with each of them,
    /// without what follows from waiting. Each sum gets its parts in the same order, so that no bit of it differs.
    pub(crate) fn calm_slots(&mut self, slots: &Coming<'_>, capacity_rps: f64, pods: Pods) {
        if self.kind == Kind::Consumer {
            self.age.forget();
        }
        self.sums.add_calm(slots, capacity_rps, pods.existing);
        for ((&since, &seconds), &arrived) in
            slots.ends.iter().zip(slots.seconds).zip(slots.arrivals)
        {
            let slow = match self.without_requests {
                true => 0.0,
                false => self.times.add_without_pile(arrived, capacity_rps * seconds, true),
            };
            self.sums.slow += slow;
            self.minute.add(since, arrived, slow);
            if self.points.step > 0 {
                let slot =
                    Slot { seconds, arrived, served: arrived, capacity_rps, ..Slot::default() };
                self.draw(since, &slot, slow);
            }
        }
    }

    /// Whether a slot that ends at this time is scored.
    pub(crate) fn is_scored(&self, end: Time) -> bool {
        end > self.scored_from
    }

    /// Takes in so many requests that waited so long, by a model that follows them; gives how many of them were too slow.
    pub(crate) fn waited(&mut self, seconds: f64, requests: f64, scored: bool) -> f64 {
        match self.without_requests {
            true => 0.0,
            false => self.times.waited(seconds, requests, scored),
        }
    }

    /// Counts a slot of which it is known how many requests were too slow and how long the oldest has waited.
    pub(crate) fn count(
        &mut self,
        end: Time,
        slot: &Slot,
        rate: f64,
        pods: Pods,
        slow: f64,
        pile_seconds: f64,
    ) {
        let scored = self.is_scored(end);
        let bad = slow + slot.dropped;
        let since = end.since(self.start);
        if scored {
            self.sums.add(slot, rate, pods.existing, slow, pile_seconds);
            let requests = slot.arrived.max(slot.served + slot.dropped);
            self.minute.add(since, requests, bad);
        } else {
            self.created_before = pods.created;
        }
        if self.points.step > 0 {
            self.draw(since, slot, bad);
        }
    }

    /// Adds a slot to the course of the run.
    fn draw(&mut self, since_start: Span, slot: &Slot, bad: f64) {
        let ready = if self.rps_per_pod > 0.0 { slot.capacity_rps / self.rps_per_pod } else { 0.0 };
        let point = Point {
            offered_rps: slot.arrived / slot.seconds,
            capacity_rps: slot.capacity_rps,
            replicas: f64::from(self.replicas),
            ready,
            waiting: slot.waiting,
            ..Point::default()
        };
        self.points.add(since_start, slot.seconds, point, slot.arrived, bad);
    }

    /// How long what was served in a slot had waited for it.
    fn pile(&mut self, end: Time, slot: &Slot, totals: Totals) -> f64 {
        match self.kind {
            Kind::Consumer => {
                let gone = totals.served + totals.dropped;
                self.age.take(end, totals.arrived, gone, slot.waiting)
            }
            Kind::Service => {
                let before = std::mem::replace(&mut self.waited, slot.waiting);
                if before > 0.0 && slot.capacity_rps > 0.0 {
                    before / slot.capacity_rps
                } else {
                    0.0
                }
            }
        }
    }

    /// Takes in that a decision was made.
    pub(crate) fn decided(&mut self) {
        self.sums.decisions += 1;
    }

    /// Takes in the decision that was asked for.
    pub(crate) fn explain(&mut self, at: Time, lines: Vec<String>) {
        self.moment = Some(Moment { at, lines });
    }

    /// Takes in that the size is another one now, though nobody decided it.
    pub(crate) fn set_size(&mut self, replicas: i32) {
        self.replicas = replicas;
    }

    /// Takes in a change of size.
    pub(crate) fn changed(&mut self, at: Time, from: i32, to: i32, why: Vec<String>) {
        self.replicas = to;
        let direction = (to - from).signum();
        if at >= self.scored_from {
            self.sums.changes += 1;
            self.sums.reversals += u64::from(direction == -self.direction);
        }
        self.direction = direction;
        if self.keeps_changes && self.changes.len() < MAX_CHANGES {
            self.changes.push(Change { at, from, to, why });
        }
    }

    /// How much work is too late after the end: what is still in the queue is as bad as it is old.
    pub(crate) fn late(&mut self, flow: &Flow) -> f64 {
        let age = self.age_now(flow);
        let is_late = self.kind == Kind::Consumer && age > self.times.objective_seconds();
        if is_late { flow.totals().waiting } else { 0.0 }
    }

    /// What the run was worth, where so much work is too late after its end.
    pub(crate) fn finish(mut self, late: f64, created: u64) -> Run {
        self.minute.close();
        self.points.close();
        let sums = &self.sums;
        let share = |part: f64, of: f64| if of > 0.0 { (part / of).min(1.0) } else { 0.0 };
        let hours = sums.seconds / 3600.0;
        let per_hour = |count: u64| if hours > 0.0 { count as f64 / hours } else { 0.0 };
        let [p50_seconds, p95_seconds, p99_seconds] = match self.without_requests {
            true => [f64::NAN; 3],
            false => self.times.percentiles([0.5, 0.95, 0.99]),
        };
        let scores = Scores {
            violations: share(sums.slow + sums.dropped + late, sums.arrived),
            refused: share(sums.dropped, sums.arrived),
            worst_minute: self.minute.worst,
            p50_seconds,
            p95_seconds,
            p99_seconds,
            pod_hours: sums.pod_seconds / 3600.0,
            reversals_per_hour: per_hour(sums.reversals),
            changes: sums.changes,
            pods_started: created.saturating_sub(self.created_before),
            below_capacity: share(sums.below_seconds, sums.seconds),
            queue_age_mean_seconds: sums.age_seconds / sums.seconds.max(1e-9),
            queue_age_most_seconds: sums.oldest,
            requests: sums.arrived,
            hours,
            decisions: sums.decisions,
        };
        Run { scores, points: self.points.done, changes: self.changes, moment: self.moment }
    }

    fn age_now(&mut self, flow: &Flow) -> f64 {
        let totals = flow.totals();
        let gone = totals.served + totals.dropped;
        self.age.take(self.end, totals.arrived, gone, totals.waiting)
    }
}
