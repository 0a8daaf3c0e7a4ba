//! Conditions that no rule knows, in the form of an HPA's status: what is in the way of an object.

use super::{CONFLICT_CONDITION, NewStatus};
use podscale_api::hpa::v2::Condition;
use podscale_api::time::Timestamp;
use podscale_core::Time;

/// Puts the condition about another controller or autoscaler in the place of one that is there; without a
/// conflict there is none.
pub(super) fn set_conflict(conditions: &mut Vec<Condition>, status: &NewStatus<'_>) {
    match *status {
        NewStatus::Decided { .. } => conditions.retain(|c| c.r#type != CONFLICT_CONDITION),
        NewStatus::Conflict { reason, message, now, .. } => {
            set(conditions, condition(CONFLICT_CONDITION, "True", (reason, message), now));
        }
    }
}

/// Puts a condition in the place of the one of its name, or at the end. Its time moves only if its status does.
pub(super) fn set(conditions: &mut Vec<Condition>, new: Condition) {
    match conditions.iter_mut().find(|condition| condition.r#type == new.r#type) {
        None => conditions.push(new),
        Some(stored) => {
            let since = stored.last_transition_time.filter(|_| stored.status == new.status);
            let last_transition_time = since.or(new.last_transition_time);
            *stored = Condition { last_transition_time, ..new };
        }
    }
}

/// A condition that has had this status since now.
pub(super) fn condition(
    name: &str,
    status: &str,
    (reason, message): (&str, &str),
    now: Time,
) -> Condition {
    Condition {
        r#type: name.to_owned(),
        status: status.to_owned(),
        last_transition_time: Some(Timestamp(now)),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: None,
    }
}
