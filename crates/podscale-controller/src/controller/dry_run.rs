//! The dry run: a layer around the pass. It withholds every write ([`withheld`]) and compares what
//! another controller wrote with what would have been written. The pass does not know of it.
//!
//! The two decide at different moments, so what they see is never quite the same. A disagreement is
//! reported only where the other one decided otherwise on the same; `docs/run.md` has the rules,
//! [`Comparison`] applies them.

mod attempt;
mod comparison;
mod verdict;

pub(crate) use attempt::Attempt;
pub(crate) use comparison::Comparison;
use verdict::{Reason, Verdict};

use super::recalled::Recalled;
use crate::dialect::{Key, Managed, WireObject};
use crate::metrics::Metrics;
use podscale_api::pod::Pod;
use podscale_core::snapshot::Scale;
use podscale_core::status::StoredMetric;
use podscale_core::{Autoscaler, Time, Withheld};
use std::sync::Arc;

/// What another controller wrote into a status.
#[derive(Clone, Debug)]
pub(crate) struct ObservedWrite {
    /// The object with the status that it overwrote.
    before: Arc<dyn WireObject>,
    /// The size that it found.
    found: i32,
    /// How many pods there were at our last attempt, if it has changed the size since.
    existed: Option<i32>,
    /// The size that it chose.
    desired: i32,
    /// When it changed the size, if it did with this write.
    rescaled: Option<Time>,
    /// What it saw of the metrics.
    metrics: Vec<StoredMetric>,
    /// The generation of the object that it decided on.
    generation: Option<i64>,
}

impl ObservedWrite {
    /// What was written, if the status has changed.
    pub(crate) fn between(before: &Managed, after: &Managed) -> Option<ObservedWrite> {
        let same_object = before.uid() == after.uid();
        if !same_object || before.wire.has_status_of(&*after.wire) {
            return None;
        }
        let (old, new) = (before.wire.status(), after.wire.status());
        let moved = new.last_scale != old.last_scale;
        Some(ObservedWrite {
            before: Arc::clone(&before.wire),
            found: new.current_replicas,
            existed: None,
            desired: new.desired_replicas,
            rescaled: new.last_scale.filter(|_| moved),
            metrics: new.metrics,
            generation: new.observed_generation,
        })
    }

    /// The object as the other controller found it.
    pub(crate) fn rewind(&self, managed: &Managed) -> Managed {
        let wire = managed.wire.with_status_of(&*self.before);
        Managed { wire: wire.into(), ..managed.clone() }
    }

    /// The target's size as the other controller found it: it has been changed since.
    pub(crate) fn rewind_scale(&self, scale: &mut Scale) {
        scale.spec_replicas = self.found;
        scale.status_replicas = self.existed.unwrap_or(scale.status_replicas);
    }

    /// Whether a pod existed before the size was changed.
    pub(crate) fn existed_before(&self, pod: &Pod) -> bool {
        self.rescaled.is_none_or(|at| pod.status.start_time.is_some_and(|start| start.0 < at))
    }

    /// Adds the change of size to a history as if it had been our own.
    fn commit(&self, autoscaler: &Autoscaler, recalled: &mut Recalled) {
        if let Some(at) = self.rescaled
            && self.found != self.desired
        {
            let behavior = autoscaler.behavior.as_ref();
            recalled.history.scaled(behavior, self.found, self.desired, at);
        }
    }
}

/// What a dry run remembers of a decision: nothing that was decided on other values than the other
/// controller's, and every change of size that one made.
pub(super) fn remembered(
    before: &Recalled,
    learned: Recalled,
    attempt: &Attempt,
    observed: Option<&ObservedWrite>,
    autoscaler: &Autoscaler,
) -> Recalled {
    let mut recalled = if attempt.same_inputs { learned } else { before.clone() };
    if let Some(observed) = observed {
        observed.commit(autoscaler, &mut recalled);
    }
    recalled
}

/// Why nothing is written, if this is a dry run.
pub(super) fn withheld(dry_run: bool) -> Option<Withheld> {
    dry_run.then_some(Withheld::DryRun)
}

/// Reports what a comparison says, as far as it is worth it.
pub(super) fn report(key: &Key, verdict: Verdict, metrics: &Metrics) {
    match verdict {
        Verdict::Agreed => metrics.compared("agreed"),
        Verdict::Disagreed(disagreement) => {
            metrics.compared("disagreed");
            tracing::warn!(autoscaler = %key, "{disagreement}");
        }
        Verdict::Unknown(reason) => {
            metrics.compared("unknown");
            if reason == Reason::ValuesRepeatedly {
                tracing::warn!(autoscaler = %key, "cannot be compared: {reason}");
            } else {
                tracing::debug!(autoscaler = %key, "a choice cannot be judged: {reason}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
