//! The series that the load model has: which there are, of what, and how much each is now.

use crate::load::{PodRate, WorkloadState};
use podscale_api::Labels;

/// A metric of the load model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Requests per second: that a pod serves, or that arrive for a whole workload.
    RequestsPerSecond,
    /// Work that waits: for a pod its part of it.
    QueueLength,
    /// How long a request takes.
    LatencySeconds,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Metric; 3] =
        [Metric::RequestsPerSecond, Metric::QueueLength, Metric::LatencySeconds];

    /// Its name in the APIs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Metric::RequestsPerSecond => "requests_per_second",
            Metric::QueueLength => "queue_length",
            Metric::LatencySeconds => "latency_seconds",
        }
    }

    /// The metric of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Metric> {
        Metric::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// Its value for a whole workload.
    #[must_use]
    pub fn of_workload(self, workload: &WorkloadState) -> f64 {
        match self {
            Metric::RequestsPerSecond => workload.offered_rps,
            Metric::QueueLength => workload.queue,
            Metric::LatencySeconds => workload.latency_seconds,
        }
    }

    /// Its value for one pod of a workload.
    #[must_use]
    pub fn of_pod(self, workload: &WorkloadState, pod: &PodRate) -> f64 {
        match self {
            Metric::RequestsPerSecond => pod.rps,
            Metric::QueueLength if pod.ready => {
                let ready = workload.pods.iter().filter(|pod| pod.ready).count();
                workload.queue / ready.max(1) as f64
            }
            Metric::QueueLength => 0.0,
            Metric::LatencySeconds => workload.latency_seconds,
        }
    }
}

/// The labels of a workload's series.
#[must_use]
pub fn series_labels(workload: &WorkloadState) -> Labels {
    [("workload", &*workload.name)].into_iter().collect()
}
