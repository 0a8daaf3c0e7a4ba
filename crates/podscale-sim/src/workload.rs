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
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use thiserror::Error;

mod balance;
#[cfg(test)]
mod tests;

/// The longest latency that is reported, in seconds.
pub const MAX_LATENCY_SECONDS: f64 = 3600.0;
/// The most slots that one call computes; a longer time has longer slots.
const MAX_SLOTS: i64 = 4096;
const SLOT: i64 = Span::seconds(1).0;
/// How busy a pod counts at most in the latency formula, which has no limit at 1.
const MAX_BUSY: f64 = 0.95;

/// What the work is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    /// Requests want an answer: they need a ready pod now and give up after a while.
    #[default]
    Service,
    /// Work waits in a queue outside the pods until one of them takes it.
    Consumer,
}

/// How a workload's pods turn requests into usage, as written in scenario files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Service or consumer.
    #[serde(default)]
    pub kind: Kind,
    /// Requests per second that one pod serves at most.
    pub rps_per_pod: f64,
    /// CPU time of one request, in milliseconds of one core.
    pub cpu_ms_per_request: f64,
    /// Memory that a request holds while it is served or waits in its pod.
    #[serde(default)]
    pub memory_bytes_per_request: f64,
    /// CPU of a pod that does nothing, in thousandths of a core.
    #[serde(default)]
    pub base_cpu_millis: f64,
    /// Memory of a pod that does nothing.
    #[serde(default)]
    pub base_memory_bytes: f64,
    /// How long a request takes on an idle pod.
    #[serde(default = "default_latency")]
    pub latency_seconds: f64,
    /// How long a service's request waits before it gives up.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: f64,
    /// How much work a consumer's queue holds; what arrives beyond that is lost.
    #[serde(default = "default_queue_limit")]
    pub queue_limit: f64,
    /// How far CPU and shares of the load stray from the model, as a part of one.
    #[serde(default)]
    pub jitter: f64,
    /// Where the jitter comes from: the same seed strays the same way.
    #[serde(default)]
    pub seed: u64,
}

fn default_latency() -> f64 {
    0.05
}

fn default_timeout() -> f64 {
    10.0
}

fn default_queue_limit() -> f64 {
    1e9
}

/// A number of a [`WorkloadSpec`] that is out of its range.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{field}: {value} is not between {least} and {most}")]
pub struct SpecError {
    /// The field's name in scenario files.
    pub field: &'static str,
    /// The number found.
    pub value: f64,
    /// The smallest allowed.
    pub least: f64,
    /// The largest allowed.
    pub most: f64,
}

impl WorkloadSpec {
    /// Checks every number.
    ///
    /// # Errors
    /// Names the first field that is out of range.
    pub fn check(&self) -> Result<(), SpecError> {
        for (field, value, least, most) in [
            ("rpsPerPod", self.rps_per_pod, 0.0, 1e9),
            ("cpuMsPerRequest", self.cpu_ms_per_request, 0.0, 1e9),
            ("memoryBytesPerRequest", self.memory_bytes_per_request, 0.0, 1e15),
            ("baseCpuMillis", self.base_cpu_millis, 0.0, 1e9),
            ("baseMemoryBytes", self.base_memory_bytes, 0.0, 1e15),
            ("latencySeconds", self.latency_seconds, 0.0, MAX_LATENCY_SECONDS),
            ("timeoutSeconds", self.timeout_seconds, 0.0, MAX_LATENCY_SECONDS),
            ("queueLimit", self.queue_limit, 0.0, 1e12),
            ("jitter", self.jitter, 0.0, 0.5),
        ] {
            if !(value >= least && value <= most) {
                return Err(SpecError { field, value, least, most });
            }
        }
        Ok(())
    }

    /// Requests per second that a pod with this CPU limit serves at most.
    fn capacity(&self, cpu_limit_millis: Option<f64>) -> f64 {
        match cpu_limit_millis {
            Some(limit) if self.cpu_ms_per_request > 0.0 => {
                let spare = (limit - self.base_cpu_millis).max(0.0);
                self.rps_per_pod.min(spare / self.cpu_ms_per_request)
            }
            Some(_) | None => self.rps_per_pod,
        }
    }
}

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
    cpu_seconds: HashMap<Arc<str>, f64>,
}

