//! KEDA, as it works: a loop of its own switches between zero and the minimum, and an HPA with an
//! external metric does the rest.
//!
//! - Every polling interval the trigger is asked whether it is active (its value above the activation
//!   threshold). At zero and active, the target is set to the minimum, at least one. Above zero and
//!   inactive for the cooldown period, it is set to zero, if the minimum is zero.
//! - The HPA (here Podscale's pass, with Kubernetes' default behavior) has a minimum of at least one,
//!   and the trigger's value as an external metric with the threshold as its average per pod. It leaves
//!   a target alone that is at zero.

use super::{Moments, Policy, Reconciler};
use crate::environment::seconds;
use crate::plan::Plan;
use crate::world::{Needs, World};
use podscale_core::model::{Milli, ShareOf};
use podscale_core::snapshot::Reading;
use podscale_core::{Autoscaler, Metric, Settings, Time};

/// What a ScaledObject says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScaledObject {
    /// The fewest replicas; zero by KEDA's default.
    pub min: i32,
    /// The most replicas.
    pub max: i32,
    /// How often the trigger is asked.
    pub polling_seconds: f64,
    /// How long the trigger must be inactive before the target goes to zero.
    pub cooldown_seconds: f64,
    /// The trigger is active above this value.
    pub activation: f64,
}

/// KEDA's operator and its HPA.
pub struct Keda {
    object: ScaledObject,
    trigger: Metric,
    hpa: Reconciler<'static>,
    polls: Moments,
    /// When the trigger was last active.
    active_at: Option<Time>,
    reading: Reading,
    words: Option<String>,
}

impl Keda {
    /// With this object, whose trigger is the only metric of the HPA that is given, and the settings of
    /// Kubernetes' controller.
    #[must_use]
    pub fn new(
        object: ScaledObject,
        mut hpa: Autoscaler,
        trigger: Metric,
        settings: Settings,
    ) -> Keda {
        hpa.metrics = vec![trigger.clone()];
        hpa.min_replicas = object.min.max(1);
        hpa.max_replicas = object.max;
        Keda {
            object,
            trigger,
            hpa: Reconciler::new(hpa, settings),
            polls: Moments::never(),
            active_at: None,
            reading: Reading::Empty,
            words: None,
        }
    }

    /// The activation loop.
    fn poll(&mut self, world: &World<'_>) -> Option<i32> {
        self.polls.advance();
        world.read(&self.trigger, ShareOf::Requests, &mut self.reading);
        let value = match &self.reading {
            Reading::Series { values, .. } => {
                values.iter().map(|Milli(value)| *value as f64 / 1000.0).sum()
            }
            Reading::Total { value: Milli(value), .. } => *value as f64 / 1000.0,
            // A trigger that fails is neither active nor counted as inactive.
            _ => return None,
        };
        let now = world.now;
        let is_active = value > self.object.activation;
        if is_active {
            self.active_at = Some(now);
        }
        let since = *self.active_at.get_or_insert(now);
        let replicas = world.scale().spec_replicas;
        if replicas == 0 && is_active {
            self.words = Some(format!("the trigger is active at {value:.1}: up from zero"));
            return Some(self.object.min.max(1));
        }
        let cooled = since.after(seconds(self.object.cooldown_seconds)) < now;
        if replicas > 0 && self.object.min == 0 && !is_active && cooled {
            self.words = Some("the trigger was inactive for the cooldown period".to_owned());
            return Some(0);
        }
        None
    }
}

impl Policy for Keda {
    fn needs(&self) -> Needs {
        Needs::of(std::slice::from_ref(&self.trigger))
    }

    fn begin(&mut self, plan: &Plan) {
        self.hpa.begin(plan);
        let period = seconds(self.object.polling_seconds);
        self.polls = Moments { period, next: plan.start.after(period) };
    }

    fn next_due(&self) -> Time {
        self.polls.next.min(self.hpa.next_due())
    }

    fn decide(&mut self, world: &World<'_>) -> Option<i32> {
        self.words = None;
        if self.polls.next <= world.now
            && let Some(replicas) = self.poll(world)
        {
            return Some(replicas);
        }
        if self.hpa.next_due() <= world.now { self.hpa.decide(world) } else { None }
    }

    fn explain(&self) -> Vec<String> {
        match &self.words {
            Some(words) => vec![words.clone()],
            None => self.hpa.explain(),
        }
    }
}
