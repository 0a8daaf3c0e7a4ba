//! What a trigger says: its own value, what a formula makes of several, or what stands in for it once it
//! has failed too often.

use super::answer::Answer;
use super::{Context, formula};
use crate::history::{Failures, MAX_LAST_ANSWERS, Memory};
use crate::model::{
    Composite, Metric, MetricRules, MetricTarget, Milli, Source, StandIn, StandInSize, Trigger,
    TriggerOf,
};
use crate::pod::Pod;
use crate::snapshot::Reading;
use crate::steps::FormulaFailure;
use crate::text;
use crate::time::Time;
use std::borrow::Cow;
use std::sync::Arc;

/// What a metric says, and the size that it asks for if that is not its own.
pub(super) struct Resolved<'a> {
    pub(super) reading: Option<Cow<'a, Reading>>,
    pub(super) stands_in: Option<i32>,
}

/// What the value of a trigger may depend on besides its source.
#[derive(Clone, Copy)]
pub(super) struct Around {
    /// The size of the target.
    pub(super) current: i32,
    /// How many of its pods serve.
    pub(super) ready: usize,
}

/// What the metric at this place says; of a trigger, how it fares is remembered.
pub(super) fn resolve<'a>(
    context: &Context<'a>,
    pods: &[Pod],
    metric: &Metric,
    place: usize,
    rules: &MetricRules,
    memory: &mut Memory,
) -> Resolved<'a> {
    let reading = context.snapshot.readings.get(place);
    if !matches!(*metric.source, Source::Trigger(_)) {
        return Resolved { reading: reading.map(Cow::Borrowed), stands_in: None };
    }
    let ready = pods.iter().filter(|pod| pod.is_serving()).count();
    let around = Around { current: context.current(), ready };
    resolve_reading(metric, rules, reading, around, memory)
}

/// What a metric says whose source said this.
pub(super) fn resolve_reading<'a>(
    metric: &Metric,
    rules: &MetricRules,
    reading: Option<&'a Reading>,
    around: Around,
    memory: &mut Memory,
) -> Resolved<'a> {
    let found = match &*metric.source {
        Source::Trigger(Trigger { name, of: TriggerOf::Source(_) }) => {
            match failing(reading, name, rules, memory) {
                Some(Failing { is_too_often: true, .. }) => Found::StandIn,
                Some(_) | None => Found::AsItIs,
            }
        }
        Source::Trigger(Trigger { of: TriggerOf::Formula(composite), .. }) => {
            made(around.current, composite, reading, rules, memory)
        }
        _ => Found::AsItIs,
    };
    let (reading, stands_in) = match found {
        Found::AsItIs => (reading.map(|reading| judged(reading, rules)), None),
        Found::Made(value, taken) => {
            let active = value > rules.activation.unwrap_or_default();
            (Some(Cow::Owned(Reading::Trigger { value, active, taken })), None)
        }
        Found::Failed(error) => (Some(Cow::Owned(Reading::Failed(error))), None),
        Found::StandIn => stand_in(around, metric, rules),
    };
    Resolved { reading, stands_in }
}

/// What a source said; a threshold of the metric's own goes before that of its source.
fn judged<'a>(reading: &'a Reading, rules: &MetricRules) -> Cow<'a, Reading> {
    match (reading, rules.activation) {
        (Reading::Trigger { value, taken, .. }, Some(above)) => {
            let (value, taken, active) = (*value, *taken, *value > above);
            Cow::Owned(Reading::Trigger { value, active, taken })
        }
        _ => Cow::Borrowed(reading),
    }
}

/// What was found of a trigger.
enum Found {
    /// What its source said.
    AsItIs,
    /// A value that a formula made, and when the oldest input was measured.
    Made(Milli, Option<Time>),
    /// No value, and why.
    Failed(Arc<str>),
    /// No value, for so long that something stands in for it.
    StandIn,
}

/// A trigger without a value.
struct Failing {
    error: Arc<str>,
    is_too_often: bool,
}

/// Whether a trigger has no value; counted where something may stand in for it.
fn failing(
    reading: Option<&Reading>,
    name: &str,
    rules: &MetricRules,
    memory: &mut Memory,
) -> Option<Failing> {
    let error = match reading {
        Some(Reading::Trigger { .. }) => None,
        Some(Reading::Failed(error)) => Some(error.clone()),
        _ => Some(text::NO_TRIGGER_VALUE.into()),
    };
    let Some(StandIn { failures, .. }) = rules.stand_in else {
        return error.map(|error| Failing { error, is_too_often: false });
    };
    let count = count(memory, name, error.is_some());
    error.map(|error| Failing { error, is_too_often: count > failures })
}

