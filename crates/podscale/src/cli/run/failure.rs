//! Why the controller could not start.

use super::super::pipeline::PipelineError;
use super::super::{logs, serving};
use podscale_client::connect::ConnectError;
use podscale_client::election::candidate::LeaseTimingsError;
use podscale_controller::admin::AdminError;
use podscale_controller::record::RecordError;
use podscale_controller::telemetry::TelemetryError;
use std::io;

/// Why the controller could not start.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum Failure {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("--admin-address: {0}")]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Log(#[from] logs::LogError),
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    #[error(transparent)]
    LeaseTimings(#[from] LeaseTimingsError),
    #[error("--record: {0}")]
    Record(#[from] RecordError),
    #[error(transparent)]
    Serve(#[from] serving::Failure),
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    #[error("--exclude-namespaces leaves none of those that --namespaces names")]
    NoNamespace,
    #[error("cannot start: {0}")]
    Runtime(io::Error),
}
