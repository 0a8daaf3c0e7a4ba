//! How a workload's pods turn requests into usage.

use super::Totals;
use crate::random;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest latency that is reported, in seconds.
pub const MAX_LATENCY_SECONDS: f64 = 3600.0;
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

/// What bounds the CPU time of one pod in a slot, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuBounds {
    /// What it uses without any request.
    base: f64,
    /// What its limit allows.
    most: f64,
    /// What a request takes.
    per_request: f64,
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
    pub(crate) fn capacity(&self, cpu_limit_millis: Option<f64>) -> f64 {
        match cpu_limit_millis {
            Some(limit) if self.cpu_ms_per_request > 0.0 => {
                let spare = (limit - self.base_cpu_millis).max(0.0);
                self.rps_per_pod.min(spare / self.cpu_ms_per_request)
            }
            Some(_) | None => self.rps_per_pod,
        }
    }

    /// The time of a request on a pod as busy as these are (that of one server with random
    /// arrivals: idle time / (1 − busy)), and the time in which what waits is served. Rises with
    /// load and queue, falls with capacity.
    pub(super) fn latency(&self, offered_rps: f64, waiting: f64, capacity_rps: f64) -> f64 {
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

    /// What the totals become by a slot in which so many arrived and so many were served. Of what is
    /// left, what cannot wait is dropped.
    pub(super) fn settle(
        &self,
        totals: Totals,
        arrivals: f64,
        served: f64,
        capacity_rps: f64,
    ) -> Totals {
        let left = (totals.waiting + arrivals - served).max(0.0);
        let waiting = left.min(match self.kind {
            Kind::Service => capacity_rps * self.timeout_seconds,
            Kind::Consumer => self.queue_limit,
        });
        Totals {
            arrived: totals.arrived + arrivals,
            served: totals.served + served,
            dropped: totals.dropped + (left - waiting),
            waiting,
        }
    }

    /// Base memory, and that of the requests which a pod holds: those in service (rate times time)
    /// and those that wait in it. Never beyond the limit.
    pub(super) fn memory(&self, rps: f64, waiting: f64, limit_bytes: Option<f64>) -> f64 {
        let held = rps * self.latency_seconds + waiting;
        let wanted = self.base_memory_bytes + held * self.memory_bytes_per_request;
        wanted.min(limit_bytes.unwrap_or(f64::MAX).max(0.0))
    }

    /// What bounds the CPU time of one pod in a slot.
    pub(super) fn cpu_bounds(&self, seconds: f64, limit_millis: Option<f64>) -> CpuBounds {
        CpuBounds {
            base: self.base_cpu_millis / 1000.0 * seconds,
            most: limit_millis.map_or(f64::INFINITY, |limit| (limit / 1000.0 * seconds).max(0.0)),
            per_request: self.cpu_ms_per_request / 1000.0,
        }
    }

    /// CPU time of one pod that served so many requests in a slot, never beyond its limit.
    pub(super) fn cpu_seconds(&self, served: f64, stray: f64, bounds: CpuBounds) -> f64 {
        let wanted = (bounds.base + served * bounds.per_request) * stray;
        // Compared by hand: `min` also looks for what is no number, and this is needed for every second of a run.
        if wanted < bounds.most { wanted } else { bounds.most }
    }

    /// A factor around 1, the same for the same seed, pod, slot and purpose.
    pub(super) fn stray(&self, hash: u64, slot: i64, purpose: u64) -> f64 {
        if self.jitter == 0.0 {
            return 1.0;
        }
        1.0 + self.jitter * random::unit(hash, slot.cast_unsigned(), purpose)
    }
}
