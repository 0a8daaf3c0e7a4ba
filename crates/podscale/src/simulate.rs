//! Simulations of autoscaler objects: from objects and scenarios to plans that `podscale-sim` runs, and
//! from runs to Recordings.

pub mod demand;
pub mod edit;
pub mod model;
pub mod objects;
pub mod record;
pub mod tune;

pub use demand::Recovered;
pub use model::ModelOptions;
pub use objects::{InputError, Objects};
pub use record::RunRecorder;

use podscale_controller::dialect::pod_autoscaler::POD_AUTOSCALER;
use podscale_controller::dialect::read::Understood;
use podscale_controller::dialect::scaled_object::SCALED_OBJECT;
use podscale_controller::settings::span;
use podscale_core::{Autoscaler, Settings, Time};
use podscale_sim::Plan;
use podscale_sim::policy::Reconciler;

/// When simulated time begins: 2000-01-01T00:00:00Z, so that the same run always looks the same.
pub const START: Time = Time(946_684_800_000_000);

/// One autoscaler object with all that is needed to simulate it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The object, and how it was understood.
    pub object: Understood,
    /// The settings of the controller.
    pub settings: Settings,
    /// What its target is like and where it runs; the load is still to be given.
    pub plan: Plan,
    /// What had to be assumed, in sentences.
    pub notes: Vec<String>,
}

impl Subject {
    /// What the object means.
    #[must_use]
    pub fn autoscaler(&self) -> &Autoscaler {
        &self.object.managed.model
    }

    /// The namespace and the name of the object.
    #[must_use]
    pub fn name(&self) -> String {
        self.object.managed.key.to_string()
    }

    /// A plan as the object finds it: the sources of a PodAutoscaler and the triggers of a ScaledObject are asked directly.
    #[must_use]
    pub fn seen(&self, plan: &Plan) -> Plan {
        let kind = self.object.managed.key.kind.name;
        match kind == POD_AUTOSCALER.name || kind == SCALED_OBJECT.name {
            true => Plan { environment: plan.environment.asked_directly(), ..plan.clone() },
            false => plan.clone(),
        }
    }

    /// Decides by the object.
    #[must_use]
    pub fn policy<'o>(&self) -> Reconciler<'o> {
        let period = self.object.managed.wire.sync_period();
        let reconciler = Reconciler::new(self.autoscaler().clone(), self.settings);
        reconciler.every(period.map(span)).active_above(self.object.activations.clone())
    }
}