impl Workload {
    /// A workload whose load begins at `start`.
    ///
    /// # Errors
    /// Names the first field of the specification that is out of range.
    pub fn new(spec: WorkloadSpec, load: Load, start: Time) -> Result<Workload, SpecError> {
        spec.check()?;
        let totals = Totals::default();
        Ok(Workload { spec, load, load_start: start, start, totals, cpu_seconds: HashMap::new() })
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
            let total = self.cpu_seconds.get(&pod.id).copied().unwrap_or(0.0) + work.cpu_seconds;
            counters.insert(Arc::clone(&pod.id), total);
            let rps = per_second(work.served);
            usages.push(PodUsage {
                cpu_millis: per_second(work.cpu_seconds) * 1000.0,
                cpu_seconds_total: total,
                memory_bytes: self.memory(pod, rps, work.capacity_rps, done.capacity_rps),
                rps,
            });
        }
        self.cpu_seconds = counters;
        Usage {
            pods: usages,
            queue: self.totals.waiting,
            latency_seconds: latency,
            offered_rps: per_second(self.totals.arrived - before.arrived),
            served_rps: per_second(self.totals.served - before.served),
            dropped_rps: per_second(self.totals.dropped - before.dropped),
        }
    }

    /// Base memory, and that of the requests which the pod holds: those in service (rate times
    /// time) and, for a service, its part of those that wait. Never beyond the limit.
    fn memory(&self, pod: &PodInput, rps: f64, capacity_rps: f64, all_rps: f64) -> f64 {
        let waiting = match self.spec.kind {
            Kind::Service if all_rps > 0.0 => self.totals.waiting * capacity_rps / all_rps,
            Kind::Service | Kind::Consumer => 0.0,
        };
        let held = rps * self.spec.latency_seconds + waiting;
        let wanted = self.spec.base_memory_bytes + held * self.spec.memory_bytes_per_request;
        wanted.min(pod.memory_limit_bytes.unwrap_or(f64::MAX).max(0.0))
    }
}

impl WorkloadSpec {
    /// The time of a request on a pod as busy as these are (that of one server with random
    /// arrivals: idle time / (1 − busy)), and the time in which what waits is served. Rises with
    /// load and queue, falls with capacity.
    fn latency(&self, offered_rps: f64, waiting: f64, capacity_rps: f64) -> f64 {
        let most = match self.kind {
            Kind::Service => self.timeout_seconds.max(self.latency_seconds),
            Kind::Consumer => MAX_LATENCY_SECONDS,
        };
        if capacity_rps <= 0.0 {
            return if offered_rps + waiting > 0.0 { most } else { self.latency_seconds };
        }
        let busy = ((offered_rps + waiting) / capacity_rps).min(MAX_BUSY);
        (self.latency_seconds / (1.0 - busy) + waiting / capacity_rps).min(most)
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
            let limit = self.inputs[index].cpu_limit_millis;
            let work = &mut self.done.pods[index];
            work.served += share.given;
            work.cpu_seconds += self.spec.cpu_seconds(share.given, seconds, stray, limit);
        }
        self.done.last_offered_rps = arrivals / seconds;
        let left = (available - served).max(0.0);
        let waiting = left.min(match self.spec.kind {
            Kind::Service => self.done.capacity_rps * self.spec.timeout_seconds,
            Kind::Consumer => self.spec.queue_limit,
        });
        Totals {
            arrived: totals.arrived + arrivals,
            served: totals.served + served,
            dropped: totals.dropped + (left - waiting),
            waiting,
        }
    }
}

impl WorkloadSpec {
    /// CPU time of one pod that served so many requests in a slot, never beyond its limit.
    fn cpu_seconds(&self, served: f64, seconds: f64, stray: f64, limit_millis: Option<f64>) -> f64 {
        let base = self.base_cpu_millis / 1000.0 * seconds;
        let wanted = (base + served * self.cpu_ms_per_request / 1000.0) * stray;
        match limit_millis {
            Some(limit) => wanted.min((limit / 1000.0 * seconds).max(0.0)),
            None => wanted,
        }
    }

    /// A factor around 1, the same for the same seed, pod, slot and purpose.
    fn stray(&self, hash: u64, slot: i64, purpose: u64) -> f64 {
        if self.jitter == 0.0 {
            return 1.0;
        }
        1.0 + self.jitter * random::unit(hash, slot.cast_unsigned(), purpose)
    }
}
