//! Asks Prometheus: instant queries and series over its HTTP API, within deadlines and with bounded answers.
//!
//! [`answer`] reads what Prometheus says and is a pure function of bytes; [`Client`] sends requests;
//! [`Queries`] lets all who ask the same share one answer.

pub mod answer;
mod client;
mod credentials;
mod error;
mod queries;
mod tls;

pub use answer::{Answer, Sample, SeriesShape, Vector};
pub use client::{Client, Config};
pub use credentials::Credentials;
pub use error::{PrometheusError, SetupError};
pub use queries::{Queries, Shared};
pub use tls::Tls;

#[cfg(test)]
mod tests;
