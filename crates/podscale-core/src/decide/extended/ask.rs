//! Asks each metric how many replicas it wants, and finds what stands in for those that cannot say.

use super::answer::Answer;
use super::{Context, per_pod, propose, trigger};
use crate::decide::ceil;
use crate::decide::tolerance::Tolerances;
use crate::decide::total;
use crate::decision::{Decision, MetricResults};
use crate::history::{LastAnswer, MAX_LAST_ANSWERS, Memory};
use crate::model::{Metric, MetricRules, MetricTarget, Milli, OnMissing, Readiness, Source};
use crate::pod::Pod;
use crate::snapshot::Reading;
use crate::status::Current;
use crate::steps::{PodCounts, Proposal, Substituted, Verdict};
use crate::text::{self, MetricError, MetricFailure};
use crate::time::Time;
use propose::Failure;

/// What the metrics said.
pub(super) struct Answers {
    /// In the order of the spec; shorter if one of them ended it.
    pub(super) of_metrics: Vec<Answer>,
    /// How many are broken and hold the size.
    pub(super) holding: u32,
    /// How many are broken, whatever stands in for them.
    pub(super) broken: u32,
    /// The first failure.
    pub(super) failure: Option<Failure>,
    /// Whether a failure ended it all.
    pub(super) aborted: bool,
}

impl Answers {
    /// When the oldest of the values was measured.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.of_metrics.iter().filter_map(|answer| answer.taken).min()
    }
}

/// Asks each metric.
pub(super) fn ask(
    context: &Context<'_>,
    pods: &[Pod],
    memory: &mut Memory,
    decision: &mut Decision,
) -> Answers {
    let autoscaler = context.snapshot.autoscaler;
    let mut answers = Answers {
        of_metrics: Vec::with_capacity(autoscaler.metrics.len()),
        holding: 0,
        broken: 0,
        failure: None,
        aborted: false,
    };
    forget(context, memory);
    trigger::forget(context, memory);
    decision.metrics = MetricResults::Read;
    for (place, metric) in autoscaler.metrics.iter().enumerate() {
        let rules = context.extensions.rules(place);
        // An idle target has no pods to be measured, which is no failure.
        if context.scale.spec_replicas == 0
            && context.extensions.scale_to_zero.is_some()
            && !metric.source.needs_no_pods()
        {
            decision.steps.metrics.push(Err(text::NO_PODS_RUN.into()));
            answers.of_metrics.push(Answer::default());
            continue;
        }
        let resolved = trigger::resolve(context, pods, metric, place, rules, memory);
        let reading = resolved.reading.as_deref();
        let answer = match proposal(context, pods, metric, place, rules, reading) {
            Ok((proposal, taken)) => {
                decision.steps.metrics.push(Ok(proposal));
                if rules.on_missing == OnMissing::LastValue {
                    remember(memory, metric, proposal.replicas, context.snapshot.now);
                }
                note_stand_in(place, resolved.stands_in, decision);
                answered(proposal, taken, reading, metric)
            }
            Err(error) => {
                let namespace = &*autoscaler.namespace;
                let failure = MetricFailure { namespace, metric, error: &error };
                let wording = context.extensions.wording;
                propose::report_failure(&failure, wording, &mut answers.failure, decision);
                answers.broken += 1;
                let stands_in = substitute(&mut answers, metric, place, rules, memory, decision);
                // What is active is so even if no size can be made of it.
                Answer { active: is_active(reading), ..stands_in }
            }
        };
        answers.of_metrics.push(answer);
        if answers.aborted {
            // What the others said is not the whole, so what is stored stays.
            decision.metrics = MetricResults::Untouched;
            break;
        }
    }
    answers
}

/// Notes that a size stands in for a metric.
fn note_stand_in(place: usize, replicas: Option<i32>, decision: &mut Decision) {
    if let Some(size) = replicas {
        let (metric, by) = (place as u32, OnMissing::Replicas(size));
        decision.steps.extend().substitutes.push(Substituted { metric, by, replicas });
    }
}

/// What a metric said that could be read.
fn answered(
    proposal: Proposal,
    taken: Option<Time>,
    reading: Option<&Reading>,
    metric: &Metric,
) -> Answer {
    let total = reading.and_then(|reading| total_of(reading, &metric.source, metric.target));
    Answer {
        replicas: Some(proposal.replicas),
        proposal: Some(proposal),
        taken,
        total: total.map(|(value, _)| value),
        active: is_active(reading),
    }
}

/// Whether a source says itself that it is active, or not.
fn is_active(reading: Option<&Reading>) -> Option<bool> {
    match reading {
        Some(Reading::Trigger { active, .. }) => Some(*active),
        _ => None,
    }
}

/// What stands in for a metric without a usable value.
fn substitute(
    answers: &mut Answers,
    metric: &Metric,
    place: usize,
    rules: &MetricRules,
    memory: &Memory,
    decision: &mut Decision,
) -> Answer {
    let by = rules.on_missing;
    let replicas = match by {
        OnMissing::Hold | OnMissing::Ignore => None,
        OnMissing::LastValue => {
            let key = LastAnswer::key(metric);
            memory.last_answers.iter().find(|last| last.metric == key).map(|last| last.replicas)
        }
        OnMissing::Replicas(replicas) => Some(replicas),
        OnMissing::Abort => {
            answers.aborted = true;
            None
        }
    };
    if replicas.is_none() && by != OnMissing::Ignore {
        answers.holding += 1;
    } else {
        let substituted = Substituted { metric: place as u32, by, replicas };
        decision.steps.extend().substitutes.push(substituted);
    }
    Answer { replicas, ..Answer::default() }
}

