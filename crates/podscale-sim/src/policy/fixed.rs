//! A fixed size: what people do who do not autoscale.

use super::{Moments, Policy};
use crate::plan::Plan;
use crate::world::{Needs, World};
use podscale_core::Time;

/// Always the same size.
#[derive(Clone, Debug)]
pub struct Fixed {
    replicas: i32,
    moments: Moments,
}

impl Fixed {
    /// This size.
    #[must_use]
    pub fn new(replicas: i32) -> Fixed {
        Fixed { replicas, moments: Moments::never() }
    }
}

impl Policy for Fixed {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn begin(&mut self, plan: &Plan) {
        self.moments = Moments { next: plan.start, ..Moments::of_sync(plan, None) };
    }

    fn next_due(&self) -> Time {
        self.moments.next
    }

    fn decide(&mut self, world: &World<'_>) -> Option<i32> {
        self.moments.advance();
        (world.scale().spec_replicas != self.replicas).then_some(self.replicas)
    }

    fn explain(&self) -> Vec<String> {
        vec![format!("the size is fixed at {}", self.replicas)]
    }
}
