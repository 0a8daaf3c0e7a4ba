//! Amazon's cloud: who asks, signatures of requests, and roles that somebody takes on for a while.

pub(crate) mod asker;
#[cfg(feature = "kafka")]
pub(crate) mod brokers;
mod identity;
pub(crate) mod signature;
pub(crate) mod signer;
mod sts;
#[cfg(test)]
mod tests;

use crate::secret::Secret;

/// What signatures call Amazon's Prometheus.
pub(crate) const PROMETHEUS: &str = "aps";

/// What requests are signed with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: Secret,
    /// With keys that expire.
    pub(crate) session: Option<Secret>,
}

/// What the names of Amazon's servers for a region end with.
pub(crate) fn domain(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}
