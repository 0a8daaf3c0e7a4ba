//! What is wrong with a KEDA object, in the words of KEDA's webhooks and operator. Their order here is
//! fixed, where KEDA's webhook takes its checks in any order.

mod authentication;

pub use authentication::authentication;

use super::scaled_object::{
    NAME_LABEL, ScaledObject, ScaledObjectSpec, ScalingModifiers, behavior,
};
use super::trigger::Trigger;
use super::{ScaledJob, formula};
use crate::field_error::{FieldPath, invalid_message};
use crate::hpa::default::default_behavior;
use crate::hpa::validate::check_behavior;
use crate::quote::quote;

/// No label's value, and no name of an HPA, is longer than this.
const MAX_NAME: usize = 63;

/// What is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{step}: {problem}")]
pub struct CheckError {
    /// What was looked at, as KEDA's operator puts it in front of the problem.
    pub step: &'static str,
    /// The problem, as KEDA's webhook words it.
    pub problem: String,
}

impl CheckError {
    /// The field that it is about, or the nearest one above all that it is about.
    #[must_use]
    pub fn field(&self) -> &'static str {
        match self.step {
            step::TARGET => "spec.scaleTargetRef",
            step::TRIGGERS | step::JOB_TRIGGERS | step::JOB_METRIC_TYPE => "spec.triggers",
            _ => "spec",
        }
    }
}

/// What was looked at.
pub mod step {
    /// The target.
    pub const TARGET: &str = "ScaledObject doesn't have correct scaleTargetRef specification";
    /// The size at which it is paused.
    pub const PAUSE: &str = "failed to scale target to paused replica count";
    /// The bounds.
    pub const BOUNDS: &str =
        "ScaledObject doesn't have correct Idle/Min/Max Replica Counts specification";
    /// The triggers.
    pub const TRIGGERS: &str = "ScaledObject doesn't have correct triggers specification";
    /// What becomes the HPA: names, formula, fallback, and the triggers' metadata.
    pub const HPA: &str = "failed to ensure HPA is correctly created for ScaledObject";
    /// The triggers of a ScaledJob.
    pub const JOB_TRIGGERS: &str = "ScaledJob doesn't have correct triggers specification";
    /// What only a ScaledObject may have.
    pub const JOB_METRIC_TYPE: &str = "Cannot set metricType in ScaledJob triggers";
}

/// The first thing that is wrong with a ScaledObject, as far as it can be seen without looking at
/// others.
///
/// # Errors
/// What is wrong.
pub fn scaled_object(object: &ScaledObject) -> Result<(), CheckError> {
    let spec = &object.spec;
    let at = |step| move |problem: String| CheckError { step, problem };
    if spec.scale_target_ref.name.is_empty() {
        let problem = "ScaledObject.spec.scaleTargetRef.name is missing".to_owned();
        return Err(CheckError { step: step::TARGET, problem });
    }
    bounds(spec).map_err(at(step::BOUNDS))?;
    triggers(&spec.triggers).map_err(at(step::TRIGGERS))?;
    names(object).map_err(at(step::HPA))?;
    modifiers(spec).map_err(at(step::HPA))?;
    fallback(spec).map_err(at(step::HPA))?;
    behavior_of_hpa(object).map_err(at(step::HPA))
}

/// The first thing that is wrong with a ScaledJob.
///
/// # Errors
/// What is wrong.
pub fn scaled_job(job: &ScaledJob) -> Result<(), CheckError> {
    let error = |step, problem| CheckError { step, problem };
    let all = &job.spec.triggers;
    triggers(all).map_err(|problem| error(step::JOB_TRIGGERS, problem))?;
    match all.iter().find(|trigger| !trigger.metric_type.is_empty()) {
        Some(trigger) => {
            let problem = format!("metricType is set in the trigger of type {}", trigger.r#type);
            Err(error(step::JOB_METRIC_TYPE, problem))
        }
        None => Ok(()),
    }
}

/// What is not wrong but does not do what it seems to. KEDA's webhook refuses to have only triggers of
/// cpu and memory without a minimum, which its documentation shows and its operator accepts.
#[must_use]
pub fn warnings(spec: &ScaledObjectSpec) -> Vec<&'static str> {
    let mut warnings = Vec::new();
    if spec.min() == 0 && spec.is_only_resources() {
        warnings.push(
            "scaledobject has only cpu/memory triggers AND minReplica is 0 (scale to zero doesn't \
             work in this case)",
        );
    }
    if spec.polling_interval.is_some() && !spec.is_polled() {
        warnings.push(
            "PollingInterval is configured but is not relevant for scaling. It only affects scaling \
             when minReplicaCount = 0, idleReplicaCount is set, or useCachedMetrics is enabled, but \
             it still controls how often KEDA refreshes the ScaledObject status conditions and \
             events",
        );
    }
    if spec.cooldown_period.is_some() && spec.idle().is_none() {
        warnings.push(
            "CooldownPeriod is configured but is not relevant. CooldownPeriod is only relevant when \
             minReplicaCount = 0 or idleReplicaCount is set",
        );
    }
    warnings
}

fn bounds(spec: &ScaledObjectSpec) -> Result<(), String> {
    // A minimum that is set counts as at least one, one that is not counts as none.
    let min = spec.min_replica_count.map_or(0, |min| min.max(1));
    let max = spec.max();
    if min > max {
        return Err(format!("MinReplicaCount={min} must be less than MaxReplicaCount={max}"));
    }
    match spec.idle_replica_count {
        Some(idle) if idle >= min => {
            Err(format!("IdleReplicaCount={idle} must be less than MinReplicaCount={min}"))
        }
        _ => Ok(()),
    }
}

