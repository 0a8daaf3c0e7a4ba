//! The oracle: knows the load to come, and pays only for the time that pods need to start. Nobody can
//! do better without knowing more; what a policy costs is measured against it.
//!
//! At every moment it has as many pods as the highest load needs until a pod that it starts now would
//! be ready, at the highest utilization at which at most one request in two hundred is too slow. A
//! consumer's queue is to be empty again within its objective.

use super::{Moments, Policy};
use crate::plan::Plan;
use crate::request_time::RequestTimes;
use crate::workload::Kind;
use crate::world::{Needs, World};
use podscale_core::{Span, Time};

/// Which part of the requests may be too slow.
const SLOW: f64 = 0.005;

/// Knows the load to come.
#[derive(Clone, Debug)]
pub struct Oracle {
    min: i32,
    max: i32,
    utilization: Option<f64>,
    used: f64,
    moments: Moments,
    last: (f64, i32),
}

impl Oracle {
    /// Between these bounds; at the utilization that the objective allows if none is given.
    #[must_use]
    pub fn new(min: i32, max: i32, utilization: Option<f64>) -> Oracle {
        Oracle { min, max, utilization, used: 0.8, moments: Moments::never(), last: (0.0, 0) }
    }
}

impl Policy for Oracle {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn begin(&mut self, plan: &Plan) {
        // It need not wait for its moment.
        self.moments = Moments { next: plan.start, ..Moments::of_sync(plan, None) };
        let allowed = match plan.workload.kind {
            Kind::Service => {
                let rps = plan.rps_per_pod();
                RequestTimes::new(&plan.workload, rps, plan.objective_seconds).busy_for(SLOW)
            }
            Kind::Consumer => 1.0,
        };
        self.used = self.utilization.unwrap_or(allowed).clamp(0.01, 1.0);
    }

    fn next_due(&self) -> Time {
        self.moments.next
    }

    fn decide(&mut self, world: &World<'_>) -> Option<i32> {
        self.moments.advance();
        let plan = world.plan;
        let from = world.now.since(plan.start);
        let ahead = plan.environment.lead().0.saturating_add(self.moments.period.0);
        let mut highest = plan.load.highest(from, Span(from.0.saturating_add(ahead)));
        if plan.workload.kind == Kind::Consumer {
            highest += world.waiting() / plan.objective_seconds.max(1.0);
        }
        let each = world.rps_per_pod() * self.used;
        // The cast saturates.
        let needed = if each > 0.0 { (highest / each).ceil() as i32 } else { self.max };
        let size = needed.clamp(self.min, self.max.max(self.min));
        self.last = (highest, size);
        (world.scale().spec_replicas != size).then_some(size)
    }

    fn explain(&self) -> Vec<String> {
        let (highest, size) = self.last;
        let percent = self.used * 100.0;
        vec![
            format!("{highest:.1} requests a second are the most that will come soon"),
            format!("at a utilization of {percent:.0}% that needs {size}"),
        ]
    }
}
