//! From ScaledObjects to the core's model. What triggers' metadata mean is known to whoever reads event
//! sources, and comes as [`TriggerMetric`]s.
//!
//! One pass decides what KEDA's loop and its HPA decide together. Where that is on purpose not the same:
//!
//! - An idle size above zero is stable; KEDA and its HPA change it back and forth for ever.
//! - A trigger that is active begins the cool-down anew even while another one fails.
//! - A target stays as it is while a trigger fails and none is active, also if the fallback is zero
//!   replicas; KEDA sets that to zero, and to one once the fallback is in force.
//! - A formula that gives nothing, because a trigger that failed too often is not spared by `??`, leads to
//!   the fallback; KEDA only does so if the whole of it is nothing, and else fails for ever.
//! - Only triggers of cpu and memory without a minimum are accepted: they have a minimum of one, as with
//!   KEDA's operator, whose webhook refuses them.

use super::rules;
use crate::hpa::default::default_behavior;
use crate::keda::annotations::{Orders, Pause as Ordered};
use crate::keda::check::{self, CheckError, number, step};
use crate::keda::formula;
use crate::keda::scaled_object::{
    COMPOSITE_METRIC, Fallback, ScaledObject, ScaledObjectSpec, ScalingModifiers, behavior,
};
use crate::time::Timestamp;
use podscale_core::model::{
    Activation, Behavior, Composite, Control, EventSource, Extensions, Hold, MetricRules, Milli,
    Mode, Pause, ScaleToZero, Source, StandIn, StandInSize, TargetRef, Targets, Trigger, TriggerOf,
    Waking, Wording, ZeroedByOthers,
};
use podscale_core::{Autoscaler, Metric, Span};
use std::sync::Arc;

pub mod events;
mod hpa_form;
pub mod own_hpa;
mod recorded;
pub mod status;
#[cfg(test)]
mod tests;

pub use hpa_form::hpa_form;
pub use recorded::{
    recorded, recorded_spec, recorded_trigger, replayed, replayed_status, was_left_to_hpa,
};

/// What one trigger measures.
#[derive(Clone, Debug, PartialEq)]
pub enum TriggerMetric {
    /// What pods use of a resource.
    Resource {
        /// The resource.
        source: Source,
        /// How much they should use.
        targets: Targets,
    },
    /// A value of an event source.
    External {
        /// The metric's name, such as `s0-prometheus`.
        name: Arc<str>,
        /// The event source.
        source: EventSource,
        /// What the value is compared with.
        targets: Targets,
    },
}

/// What a ScaledObject means, given what its triggers measure, in their order. One that cannot be acted on
/// says why and is left alone.
#[must_use]
pub fn autoscaler(
    object: &ScaledObject,
    triggers: &Result<Vec<TriggerMetric>, String>,
) -> Autoscaler {
    let ScaledObject { metadata, spec, .. } = object;
    let checked = checked(object, triggers);
    let triggers = triggers.as_deref().unwrap_or_default();
    let (metrics, rules_of_metrics) = metrics(spec, triggers);
    let target = &spec.scale_target_ref;
    let orders = Orders::read(&metadata.annotations);
    let paused_for_ever = |is_paused: bool| is_paused.then_some(Pause { until: None });
    let (mode, hold) = match orders.pause {
        Ordered::No => (Mode::Active, None),
        Ordered::AsItIs | Ordered::Unreadable(_) => (Mode::Paused, None),
        Ordered::At(replicas) => (Mode::Active, Some(Hold { replicas, until: None })),
    };
    let extensions = Extensions {
        // A pause is obeyed whatever else the spec says.
        invalid: match (&checked, &orders.pause) {
            (Err(problem), Ordered::No) => Some(problem.to_string().into()),
            _ => None,
        },
        metrics: rules_of_metrics,
        control: Control {
            mode,
            pause_up: paused_for_ever(orders.scale_out_paused),
            pause_down: paused_for_ever(orders.scale_in_paused),
            hold,
            hold_beyond_bounds: true,
            ..Control::default()
        },
        scale_to_zero: spec.idle().map(|idle_replicas| ScaleToZero {
            idle_replicas,
            cooldown: Span::seconds(i64::from(spec.cooldown_seconds())),
        }),
        activation: activation(object, &orders),
        zeroed_by_others: ZeroedByOthers::Woken,
        wording: Wording::Keda,
        ..Extensions::default()
    };
    Autoscaler {
        namespace: metadata.namespace.as_str().into(),
        name: metadata.name.as_str().into(),
        generation: metadata.generation,
        target: TargetRef {
            api_version: target.api_version().into(),
            kind: target.kind().into(),
            name: target.name.as_str().into(),
        },
        min_replicas: spec.min_while_active(),
        max_replicas: spec.max(),
        metrics,
        behavior: behavior_of(spec),
        extensions: Some(Box::new(extensions)),
    }
}

