//! What the metrics of triggers are for an HPA that reads them: the values that a pass would decide by.

use super::extended::trigger_value;
use crate::history::Memory;
use crate::model::{Metric, MetricRules, Milli};
use crate::snapshot::Reading;
use std::sync::Arc;

/// The value of a trigger, given what its source said: its own, what a formula makes of several, or what stands in for
/// it once it has failed too often. How it fares is remembered.
///
/// # Errors
/// There is none, and why.
pub fn value(
    metric: &Metric,
    rules: &MetricRules,
    reading: &Reading,
    target: Target,
    memory: &mut Memory,
) -> Result<Milli, Arc<str>> {
    trigger_value(metric, rules, reading, (target.replicas, target.ready), memory)
}

/// What is known of the target of an autoscaler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Its size.
    pub replicas: i32,
    /// How many of its pods serve.
    pub ready: usize,
}

/// Whether the value of a trigger that fails once more depends on its target.
#[must_use]
pub fn needs_target(rules: &MetricRules) -> bool {
    rules.stand_in.is_some()
}
