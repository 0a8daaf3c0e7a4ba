//! The pods of a simulated workload, their metrics, and what a policy can see of them.

mod fleet;
mod nodes;
mod sensors;

pub(crate) use fleet::{Fleet, NEVER, READINESS, START_UP};
pub(crate) use nodes::Nodes;
pub use sensors::Needs;
pub(crate) use sensors::Sensors;

use crate::plan::Plan;
use crate::workload::Flow;
use podscale_core::model::ShareOf;
use podscale_core::pod::Pod;
use podscale_core::snapshot::{Reading, Scale};
use podscale_core::{Metric, Span, Time};

/// What a policy can see when it decides.
pub struct World<'a> {
    /// The moment.
    pub now: Time,
    /// What the run depends on.
    pub plan: &'a Plan,
    pub(crate) api_latency: Span,
    pub(crate) fleet: &'a Fleet,
    pub(crate) flow: &'a Flow,
    pub(crate) sensors: &'a Sensors,
}

impl World<'_> {
    /// The size of the target.
    #[must_use]
    pub fn scale(&self) -> Scale {
        self.fleet.scale()
    }

    /// When a size that is written now takes effect.
    #[must_use]
    pub fn written_at(&self) -> Time {
        self.now.after(self.api_latency)
    }

    /// The pods as the rules see them, into the given place.
    pub fn pods(&self, pods: &mut Vec<Pod>) {
        pods.clear();
        pods.extend(self.fleet.pods().iter().map(fleet::SimPod::view));
    }

    /// Tells the pods apart, in the same order.
    pub fn pod_ids(&self) -> impl Iterator<Item = u64> {
        self.fleet.pods().iter().map(|pod| pod.id)
    }

    /// What a metric says now, into the given place; a utilization is a share of what is given.
    pub fn read(&self, metric: &Metric, share_of: ShareOf, reading: &mut Reading) {
        let around = (self.fleet, &self.plan.template);
        self.sensors.read(metric, share_of, self.now, around, reading);
    }

    /// How many pods serve.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.fleet.ready()
    }

    /// How many requests are in service or wait in the workload.
    #[must_use]
    pub fn in_flight(&self) -> f64 {
        self.flow.in_flight()
    }

    /// How much work waits.
    #[must_use]
    pub fn waiting(&self) -> f64 {
        self.flow.totals().waiting
    }

    /// Requests that have come since the beginning.
    #[must_use]
    pub fn arrived(&self) -> f64 {
        self.flow.totals().arrived
    }

    /// Requests per second that one pod serves.
    #[must_use]
    pub fn rps_per_pod(&self) -> f64 {
        self.flow.rps_per_pod()
    }
}
