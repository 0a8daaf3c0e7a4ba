//! Why a broker gives no answer.

use crate::trigger::TriggerError;
use std::io;
use std::sync::Arc;

/// That a broker cannot be reached.
pub(super) fn unreachable(server: &Arc<str>, error: &io::Error) -> TriggerError {
    TriggerError::unreachable(server.clone(), error.to_string())
}

/// What a code of an answer means.
///
/// # Errors
/// It is not that all went well.
pub(super) fn check(server: &Arc<str>, tried: &str, code: i16) -> Result<(), TriggerError> {
    let server = server.clone();
    let name = match code {
        0 => return Ok(()),
        3 => "UNKNOWN_TOPIC_OR_PARTITION",
        5 => "LEADER_NOT_AVAILABLE",
        6 => "NOT_LEADER_OR_FOLLOWER",
        14 => "COORDINATOR_LOAD_IN_PROGRESS",
        15 => "COORDINATOR_NOT_AVAILABLE",
        16 => "NOT_COORDINATOR",
        29 => "TOPIC_AUTHORIZATION_FAILED",
        30 => "GROUP_AUTHORIZATION_FAILED",
        33 => "UNSUPPORTED_SASL_MECHANISM",
        35 => "UNSUPPORTED_VERSION",
        58 => "SASL_AUTHENTICATION_FAILED",
        _ => "see the error codes of Kafka's protocol",
    };
    let problem = format!("error {tried}: {name} ({code})").into();
    Err(match code {
        29 | 30 | 33 | 58 => TriggerError::Unauthorized { server, problem },
        _ => TriggerError::Answer(problem),
    })
}
