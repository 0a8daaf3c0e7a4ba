//! Virtual time: lets a workload, its pods, its metrics and a policy act on each other from event to
//! event. A run is a function of its [`Plan`] and its policy: the same plan gives the same bytes.

mod ahead;

use crate::environment::seconds;
use crate::plan::{Plan, PlanError};
use crate::policy::Policy;
use crate::request_time::RequestTimes;
use crate::score::{Pods, Recorder, Run};
use crate::workload::Flow;
use crate::world::{Fleet, NEVER, Sensors, World};
use ahead::Ahead;
use podscale_core::{Span, Time};

/// What the draws of arrivals are for.
pub(crate) const ARRIVALS: u64 = 2;

/// Runs a plan to its end.
///
/// # Errors
/// The plan makes no sense.
pub fn simulate(plan: &Plan, policy: &mut dyn Policy) -> Result<Run, PlanError> {
    let flow = plan.flow()?;
    Ok(Engine::new(plan, flow, policy).run())
}

struct Engine<'a> {
    plan: &'a Plan,
    policy: &'a mut dyn Policy,
    flow: Flow,
    fleet: Fleet,
    sensors: Sensors,
    recorder: Recorder,
    now: Time,
    ahead: Ahead,
    /// From a decision until its size takes effect.
    api_latency: Span,
    /// A size that was decided and takes effect later.
    pending: Option<(Time, i32)>,
}

impl<'a> Engine<'a> {
    fn new(plan: &'a Plan, flow: Flow, policy: &'a mut dyn Policy) -> Engine<'a> {
        policy.begin(plan);
        let at = (plan.start, plan.seed);
        let environment = &plan.environment;
        let sensors = Sensors::new(environment, &policy.needs(), &plan.metrics, &flow, at);
        let times = RequestTimes::new(&plan.workload, flow.rps_per_pod(), plan.objective_seconds);
        Engine {
            fleet: Fleet::new(environment, plan.seed, plan.replicas, plan.start),
            sensors,
            recorder: Recorder::new(plan, times, flow.rps_per_pod()),
            now: plan.start,
            ahead: Ahead::new(plan),
            api_latency: seconds(environment.api_latency_seconds),
            pending: None,
            plan,
            policy,
            flow,
        }
    }

    fn run(mut self) -> Run {
        let end = self.plan.start.after(self.plan.length);
        loop {
            let pending = self.pending.map_or(NEVER, |(at, _)| at);
            let next = self.fleet.next_due().min(self.sensors.next_due());
            let next = next.min(self.policy.next_due()).min(pending).min(end);
            self.pass_time(next.max(self.now));
            if self.now >= end {
                break;
            }
            self.act();
        }
        let late = self.recorder.late(&self.flow);
        self.recorder.finish(late, self.fleet.created())
    }

    /// Lets requests come and go until the given time.
    fn pass_time(&mut self, until: Time) {
        // No pod comes or goes meanwhile.
        let ready = self.fleet.ready();
        let pods = Pods { existing: self.fleet.existing() as f64, created: self.fleet.created() };
        while let Some(slots) = self.ahead.look(self.plan, until) {
            if self.recorder.is_calm(&slots) && self.flow.pass_calmly(&slots, ready) {
                self.recorder.calm_slots(&slots, self.flow.last().capacity_rps, pods);
                continue;
            }
            for (place, since) in slots.ends.iter().enumerate() {
                self.flow.slot(slots.arrivals[place], slots.seconds[place], ready);
                // Not a copy of it: what was just written in parts is slow to be read as a whole.
                let (last, totals) = (self.flow.last(), self.flow.totals());
                let end = self.plan.start.after(*since);
                self.recorder.slot(end, last, slots.rates[place], pods, totals);
            }
        }
        self.now = until;
    }

    /// Lets everything happen that is due now, always in the same order.
    fn act(&mut self) {
        let now = self.now;
        if self.fleet.next_due() <= now {
            self.fleet.step(now, &self.flow.counters());
        }
        if let Some((at, replicas)) = self.pending
            && at <= now
        {
            self.pending = None;
            self.fleet.resize(replicas, now);
        }
        if self.sensors.next_due() <= now {
            self.sensors.scrape(now, &self.flow);
        }
        if self.policy.next_due() <= now {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let (fleet, flow, sensors) = (&self.fleet, &self.flow, &self.sensors);
        let (now, plan, api_latency) = (self.now, self.plan, self.api_latency);
        let world = World { now, plan, api_latency, fleet, flow, sensors };
        let from = world.scale().spec_replicas;
        let written_at = world.written_at();
        let changed = self.policy.decide(&world);
        self.recorder.decided();
        if let Some(at) = self.plan.detail.explain_at
            && self.now <= at
            && self.policy.next_due() > at
        {
            self.recorder.explain(self.now, self.policy.explain());
        }
        let Some(to) = changed.filter(|to| *to != from) else { return };
        let why = if self.plan.detail.changes { self.policy.explain() } else { Vec::new() };
        self.recorder.changed(self.now, from, to, why);
        // A size that is decided while another is on its way replaces it.
        self.pending = Some((written_at, to));
    }
}

#[cfg(test)]
mod tests;
