//! Metrics with a value per pod: resources, container resources and pods metrics.

use super::ceil;
use super::tolerance::Tolerances;
use crate::model::{Metric, MetricTarget, Milli, Source};
use crate::pod::{Group, Pod};
use crate::snapshot::{PodReadings, Sample, Scale, Snapshot};
use crate::status::Current;
use crate::steps::{PodCounts, Proposal, Verdict};
use crate::text::MetricError;
use crate::time::Time;

/// The size that a metric with a value per pod asks for: pods are sorted, the ratio of use to target
/// is taken over those that count, and pods without a usable sample soften the answer.
pub(super) fn propose(
    snapshot: &Snapshot<'_>,
    scale: Scale,
    pods: &[Pod],
    metric: &Metric,
    place: usize,
    readings: &PodReadings,
) -> Result<Proposal, MetricError> {
    if pods.is_empty() {
        return Err(MetricError::NoPods);
    }
    let lined_up = PodSamples { pods, readings, by_utilization: target_utilization(metric.target) };
    let ignores_startup = matches!(&*metric.source, Source::Resource { name } | Source::ContainerResource { name, .. } if &**name == "cpu");
    let group = |pod: &Pod, sample: Option<&Sample>| {
        pod.group(sample, ignores_startup, snapshot.settings, snapshot.now)
    };

    let settled_by = snapshot.now.before(snapshot.settings.cpu_initialization_period);
    let (counts, mut sums) = lined_up.sort(settled_by, group);
    if sums.metrics == 0 {
        return Err(MetricError::NoneUsable);
    }
    if lined_up.by_utilization.is_some()
        && let Some(missing) = &readings.requests.missing
    {
        return Err(MetricError::Request(missing.clone()));
    }
    let Usage { current, ratio } = sums.usage(metric.target)?;
    let tolerances = Tolerances::of(snapshot.autoscaler, snapshot.settings);
    let unready_soften = counts.unready > 0 && ratio > 1.0;
    let (adjusted_ratio, (replicas, verdict)) = if counts.missing == 0 && !unready_soften {
        (None, by_ratio(scale.spec_replicas, tolerances, ratio, counts.ready))
    } else {
        lined_up.fill(&mut sums, group, ratio, unready_soften, metric.target);
        let adjusted = sums.usage(metric.target)?.ratio;
        let answer =
            by_adjusted_ratio(scale.spec_replicas, tolerances, ratio, adjusted, sums.metrics);
        (Some(adjusted), answer)
    };
    Ok(Proposal {
        metric: place as u32,
        replicas,
        current,
        target: metric.target,
        ratio,
        adjusted_ratio,
        pods: counts,
        verdict,
    })
}

/// The size where every pod counts with its own sample.
#[inline]
pub(super) fn by_ratio(
    current: i32,
    tolerances: Tolerances,
    ratio: f64,
    ready: u32,
) -> (i32, Verdict) {
    if tolerances.allow(ratio) {
        (current, Verdict::WithinTolerance)
    } else {
        (ceil(ratio * f64::from(ready)), Verdict::Scaled)
    }
}

/// The size where pods without a usable sample were counted in: they may soften a change of size,
/// never turn it round.
#[inline]
pub(super) fn by_adjusted_ratio(
    current: i32,
    tolerances: Tolerances,
    ratio: f64,
    adjusted: f64,
    metrics: usize,
) -> (i32, Verdict) {
    let turned = (ratio < 1.0 && adjusted > 1.0) || (ratio > 1.0 && adjusted < 1.0);
    if turned {
        return (current, Verdict::DirectionReversed);
    }
    if tolerances.allow(adjusted) {
        return (current, Verdict::WithinTolerance);
    }
    let replicas = ceil(adjusted * metrics as f64);
    let against = (adjusted < 1.0 && replicas > current) || (adjusted > 1.0 && replicas < current);
    if against { (current, Verdict::DirectionReversed) } else { (replicas, Verdict::Scaled) }
}

pub(super) fn target_utilization(target: MetricTarget) -> Option<i32> {
    match target {
        MetricTarget::Utilization(percent) => Some(percent),
        MetricTarget::Value(_) | MetricTarget::AverageValue(_) | MetricTarget::Unset => None,
    }
}

/// The pods with what was read for them.
pub(super) struct PodSamples<'a> {
    pub(super) pods: &'a [Pod],
    pub(super) readings: &'a PodReadings,
    pub(super) by_utilization: Option<i32>,
}

