//! Metrics with a value per pod: resources, container resources and pods metrics.

use crate::model::{Aim, Metric, Milli, Source, Tolerances};
use crate::pod::{Group, Pod};
use crate::snapshot::{PodReadings, Sample, Scale, Snapshot};
use crate::status::Current;
use crate::steps::{PodCounts, Proposal, Verdict};
use crate::text::MetricError;

/// The size that a metric with a value per pod asks for: pods are sorted, the ratio of use to aim
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
    let lined_up = LinedUp { pods, readings, by_utilization: utilization_aim(metric.aim) };
    let minds_readiness = matches!(&*metric.source, Source::Resource { name } | Source::ContainerResource { name, .. } if &**name == "cpu");
    let group = |pod: &Pod, sample: Option<&Sample>| {
        pod.group(sample, minds_readiness, snapshot.settings, snapshot.now)
    };

    let (counts, mut sums) = lined_up.sort(group);
    if sums.metrics == 0 {
        return Err(MetricError::NoneUsable);
    }
    if lined_up.by_utilization.is_some()
        && let Some(missing) = &readings.requests.missing
    {
        return Err(MetricError::Request(missing.clone()));
    }
    let Usage { current, ratio } = sums.usage(metric.aim)?;
    let tolerances = snapshot.autoscaler.tolerances(snapshot.settings);
    let unready_soften = counts.unready > 0 && ratio > 1.0;
    let (adjusted_ratio, (replicas, verdict)) = if counts.missing == 0 && !unready_soften {
        (None, by_ratio(scale.wanted, tolerances, ratio, counts.ready))
    } else {
        lined_up.fill(&mut sums, group, ratio, unready_soften, metric.aim);
        let adjusted = sums.usage(metric.aim)?.ratio;
        let answer = by_adjusted_ratio(scale.wanted, tolerances, ratio, adjusted, sums.metrics);
        (Some(adjusted), answer)
    };
    Ok(Proposal {
        metric: place as u32,
        replicas,
        current,
        aim: metric.aim,
        ratio,
        adjusted_ratio,
        pods: counts,
        verdict,
    })
}

/// The size where every pod counts with its own sample.
#[inline]
fn by_ratio(wanted: i32, tolerances: Tolerances, ratio: f64, ready: u32) -> (i32, Verdict) {
    if tolerances.allow(ratio) {
        (wanted, Verdict::WithinTolerance)
    } else {
        (ceil(ratio * f64::from(ready)), Verdict::Scaled)
    }
}

/// The size where pods without a usable sample were counted in: they may soften a change of size,
/// never turn it round.
#[inline]
fn by_adjusted_ratio(
    wanted: i32,
    tolerances: Tolerances,
    ratio: f64,
    adjusted: f64,
    metrics: usize,
) -> (i32, Verdict) {
    let turned = (ratio < 1.0 && adjusted > 1.0) || (ratio > 1.0 && adjusted < 1.0);
    if turned {
        return (wanted, Verdict::WouldTurn);
    }
    if tolerances.allow(adjusted) {
        return (wanted, Verdict::WithinTolerance);
    }
    let replicas = ceil(adjusted * metrics as f64);
    let against = (adjusted < 1.0 && replicas > wanted) || (adjusted > 1.0 && replicas < wanted);
    if against { (wanted, Verdict::WouldTurn) } else { (replicas, Verdict::Scaled) }
}

fn utilization_aim(aim: Aim) -> Option<i32> {
    match aim {
        Aim::Utilization(percent) => Some(percent),
        Aim::Value(_) | Aim::AverageValue(_) | Aim::Unset => None,
    }
}

/// Rounds up; what does not fit stays at the end of the range.
pub(super) fn ceil(replicas: f64) -> i32 {
    replicas.ceil() as i32
}

/// The pods with what was read for them.
struct LinedUp<'a> {
    pods: &'a [Pod],
    readings: &'a PodReadings,
    by_utilization: Option<i32>,
}

/// Sums over the pods that count. They wrap around as Kubernetes' do.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// How many values there are, those of strangers included.
    metrics: usize,
    /// What is used, strangers included where they count.
    used: i64,
    /// What the same pods requested.
    requested: i64,
    /// How many of the values have a request.
    with_request: usize,
}

struct Usage {
    current: Current,
    ratio: f64,
}

impl LinedUp<'_> {
    /// Sorts the pods and adds up those that are ready.
    fn sort(&self, group: impl Fn(&Pod, Option<&Sample>) -> Group) -> (PodCounts, Sums) {
        let strangers = self.readings.strangers;
        let mut counts = PodCounts { strangers: strangers.count as u32, ..PodCounts::default() };
        let mut sums = Sums::default();
        if self.by_utilization.is_none() {
            // Nobody knows what a stranger requested, but it moves a plain average.
            sums.used = strangers.total.0;
        }
        for (place, pod) in self.pods.iter().enumerate() {
            let sample = self.sample(place);
            match group(pod, sample) {
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
        sums.metrics = strangers.count + sums.with_request;
        (counts, sums)
    }

    /// Counts in the pods that have no usable sample, so that the answer errs on the side of
    /// staying: missing ones as fully used on the way down and as idle on the way up, unready ones
    /// as idle on the way up.
    fn fill(
        &self,
        sums: &mut Sums,
        group: impl Fn(&Pod, Option<&Sample>) -> Group,
        ratio: f64,
        unready_soften: bool,
        aim: Aim,
    ) {
        for (place, pod) in self.pods.iter().enumerate() {
            let request = self.request(place);
            match group(pod, self.sample(place)) {
                Group::Missing if ratio < 1.0 => {
                    let value = match aim {
                        Aim::Utilization(percent) => {
                            request.wrapping_mul(i64::from(percent.max(100))) / 100
                        }
                        Aim::Value(Milli(aim)) | Aim::AverageValue(Milli(aim)) => aim,
                        Aim::Unset => 0,
                    };
                    sums.add(value, request);
                }
                Group::Missing if ratio > 1.0 => sums.add(0, request),
                Group::Unready if unready_soften => sums.add(0, request),
                _ => {}
            }
        }
    }

    fn sample(&self, place: usize) -> Option<&Sample> {
        self.readings.samples.get(place)?.as_ref()
    }

    fn request(&self, place: usize) -> i64 {
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

    fn usage(&self, aim: Aim) -> Result<Usage, MetricError> {
        match aim {
            Aim::Utilization(percent) => {
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
            Aim::Value(Milli(aim)) | Aim::AverageValue(Milli(aim)) => {
                let average = self.used.checked_div(self.metrics as i64).unwrap_or(0);
                Ok(Usage {
                    current: Current { average_value: Some(Milli(average)), ..Current::default() },
                    ratio: average as f64 / aim as f64,
                })
            }
            Aim::Unset => Err(MetricError::NoAim),
        }
    }
}