/// Keeps what a metric asks for, in place of what it asked for before.
fn remember(memory: &mut Memory, metric: &Metric, replicas: i32, at: Time) {
    let answer = LastAnswer { metric: LastAnswer::key(metric), replicas, at };
    let answers = &mut memory.last_answers;
    match answers.iter().position(|last| last.metric == answer.metric) {
        Some(place) => answers[place] = answer,
        None if answers.len() < MAX_LAST_ANSWERS => answers.push(answer),
        None => {}
    }
}

/// Forgets what metrics asked for that are not in the spec any more.
fn forget(context: &Context<'_>, memory: &mut Memory) {
    if memory.last_answers.is_empty() {
        return;
    }
    let metrics = context.snapshot.autoscaler.metrics.iter().enumerate();
    let keys: Vec<u32> = metrics
        .filter(|(place, _)| context.extensions.rules(*place).on_missing == OnMissing::LastValue)
        .map(|(_, metric)| LastAnswer::key(metric))
        .collect();
    memory.last_answers.retain(|last| keys.contains(&last.metric));
}

/// What one metric asks for, and when it was measured.
fn proposal(
    context: &Context<'_>,
    pods: &[Pod],
    metric: &Metric,
    place: usize,
    rules: &MetricRules,
    reading: Option<&Reading>,
) -> Result<(Proposal, Option<Time>), MetricError> {
    propose::check(metric)?;
    let snapshot = context.snapshot;
    let reading = match reading {
        Some(Reading::Failed(error)) => return Err(MetricError::Fetch(error.clone())),
        None | Some(Reading::Empty) => return Err(MetricError::NoneReturned),
        Some(reading) => reading,
    };
    let tolerances = Tolerances::of_metric(
        snapshot.autoscaler,
        snapshot.settings,
        context.extensions,
        metric.target,
        rules.watermarks,
    );
    match (reading, &*metric.source) {
        (
            Reading::PerPod(readings),
            Source::Resource { .. } | Source::ContainerResource { .. } | Source::Pods(_),
        ) => per_pod::propose(context, pods, metric, place, readings, tolerances),
        (reading, source) if source.needs_no_pods() => {
            let (value, taken) =
                total_of(reading, source, metric.target).ok_or(MetricError::NoneReturned)?;
            check_age(taken, rules, snapshot.now)?;
            let proposal = of_total(context, pods, metric, place, value, tolerances)?;
            Ok((proposal, taken))
        }
        // A reading of another shape than the source's is no reading.
        _ => Err(MetricError::NoneReturned),
    }
}

/// What a metric with one value asks for. Where only serving pods count, the rule is that of the same
/// time as well: the ratio times the current size, however many of the pods serve.
fn of_total(
    context: &Context<'_>,
    pods: &[Pod],
    metric: &Metric,
    place: usize,
    value: Milli,
    tolerances: Tolerances,
) -> Result<Proposal, MetricError> {
    let (readiness, target) = (context.extensions.pods.readiness, metric.target);
    let (Readiness::Serving, MetricTarget::Value(Milli(wanted))) = (readiness, target) else {
        return total::propose(context.scale, pods, metric, place, value, tolerances);
    };
    let ratio = value.0 as f64 / wanted as f64;
    let current = context.current();
    let (replicas, verdict) = if tolerances.allow(ratio) {
        (current, Verdict::WithinTolerance)
    } else {
        (ceil(ratio * f64::from(current)), Verdict::Scaled)
    };
    Ok(Proposal {
        metric: place as u32,
        replicas,
        current: Current { value: Some(value), ..Current::default() },
        target,
        ratio,
        adjusted_ratio: None,
        pods: PodCounts { ready: current.max(0).unsigned_abs(), ..PodCounts::default() },
        verdict,
    })
}

/// The one value of a source that has one, and when it was measured.
pub(super) fn total_of(
    reading: &Reading,
    source: &Source,
    target: MetricTarget,
) -> Option<(Milli, Option<Time>)> {
    match (reading, source) {
        (Reading::Total { value, taken }, Source::Object { .. } | Source::Prometheus(_)) => {
            Some((*value, *taken))
        }
        (Reading::Trigger { value, taken, .. }, Source::Trigger(_)) => Some((*value, *taken)),
        (Reading::Series { values, taken }, Source::External(_)) => {
            Some((total::sum(values, target), *taken))
        }
        _ => None,
    }
}

/// Refuses a value that is too old. One whose time is not known is as old as its answer.
pub(super) fn check_age(
    taken: Option<Time>,
    rules: &MetricRules,
    now: Time,
) -> Result<(), MetricError> {
    match (taken, rules.max_age) {
        (Some(taken), Some(max_age)) if now.since(taken) > max_age => {
            Err(MetricError::TooOld { age: now.since(taken), max_age })
        }
        _ => Ok(()),
    }
}
