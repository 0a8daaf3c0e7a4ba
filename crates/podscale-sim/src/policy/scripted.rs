//! Sizes that are known in advance: those that a recording holds.

use super::Policy;
use crate::plan::Plan;
use crate::world::{NEVER, Needs, World};
use podscale_core::{Span, Time};

/// Sets each size at its time.
#[derive(Clone, Debug)]
pub struct Scripted {
    /// When, counted from the start, and which size; in order of time.
    sizes: Vec<(Span, i32)>,
    start: Time,
    place: usize,
}

impl Scripted {
    /// These sizes, in order of time.
    #[must_use]
    pub fn new(sizes: Vec<(Span, i32)>) -> Scripted {
        Scripted { sizes, start: Time(0), place: 0 }
    }
}

impl Policy for Scripted {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn begin(&mut self, plan: &Plan) {
        self.start = plan.start;
        self.place = 0;
    }

    fn next_due(&self) -> Time {
        self.sizes.get(self.place).map_or(NEVER, |(at, _)| self.start.after(*at))
    }

    fn decide(&mut self, world: &World<'_>) -> Option<i32> {
        let (_, replicas) = *self.sizes.get(self.place)?;
        self.place += 1;
        (world.scale().spec_replicas != replicas).then_some(replicas)
    }

    fn explain(&self) -> Vec<String> {
        vec!["as recorded".to_owned()]
    }
}
