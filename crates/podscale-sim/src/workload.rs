//! The model of a replicated service or queue consumer: arrivals and pods go in; usage, queue and
//! latency come out.
//!
//! Time is cut into slots of a second. In each slot the ready pods serve what waits and what
//! arrives, each up to its capacity; the rest waits. A service's requests give up when they would
//! wait longer than its timeout, and are refused when no pod is ready; a consumer's work stays in
//! its queue, pods or not.

use crate::load::Load;
use crate::random;
use podscale_core::{Span, Time};
use std::collections::HashMap;
use std::sync::Arc;

mod balance;
mod flow;
mod spec;
#[cfg(test)]
mod tests;

pub(crate) use flow::Coming;
pub use flow::{Counters, Flow, Slot};
pub use spec::{Kind, MAX_LATENCY_SECONDS, SpecError, WorkloadSpec};

/// The most slots that one call computes; a longer time has longer slots.
const MAX_SLOTS: i64 = 4096;
const SLOT: i64 = Span::seconds(1).0;

/// One running pod, as the model needs to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct PodInput {
    /// Which run of which container this is; counters begin at zero with a new one.
    pub id: Arc<str>,
    /// Whether it takes requests.
    pub ready: bool,
    /// Its CPU limit in thousandths of a core.
    pub cpu_limit_millis: Option<f64>,
    /// Its memory limit.
    pub memory_limit_bytes: Option<f64>,
}

/// What one pod used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PodUsage {
    /// Mean CPU over the time, in thousandths of a core.
    pub cpu_millis: f64,
    /// CPU time since the container's start, in seconds; never falls.
    pub cpu_seconds_total: f64,
    /// Memory at the end.
    pub memory_bytes: f64,
    /// Mean requests per second that it served.
    pub rps: f64,
    /// Requests that it served since the container's start; never falls.
    pub served_total: f64,
}

/// What happened in a length of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// One for each pod given, in the same order.
    pub pods: Vec<PodUsage>,
    /// How much work waits at the end.
    pub queue: f64,
    /// How long a request takes, waiting included, at the end.
    pub latency_seconds: f64,
    /// Mean requests per second that arrived.
    pub offered_rps: f64,
    /// Mean requests per second that were served.
    pub served_rps: f64,
    /// Mean requests per second that were refused, gave up or were lost.
    pub dropped_rps: f64,
}

/// Requests since the beginning; `arrived = served + dropped + waiting` always.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// How many came.
    pub arrived: f64,
    /// How many were served.
    pub served: f64,
    /// How many were refused, gave up or were lost.
    pub dropped: f64,
    /// How many wait now.
    pub waiting: f64,
}

/// A replicated service or consumer under load.
#[derive(Clone, Debug)]
pub struct Workload {
    spec: WorkloadSpec,
    load: Load,
    load_start: Time,
    start: Time,
    totals: Totals,
    counters: HashMap<Arc<str>, Counted>,
}

/// What a container has counted since its start.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    cpu_seconds: f64,
    served: f64,
}

impl Workload {
    /// A workload whose load begins at `start`.
    ///
    /// # Errors
    /// Names the first field of the specification that is out of range.
    pub fn new(spec: WorkloadSpec, load: Load, start: Time) -> Result<Workload, SpecError> {
        spec.check()?;
        let totals = Totals::default();
        Ok(Workload { spec, load, load_start: start, start, totals, counters: HashMap::new() })
    }

    /// What it is made of.
    #[must_use]
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// Requests since the beginning.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// The load that is offered at this time, in requests per second.
    #[must_use]
    pub fn offered_at(&self, time: Time) -> f64 {
        self.load.rate(time.since(self.load_start))
    }

    /// Offers another load, whose time is counted from `start`.
    pub fn set_load(&mut self, load: Load, start: Time) {
        self.load = load;
        self.load_start = start;
    }

    /// Puts work into the queue at once; an amount that is no amount is ignored.
    pub fn enqueue(&mut self, amount: f64) {
        if amount > 0.0 && amount.is_finite() {
            let amount = amount.min(self.spec.queue_limit.max(1.0));
            self.totals.arrived += amount;
            self.totals.waiting += amount;
        }
    }

    /// Lets the time from `from` to `to` pass with these pods; nothing happens if `to` is not
    /// later. Counters of pods that are not given any more are forgotten.
    pub fn advance(&mut self, from: Time, to: Time, pods: &[PodInput]) -> Usage {
        let mut run = Run::new(&self.spec, pods);
        let before = self.totals;
        let mut at = from.since(self.start).0;
        let end = to.since(self.start).0;
        let length = end.saturating_sub(at).max(0);
        let slot = SLOT.max(length / MAX_SLOTS);
        while at < end {
            let slot_end = at.saturating_sub(at.rem_euclid(slot)).saturating_add(slot).min(end);
            let middle = self.start.after(Span(at.saturating_add((slot_end - at) / 2)));
            let seconds = (slot_end - at) as f64 / 1e6;
            let arrivals = self.offered_at(middle) * seconds;
            self.totals = run.slot(self.totals, arrivals, seconds, at.div_euclid(slot));
            at = slot_end;
        }
        let done = run.done;
        self.report(&done, before, length as f64 / 1e6, pods)
    }

