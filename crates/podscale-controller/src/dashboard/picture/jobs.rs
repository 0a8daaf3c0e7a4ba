//! What the dashboard keeps of a decision about Jobs.

use super::super::model::{ConditionView, MetricState, MetricView, Unit};
use super::size::{Value, whole};
use crate::controller::observer::JobsDecided;
use podscale_api::keda::Condition;
use podscale_core::jobs::{JobTrigger, Load};
use podscale_core::model::Milli;

/// What is scaled, in words.
pub(super) const JOBS: &str = "Jobs";

/// What a decision about Jobs was made of. Unlike steps of passes, its words cannot be made again from little.
#[derive(Debug)]
pub(super) struct JobsMade {
    triggers: Box<[JobTrigger]>,
    conditions: Box<[Condition]>,
    reason: Box<str>,
    lines: Box<[String]>,
}

impl JobsMade {
    pub(super) fn of(decided: &JobsDecided<'_>) -> JobsMade {
        JobsMade {
            triggers: decided.triggers().into(),
            conditions: decided.status.conditions.clone().into_boxed_slice(),
            reason: decided.reason().into(),
            lines: decided.lines().into_boxed_slice(),
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = (Value, Option<f64>)> {
        self.triggers.iter().map(|trigger| match &trigger.answer {
            Ok(load) => (Value::Number(whole(load.amount)), goal(load)),
            Err(_) => (Value::Unread, None),
        })
    }

    /// What each trigger says, with so many unfinished Jobs.
    pub(super) fn metrics(&self, running: i32) -> Vec<MetricView> {
        self.triggers.iter().map(|trigger| metric_view(trigger, running)).collect()
    }

    pub(super) fn conditions(&self) -> Vec<ConditionView> {
        let view = |condition: &Condition| ConditionView {
            kind: condition.r#type.clone(),
            status: condition.status.clone(),
            reason: condition.reason.clone(),
            message: condition.message.clone(),
            since: None,
        };
        self.conditions.iter().map(view).collect()
    }

    pub(super) fn reason(&self) -> String {
        self.reason.to_string()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.to_vec()
    }
}

/// What one Job does of a load, if that is known.
fn goal(load: &Load) -> Option<f64> {
    (load.per_job != Milli(0)).then(|| whole(load.per_job))
}

fn metric_view(JobTrigger { metric, answer }: &JobTrigger, running: i32) -> MetricView {
    let load = answer.as_ref().ok();
    let goal = load.and_then(goal);
    let words = |number: Option<f64>| number.map_or("unknown".to_owned(), |n| Unit::Count.text(n));
    let value = load.map(|load| whole(load.amount));
    let jobs = load.map(|load| if load.active { load.jobs().ceil() } else { 0.0 });
    let running = f64::from(running);
    MetricView {
        name: metric.to_string(),
        unit: Unit::Count,
        value,
        goal,
        current: words(value),
        target: goal.map_or("unknown".to_owned(), |goal| format!("{} per Job", words(Some(goal)))),
        ratio: jobs.filter(|_| running > 0.0).map(|jobs| jobs / running),
        state: match jobs {
            None => MetricState::Unread,
            Some(jobs) if jobs > running => MetricState::Above,
            Some(jobs) if jobs < running => MetricState::Below,
            Some(_) => MetricState::Near,
        },
    }
}