/// Sums over the pods that count. They wrap around as Kubernetes' do.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    /// How many values there are, those of unmatched samples included.
    pub(super) metrics: usize,
    /// What is used, unmatched samples included where they count.
    used: i64,
    /// What the same pods requested.
    requested: i64,
    /// How many of the values have a request.
    with_request: usize,
}

pub(super) struct Usage {
    pub(super) current: Current,
    pub(super) ratio: f64,
}

impl PodSamples<'_> {
    /// Sorts the pods and adds up those that are ready: a pod with a sample that is settled by this time is, and nearly
    /// all are, so that only of the others is asked in which group they are.
    // Apart from the rest of a decision, so that all that the loop needs is in registers.
    #[inline(never)]
    pub(super) fn sort(
        &self,
        settled_by: Time,
        group: impl Fn(&Pod, Option<&Sample>) -> Group,
    ) -> (PodCounts, Sums) {
        let unmatched = self.readings.unmatched;
        let mut counts = PodCounts { unmatched: unmatched.count as u32, ..PodCounts::default() };
        let mut sums = Sums::default();
        if self.by_utilization.is_none() {
            // Nobody knows what an unmatched pod requested, but its sample moves a plain average.
            sums.used = unmatched.total.0;
        }
        for (place, pod) in self.pods.iter().enumerate() {
            let sample = self.sample(place);
            let group = match sample {
                Some(_) if pod.is_settled(settled_by) => Group::Ready,
                _ => group(pod, sample),
            };
            match group {
                Group::Ready => {
                    counts.ready += 1;
                    sums.used = sums.used.wrapping_add(sample.map_or(0, |s| s.value.0));
                    sums.requested = sums.requested.wrapping_add(self.request(place));
                }
                Group::Unready => counts.unready += 1,
                Group::Missing => counts.missing += 1,
                Group::Ignored => counts.ignored += 1,
            }
        }
        sums.with_request = counts.ready as usize;
        sums.metrics = unmatched.count + sums.with_request;
        (counts, sums)
    }

    /// Counts in the pods that have no usable sample, so that the answer errs on the side of
    /// staying: missing ones as fully used on the way down and as idle on the way up, unready ones
    /// as idle on the way up.
    pub(super) fn fill(
        &self,
        sums: &mut Sums,
        group: impl Fn(&Pod, Option<&Sample>) -> Group,
        ratio: f64,
        unready_soften: bool,
        target: MetricTarget,
    ) {
        for (place, pod) in self.pods.iter().enumerate() {
            let request = self.request(place);
            match group(pod, self.sample(place)) {
                Group::Missing if ratio < 1.0 => {
                    let value = match target {
                        MetricTarget::Utilization(percent) => {
                            request.wrapping_mul(i64::from(percent.max(100))) / 100
                        }
                        MetricTarget::Value(Milli(target))
                        | MetricTarget::AverageValue(Milli(target)) => target,
                        MetricTarget::Unset => 0,
                    };
                    sums.add(value, request);
                }
                Group::Missing if ratio > 1.0 => sums.add(0, request),
                Group::Unready if unready_soften => sums.add(0, request),
                _ => {}
            }
        }
    }

    pub(super) fn sample(&self, place: usize) -> Option<&Sample> {
        self.readings.samples.get(place)?.as_ref()
    }

    pub(super) fn request(&self, place: usize) -> i64 {
        self.readings.requests.of_pods.get(place).map_or(0, |request| request.0)
    }
}

impl Sums {
    fn add(&mut self, value: i64, request: i64) {
        self.metrics += 1;
        self.with_request += 1;
        self.used = self.used.wrapping_add(value);
        self.requested = self.requested.wrapping_add(request);
    }

    pub(super) fn usage(&self, target: MetricTarget) -> Result<Usage, MetricError> {
        match target {
            MetricTarget::Utilization(percent) => {
                if self.requested == 0 {
                    return Err(MetricError::NothingRequested);
                }
                let utilization = self.used.wrapping_mul(100).wrapping_div(self.requested) as i32;
                let average = self.used.checked_div(self.with_request as i64).unwrap_or(0);
                Ok(Usage {
                    current: Current {
                        average_value: Some(Milli(average)),
                        average_utilization: Some(utilization),
                        value: None,
                    },
                    ratio: f64::from(utilization) / f64::from(percent),
                })
            }
            MetricTarget::Value(Milli(target)) | MetricTarget::AverageValue(Milli(target)) => {
                let average = self.used.checked_div(self.metrics as i64).unwrap_or(0);
                Ok(Usage {
                    current: Current { average_value: Some(Milli(average)), ..Current::default() },
                    ratio: average as f64 / target as f64,
                })
            }
            MetricTarget::Unset => Err(MetricError::NoTarget),
        }
    }
}
