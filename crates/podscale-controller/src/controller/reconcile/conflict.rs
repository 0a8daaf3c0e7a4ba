//! Why Podscale does not act on an object: another controller or another autoscaler is in the way.

use super::super::index::{ReconcileState, same_target_message};
use super::super::ownership::{Management, conflict_message};
use crate::dialect::{CONFLICT_REASON, Managed, TARGET_TAKEN};

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
