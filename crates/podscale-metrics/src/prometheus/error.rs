//! Why Prometheus gave no values, each case with its own text.

use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// Why there is no answer, or none that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrometheusError {
    /// Prometheus understood the request and says why it has no answer: a query that is wrong (400), cannot
    /// be computed (422), takes too long or is not taken at all (503).
    #[error("Prometheus answered {code} {kind}: {message}")]
    Refused {
        /// The HTTP status code.
        code: u16,
        /// The type of the error, such as `bad_data` or `execution`.
        kind: Arc<str>,
        /// What Prometheus says.
        message: Arc<str>,
    },
    /// Whoever answered gave a status and no answer of Prometheus' form, as proxies do.
    #[error("answered {code}{}", about(text))]
    Status {
        /// The HTTP status code.
        code: u16,
        /// The beginning of the answer, in one line.
        text: Arc<str>,
    },
    /// It wants to be asked elsewhere, which could send credentials anywhere.
    #[error("answered {code} and names another address, {location:?}: configure that one")]
    Redirect {
        /// The HTTP status code.
        code: u16,
        /// Where it points to.
        location: Arc<str>,
    },
    /// The answer is not one of Prometheus.
    #[error("the answer is not one of Prometheus' API: {0}")]
    NotPrometheus(Arc<str>),
    /// The query gives something else than a value for each series.
    #[error("the query gives a {kind}, not one value for each series{}", instead(kind))]
    Type {
        /// What it gives.
        kind: Arc<str>,
    },
    /// The answer is too large.
    #[error("the answer is larger than {0} bytes; let the query or the rule select less")]
    TooLarge(usize),
    /// The answer has too many series.
    #[error("the answer has more than {0} series; let the query or the rule select less")]
    TooManySeries(usize),
    /// There was no answer.
    #[error("cannot be reached: {0}")]
    Unreachable(Arc<str>),
    /// The answer took too long.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Late(Duration),
    /// The request could not be made, for instance because credentials cannot be read.
    #[error("cannot be asked: {0}")]
    Setup(Arc<str>),
}

impl PrometheusError {
    /// One word for metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            PrometheusError::Refused { code: 503, .. }
            | PrometheusError::Status { code: 503, .. } => "overloaded",
            PrometheusError::Status { code: 401 | 403, .. }
            | PrometheusError::Refused { code: 401 | 403, .. } => "unauthorized",
            PrometheusError::Refused { .. } => "refused",
            PrometheusError::Status { .. } | PrometheusError::Redirect { .. } => "status",
            PrometheusError::NotPrometheus(_) => "not_prometheus",
            PrometheusError::Type { .. } => "type",
            PrometheusError::TooLarge(_) | PrometheusError::TooManySeries(_) => "too_large",
            PrometheusError::Unreachable(_) => "unreachable",
            PrometheusError::Late(_) => "timeout",
            PrometheusError::Setup(_) => "setup",
        }
    }

    /// The HTTP status code, if there was one that says what is wrong.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            PrometheusError::Refused { code, .. }
            | PrometheusError::Status { code, .. }
            | PrometheusError::Redirect { code, .. } => Some(*code),
            _ => None,
        }
    }
}

fn about(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn instead(kind: &str) -> &'static str {
    match kind {
        "matrix" => "; use rate() or another function over the range",
        _ => "",
    }
}

/// Why a client cannot be made.
#[derive(Debug, Error)]
#[error("{what}: {problem}")]
pub struct SetupError {
    /// What cannot be used.
    pub what: String,
    /// Why.
    pub problem: String,
}

impl SetupError {
    pub(super) fn new(what: impl Into<String>, problem: impl ToString) -> SetupError {
        SetupError { what: what.into(), problem: problem.to_string() }
    }
}
