//! The same model for pods that are all alike, at a cost that does not grow with their number: what
//! one pod does is counted once for all of them.

use super::spec::CpuBounds;
use super::{Kind, SpecError, Totals, WorkloadSpec};
use podscale_core::Span;

/// What one pod has done since the beginning if it was always ready, and if it always idled. What a
/// pod did in a time is the difference between its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counters {
    /// Requests that a ready pod served.
    pub served: f64,
    /// CPU time of a ready pod, in seconds.
    pub busy_cpu_seconds: f64,
    /// CPU time of a pod that runs and serves nothing, in seconds.
    pub idle_cpu_seconds: f64,
}

/// What happened in one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slot {
    /// How long it was.
    pub seconds: f64,
    /// How many requests came.
    pub arrived: f64,
    /// How many were served.
    pub served: f64,
    /// How many were refused, gave up or were lost.
    pub dropped: f64,
    /// How many wait at its end.
    pub waiting: f64,
    /// Requests per second that the ready pods could serve.
    pub capacity_rps: f64,
}

impl Slot {
    /// How busy the pods were with what came and what waited, as a part of what they could serve.
    #[must_use]
    pub fn busy(&self) -> f64 {
        let possible = self.capacity_rps * self.seconds;
        if possible > 0.0 { (self.arrived + self.waiting) / possible } else { f64::INFINITY }
    }
}

/// What comes in slots that follow each other, one column for each of what there is to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coming<'a> {
    /// When they end, counted from the start.
    pub(crate) ends: &'a [Span],
    /// How long they are.
    pub(crate) seconds: &'a [f64],
    /// Requests per second that the load says.
    pub(crate) rates: &'a [f64],
    /// How many requests come.
    pub(crate) arrivals: &'a [f64],
}

/// A workload whose pods are all alike.
#[derive(Clone, Debug)]
pub struct Flow {
    spec: WorkloadSpec,
    cpu_limit_millis: Option<f64>,
    memory_limit_bytes: Option<f64>,
    rps_per_pod: f64,
    totals: Totals,
    counters: Counters,
    last: Slot,
    last_ready: f64,
    /// How long the last slot was, and what follows from that: slots are mostly of the same length.
    slot_seconds: f64,
    cpu_bounds: CpuBounds,
    idle_cpu_seconds: f64,
}

impl Flow {
    /// A workload whose pods have these limits.
    ///
    /// # Errors
    /// Names the first field of the specification that is out of range.
    pub fn new(
        spec: WorkloadSpec,
        cpu_limit_millis: Option<f64>,
        memory_limit_bytes: Option<f64>,
    ) -> Result<Flow, SpecError> {
        spec.check()?;
        let rps_per_pod = spec.capacity(cpu_limit_millis);
        let cpu_bounds = spec.cpu_bounds(0.0, cpu_limit_millis);
        Ok(Flow {
            spec,
            cpu_limit_millis,
            memory_limit_bytes,
            rps_per_pod,
            totals: Totals::default(),
            counters: Counters::default(),
            last: Slot::default(),
            last_ready: 0.0,
            slot_seconds: 0.0,
            cpu_bounds,
            idle_cpu_seconds: 0.0,
        })
    }

    /// What it is made of.
    #[must_use]
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// Requests per second that one ready pod serves at most.
    #[must_use]
    pub fn rps_per_pod(&self) -> f64 {
        self.rps_per_pod
    }

    /// Requests since the beginning.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// What one pod has done since the beginning.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The last slot.
    #[must_use]
    pub fn last(&self) -> &Slot {
        &self.last
    }

    /// Lets one slot pass in which so many requests come and so many pods are ready; [`Flow::last`] is what came of it.
    pub fn slot(&mut self, arrivals: f64, seconds: f64, ready: usize) {
        let ready = ready as f64;
        let capacity_rps = self.rps_per_pod * ready;
        let before = self.totals;
        let served = (before.waiting + arrivals).min(capacity_rps * seconds);
        self.totals = self.spec.settle(before, arrivals, served, capacity_rps);
        let each = if ready > 0.0 { served / ready } else { 0.0 };
        self.turn_to(seconds);
        self.counters.served += each;
        self.counters.busy_cpu_seconds += self.spec.cpu_seconds(each, 1.0, self.cpu_bounds);
        self.counters.idle_cpu_seconds += self.idle_cpu_seconds;
        self.last_ready = ready;
        self.last = Slot {
            seconds,
            arrived: arrivals,
            served,
            dropped: self.totals.dropped - before.dropped,
            waiting: self.totals.waiting,
            capacity_rps,
        };
    }

    /// Lets slots pass as [`Flow::slot`] does, if nothing waits before, in or after any of them, and says whether that is
    /// so. Then all that comes is served, and what [`Flow::slot`] finds out of waiting need not be.
    pub(crate) fn pass_calmly(&mut self, slots: &Coming<'_>, ready: usize) -> bool {
        let ready = ready as f64;
        let capacity_rps = self.rps_per_pod * ready;
        let mut all = slots.arrivals.iter().zip(slots.seconds);
        let is_calm = |(arrivals, seconds): (&f64, &f64)| *arrivals <= capacity_rps * *seconds;
        if self.totals.waiting > 0.0 || ready <= 0.0 || !all.all(is_calm) {
            return false;
        }
        // Kept at hand until the end: what is written in every slot is slow to be read in the next.
        let (mut totals, mut counters) = (self.totals, self.counters);
        for (&arrivals, &seconds) in slots.arrivals.iter().zip(slots.seconds) {
            self.turn_to(seconds);
            let each = arrivals / ready;
            totals.arrived += arrivals;
            totals.served += arrivals;
            counters.served += each;
            counters.busy_cpu_seconds += self.spec.cpu_seconds(each, 1.0, self.cpu_bounds);
            counters.idle_cpu_seconds += self.idle_cpu_seconds;
            self.last = Slot { seconds, arrived: arrivals, served: arrivals, ..Slot::default() };
        }
        self.last.capacity_rps = capacity_rps;
        self.last_ready = ready;
        (self.totals, self.counters) = (totals, counters);
        true
    }

