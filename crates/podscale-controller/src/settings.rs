//! Reads the values of settings, as flags and annotations give them.

use clap::ValueEnum;
use podscale_api::time::GoDuration;
use podscale_core::Span;
use std::net::SocketAddr;
use std::time::Duration;

/// Where cpu and memory of pods come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ResourceMetrics {
    /// From the cluster's metrics.k8s.io, served by metrics-server or Podscale.
    #[default]
    Api,
    /// From the kubelets, scraped directly.
    Kubelet,
    /// From Prometheus, by the resourceRules of the rules, or without them from the series of kubelets as they
    /// are usually scraped.
    Prometheus,
}

impl ResourceMetrics {
    /// Its name in flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ResourceMetrics::Api => "api",
            ResourceMetrics::Kubelet => "kubelet",
            ResourceMetrics::Prometheus => "prometheus",
        }
    }
}

/// Who decides how many replicas an active target of a ScaledObject has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TriggerMode {
    /// Podscale, as for all other targets.
    #[default]
    Direct,
    /// The cluster's own controller, through an HPA that reads the triggers as external metrics.
    Hpa,
}

impl TriggerMode {
    /// Its name in flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TriggerMode::Direct => "direct",
            TriggerMode::Hpa => "hpa",
        }
    }
}

/// One of the metrics APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MetricsApi {
    /// metrics.k8s.io: the usage of pods and nodes.
    Resource,
    /// custom.metrics.k8s.io: metrics of objects.
    Custom,
    /// external.metrics.k8s.io: metrics that belong to no object.
    External,
}

impl MetricsApi {
    /// Its name in flags.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MetricsApi::Resource => "resource",
            MetricsApi::Custom => "custom",
            MetricsApi::External => "external",
        }
    }
}

/// A duration as Go writes it, such as `90s` or `1m30s`.
///
/// # Errors
/// It is not one, or negative.
pub fn duration(text: &str) -> Result<Duration, String> {
    let GoDuration(nanos) = GoDuration::parse(text).map_err(|error| error.to_string())?;
    let nanos = u64::try_from(nanos).map_err(|_| "a duration cannot be negative".to_owned())?;
    Ok(Duration::from_nanos(nanos))
}

/// A duration as [`duration`] reads it that is longer than nothing.
///
/// # Errors
/// It is not one.
pub fn period(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than nothing".to_owned()),
        period => Ok(period),
    }
}

/// A shorter period would only repeat the same decision.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// How often an object is reconciled.
///
/// # Errors
/// It is not a duration, or too short.
pub fn sync_period(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        period if period < SHORTEST_PERIOD => Err("shorter than 100ms".to_owned()),
        period => Ok(period),
    }
}

/// A share, or a count that need not be whole.
///
/// # Errors
/// It is not a finite number, or negative.
pub fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
        _ => Err("not a number of at least 0, such as 0.1".to_owned()),
    }
}

/// The name of a namespace.
///
/// # Errors
/// Kubernetes has none of that name.
pub fn namespace(text: &str) -> Result<String, String> {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edges = text.starts_with('-') || text.ends_with('-');
    if text.is_empty() || text.len() > 63 || edges || !text.chars().all(letter) {
        return Err("not a name of small letters, digits and dashes".to_owned());
    }
    Ok(text.to_owned())
}

/// The name of an object, which may have several parts with dots between them.
///
/// # Errors
/// Kubernetes has none of that name, or only without what is put behind it.
pub fn name(text: &str) -> Result<String, String> {
    if text.len() > 200 || text.split('.').any(|part| namespace(part).is_err()) {
        return Err("not a name of small letters, digits, dashes and dots".to_owned());
    }
    Ok(text.to_owned())
}

/// Where to listen.
///
/// # Errors
/// It is not an address and a port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let hint = |_| "not an address and a port such as 127.0.0.1:9090 or [::]:9090".to_owned();
    text.parse().map_err(hint)
}

/// A duration as the core counts it.
#[must_use]
pub fn span(duration: Duration) -> Span {
    Span(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}
