//! Virtual time for ScaledJobs: work waits in a queue, Jobs are created for it, do their part and end by themselves. How
//! many are created is decided by [`podscale_core::jobs`], as in production; here only what it is decided on is simulated.

mod crew;
mod known;
mod queue;
mod work;

pub use known::{KnownPoll, known_jobs};
pub use work::{Inherited, JobSpec, JobWork};

use crate::environment::{Arrivals, Environment, seconds};
use crate::plan::{Plan, PlanError, Quantity};
use crate::random;
use crate::request_time::RequestTimes;
use crate::score::{Pods, Recorder, Run};
use crate::workload::Slot;
use crew::{Crew, Taken};
use podscale_core::jobs::{self, JobPlan, JobRules, JobSnapshot, JobTrigger, Load};
use podscale_core::model::Milli;
use podscale_core::{Span, Time};
use queue::Queue;
use std::sync::Arc;

/// What draws are for; those of arrivals are as in the other engine, so that the same seed brings the same load.
const ARRIVALS: u64 = crate::engine::ARRIVALS;
const POLL_MOMENT: u64 = 401;
const LOST: u64 = 402;

/// One metric of a trigger.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Its name.
    pub metric: Arc<str>,
    /// What it measures.
    pub quantity: Quantity,
    /// How much of it one Job is to do.
    pub per_job: Milli,
    /// It is active above this value.
    pub activation: Milli,
}

/// A ScaledJob as a run needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPolicy {
    /// How many Jobs a load asks for.
    pub rules: JobRules,
    /// What its triggers measure, in their order.
    pub triggers: Vec<Measured>,
    /// How often they are asked.
    pub polling: Span,
    /// Whether Jobs count as pending until their pods are ready; else until they run.
    pub pending_until_ready: bool,
    /// What one Job does.
    pub work: JobWork,
    /// What is there at the beginning.
    pub inherited: Inherited,
}

/// Hears of every poll.
pub trait PollObserver {
    /// A poll found this, and this was decided.
    fn polled(&mut self, now: Time, snapshot: &JobSnapshot, plan: JobPlan);
}

/// Runs a plan to its end, with Jobs in the place of pods that serve.
///
/// # Errors
/// The plan makes no sense.
pub fn simulate_jobs<'a>(
    plan: &'a Plan,
    policy: &'a JobPolicy,
    observer: Option<&'a mut dyn PollObserver>,
) -> Result<Run, PlanError> {
    let rate = plan.flow()?.rps_per_pod();
    Ok(Engine::new(plan, policy, rate, observer).run())
}

struct Engine<'a> {
    plan: &'a Plan,
    policy: &'a JobPolicy,
    observer: Option<&'a mut dyn PollObserver>,
    /// Items a second that one Job does.
    rate: f64,
    queue: Queue,
    crew: Crew,
    recorder: Recorder,
    now: Time,
    next_poll: Time,
    /// A part of an item that is still to come, where they come evenly.
    part: f64,
    arrived: f64,
    /// When the last poll was, and how much had come by then.
    before: (Time, f64),
}

