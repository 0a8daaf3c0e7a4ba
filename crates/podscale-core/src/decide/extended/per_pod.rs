//! Metrics with a value per pod, where pods are judged, aged or aggregated by rules of the object.

use super::aggregate::PodValues;
use super::{Context, ask};
use crate::decide::ceil;
use crate::decide::per_pod::{PodSamples, Usage, by_adjusted_ratio, by_ratio, target_utilization};
use crate::decide::tolerance::Tolerances;
use crate::model::{Aggregate, Metric, MetricTarget, Readiness, Source};
use crate::pod::{Group, Pod};
use crate::snapshot::{PodReadings, Sample};
use crate::steps::{Proposal, Verdict};
use crate::text::MetricError;
use crate::time::{Span, Time};

/// The size that a metric with a value per pod asks for, and when the oldest value that counts was
/// measured.
pub(super) fn propose(
    context: &Context<'_>,
    pods: &[Pod],
    metric: &Metric,
    place: usize,
    readings: &PodReadings,
    tolerances: Tolerances,
) -> Result<(Proposal, Option<Time>), MetricError> {
    if pods.is_empty() {
        return Err(MetricError::NoPods);
    }
    let rules = context.extensions.rules(place);
    let samples = PodSamples { pods, readings, by_utilization: target_utilization(metric.target) };
    let judge = Judge::of(context, metric, place);
    let group = |pod: &Pod, sample: Option<&Sample>| judge.group(pod, sample);

    // Its own rules judge every pod, however long it has been there.
    let (counts, mut sums) = samples.sort(Time(i64::MIN), group);
    if sums.metrics == 0 {
        let newest = readings.samples.iter().flatten().map(|sample| sample.taken).max();
        ask::check_age(newest, rules, context.snapshot.now)?;
        return Err(MetricError::NoneUsable);
    }
    if samples.by_utilization.is_some()
        && let Some(missing) = &readings.requests.missing
    {
        return Err(MetricError::Request(missing.clone()));
    }
    let whole = PodValues { samples: &samples, aggregate: rules.aggregate, target: metric.target };
    let Usage { current, ratio } = match rules.aggregate {
        Aggregate::Average => sums.usage(metric.target)?,
        _ => whole.usage(&group, |_| None)?,
    };
    let unready_soften = counts.unready > 0 && ratio > 1.0;
    let replicas = context.scale.spec_replicas;
    let (adjusted_ratio, (replicas, verdict)) = if counts.missing == 0 && !unready_soften {
        (None, by_ratio(replicas, tolerances, ratio, counts.ready))
    } else {
        let fill_target = judge.fill_target(metric.target);
        samples.fill(&mut sums, group, ratio, unready_soften, fill_target);
        let adjusted = match rules.aggregate {
            Aggregate::Average => sums.usage(metric.target)?.ratio,
            _ => {
                let filled = |group| filled(group, ratio, unready_soften, fill_target);
                whole.usage(&group, filled)?.ratio
            }
        };
        let answer = judge.by_adjusted(replicas, tolerances, ratio, adjusted, sums.metrics);
        (Some(adjusted), answer)
    };
    let (metric, target, pods) = (place as u32, metric.target, counts);
    let proposal =
        Proposal { metric, replicas, current, target, ratio, adjusted_ratio, pods, verdict };
    Ok((proposal, judge.oldest(&samples)))
}

/// What a pod without a usable sample counts with: fully used on the way down, idle on the way up.
/// The number is in the unit of the target.
fn filled(
    group: Group,
    ratio: f64,
    unready_soften: bool,
    fill_target: MetricTarget,
) -> Option<f64> {
    match group {
        Group::Missing if ratio < 1.0 => Some(match fill_target {
            MetricTarget::Utilization(percent) => f64::from(percent.max(100)),
            MetricTarget::Value(target) | MetricTarget::AverageValue(target) => target.0 as f64,
            MetricTarget::Unset => 0.0,
        }),
        Group::Missing if ratio > 1.0 => Some(0.0),
        Group::Unready if unready_soften => Some(0.0),
        _ => None,
    }
}

/// How pods are judged for one metric.
struct Judge<'a> {
    context: &'a Context<'a>,
    max_age: Option<Span>,
    ignores_startup: bool,
}

impl<'a> Judge<'a> {
    fn of(context: &'a Context<'a>, metric: &Metric, place: usize) -> Judge<'a> {
        let max_age = context.extensions.rules(place).max_age;
        let ignores_startup = matches!(&*metric.source, Source::Resource { name } | Source::ContainerResource { name, .. } if &**name == "cpu");
        Judge { context, max_age, ignores_startup }
    }

    /// The group of a pod. A sample that is too old is no sample.
    fn group(&self, pod: &Pod, sample: Option<&Sample>) -> Group {
        let now = self.context.snapshot.now;
        let is_young = |s: &&Sample| self.max_age.is_none_or(|max| now.since(s.taken) <= max);
        let sample = sample.filter(is_young);
        let rules = &self.context.extensions.pods;
        match rules.readiness {
            Readiness::Serving if !pod.is_serving() => Group::Unready,
            Readiness::Serving if self.is_warming_up(pod) => Group::Unready,
            Readiness::Serving if sample.is_none() => Group::Missing,
            Readiness::Serving => Group::Ready,
            Readiness::Started => {
                let group = pod.group(sample, self.ignores_startup, &self.context.settings, now);
                let counts = matches!(group, Group::Ready | Group::Missing);
                if counts && self.is_warming_up(pod) { Group::Unready } else { group }
            }
        }
    }

    /// Whether a pod is too young to be judged by any metric.
    fn is_warming_up(&self, pod: &Pod) -> bool {
        let warm_up = self.context.extensions.pods.warm_up;
        let ready_at = |started: Time| started.after(warm_up);
        warm_up > Span(0) && pod.started.is_none_or(|at| self.context.snapshot.now < ready_at(at))
    }

    /// The target that decides what a pod without a sample is taken to use on the way down: what it
    /// requests, or the target if that is more.
    fn fill_target(&self, target: MetricTarget) -> MetricTarget {
        match (self.context.extensions.pods.readiness, target) {
            (Readiness::Serving, MetricTarget::Utilization(percent)) => {
                MetricTarget::Utilization(percent.min(100))
            }
            _ => target,
        }
    }

    /// The size where pods without a usable sample were counted in.
    fn by_adjusted(
        &self,
        current: i32,
        tolerances: Tolerances,
        ratio: f64,
        adjusted: f64,
        metrics: usize,
    ) -> (i32, Verdict) {
        let answer = by_adjusted_ratio(current, tolerances, ratio, adjusted, metrics);
        let turned = (ratio < 1.0 && adjusted > 1.0) || (ratio > 1.0 && adjusted < 1.0);
        match (self.context.extensions.pods.readiness, answer) {
            (Readiness::Serving, (_, Verdict::DirectionReversed)) if !turned => {
                (ceil(adjusted * metrics as f64), Verdict::Scaled)
            }
            _ => answer,
        }
    }

    /// When the oldest sample that counts was measured.
    fn oldest(&self, samples: &PodSamples<'_>) -> Option<Time> {
        let counted = samples.pods.iter().enumerate().filter_map(|(place, pod)| {
            let sample = samples.sample(place)?;
            (self.group(pod, Some(sample)) == Group::Ready).then_some(sample.taken)
        });
        counted.min()
    }
}
