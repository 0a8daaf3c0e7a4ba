//! Event sources: what KEDA calls scalers. A trigger is understood ([`parse`]), connected ([`connect`]) and then
//! polled ([`Scaler::poll`]). Each source is one file in `sources/` and one feature.
//!
//! Every call has a deadline. Triggers of the same server and credentials share its connections; one question
//! serves all who ask the same; a server that fails opens a circuit breaker of its own. A trigger at rest is a
//! small value: no thread, no task. Nothing here knows Kubernetes' objects or the controller: what some sources
//! need of the cluster, they ask of a [`Cluster`].

// A build with some of the sources has no use for all that they share.
#![cfg_attr(not(feature = "all"), allow(dead_code))]

mod address;
#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "azure")]
mod azure;
mod context;
#[cfg(feature = "gcp")]
mod gcp;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "hmac")]
mod hmac;
#[cfg(feature = "http-client")]
mod http;
mod identity;
#[cfg(feature = "kerberos")]
mod kerberos;
mod metadata;
#[cfg(feature = "push")]
mod push;
#[cfg(feature = "redis")]
mod redis;
mod scaler;
mod secret;
mod server;
mod sources;
#[cfg(feature = "streams")]
mod stream;
#[cfg(test)]
mod tests;
#[cfg(feature = "tls")]
mod tls;
mod trigger;
#[cfg(feature = "http-client")]
pub mod vault;

pub use context::{Clock, Cluster, Context, Endpoint, PodPlace, Variables};
pub use identity::{AwsIdentity, AzureIdentity, Federation, Identity};
pub use metadata::{MetadataErrors, Problem, is_file};
pub use scaler::{Parsed, Scaler, TargetField};
pub use secret::Secret;
pub use sources::{KINDS, connect, parse, parse_alone};
pub use trigger::{
    Metric, MetricType, ResourceTarget, ServerKey, TriggerError, TriggerSpec, TriggerValue,
};
