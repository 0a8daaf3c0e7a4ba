//! A trigger that is understood, and what polls it.

use crate::context::Context;
use crate::trigger::{Metric, MetricType, ServerKey, TriggerError, TriggerValue};
use futures::future::BoxFuture;
use std::fmt;
use tokio::sync::watch;
use tokio::time::Instant;

/// Asks one event source for one trigger.
pub trait Scaler: Send + Sync {
    /// What the trigger gives now, or gave somebody else a moment ago. Empty where nothing is polled.
    ///
    /// # Errors
    /// The source did not answer before the deadline, or not with a number.
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>>;

    /// What the source says that it scales by; none where the trigger says it by itself.
    ///
    /// # Errors
    /// As [`Scaler::poll`].
    fn metrics(
        &self,
        _deadline: Instant,
    ) -> BoxFuture<'_, Result<Option<Vec<Metric>>, TriggerError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Changes whenever the source says by itself that there is something to do; none if it does not.
    fn notifications(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// A trigger that is understood: nothing was asked yet.
#[derive(Debug)]
pub struct Parsed {
    /// What it scales by.
    pub metric: Metric,
    /// Where its target is, if its metadata have one.
    pub target_field: Option<TargetField>,
    /// The trigger is active while its value is above this.
    pub activation: f64,
    /// Which server it asks; none where nothing is asked.
    pub server: Option<ServerKey>,
    /// What has no effect, or not the one that was meant, each with what to do.
    pub warnings: Vec<String>,
    pub(crate) settings: Box<dyn Settings>,
}

/// The field of a trigger's metadata that says how much one pod can bear, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetField {
    /// Its name.
    pub name: &'static str,
    /// Whether it takes nothing but whole numbers.
    pub is_whole: bool,
}

impl Parsed {
    /// The name of its metric: `s0-…`, or that of a resource; empty if the source names it.
    #[must_use]
    pub fn metric_name(&self) -> &str {
        match &self.metric {
            Metric::External { name, .. } => name,
            Metric::Resource { resource, .. } => resource,
            Metric::Told { .. } => "",
        }
    }
}

/// What a source needs to know for polling; each has its own.
pub(crate) trait Settings: Send + Sync + fmt::Debug {
    /// Makes the scaler. Connects to nothing yet.
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError>;
}

/// What every scaler knows of its trigger.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The name of its metric.
    pub(crate) metric: Box<str>,
    /// How its value is compared with its target.
    pub(crate) metric_type: MetricType,
    /// The trigger is active while its value is above this.
    pub(crate) activation: f64,
}

impl About {
    /// A value, which is active if it is above the activation.
    pub(crate) fn value(&self, value: f64) -> Vec<TriggerValue> {
        self.value_and_activity(value, value > self.activation)
    }

    /// A value whose activity follows other rules.
    pub(crate) fn value_and_activity(&self, value: f64, active: bool) -> Vec<TriggerValue> {
        vec![TriggerValue { metric_name: self.metric.to_string(), value: in_milli(value), active }]
    }
}

/// Values of triggers have three decimals; what is no amount is none.
pub(crate) fn in_milli(value: f64) -> f64 {
    // A negative zero is none either.
    if !value.is_finite() || value <= 0.0 {
        return 0.0;
    }
    let rounded = (value * 1000.0).round() / 1000.0;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_decimals_and_are_amounts() {
        for (value, expected) in [
            (0.0_f64, 0.0_f64),
            (1.2344, 1.234),
            (1.2346, 1.235),
            (-1.0, 0.0),
            (-0.0, 0.0),
            (f64::NAN, 0.0),
            (f64::INFINITY, 0.0),
            (1e300, 1e300),
        ] {
            assert_eq!(in_milli(value).to_bits(), expected.to_bits(), "{value}");
        }
    }
}
