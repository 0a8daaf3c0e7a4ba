//! Calls of the API server: each within a deadline, each error saying what was tried.

use std::future::Future;
use std::time::Duration;
use thiserror::Error;

/// How long the API server may take to answer; wall-clock time, since it is the network's.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why a call failed.
#[derive(Debug, Error)]
pub enum CallError {
    /// The API server refused it or could not be reached.
    #[error("{what}: {}", reason(source))]
    Api {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: Box<kube::Error>,
    },
    /// There was no answer.
    #[error("{what}: no answer within {} s", DEADLINE.as_secs())]
    Deadline {
        /// What was tried.
        what: String,
    },
}

impl CallError {
    /// The HTTP status that the API server answered with, if it did.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            CallError::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            CallError::Deadline { .. } => None,
        }
    }
}

/// The API server's own words if it answered, else the client's.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

/// Waits for a call, but not for ever.
///
/// # Errors
/// Says what was tried and why it failed.
pub async fn call<T>(
    what: impl FnOnce() -> String,
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(DEADLINE, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(CallError::Api { what: what(), source: Box::new(source) }),
        Err(_) => Err(CallError::Deadline { what: what() }),
    }
}
