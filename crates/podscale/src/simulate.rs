//! Simulations of autoscaler objects: from objects and scenarios to plans that `podscale-sim` runs, and
//! from runs to Recordings.

pub mod course;
pub mod demand;
pub mod edit;
pub mod jobs;
pub mod model;
pub mod objects;
pub mod record;
pub mod tune;

pub use course::Course;
pub use demand::Recovered;
pub use jobs::TriedJobs;
pub use model::ModelOptions;
pub use objects::{InputError, Objects};

use podscale_controller::dialect::pod_autoscaler::POD_AUTOSCALER;
use podscale_controller::dialect::read::Understood;
use podscale_controller::dialect::scaled_object::SCALED_OBJECT;
use podscale_controller::settings::span;
use podscale_controller::triggers::offline::TriggerTarget;
use podscale_core::{Autoscaler, Settings, Time};
use podscale_sim::policy::Reconciler;
use podscale_sim::{Plan, PlanError, Run, simulate, simulate_jobs};
use serde_json::Value;

/// When simulated time begins: 2000-01-01T00:00:00Z, so that the same run always looks the same.
pub const START: Time = Time(946_684_800_000_000);

/// One autoscaler object with all that is needed to simulate it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The object, and how it was understood.
    pub object: Tried,
    /// The settings of the controller.
    pub settings: Settings,
    /// What its target is like and where it runs; the load is still to be given.
    pub plan: Plan,
    /// What had to be assumed, in sentences.
    pub notes: Vec<String>,
}

/// An object that is tried.
#[derive(Clone, Debug)]
pub enum Tried {
    /// One that gives its target a size.
    Scale(Understood),
    /// A ScaledJob, which creates Jobs that end by themselves.
    Jobs(Box<TriedJobs>),
}

impl Tried {
    /// The object in the newest version of its kind.
    #[must_use]
    pub fn written(&self) -> &Value {
        match self {
            Tried::Scale(understood) => &understood.object,
            Tried::Jobs(jobs) => &jobs.object.object,
        }
    }

    /// Where its triggers have their targets.
    #[must_use]
    pub fn targets(&self) -> &[TriggerTarget] {
        match self {
            Tried::Scale(understood) => &understood.targets,
            Tried::Jobs(jobs) => &jobs.object.targets,
        }
    }
}

impl Subject {
    /// What the object means; of a ScaledJob, its bounds and what its triggers measure.
    #[must_use]
    pub fn autoscaler(&self) -> &Autoscaler {
        match &self.object {
            Tried::Scale(understood) => &understood.managed.model,
            Tried::Jobs(jobs) => &jobs.model,
        }
    }

    /// The namespace and the name of the object.
    #[must_use]
    pub fn name(&self) -> String {
        let Autoscaler { namespace, name, .. } = self.autoscaler();
        format!("{namespace}/{name}")
    }

    /// Runs a plan, decided by the object.
    ///
    /// # Errors
    /// The plan makes no sense.
    pub fn run(&self, plan: &Plan) -> Result<Run, PlanError> {
        let plan = self.seen(plan);
        match &self.object {
            Tried::Scale(understood) => simulate(&plan, &mut self.policy(understood)),
            Tried::Jobs(jobs) => simulate_jobs(&plan, &jobs.policy, None),
        }
    }

    /// Runs a plan and follows the size: of a ScaledJob, how many unfinished Jobs there are after each poll. The plan keeps
    /// changes.
    ///
    /// # Errors
    /// The plan makes no sense.
    pub fn followed(&self, plan: &Plan) -> Result<(Run, Course), PlanError> {
        match &self.object {
            Tried::Scale(_) => {
                let run = self.run(plan)?;
                let course = Course::of_changes(&run, plan);
                Ok((run, course))
            }
            Tried::Jobs(jobs) => {
                let mut course = Course::new(plan.start, jobs.policy.inherited.jobs.running);
                let run = simulate_jobs(&self.seen(plan), &jobs.policy, Some(&mut course))?;
                Ok((run, course))
            }
        }
    }

    /// A plan as the object finds it: the sources of a PodAutoscaler and the triggers of KEDA's objects are asked directly.
    #[must_use]
    pub fn seen(&self, plan: &Plan) -> Plan {
        let asks = match &self.object {
            Tried::Jobs(_) => true,
            Tried::Scale(understood) => {
                let kind = understood.managed.key.kind.name;
                kind == POD_AUTOSCALER.name || kind == SCALED_OBJECT.name
            }
        };
        match asks {
            true => Plan { environment: plan.environment.asked_directly(), ..plan.clone() },
            false => plan.clone(),
        }
    }

    /// Decides by an object that gives its target a size.
    #[must_use]
    pub fn policy<'o>(&self, object: &Understood) -> Reconciler<'o> {
        let period = object.managed.wire.sync_period();
        let reconciler = Reconciler::new((*object.managed.model).clone(), self.settings);
        reconciler.every(period.map(span)).active_above(object.activations.clone())
    }
}