fn triggers(triggers: &[Trigger]) -> Result<(), String> {
    if triggers.is_empty() {
        return Err("no triggers defined in the ScaledObject/ScaledJob".to_owned());
    }
    for (place, trigger) in triggers.iter().enumerate() {
        let Trigger { r#type, name, .. } = trigger;
        if trigger.use_cached_metrics && !trigger.may_be_cached() {
            let kind = quote(r#type);
            return Err(format!(
                "property \"useCachedMetrics\" is not supported for {kind} scaler"
            ));
        }
        let before = &triggers[..place];
        if !name.is_empty() && before.iter().any(|earlier| earlier.name == *name) {
            let name = quote(name);
            return Err(format!(
                "triggerName {name} is defined multiple times in the ScaledObject/ScaledJob, but it \
                 must be unique"
            ));
        }
    }
    Ok(())
}

fn names(object: &ScaledObject) -> Result<(), String> {
    let name = &object.metadata.name;
    if name.len() > MAX_NAME {
        return Err(format!(
            "scaledobject name {} is {} characters long; must be no more than {MAX_NAME} characters \
             because it is used as the {} label value",
            quote(name),
            name.len(),
            quote(NAME_LABEL)
        ));
    }
    let hpa = object.hpa_name();
    if hpa.len() > MAX_NAME {
        return Err(format!(
            "HPA name {} derived from scaledobject is {} characters long; must be no more than \
             {MAX_NAME} characters; set spec.advanced.horizontalPodAutoscalerConfig.name to a \
             shorter name or shorten the scaledobject name",
            quote(&hpa),
            hpa.len()
        ));
    }
    Ok(())
}

fn modifiers(spec: &ScaledObjectSpec) -> Result<(), String> {
    let Some(modifiers) = spec.modifiers() else { return Ok(()) };
    let ScalingModifiers { formula, target, activation_target, metric_type } = modifiers;
    if formula.is_empty() {
        return Err("error ScalingModifiers.Formula is mandatory".to_owned());
    }
    let in_formula = |problem| format!("error validating formula in ScalingModifiers\n{problem}");
    if target.is_empty() {
        return Err(in_formula("formula is given but target is empty".to_owned()));
    }
    formula::parse(formula, &formula::names(&spec.triggers))
        .map_err(|problem| in_formula(problem.to_string()))?;
    let in_target =
        |problem: &str| format!("error validating target in ScalingModifiers\n{problem}");
    if !number(target).is_some_and(|target| target > 0.0) {
        let quoted = quote(target);
        return Err(in_target(&format!(
            "error converting target for scalingModifiers (string->float) to valid target: {quoted} \
             is not a number above zero"
        )));
    }
    if !activation_target.is_empty() && number(activation_target).is_none() {
        let quoted = quote(activation_target);
        return Err(in_target(&format!("activationTarget {quoted} is not a number")));
    }
    if metric_type == "Utilization" {
        return Err(in_target(
            "error trigger type is Utilization, but it needs to be AverageValue or Value for \
             external metrics",
        ));
    }
    Ok(())
}

/// A finite number.
pub(crate) fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn fallback(spec: &ScaledObjectSpec) -> Result<(), String> {
    let Some(fallback) = &spec.fallback else { return Ok(()) };
    let (threshold, replicas) = (fallback.failure_threshold, fallback.replicas);
    if threshold < 0 || replicas < 0 {
        return Err(format!(
            "FailureThreshold={threshold} & Replicas={replicas} must both be greater than or equal to \
             0"
        ));
    }
    match spec.modifiers() {
        None if fallback.behavior == behavior::SCALING_MODIFIERS => Err(
            "scalingModifiers fallback behavior requires scalingModifiers.formula to be defined"
                .to_owned(),
        ),
        None if spec.is_only_resources() => {
            Err("at least one trigger (that is not cpu or memory) has to have the `AverageValue` \
                 type for the fallback to be enabled"
                .to_owned())
        }
        _ => Ok(()),
    }
}

/// What the API server would say of the HPA.
fn behavior_of_hpa(object: &ScaledObject) -> Result<(), String> {
    let config = object.spec.hpa_config();
    let Some(mut behavior) = config.and_then(|config| config.behavior.clone()) else {
        return Ok(());
    };
    default_behavior(&mut behavior);
    let errors = check_behavior(&behavior, &FieldPath::new("spec").child("behavior"));
    if errors.is_empty() {
        return Ok(());
    }
    let kind = "HorizontalPodAutoscaler.autoscaling";
    Err(invalid_message(kind, &object.hpa_name(), &errors))
}

/// The refusal of a target that another ScaledObject scales already.
#[must_use]
pub fn managed_by_scaled_object(target: &str, kind: &str, other: &str) -> String {
    format!(
        "the workload '{target}' of type '{kind}' is already managed by the ScaledObject '{other}'"
    )
}

/// The refusal of a target that an HPA scales already.
#[must_use]
pub fn managed_by_hpa(target: &str, kind: &str, hpa: &str) -> String {
    format!("the workload '{target}' of type '{kind}' is already managed by the hpa '{hpa}'")
}
