//! What is exported to an OpenTelemetry collector, if one is named: a trace of each reconcile, the log,
//! and the metrics. Deciding never waits for it: everything goes through bounded queues to a thread of
//! its own, and what does not fit is dropped and counted. [`DecisionMetrics`] also counts decisions for
//! `/metrics`.
//!
//! Spans, log records and their encoding are those of OpenTelemetry's SDK. Queues and sending are not
//! `opentelemetry-otlp`'s (0.33): its metrics exporter takes only what the SDK's own instruments measured,
//! it counts neither what a full queue drops nor what a collector rejects, its errors do not name the
//! cause, it ignores settings that make no sense, and it does not read the variables of certificates
//! over HTTP. Around all of that little of it would be left.

mod decision_metrics;
mod outcomes;

#[cfg(not(feature = "otlp"))]
mod absent;
#[cfg(feature = "otlp")]
mod batch;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod pipeline;
#[cfg(feature = "otlp")]
mod points;
#[cfg(feature = "otlp")]
mod send;
#[cfg(feature = "otlp")]
mod settings;

#[cfg(not(feature = "otlp"))]
pub use absent::Telemetry;
#[cfg(feature = "otlp")]
pub use export::Telemetry;

pub use decision_metrics::DecisionMetrics;
pub use outcomes::Outcomes;

use clap::Args;
use tracing_subscriber::layer::Layer;
use tracing_subscriber::registry::Registry;

/// A layer that listens to events and spans.
pub type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Flags about telemetry.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Telemetry")]
#[group(id = "telemetry")]
pub struct Arguments {
    /// The collector to send traces, log lines and metrics to, as OTLP over HTTP; without one nothing is sent.
    /// The standard variables OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_HEADERS,
    /// OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER and so on also apply.
    #[arg(long, value_name = "URL", env = "PODSCALE_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,
}

impl Arguments {
    /// Whether these flags can be used, whatever the environment.
    ///
    /// # Errors
    /// The collector cannot be sent to.
    pub fn check(&self) -> Result<(), TelemetryError> {
        #[cfg(feature = "otlp")]
        settings::settings(self.endpoint(), |_| None)?;
        Ok(())
    }

    /// The collector, if one is named; an empty name is none.
    fn endpoint(&self) -> Option<&str> {
        self.otlp_endpoint.as_deref().map(str::trim).filter(|url| !url.is_empty())
    }
}

/// Telemetry cannot be sent as asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct TelemetryError {
    /// The flag or variable that asked for it.
    pub origin: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}
