//! Metrics with one value for the whole target: Object, External and Prometheus.

use super::ceil;
use super::tolerance::Tolerances;
use crate::model::{Metric, MetricTarget, Milli, Source};
use crate::pod::Pod;
use crate::snapshot::Scale;
use crate::status::Current;
use crate::steps::{PodCounts, Proposal, Verdict};
use crate::text::MetricError;

/// The size that a metric with one value asks for.
pub(super) fn propose(
    scale: Scale,
    pods: &[Pod],
    metric: &Metric,
    place: usize,
    value: Milli,
    tolerances: Tolerances,
) -> Result<Proposal, MetricError> {
    let amount = value.0 as f64;
    let proposal = |current, ratio, (replicas, verdict), pods| Proposal {
        metric: place as u32,
        replicas,
        current,
        target: metric.target,
        ratio,
        adjusted_ratio: None,
        pods,
        verdict,
    };
    match metric.target {
        MetricTarget::Value(Milli(target)) => {
            let ratio = amount / target as f64;
            let mut counts = PodCounts::default();
            let answer = if scale.spec_replicas == 0 {
                (ceil(ratio), Verdict::Divided)
            } else if tolerances.allow(ratio) {
                (scale.spec_replicas, Verdict::WithinTolerance)
            } else {
                if pods.is_empty() {
                    return Err(MetricError::NoPods);
                }
                counts.ready = pods.iter().filter(|pod| pod.is_serving()).count() as u32;
                counts.unready = pods.len() as u32 - counts.ready;
                (ceil(ratio * f64::from(counts.ready)), Verdict::Scaled)
            };
            let current = Current { value: Some(value), ..Current::default() };
            Ok(proposal(current, ratio, answer, counts))
        }
        MetricTarget::AverageValue(Milli(target)) => {
            // Compared with the replicas that exist, whatever was asked for.
            let existing = f64::from(scale.status_replicas);
            let ratio = amount / (target as f64 * existing);
            let answer = if tolerances.allow(ratio) {
                (scale.status_replicas, Verdict::WithinTolerance)
            } else {
                (ceil(amount / target as f64), Verdict::Divided)
            };
            // An external sum at the end of the range has overflowed; its share is not known.
            let overflowed =
                matches!(*metric.source, Source::External(_)) && amount >= i64::MAX as f64;
            let average = if overflowed { i64::MAX } else { (amount / existing).ceil() as i64 };
            let current = Current { average_value: Some(Milli(average)), ..Current::default() };
            Ok(proposal(current, ratio, answer, PodCounts::default()))
        }
        MetricTarget::Utilization(_) | MetricTarget::Unset => Err(MetricError::NoTarget),
    }
}

/// The sum of several series. Too large a sum is the largest number; a negative one is taken for
/// such an overflow where it is shared among pods.
pub(super) fn sum(values: &[Milli], target: MetricTarget) -> Milli {
    let mut sum = 0i64;
    for Milli(value) in values {
        match target {
            MetricTarget::AverageValue(_) => {
                sum = sum.wrapping_add(*value);
                if sum < 0 {
                    return Milli(i64::MAX);
                }
            }
            _ => match sum.checked_add(*value) {
                None if *value > 0 => return Milli(i64::MAX),
                _ => sum = sum.wrapping_add(*value),
            },
        }
    }
    Milli(sum)
}