/// Whether an object can be acted on.
///
/// # Errors
/// What is wrong with it, or with the metadata of its triggers.
pub fn checked(
    object: &ScaledObject,
    triggers: &Result<Vec<TriggerMetric>, String>,
) -> Result<(), CheckError> {
    check::scaled_object(object)?;
    match triggers {
        Ok(_) => Ok(()),
        Err(problem) => Err(CheckError { step: step::HPA, problem: problem.clone() }),
    }
}

fn behavior_of(spec: &ScaledObjectSpec) -> Option<Behavior> {
    let mut behavior = spec.hpa_config()?.behavior.clone()?;
    default_behavior(&mut behavior);
    Some(Behavior {
        scale_up: rules(behavior.scale_up.as_ref()),
        scale_down: rules(behavior.scale_down.as_ref()),
    })
}

fn activation(object: &ScaledObject, orders: &Orders) -> Activation {
    let initial = object.spec.initial_cooldown_period.unwrap_or(0).max(0);
    let created = object.metadata.creation_timestamp;
    Activation {
        waking: Waking::ToMinimum,
        forced: orders.force_activation,
        idle_from: created.map(|Timestamp(at)| at.after(Span::seconds(i64::from(initial)))),
        ..Activation::default()
    }
}

/// The metrics with their rules: one for each trigger, or one in place of all event sources if there is a
/// formula.
fn metrics(spec: &ScaledObjectSpec, triggers: &[TriggerMetric]) -> (Vec<Metric>, Vec<MetricRules>) {
    let stand_in = stand_in(spec);
    let modifiers = spec.modifiers();
    let (mut metrics, mut rules, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
    for trigger in triggers {
        match trigger {
            TriggerMetric::Resource { source, targets } => {
                metrics.push(Metric::new(source.clone(), targets));
                rules.push(MetricRules::DEFAULT);
            }
            TriggerMetric::External { name, source, .. } if modifiers.is_some() => {
                inputs.push((Arc::clone(name), source.clone()));
            }
            TriggerMetric::External { name, source, targets } => {
                let of = TriggerOf::Source(source.clone());
                let trigger = Trigger { name: Arc::clone(name), of };
                metrics.push(Metric::new(Source::Trigger(trigger), targets));
                rules.push(MetricRules { stand_in, ..MetricRules::DEFAULT });
            }
        }
    }
    if let Some((metric, activation)) = modifiers.and_then(|m| composite(spec, m, inputs)) {
        metrics.push(metric);
        let activation = Some(activation);
        rules.push(MetricRules { activation, stand_in, ..MetricRules::DEFAULT });
    }
    (metrics, rules)
}

/// The metric that a formula makes, and above which value it is active; none if the formula is refused.
fn composite(
    spec: &ScaledObjectSpec,
    modifiers: &ScalingModifiers,
    inputs: Vec<(Arc<str>, EventSource)>,
) -> Option<(Metric, Milli)> {
    let formula = formula::parse(&modifiers.formula, &formula::names(&spec.triggers)).ok()?;
    let target = Some(milli(number(&modifiers.target)?));
    let targets = match &*modifiers.metric_type {
        "Value" => Targets { value: target, ..Targets::default() },
        _ => Targets { average_value: target, ..Targets::default() },
    };
    let of = TriggerOf::Formula(Box::new(Composite { formula, inputs }));
    let source = Source::Trigger(Trigger { name: COMPOSITE_METRIC.into(), of });
    let activation = number(&modifiers.activation_target).map(milli).unwrap_or_default();
    Some((Metric::new(source, &targets), activation))
}

fn milli(number: f64) -> Milli {
    // The conversion saturates.
    Milli((number * 1000.0) as i64)
}

/// What stands in for triggers that fail. With a formula it needs a whole number as target.
#[must_use]
pub fn stand_in(spec: &ScaledObjectSpec) -> Option<StandIn> {
    let Fallback { failure_threshold, replicas, behavior } = spec.fallback.as_ref()?;
    let failures = u32::try_from(*failure_threshold).ok()?;
    let replicas = (*replicas >= 0).then_some(*replicas)?;
    if let Some(modifiers) = spec.modifiers() {
        modifiers.target.parse::<i64>().ok().filter(|target| *target > 0)?;
    }
    let size = match behavior.as_str() {
        behavior::CURRENT => StandInSize::Current,
        behavior::CURRENT_IF_HIGHER => StandInSize::CurrentIfHigher(replicas),
        behavior::CURRENT_IF_LOWER => StandInSize::CurrentIfLower(replicas),
        behavior::SCALING_MODIFIERS => StandInSize::Formula(replicas),
        _ => StandInSize::Replicas(replicas),
    };
    Some(StandIn { failures, size })
}