    /// Finds what follows from how long a slot is.
    fn turn_to(&mut self, seconds: f64) {
        if self.slot_seconds != seconds {
            self.slot_seconds = seconds;
            self.cpu_bounds = self.spec.cpu_bounds(seconds, self.cpu_limit_millis);
            self.idle_cpu_seconds = self.spec.cpu_seconds(0.0, 1.0, self.cpu_bounds);
        }
    }

    /// The memory of a ready pod and of one that idles, after the last slot.
    #[must_use]
    pub fn memory_bytes(&self) -> (f64, f64) {
        let Slot { seconds, served, waiting, .. } = self.last;
        let idle = self.spec.memory(0.0, 0.0, self.memory_limit_bytes);
        if self.last_ready <= 0.0 || seconds <= 0.0 {
            return (idle, idle);
        }
        let rps = served / seconds / self.last_ready;
        let waiting = match self.spec.kind {
            Kind::Service => waiting / self.last_ready,
            Kind::Consumer => 0.0,
        };
        (self.spec.memory(rps, waiting, self.memory_limit_bytes), idle)
    }

    /// How long a request takes after the last slot, waiting included.
    #[must_use]
    pub fn latency_seconds(&self) -> f64 {
        let Slot { seconds, arrived, waiting, capacity_rps, .. } = self.last;
        let offered = if seconds > 0.0 { arrived / seconds } else { 0.0 };
        self.spec.latency(offered, waiting, capacity_rps)
    }

    /// How many requests are in the workload after the last slot: in service, and waiting in it.
    #[must_use]
    pub fn in_flight(&self) -> f64 {
        let Slot { seconds, served, waiting, .. } = self.last;
        let in_service =
            if seconds > 0.0 { served / seconds * self.spec.latency_seconds } else { 0.0 };
        match self.spec.kind {
            Kind::Service => in_service + waiting,
            Kind::Consumer => in_service,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, PodInput, Workload};
    use podscale_core::Time;

    /// Both forms of the model give the same numbers for pods that are alike.
    #[test]
    fn like_pods_do_as_in_the_model_of_single_pods() {
        let spec = |kind: &str| -> WorkloadSpec {
            serde_json::from_str(&format!(
                r#"{{"kind":"{kind}","rpsPerPod":100,"cpuMsPerRequest":5,"baseCpuMillis":10,
                "baseMemoryBytes":1000,"memoryBytesPerRequest":10,"latencySeconds":0.1,
                "timeoutSeconds":2,"queueLimit":5000}}"#
            ))
            .unwrap()
        };
        let pod = |id: &str| PodInput {
            id: id.into(),
            ready: true,
            cpu_limit_millis: Some(310.0),
            memory_limit_bytes: None,
        };
        for (kind, rps) in [("service", 90.0), ("service", 300.0), ("consumer", 300.0)] {
            let start = Time(0);
            let mut single = Workload::new(spec(kind), Load::constant(rps), start).unwrap();
            let mut alike = Flow::new(spec(kind), Some(310.0), None).unwrap();
            let usage =
                single.advance(start, start.after(Span::seconds(20)), &[pod("a"), pod("b")]);
            for _ in 0..20 {
                alike.slot(rps, 1.0, 2);
            }
            let close = |a: f64, b: f64, what: &str| {
                assert!((a - b).abs() < 1e-6 * a.abs().max(1.0), "{kind} {rps}: {what} {a} {b}");
            };
            let (totals, counters) = (alike.totals(), alike.counters());
            close(single.totals().served, totals.served, "served");
            close(single.totals().dropped, totals.dropped, "dropped");
            close(usage.queue, totals.waiting, "waiting");
            close(usage.pods[0].cpu_seconds_total, counters.busy_cpu_seconds, "cpu");
            close(usage.pods[0].memory_bytes, alike.memory_bytes().0, "memory");
            close(usage.latency_seconds, alike.latency_seconds(), "latency");
        }
    }

    /// Slots in which nothing waits leave the same bits, whichever way they pass; others are left alone.
    #[test]
    fn calm_slots_are_as_each_of_them() {
        let spec: WorkloadSpec = serde_json::from_str(
            r#"{"rpsPerPod":50,"cpuMsPerRequest":7,"baseCpuMillis":3,"timeoutSeconds":1}"#,
        )
        .unwrap();
        let (seconds, ends) = ([0.3, 1.0, 1.0, 0.7], [Span(0); 4]);
        let mut each = Flow::new(spec, Some(300.0), None).unwrap();
        for (busy, is_calm) in [(0.9, true), (0.0, true), (1.0, true), (1.1, false), (0.7, false)] {
            let arrivals = seconds.map(|seconds| each.rps_per_pod() * 3.0 * seconds * busy);
            let slots =
                Coming { ends: &ends, seconds: &seconds, rates: &seconds, arrivals: &arrivals };
            let mut calm = each.clone();
            assert_eq!(calm.pass_calmly(&slots, 3), is_calm, "{busy}");
            assert!(!each.clone().pass_calmly(&slots, 0), "no pod serves");
            let before = (each.totals, each.counters, each.last);
            arrivals.iter().zip(seconds).for_each(|(arrivals, s)| each.slot(*arrivals, s, 3));
            let expected = if is_calm { (each.totals, each.counters, each.last) } else { before };
            assert_eq!((calm.totals, calm.counters, calm.last), expected, "{busy}");
        }
    }
}
