//! What triggers measure and what is wrong with them, as far as it can be known without a cluster.

use super::resolve::{external_targets, names_variables, resource_metric};
use podscale_api::keda::ScaledObject;
use podscale_api::keda::trigger::Trigger;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_core::model::{EventSource, Milli};
use podscale_scalers::{KINDS, Metric, Parsed, Problem, TriggerSpec, parse};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the triggers of an object measure.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// In their order.
    pub metrics: Vec<TriggerMetric>,
    /// Above which value each is active, by the name of its metric.
    pub activations: BTreeMap<Arc<str>, Milli>,
}

/// What the triggers of an object measure, if that can be known without asking their servers.
///
/// # Errors
/// A trigger is wrong, lacks what an authentication has, or measures something that only its server or the clock knows.
pub fn measured(object: &ScaledObject) -> Result<Measured, String> {
    let mut measured = Measured::default();
    for (index, trigger) in object.spec.triggers.iter().enumerate() {
        let place = format!("triggers[{index}] ({})", trigger.r#type);
        let parsed = parse(&spec(object, index, trigger)).map_err(|errors| {
            let problems: Vec<String> = errors.problems().iter().map(with_hint).collect();
            let refers = trigger.authentication_ref.is_some() || names_variables(trigger);
            let hint = "; credentials are not looked up here: give any value in their place";
            format!("{place}: {}{}", problems.join(", "), if refers { hint } else { "" })
        })?;
        if trigger.r#type == "cron" {
            return Err(format!("{place} is a schedule, not a load: see podscale convert --to pa"));
        }
        measured
            .add(index, trigger, &parsed)
            .ok_or_else(|| format!("{place}: what it measures is known to its server alone"))?;
    }
    Ok(measured)
}

impl Measured {
    fn add(&mut self, index: usize, trigger: &Trigger, parsed: &Parsed) -> Option<()> {
        let metric = match &parsed.metric {
            Metric::Resource { resource, container, target } => {
                resource_metric(resource, container.as_deref(), target)
            }
            Metric::External { name, metric_type, target } => {
                let name: Arc<str> = name.as_str().into();
                // The conversion saturates.
                let activation = Milli((parsed.activation * 1000.0) as i64);
                self.activations.insert(Arc::clone(&name), activation);
                let (kind, key) = (trigger.r#type.as_str().into(), index.to_string().into());
                let targets = external_targets(*metric_type, *target);
                TriggerMetric::External { name, source: EventSource { kind, key }, targets }
            }
            Metric::Told { .. } => return None,
        };
        self.metrics.push(metric);
        Some(())
    }
}

/// One thing that is wrong with a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerFault {
    /// Which trigger it is.
    pub index: usize,
    /// The field of its metadata, if it is one.
    pub field: Option<&'static str>,
    /// In words.
    pub problem: String,
    /// Whether the trigger cannot be used; else it is only not what was meant.
    pub is_error: bool,
}

/// Everything that is wrong. What may be in a Secret or a variable is not missed.
#[must_use]
pub fn faults(object: &ScaledObject) -> Vec<TriggerFault> {
    let of_one = |(index, trigger)| faults_of(object, index, trigger);
    object.spec.triggers.iter().enumerate().flat_map(of_one).collect()
}

fn faults_of(object: &ScaledObject, index: usize, trigger: &Trigger) -> Vec<TriggerFault> {
    let refers = trigger.authentication_ref.is_some() || names_variables(trigger);
    let spec = spec(object, index, trigger);
    let is_known = KINDS.contains(&&*trigger.r#type);
    // Of a trigger that gets fields from elsewhere only those are judged that it has itself.
    let is_sure = |problem: &&Problem| {
        let has = |name: &str| trigger.metadata.contains_key(name);
        !refers || !is_known || problem.field.is_some_and(has)
    };
    match parse(&spec) {
        Err(errors) => errors
            .problems()
            .iter()
            .filter(is_sure)
            .map(|problem| TriggerFault {
                index,
                field: problem.field,
                problem: with_hint(problem),
                is_error: true,
            })
            .collect(),
        Ok(parsed) => parsed
            .warnings
            .into_iter()
            .filter(|warning| !warning.contains("FromEnv"))
            .map(|problem| TriggerFault { index, field: None, problem, is_error: false })
            .collect(),
    }
}

/// A trigger as its event source reads it, without what comes from elsewhere.
fn spec(object: &ScaledObject, index: usize, trigger: &Trigger) -> TriggerSpec {
    TriggerSpec {
        kind: trigger.r#type.clone(),
        metadata: trigger.metadata.clone(),
        metric_type: trigger.metric_type.clone(),
        namespace: object.metadata.namespace.clone(),
        name: object.metadata.name.clone(),
        index,
        ..TriggerSpec::default()
    }
}

fn with_hint(problem: &Problem) -> String {
    match &problem.hint {
        Some(hint) => format!("{}; {hint}", problem.text),
        None => problem.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn problems(trigger: Value) -> Vec<String> {
        let object = json!({"metadata": {"name": "web"}, "spec": {"triggers": [trigger]}});
        let object: ScaledObject = serde_json::from_value(object).expect("a ScaledObject");
        faults(&object).into_iter().map(|fault| fault.problem).collect()
    }

    #[test]
    fn what_may_come_from_elsewhere_is_not_missed() {
        let cron = |start: &str| {
            json!({"type": "cron", "metadata": {"timezone": "Etc/UTC", "start": start,
                "end": "0 9 * * *", "desiredReplicas": "2"}})
        };
        assert_eq!(problems(cron("0 8 * * *")), [""; 0]);
        assert_eq!(problems(cron("61 8 * * *")).len(), 1);
        let unknown = problems(json!({"type": "crom", "metadata": {}}));
        assert!(unknown[0].contains("no scaler found for type: crom"), "{unknown:?}");
        let bare = json!({"type": "redis", "metadata": {"listLength": "5"}});
        assert!(!problems(bare.clone()).is_empty());
        let mut refers = bare.clone();
        refers["authenticationRef"] = json!({"name": "keys"});
        assert_eq!(problems(refers.clone()), [""; 0]);
        refers["metadata"]["listLength"] = json!("five");
        assert_eq!(problems(refers).len(), 1);
        let mut by_variable = bare;
        by_variable["metadata"]["addressFromEnv"] = json!("REDIS");
        by_variable["metadata"]["listName"] = json!("jobs");
        assert_eq!(problems(by_variable), [""; 0]);
    }
}
