//! An autoscaler right after a decision: kept as values, put into words only when somebody reads it.

mod jobs;
mod size;
mod units;

use super::model::{AutoscalerView, ConditionView, DecisionView, Unit, key_text};
use crate::controller::observer::{Decided, JobsDecided};
use crate::controller::outcome::OutcomeKind;
use crate::dialect::{CONFLICT_CONDITION, Kind};
use jobs::{JOBS, JobsMade};
use podscale_core::model::Bounds;
use podscale_core::{Autoscaler, Decision, Snapshot, Time};
use size::SizeMade;
pub(super) use size::{NO_PODS, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// What the dashboard keeps of a decision. There is one for every autoscaler and hardly ever a
/// reader, so it holds nothing that can be made from the rest.
#[derive(Debug)]
pub struct Picture {
    kind: &'static Kind,
    namespace: Arc<str>,
    name: Arc<str>,
    pub(super) time: Time,
    pub(super) outcome: OutcomeKind,
    pub(super) rescaled: bool,
    pub(super) current: i32,
    pub(super) desired: i32,
    bounds: Bounds,
    found: Option<i32>,
    wanted: Option<i32>,
    pub(super) last_scale: Option<Time>,
    conflict: Option<Box<str>>,
    made: Made,
}

/// What a decision was made of.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are of the larger one")]
enum Made {
    /// About the size of a target.
    Size(SizeMade),
    /// About Jobs.
    Jobs(JobsMade),
}

impl Picture {
    /// Of an object after a pass.
    #[must_use]
    pub fn of(decided: &Decided<'_>) -> Picture {
        let Decided { object, snapshot, outcome, conflict, .. } = decided;
        let picture = Picture::new(object.key.kind, &object.model, snapshot, &outcome.decision);
        Picture { conflict: conflict.map(Into::into), ..picture }
    }

    /// Of an object after a decision about Jobs.
    #[must_use]
    pub fn of_jobs(decided: &JobsDecided<'_>) -> Picture {
        let (key, rules) = (decided.key, decided.rules());
        let running = decided.counts().map(|counts| counts.running);
        let current = running.unwrap_or_default();
        let desired = current.saturating_add(decided.wanted());
        let rescaled = decided.created() > 0;
        Picture {
            kind: key.kind,
            namespace: Arc::clone(&key.namespace),
            name: Arc::clone(&key.name),
            time: decided.now,
            outcome: decided.outcome_kind(),
            rescaled,
            current,
            desired,
            bounds: Bounds { min: rules.min, max: rules.min.saturating_add(rules.max_beside_min) },
            found: running,
            wanted: (desired > current).then_some(desired),
            last_scale: rescaled.then_some(decided.now),
            conflict: decided.conflict.map(Into::into),
            made: Made::Jobs(JobsMade::of(decided)),
        }
    }

    /// Of an object of this kind after a decision whose writes have ended. `autoscaler` is that of the
    /// snapshot.
    #[must_use]
    pub fn new(
        kind: &'static Kind,
        autoscaler: &Arc<Autoscaler>,
        snapshot: &Snapshot<'_>,
        decision: &Decision,
    ) -> Picture {
        let status = decision.status(snapshot);
        Picture {
            kind,
            namespace: Arc::clone(&autoscaler.namespace),
            name: Arc::clone(&autoscaler.name),
            time: snapshot.now,
            outcome: OutcomeKind::of(decision),
            rescaled: decision.rescaled_at.is_some(),
            current: match snapshot.scale {
                Ok(scale) => scale.status_replicas,
                Err(_) => status.current_replicas,
            },
            desired: match decision.desired {
                // Nothing was ever decided, so nothing else is wanted than what is there.
                None if status.desired_replicas == 0 => decision.found.unwrap_or_default(),
                _ => status.desired_replicas,
            },
            bounds: match decision.scheduled(snapshot) {
                Some(scheduled) => scheduled.bounds,
                None => autoscaler.bounds(),
            },
            found: decision.found,
            wanted: decision.rescale.map(|rescale| rescale.to),
            last_scale: status.last_scale,
            conflict: None,
            made: Made::Size(SizeMade {
                kind,
                autoscaler: Arc::clone(autoscaler),
                rescale: decision.rescale,
                conditions: status.conditions.into_boxed_slice(),
                error: decision.error.clone(),
                steps: decision.steps.clone(),
            }),
        }
    }

    /// By what the dashboard knows it.
    pub(super) fn key(&self) -> String {
        key_text(self.kind, &self.namespace, &self.name)
    }

    /// The size that was decided, if it is another one than the target has.
    pub(super) fn wanted(&self) -> Option<i32> {
        self.wanted
    }

    /// The fewest and the most replicas it may set, by the schedule in force if there is one, also while it is idle.
    pub(super) fn bounds(&self) -> (i32, i32) {
        let Bounds { min, max } = self.bounds;
        let extensions = match &self.made {
            Made::Size(made) => made.autoscaler.extensions.as_deref(),
            Made::Jobs(_) => None,
        };
        let idle = extensions.and_then(|extensions| extensions.scale_to_zero);
        (idle.map_or(min, |idle| idle.idle_replicas.min(min)), max)
    }

    /// Which other controller or autoscaler is in the way, if so.
    pub(super) fn conflict(&self) -> Option<&str> {
        self.conflict.as_deref()
    }

    /// Value and goal of each metric.
    pub(super) fn values(&self) -> SmallVec<[(Value, Option<f64>); 1]> {
        match &self.made {
            Made::Size(made) => made.values().collect(),
            Made::Jobs(made) => made.values().collect(),
        }
    }

    /// The autoscaler in words.
    #[must_use]
    pub fn view(&self) -> AutoscalerView {
        let (min, max) = self.bounds();
        let is_known = |condition: &ConditionView| {
            // One that is stored may have ended.
            condition.kind != CONFLICT_CONDITION || self.conflict.is_some()
        };
        let (target, metrics, mut conditions) = match &self.made {
            Made::Size(made) => (made.target(), made.metrics(), made.conditions()),
            Made::Jobs(made) => (JOBS.to_owned(), made.metrics(self.current), made.conditions()),
        };
        conditions.retain(is_known);
        AutoscalerView {
            key: self.key(),
            namespace: self.namespace.to_string(),
            name: self.name.to_string(),
            kind: self.kind.name.to_owned(),
            target,
            min,
            max,
            current: self.current,
            desired: self.desired,
            metrics,
            conditions,
            last_scale: self.last_scale,
            conflict: self.conflict.as_deref().map(str::to_owned),
        }
    }

    /// The decision in words.
    #[must_use]
    pub fn decision(&self) -> DecisionView {
        let from = self.found.unwrap_or(self.current);
        let to = self.wanted().unwrap_or(from);
        DecisionView {
            time: self.time,
            from,
            to,
            rescaled: self.rescaled,
            outcome: self.outcome,
            reason: self.reason(),
            lines: match &self.made {
                Made::Size(made) => made.lines(self.time, self.rescaled),
                Made::Jobs(made) => made.lines(),
            },
        }
    }

    /// The outcome's reason in one line.
    pub(super) fn reason(&self) -> String {
        match &self.made {
            Made::Size(made) => made.reason(self.outcome, self.found, self.time),
            Made::Jobs(made) => made.reason(),
        }
    }
}

#[cfg(test)]
pub(super) mod sample;
#[cfg(test)]
mod tests;
