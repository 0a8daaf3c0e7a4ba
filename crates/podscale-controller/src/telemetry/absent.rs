//! Stands for telemetry in programs that are built without it.

use super::{Arguments, BoxedLayer, TelemetryError};
use crate::controller::observer::Observer;
use crate::metrics::Metrics;
use std::sync::Arc;
use tracing_subscriber::EnvFilter;

/// Nothing is sent anywhere.
pub struct Telemetry;

impl Telemetry {
    /// Exports nothing, and refuses to if that was asked for.
    ///
    /// # Errors
    /// A collector is named.
    pub fn start(arguments: &Arguments, _metrics: &Metrics) -> Result<Telemetry, TelemetryError> {
        if arguments.endpoint().is_none() {
            return Ok(Telemetry);
        }
        let problem = "this program was built without telemetry; build it with --features otlp";
        Err(TelemetryError { origin: "--otlp-endpoint".to_owned(), problem: problem.to_owned() })
    }

    /// Nothing listens.
    #[must_use]
    pub fn layers(&self, _filter: impl Fn() -> EnvFilter) -> Vec<BoxedLayer> {
        Vec::new()
    }

    /// Nothing observes.
    #[must_use]
    pub fn observer(&self) -> Option<Arc<dyn Observer>> {
        None
    }

    /// There is nothing to send.
    pub fn finish(self) {}
}
