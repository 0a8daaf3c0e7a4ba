//! What a trigger is: as its object has it, as it is understood, and what it answers.

use crate::identity::Identity;
use crate::secret::Secret;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A trigger of an object, with everything that it refers to looked up.
#[derive(Clone, Debug, Default)]
pub struct TriggerSpec {
    /// Its type, such as `redis-streams`.
    pub kind: String,
    /// Its metadata, as the object has it.
    pub metadata: BTreeMap<String, String>,
    /// What its authentication gives, by parameter.
    pub auth: BTreeMap<String, Secret>,
    /// The environment of the container that `*FromEnv` fields refer to.
    pub env: BTreeMap<String, Secret>,
    /// Whose identity in a cloud it has, if its authentication names one.
    pub identity: Option<Identity>,
    /// Its metric type; empty if the object does not say.
    pub metric_type: String,
    /// The namespace of the object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// Which trigger of the object it is, from 0.
    pub index: usize,
}

/// How a value is compared with its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetricType {
    /// The value of each pod: all pods together share it.
    #[default]
    AverageValue,
    /// The value as it is.
    Value,
    /// Percent of what pods request.
    Utilization,
}

impl fmt::Display for MetricType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MetricType::AverageValue => "AverageValue",
            MetricType::Value => "Value",
            MetricType::Utilization => "Utilization",
        })
    }
}

/// What a trigger scales by.
#[derive(Clone, Debug, PartialEq)]
pub enum Metric {
    /// A number that is polled.
    External {
        /// Its name, `s0-…`, as the external metrics API has it.
        name: String,
        /// How it is compared with its target.
        metric_type: MetricType,
        /// How much of it one pod can bear, or all of them.
        target: f64,
    },
    /// What the target's pods use of a resource, which the metrics pipeline knows and nobody polls.
    Resource {
        /// `cpu` or `memory`.
        resource: &'static str,
        /// The container that counts; all of a pod if there is none.
        container: Option<String>,
        /// How much they should use.
        target: ResourceTarget,
    },
    /// Numbers that are polled, of which the source says names and targets: [`crate::Scaler::metrics`].
    Told {
        /// How they are compared with their targets.
        metric_type: MetricType,
        /// Which trigger of the object it is: their names begin with it.
        index: usize,
    },
}

/// How much pods should use of a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceTarget {
    /// Percent of what they request.
    Utilization(i32),
    /// So much each, on average.
    AverageValue(podscale_api::Quantity),
}

/// Which server a trigger asks, and as whom. Triggers with the same one share connections, answers and a
/// circuit breaker.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerKey {
    address: Arc<str>,
    /// A digest of the credentials and options of the connection: secrets are no keys.
    digest: [u8; 16],
}

impl ServerKey {
    /// A server by its kind and address, and what tells connections to it apart.
    #[must_use]
    pub fn new(kind: &str, address: &str, credentials: &[&str]) -> ServerKey {
        use sha2::{Digest, Sha256};
        let mut hasher = Sha256::new();
        for part in [kind, address].iter().chain(credentials) {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut digest = [0; 16];
        digest.copy_from_slice(&hasher.finalize()[..16]);
        ServerKey { address: address.into(), digest }
    }

    /// Where the server is, without credentials.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerKey({})", self.address)
    }
}

/// What a trigger answers.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerValue {
    /// Which metric it is the value of.
    pub metric_name: String,
    /// The value, with three decimals.
    pub value: f64,
    /// Whether there is something to do.
    pub active: bool,
}

/// What rustls says before the name of an alert, and the names of those about the certificate of who asks. What has
/// gone through HTTP/2 is nothing but a text.
const ALERT: &str = "received fatal alert: ";
const REFUSED_CERTIFICATE: [&str; 8] = [
    "AccessDenied",
    "BadCertificate",
    "CertificateExpired",
    "CertificateRequired",
    "CertificateRevoked",
    "CertificateUnknown",
    "UnknownCA",
    "UnsupportedCertificate",
];

/// Why a trigger gives no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TriggerError {
    /// It cannot be used as it is.
    #[error("{0}")]
    Settings(Arc<str>),
    /// The source cannot be reached.
    #[error("{server} cannot be reached: {problem}")]
    Unreachable {
        /// Which server.
        server: Arc<str>,
        /// Why.
        problem: Arc<str>,
    },
    /// There was no answer in time.
    #[error("{0} did not answer in time")]
    Late(Arc<str>),
    /// The source refuses the credentials.
    #[error("{server} refuses the credentials: {problem}")]
    Unauthorized {
        /// Which server.
        server: Arc<str>,
        /// What it says.
        problem: Arc<str>,
    },
    /// The source answers that it cannot, or with something that is no value.
    #[error("{0}")]
    Answer(Arc<str>),
    /// The source failed a moment ago and is left alone for a while. It says what happened then, and nothing that
    /// changes: events with the same text are one.
    #[error("{0}")]
    Open(Arc<str>),
}

impl TriggerError {
    /// An answer that is no value.
    pub(crate) fn answer(problem: impl Into<Arc<str>>) -> TriggerError {
        TriggerError::Answer(problem.into())
    }

    /// That a server cannot be reached, or that it refuses: over TLS it hangs up on those whose certificate it does not
    /// accept, and says so by an alert.
    pub(crate) fn unreachable(server: impl Into<Arc<str>>, problem: String) -> TriggerError {
        let (server, alert) = (server.into(), problem.split_once(ALERT).map(|(_, alert)| alert));
        if alert.is_some_and(|alert| REFUSED_CERTIFICATE.contains(&alert.trim_end())) {
            let problem = format!("the client's certificate: {problem}").into();
            return TriggerError::Unauthorized { server, problem };
        }
        TriggerError::Unreachable { server, problem: problem.into() }
    }

    /// Whether the server is at fault, and not what it was asked.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        matches!(self, TriggerError::Unreachable { .. } | TriggerError::Late(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_about_certificates_are_refusals() {
        let check = |problem: &str, is_outage| {
            let error = TriggerError::unreachable("a:1", problem.to_owned());
            assert_eq!(error.is_outage(), is_outage, "{error}");
        };
        check("received fatal alert: UnknownCA", false);
        check("received fatal alert: CertificateRequired", false);
        check("received fatal alert: InternalError", true);
        check("connection refused", true);
    }

    #[test]
    fn keys_of_servers_tell_credentials_apart_without_holding_them() {
        let key = |credentials: &[&str]| ServerKey::new("redis", "a:1", credentials);
        assert_eq!(key(&["u", "p"]), key(&["u", "p"]));
        assert_ne!(key(&["u", "p"]), key(&["up", ""]));
        assert_ne!(key(&["u"]), key(&["v"]));
        assert_eq!(format!("{:?}", key(&["hunter2"])), "ServerKey(a:1)");
    }
}
