//! Everything that a simulated run depends on, the policy aside.

mod template;

pub(crate) use template::Resource;
pub use template::{Container, PodTemplate, Quantity, pod_name};

use crate::environment::{Environment, EnvironmentError, seconds};
use crate::load::Load;
use crate::random;
use crate::workload::{Flow, SpecError, WorkloadSpec};
use podscale_core::{Span, Time};
use std::collections::BTreeMap;
use thiserror::Error;

/// What the draw of the sync moment is for.
const SYNC_MOMENT: u64 = 1;
/// The longest run, in seconds (a little over ten years).
pub const MAX_SECONDS: i64 = 320_000_000;

/// Everything that a run depends on, the policy aside.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How pods turn requests into usage.
    pub workload: WorkloadSpec,
    /// What the pods are like.
    pub template: PodTemplate,
    /// Where they run.
    pub environment: Environment,
    /// What metrics measure; where a name is not given, it is guessed.
    pub metrics: BTreeMap<String, Quantity>,
    /// The load.
    pub load: Load,
    /// The time at the beginning.
    pub start: Time,
    /// How long the run is.
    pub length: Span,
    /// How much of it is not scored.
    pub warm_up: Span,
    /// The size at the beginning.
    pub replicas: i32,
    /// How long a request may take.
    pub objective_seconds: f64,
    /// Where everything random comes from.
    pub seed: u64,
    /// What is kept beside the scores.
    pub detail: Detail,
}

/// What is kept of a run beside its scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// How many points of the run's course are kept; none for only scores.
    pub points: usize,
    /// Whether changes of size are kept with their reasons.
    pub changes: bool,
    /// The decision that holds at this moment is told in words.
    pub explain_at: Option<Time>,
    /// Leaves out how long single requests take: latencies and slow requests are not scored.
    pub without_requests: bool,
}

/// Why a plan cannot be run.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PlanError {
    /// The workload makes no sense.
    #[error("model.{0}")]
    Workload(#[from] SpecError),
    /// The environment makes no sense.
    #[error("environment.{0}")]
    Environment(#[from] EnvironmentError),
    /// The run has no length, or is too long.
    #[error("a run of {0} s is not between 1 and {MAX_SECONDS} s")]
    Length(i64),
    /// The warm-up leaves nothing to score.
    #[error("the warm-up is as long as the run")]
    WarmUp,
    /// The objective is no time.
    #[error("the latency objective must be more than 0 s")]
    Objective,
}

impl Plan {
    /// The moment of the autoscaler within its sync period.
    #[must_use]
    pub fn sync_moment(&self) -> Span {
        seconds(self.environment.sync_moment_seconds.unwrap_or_else(|| {
            let part = (random::unit(self.seed, 0, SYNC_MOMENT) + 1.0) / 2.0;
            (self.environment.sync_period_seconds * part).floor()
        }))
    }

    /// Checks every number, and gives the workload at its beginning.
    pub(crate) fn flow(&self) -> Result<Flow, PlanError> {
        self.environment.check()?;
        let length = self.length.0 / Span::seconds(1).0;
        if !(1..=MAX_SECONDS).contains(&length) {
            return Err(PlanError::Length(length));
        }
        if self.warm_up >= self.length {
            return Err(PlanError::WarmUp);
        }
        if !(self.objective_seconds > 0.0 && self.objective_seconds.is_finite()) {
            return Err(PlanError::Objective);
        }
        let busy = self.template.busy_container();
        let cpu = busy.and_then(|container| container.cpu_limit_millis);
        let memory = busy.and_then(|container| container.memory_limit_bytes);
        Ok(Flow::new(self.workload.clone(), cpu, memory)?)
    }

    /// Requests per second that one ready pod serves at most.
    #[must_use]
    pub fn rps_per_pod(&self) -> f64 {
        let busy = self.template.busy_container();
        self.workload.capacity(busy.and_then(|container| container.cpu_limit_millis))
    }
}