/// How often in a row a trigger has failed by now.
fn count(memory: &mut Memory, name: &str, failed: bool) -> u32 {
    let trigger = Failures::key(name);
    let place = memory.failures.iter().position(|known| known.trigger == trigger);
    match (place, failed) {
        (Some(place), true) => {
            let count = &mut memory.failures[place].count;
            *count = count.saturating_add(1);
            *count
        }
        (Some(place), false) => {
            memory.failures.remove(place);
            0
        }
        (None, true) if memory.failures.len() < MAX_LAST_ANSWERS => {
            memory.failures.push(Failures { trigger, count: 1 });
            1
        }
        (None, _) => 0,
    }
}

/// Forgets the failures of triggers that are not in the spec any more, or have nothing to stand in for
/// them.
pub(super) fn forget(context: &Context<'_>, memory: &mut Memory) {
    if memory.failures.is_empty() {
        return;
    }
    let mut known = Vec::new();
    for (place, metric) in context.snapshot.autoscaler.metrics.iter().enumerate() {
        if let (Source::Trigger(trigger), Some(_)) =
            (&*metric.source, context.extensions.rules(place).stand_in)
        {
            match &trigger.of {
                TriggerOf::Source(_) => known.push(Failures::key(&trigger.name)),
                TriggerOf::Formula(composite) => {
                    known.extend(composite.inputs.iter().map(|(name, _)| Failures::key(name)));
                }
            }
        }
    }
    memory.failures.retain(|failures| known.contains(&failures.trigger));
}

/// What a formula makes of its inputs. One that is broken breaks it, until it has failed too often.
fn made(
    current: i32,
    composite: &Composite,
    reading: Option<&Reading>,
    rules: &MetricRules,
    memory: &mut Memory,
) -> Found {
    let readings = match reading {
        Some(Reading::Inputs(readings)) => readings.as_slice(),
        _ => &[],
    };
    let (mut broken, mut is_too_often, mut oldest) = (None, false, None::<Time>);
    let mut answers = Vec::with_capacity(composite.inputs.len());
    for (place, (name, _)) in composite.inputs.iter().enumerate() {
        let reading = readings.get(place);
        let mut answer = Answer::default();
        match (failing(reading, name, rules, memory), reading) {
            (Some(failing), _) if failing.is_too_often => is_too_often = true,
            (Some(failing), _) => {
                broken.get_or_insert(failing.error);
            }
            (None, Some(Reading::Trigger { value, taken, .. })) => {
                answer.total = Some(*value);
                oldest = oldest.into_iter().chain(*taken).min();
            }
            (None, _) => {}
        }
        answers.push(answer);
    }
    let spare = match rules.stand_in.map(|stand_in| stand_in.size) {
        Some(StandInSize::Formula(_)) => true,
        _ if is_too_often => return Found::StandIn,
        _ => false,
    };
    if let Some(error) = broken {
        return Found::Failed(error);
    }
    match formula::evaluate(&composite.formula, &answers, current) {
        Ok(value) => Found::Made(Milli((value * 1000.0) as i64), oldest),
        Err(FormulaFailure::Missing(_)) if spare && is_too_often => Found::StandIn,
        Err(FormulaFailure::Missing(input)) => {
            let name = composite.inputs.get(input as usize).map(|(name, _)| &**name);
            Found::Failed(text::formula_missing(name).into())
        }
        Err(FormulaFailure::NotFinite) => Found::Failed(text::FORMULA_NOT_FINITE.into()),
    }
}

/// The value with which a metric asks for the size that stands in for it. It counts as active, so that the
/// target is not put to sleep, and is woken.
fn stand_in<'a>(
    Around { current, ready }: Around,
    metric: &Metric,
    rules: &MetricRules,
) -> (Option<Cow<'a, Reading>>, Option<i32>) {
    let replicas = rules.stand_in.map_or(current, |stand_in| stand_in.size.at(current));
    let wanted = f64::from(replicas);
    let value = match metric.target {
        MetricTarget::AverageValue(Milli(target)) => Some(target as f64 * wanted),
        MetricTarget::Value(Milli(target)) => {
            (ready > 0).then(|| target as f64 * wanted / ready as f64)
        }
        MetricTarget::Utilization(_) | MetricTarget::Unset => None,
    };
    match value {
        Some(value) => {
            let value = Milli(value as i64);
            let reading = Reading::Trigger { value, active: true, taken: None };
            (Some(Cow::Owned(reading)), Some(replicas))
        }
        None => (Some(Cow::Owned(Reading::Failed(text::NO_STAND_IN.into()))), None),
    }
}
