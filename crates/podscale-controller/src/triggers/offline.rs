//! What is wrong with triggers, as far as it can be known without a cluster.

use super::resolve::names_variables;
use podscale_api::keda::ScaledObject;
use podscale_api::keda::trigger::Trigger;
use podscale_scalers::{KINDS, Problem, TriggerSpec, parse};

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
    let spec = TriggerSpec {
        kind: trigger.r#type.clone(),
        metadata: trigger.metadata.clone(),
        metric_type: trigger.metric_type.clone(),
        namespace: object.metadata.namespace.clone(),
        name: object.metadata.name.clone(),
        index,
        ..TriggerSpec::default()
    };
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
