//! What decides in a simulation: Podscale's own pass on any autoscaler, and the rules of its peers,
//! each in a file of its own.

use crate::environment::seconds;
use crate::plan::Plan;
use crate::world::{NEVER, Needs, World};
use podscale_core::{Span, Time};

pub mod controlled;
pub mod fixed;
pub mod keda;
pub mod knative;
pub mod oracle;
pub mod peers;
pub mod reconciler;
pub mod scripted;

pub use controlled::{Controlled, Seen};
pub use fixed::Fixed;
pub use keda::Keda;
pub use knative::Knative;
pub use oracle::Oracle;
pub use peers::{Peer, PeerError};
pub use reconciler::{PassObserver, Reconciler};
pub use scripted::Scripted;

/// Decides the size of a simulated workload.
pub trait Policy {
    /// Which metrics it reads.
    fn needs(&self) -> Needs;

    /// Begins at the start of a run.
    fn begin(&mut self, plan: &Plan);

    /// When it decides next.
    fn next_due(&self) -> Time;

    /// Decides; gives the new size if it is another one.
    fn decide(&mut self, world: &World<'_>) -> Option<i32>;

    /// The last decision in words, a line for each step.
    fn explain(&self) -> Vec<String>;
}

/// A policy's moments: one in each period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moments {
    pub(crate) period: Span,
    pub(crate) next: Time,
}

impl Moments {
    /// Those of the sync period, or of an object's own.
    pub(crate) fn of_sync(plan: &Plan, own: Option<Span>) -> Moments {
        let period = own.unwrap_or(seconds(plan.environment.sync_period_seconds));
        Moments { period: period.max(Span(1)), next: plan.start.after(plan.sync_moment()) }
    }

    pub(crate) fn never() -> Moments {
        Moments { period: Span(0), next: NEVER }
    }

    /// Goes on to the next moment.
    pub(crate) fn advance(&mut self) {
        self.next = self.next.after(self.period);
    }
}