    fn report(&mut self, done: &Done, before: Totals, seconds: f64, pods: &[PodInput]) -> Usage {
        let per_second = |amount: f64| {
            if seconds > 0.0 { (amount / seconds).max(0.0) } else { 0.0 }
        };
        let offered_now = if seconds > 0.0 { done.last_offered_rps } else { 0.0 };
        let latency = self.spec.latency(offered_now, self.totals.waiting, done.capacity_rps);
        let mut counters = HashMap::with_capacity(pods.len());
        let mut usages = Vec::with_capacity(pods.len());
        for (pod, work) in pods.iter().zip(&done.pods) {
            let mut counted = self.counters.get(&pod.id).copied().unwrap_or_default();
            counted.cpu_seconds += work.cpu_seconds;
            counted.served += work.served;
            counters.insert(Arc::clone(&pod.id), counted);
            let rps = per_second(work.served);
            usages.push(PodUsage {
                cpu_millis: per_second(work.cpu_seconds) * 1000.0,
                cpu_seconds_total: counted.cpu_seconds,
                memory_bytes: self.memory(pod, rps, work.capacity_rps, done.capacity_rps),
                rps,
                served_total: counted.served,
            });
        }
        self.counters = counters;
        Usage {
            pods: usages,
            queue: self.totals.waiting,
            latency_seconds: latency,
            offered_rps: per_second(self.totals.arrived - before.arrived),
            served_rps: per_second(self.totals.served - before.served),
            dropped_rps: per_second(self.totals.dropped - before.dropped),
        }
    }

    /// The memory of one pod, which holds its part of a service's requests that wait.
    fn memory(&self, pod: &PodInput, rps: f64, capacity_rps: f64, all_rps: f64) -> f64 {
        let waiting = match self.spec.kind {
            Kind::Service if all_rps > 0.0 => self.totals.waiting * capacity_rps / all_rps,
            Kind::Service | Kind::Consumer => 0.0,
        };
        self.spec.memory(rps, waiting, pod.memory_limit_bytes)
    }
}

/// The work of one pod during one call of `advance`.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    capacity_rps: f64,
    served: f64,
    cpu_seconds: f64,
}

/// What one call of `advance` did so far.
#[derive(Debug, Default)]
struct Done {
    pods: Vec<Work>,
    capacity_rps: f64,
    last_offered_rps: f64,
}

/// One call of `advance`: the pods, and what they did so far.
struct Run<'a> {
    spec: &'a WorkloadSpec,
    inputs: &'a [PodInput],
    hashes: Vec<u64>,
    shares: Vec<balance::Share>,
    done: Done,
}

impl<'a> Run<'a> {
    fn new(spec: &'a WorkloadSpec, inputs: &'a [PodInput]) -> Run<'a> {
        let capacity = |pod: &PodInput| match pod.ready {
            true => spec.capacity(pod.cpu_limit_millis),
            false => 0.0,
        };
        let pods: Vec<Work> = inputs
            .iter()
            .map(|pod| Work { capacity_rps: capacity(pod), ..Work::default() })
            .collect();
        let hashes = inputs.iter().map(|pod| random::hash(pod.id.as_bytes(), spec.seed)).collect();
        let capacity_rps = pods.iter().map(|pod| pod.capacity_rps).sum();
        let shares = vec![balance::Share::default(); pods.len()];
        Run {
            spec,
            inputs,
            hashes,
            shares,
            done: Done { pods, capacity_rps, last_offered_rps: 0.0 },
        }
    }

    /// Lets one slot pass.
    fn slot(&mut self, totals: Totals, arrivals: f64, seconds: f64, slot: i64) -> Totals {
        let available = totals.waiting + arrivals;
        for (index, share) in self.shares.iter_mut().enumerate() {
            let capacity_rps = self.done.pods[index].capacity_rps;
            let stray = self.spec.stray(self.hashes[index], slot, 0);
            let weight = if capacity_rps > 0.0 { stray } else { 0.0 };
            *share = balance::Share { weight, most: capacity_rps * seconds, given: 0.0 };
        }
        let served = balance::spread(available, &mut self.shares);
        for (index, share) in self.shares.iter().enumerate() {
            let stray = self.spec.stray(self.hashes[index], slot, 1);
            let bounds = self.spec.cpu_bounds(seconds, self.inputs[index].cpu_limit_millis);
            let work = &mut self.done.pods[index];
            work.served += share.given;
            work.cpu_seconds += self.spec.cpu_seconds(share.given, stray, bounds);
        }
        self.done.last_offered_rps = arrivals / seconds;
        self.spec.settle(totals, arrivals, served, self.done.capacity_rps)
    }
}