impl<'a> Engine<'a> {
    fn new(
        plan: &'a Plan,
        policy: &'a JobPolicy,
        rate: f64,
        observer: Option<&'a mut dyn PollObserver>,
    ) -> Engine<'a> {
        let rate = rate * f64::from(policy.work.pods.max(1));
        let times = RequestTimes::new(&plan.workload, rate, plan.objective_seconds);
        let Inherited { items, jobs } = policy.inherited;
        // Nobody else is there at the beginning, whatever size the plan begins with.
        let begun = Plan { replicas: jobs.running, ..plan.clone() };
        let mut queue = Queue::default();
        queue.add(0.0, items, u64::MAX);
        let mut crew = Crew::new(&plan.environment, plan.seed, policy.work, rate);
        crew.inherit(jobs);
        Engine {
            policy,
            observer,
            rate,
            queue,
            crew,
            recorder: Recorder::new(&begun, times, rate),
            now: plan.start,
            next_poll: plan.start.after(first_poll(&plan.environment, plan.seed, policy.polling)),
            part: 0.0,
            arrived: 0.0,
            before: (plan.start, 0.0),
            plan,
        }
    }

    fn run(mut self) -> Run {
        let end = self.plan.start.after(self.plan.length);
        let slot = seconds(self.plan.environment.slot_seconds);
        let mut boundary = self.plan.start;
        while self.now < end {
            if self.next_poll <= self.now {
                self.poll();
            }
            if boundary <= self.now {
                boundary = boundary.after(slot);
            }
            self.pass_time(boundary.min(self.next_poll).min(end));
        }
        let now = self.since_start(end);
        let late = self.queue.waiting_longer_than(self.plan.objective_seconds, now);
        let mut run = self.recorder.finish(late as f64, self.crew.created());
        // Jobs come and go by themselves, which is no restlessness.
        run.scores.reversals_per_hour = f64::NAN;
        run
    }

    fn since_start(&self, at: Time) -> f64 {
        at.since(self.plan.start).0 as f64 / 1e6
    }

    /// Lets items come and Jobs work until the given time.
    fn pass_time(&mut self, until: Time) {
        let (from, to) = (self.since_start(self.now), self.since_start(until));
        let length = to - from;
        let middle = self.now.after(Span(until.since(self.now).0 / 2));
        let rate = self.plan.load.rate(middle.since(self.plan.start));
        let came = self.arrivals(rate * length);
        // The cast saturates.
        let limit = self.plan.workload.queue_limit as u64;
        let lost = self.queue.add(from + length / 2.0, came, limit);
        self.crew.place(from, self.now);
        let capacity_rps = self.crew.working(from) as f64 * self.rate;
        let scored = self.recorder.is_scored(until);
        let (mut taken, mut slow) = (0, 0.0);
        let recorder = &mut self.recorder;
        let pod_seconds = self.crew.work(&mut self.queue, (from, to), |some| {
            taken += some.items;
            slow += recorder.waited(some.middle(), some.items as f64, scored);
        });
        let slot = Slot {
            seconds: length,
            arrived: came as f64,
            served: taken as f64,
            dropped: lost as f64,
            waiting: self.queue.waiting() as f64,
            capacity_rps,
        };
        let counts = self.crew.counts(to, false);
        self.recorder.set_size(counts.running);
        let pods = Pods { existing: pod_seconds / length, created: self.crew.created() };
        let oldest = self.queue.oldest_seconds(to);
        self.recorder.count(until, &slot, rate, pods, slow, oldest);
        self.arrived += came as f64;
        self.now = until;
    }

    /// How many items come where so many are expected: always whole ones.
    fn arrivals(&mut self, expected: f64) -> u64 {
        // The casts saturate.
        match self.plan.environment.arrivals {
            Arrivals::Random => {
                let at = self.now.0.cast_unsigned();
                random::poisson(expected, self.plan.seed, at, ARRIVALS) as u64
            }
            Arrivals::Even => {
                self.part += expected;
                let whole = self.part as u64;
                self.part -= whole as f64;
                whole
            }
        }
    }

    /// Asks the triggers, decides and creates.
    fn poll(&mut self) {
        let now = self.now;
        self.next_poll = now.after(self.policy.polling.max(Span(1)));
        let snapshot = self.snapshot();
        let plan = jobs::decide(&snapshot);
        self.before = (now, self.arrived);
        self.recorder.decided();
        if let Some(observer) = &mut self.observer {
            observer.polled(now, &snapshot, plan);
        }
        let detail = self.plan.detail;
        let lines = || jobs::lines(&snapshot, plan);
        if detail.explain_at.is_some_and(|at| now <= at && self.next_poll > at) {
            self.recorder.explain(now, lines());
        }
        if plan.create > 0 {
            let (from, created) = (snapshot.counts.running, plan.create);
            let why = if detail.changes { lines() } else { Vec::new() };
            self.recorder.changed(now, from, from.saturating_add(created), why);
            let latency = self.plan.environment.api_latency_seconds;
            self.crew.create(created, self.since_start(now) + latency);
        }
    }

    fn snapshot(&self) -> JobSnapshot {
        let now = self.since_start(self.now);
        let counts = self.crew.counts(now, self.policy.pending_until_ready);
        let triggers = (0_u64..).zip(&self.policy.triggers).map(|(place, trigger)| {
            let answer = self.ask(trigger, place, now);
            JobTrigger { metric: Arc::clone(&trigger.metric), answer }
        });
        JobSnapshot { rules: self.policy.rules, counts, triggers: triggers.collect() }
    }

    /// What an event source says that is asked now.
    fn ask(&self, trigger: &Measured, place: u64, now: f64) -> Result<Load, Arc<str>> {
        let pipeline = &self.plan.environment.custom_metrics;
        if !pipeline.answers_at(self.now.since(self.plan.start)) {
            return Err("the event source does not answer (outage)".into());
        }
        let drawn = random::unit(self.plan.seed ^ place, self.now.0.cast_unsigned(), LOST);
        if (drawn + 1.0) / 2.0 < pipeline.missing {
            return Err("the answer of the event source was lost".into());
        }
        let in_hand = self.crew.in_hand(now) as f64;
        let value = match trigger.quantity {
            Quantity::QueueLength if self.policy.work.counts_taken => {
                self.queue.waiting() as f64 + in_hand
            }
            Quantity::QueueLength => self.queue.waiting() as f64,
            Quantity::InFlight => in_hand,
            Quantity::LatencySeconds => self.queue.oldest_seconds(now),
            Quantity::RequestsPerSecond => {
                let (at, arrived) = self.before;
                let length = self.now.since(at).0 as f64 / 1e6;
                if length > 0.0 { (self.arrived - arrived) / length } else { 0.0 }
            }
            Quantity::Absent => return Err("no value has been measured yet".into()),
        };
        // The cast saturates.
        let amount = Milli((value * 1000.0 + 0.5) as i64);
        Ok(Load { amount, per_job: trigger.per_job, active: amount > trigger.activation })
    }
}

impl Taken {
    /// How long they waited on average.
    fn middle(&self) -> f64 {
        self.waited + self.apart * (self.items.saturating_sub(1)) as f64 / 2.0
    }
}

/// The moment of an object within its polling interval.
fn first_poll(environment: &Environment, seed: u64, polling: Span) -> Span {
    let given = environment.sync_moment_seconds.map(seconds);
    let part = (random::unit(seed, 0, POLL_MOMENT) + 1.0) / 2.0;
    given.unwrap_or_else(|| seconds((polling.0 as f64 / 1e6 * part).floor()))
}

#[cfg(test)]
mod tests;
