//! Why Podscale does not act on an object: another controller or another autoscaler is in the way.

use super::super::index::{ReconcileState, same_target_message};
use super::super::ownership::{Management, conflict_message};
use super::super::target::Target;
use super::Reconciler;
use crate::dialect::{CONFLICT_REASON, Managed, TARGET_TAKEN};
use crate::time::now;
use podscale_core::snapshot::ScaleError;

/// What is in the way of an object.
pub(super) struct Conflict {
    /// In one word.
    pub(super) reason: &'static str,
    /// Who it is, and what to do about it.
    pub(super) message: String,
}

/// What is in the way of an object, if Podscale does not act on it for that.
pub(super) fn conflict(object: &Managed, state: &ReconcileState) -> Option<Conflict> {
    if state.management == Management::Active {
        return None;
    }
    Some(match &state.precedent {
        Some(other) => {
            let behind = state.behind.as_deref();
            let message = same_target_message(other, behind, &object.model.target);
            Conflict { reason: TARGET_TAKEN, message }
        }
        None => Conflict { reason: CONFLICT_REASON, message: conflict_message(object.metadata()) },
    })
}

impl Reconciler {
    /// Takes a target out of the ownership of its autoscaler, if another controller has put it there. One
    /// that does so again still runs.
    pub(super) async fn disown(
        &self,
        object: &Managed,
        target: &Result<Target, ScaleError>,
        state: &ReconcileState,
    ) {
        if let Ok(target) = target
            && !object.key.kind.is_native()
            && self.withheld(state).is_none()
        {
            let release = self.actor.disown(object, target, state.released.as_deref()).await;
            self.index.released(&object.key, object.uid(), release, now(&self.clock));
        }
    }
}
