//! Typed calls of the API server: each within the client's deadline, each error saying what was tried.

use podscale_client::call::DEADLINE;
use std::future::Future;

/// Why a call had no success, or a controller could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The API server refused the call or could not be reached.
    #[error("{what}: {}", reason(source))]
    Api {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: Box<kube::Error>,
    },
    /// The API server gave no answer.
    #[error("{what}: no answer within {} s", DEADLINE.as_secs())]
    Deadline {
        /// What was tried.
        what: String,
    },
    /// An object does not make sense to the controller.
    #[error("{what}: {why}")]
    Object {
        /// Which object.
        what: String,
        /// What is wrong with it.
        why: String,
    },
}

/// The API server's own words if it answered, else the client's.
fn reason(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => other.to_string(),
    }
}

impl CallError {
    /// The HTTP status that the API server answered with, if it did.
    #[must_use]
    pub(crate) fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    fn status(&self) -> Option<&kube::core::Status> {
        match self {
            CallError::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the object had changed since it was read.
    #[must_use]
    pub(crate) fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| status.code == 409 && status.reason != "AlreadyExists")
    }

    /// Whether an object of that name exists already.
    #[must_use]
    pub(crate) fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "AlreadyExists")
    }

    /// Whether the object, or its kind, does not exist.
    #[must_use]
    pub(crate) fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    /// Whether the object is of a shape that the server refuses.
    #[must_use]
    pub(crate) fn is_invalid(&self) -> bool {
        self.status().is_some_and(|status| status.code == 422)
    }

    /// Whether nothing can be created any more since the namespace is being deleted.
    #[must_use]
    pub(crate) fn is_namespace_ending(&self) -> bool {
        self.status().is_some_and(|status| {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
                || (status.code == 403 && status.message.contains("because it is being terminated"))
        })
    }

    /// Whether it is a part of normal life that only needs another try.
    #[must_use]
    pub(crate) fn is_expected(&self) -> bool {
        self.is_conflict() || self.is_already_exists() || self.is_not_found()
    }

    /// The server's message for events and conditions, without what was tried.
    #[must_use]
    pub(crate) fn message(&self) -> String {
        match self {
            CallError::Api { source, .. } => reason(source),
            other => other.to_string(),
        }
    }
}

/// Waits for an answer of the API server within the deadline; `what` is asked for on failure only.
pub(crate) async fn call<T>(
    what: impl FnOnce() -> String,
    answer: impl Future<Output = kube::Result<T>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(DEADLINE, answer).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(source)) => Err(CallError::Api { what: what(), source: Box::new(source) }),
        Err(_) => Err(CallError::Deadline { what: what() }),
    }
}

/// Takes "not found" for success: what was to be deleted is gone.
pub(crate) fn gone_is_fine<T>(result: Result<T, CallError>) -> Result<(), CallError> {
    match result {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
