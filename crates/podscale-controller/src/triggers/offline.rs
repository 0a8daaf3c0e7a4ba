//! What triggers measure and what is wrong with them, as far as it can be known without a cluster.

use super::OwnerKind;
use super::resolve::{external_targets, names_variables, resource_metric};
use super::triggered::{Placed, Triggered};
use podscale_api::quantity::Quantity;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_core::model::{EventSource, Milli};
use podscale_scalers::{
    MetadataErrors, Metric, Parsed, Problem, ResourceTarget, TriggerSpec, parse, parse_alone,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the triggers of an object measure.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// In their order.
    pub metrics: Vec<TriggerMetric>,
    /// Above which value each is active, by the name of its metric.
    pub activations: BTreeMap<Arc<str>, Milli>,
    /// Where their targets are.
    pub targets: Vec<TriggerTarget>,
}

/// Where the target of a trigger is, and what it is.
#[derive(Clone, Debug, PartialEq)]
pub struct TriggerTarget {
    /// The path of it, such as `spec.triggers[0].metadata.threshold`.
    pub path: String,
    /// The target.
    pub now: TargetNow,
}

/// The target of a trigger.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetNow {
    /// Percent of what pods request.
    Percent(i32),
    /// So much of a resource for each pod.
    Amount(Quantity),
    /// So much of what its event source has.
    Number {
        /// How much.
        value: f64,
        /// Whether it can be nothing but a whole number.
        is_whole: bool,
    },
}

/// What the triggers of an object measure, if that can be known without asking their servers. What they refer to is not
/// looked up.
///
/// # Errors
/// A trigger is wrong, or measures something that only its server or the clock knows.
pub fn measured(object: &Triggered) -> Result<Measured, String> {
    let mut measured = Measured::default();
    for placed in &object.triggers {
        let trigger = &placed.trigger;
        let path = match object.owner.kind {
            OwnerKind::PodAutoscaler => &placed.path,
            _ => placed.path.trim_start_matches("spec."),
        };
        let place = format!("{path} ({})", trigger.r#type);
        let parsed = understood(object, placed).map_err(|errors| {
            let problems: Vec<String> = errors.problems().iter().map(with_hint).collect();
            format!("{place}: {}", problems.join(", "))
        })?;
        if trigger.r#type == "cron" {
            let instead = match object.owner.kind {
                OwnerKind::PodAutoscaler => "use spec.schedules",
                _ => "see podscale convert --to pa",
            };
            return Err(format!("{place} is a schedule, not a load: {instead}"));
        }
        measured
            .add(placed, &parsed)
            .ok_or_else(|| format!("{place}: what it measures is known to its server alone"))?;
    }
    if object.has_formula {
        // A formula has a target of its own, and what it is made of has none.
        measured.targets.retain(|target| !matches!(target.now, TargetNow::Number { .. }));
    }
    Ok(measured)
}

impl Measured {
    fn add(&mut self, placed: &Placed, parsed: &Parsed) -> Option<()> {
        let is_whole = parsed.target_field.is_some_and(|field| field.is_whole);
        let (metric, now) = match &parsed.metric {
            Metric::Resource { resource, container, target } => {
                let now = match target {
                    ResourceTarget::Utilization(percent) => TargetNow::Percent(*percent),
                    ResourceTarget::AverageValue(amount) => TargetNow::Amount(amount.clone()),
                };
                (resource_metric(resource, container.as_deref(), target), now)
            }
            Metric::External { name, metric_type, target } => {
                let name: Arc<str> = name.as_str().into();
                // The conversion saturates.
                let activation = Milli((parsed.activation * 1000.0) as i64);
                self.activations.insert(Arc::clone(&name), activation);
                let kind = placed.trigger.r#type.as_str().into();
                let key = placed.index.to_string().into();
                let targets = external_targets(*metric_type, *target);
                let source = EventSource { kind, key };
                let now = TargetNow::Number { value: *target, is_whole };
                (TriggerMetric::External { name, source, targets }, now)
            }
            Metric::Told { .. } => return None,
        };
        self.metrics.push(metric);
        let field = parsed.target_field.map(|field| field.name);
        let path = |field| format!("{}.metadata.{field}", placed.path);
        self.targets.extend(field.map(|field| TriggerTarget { path: path(field), now }));
        Some(())
    }
}

/// One thing that is wrong with a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerFault {
    /// The path of the trigger, or of the field of its metadata if it is one.
    pub path: String,
    /// In words.
    pub problem: String,
    /// Whether the trigger cannot be used; else it is only not what was meant.
    pub is_error: bool,
}

/// Everything that is wrong. What may be in a Secret or a variable is not missed.
#[must_use]
pub fn faults(object: &Triggered) -> Vec<TriggerFault> {
    object.triggers.iter().flat_map(|placed| faults_of(object, placed)).collect()
}

fn faults_of(object: &Triggered, placed: &Placed) -> Vec<TriggerFault> {
    let path = |field: Option<&str>| match field {
        Some(name) => format!("{}.metadata.{name}", placed.path),
        None => placed.path.clone(),
    };
    match understood(object, placed) {
        Err(errors) => errors
            .problems()
            .iter()
            .map(|problem| TriggerFault {
                path: path(problem.field),
                problem: with_hint(problem),
                is_error: true,
            })
            .collect(),
        Ok(parsed) => parsed
            .warnings
            .into_iter()
            .filter(|warning| !warning.contains("FromEnv"))
            .map(|problem| TriggerFault { path: path(None), problem, is_error: false })
            .collect(),
    }
}

/// A trigger by itself. Of one that gets fields from elsewhere only those are judged that it has itself.
fn understood(object: &Triggered, placed: &Placed) -> Result<Parsed, MetadataErrors> {
    let (spec, trigger) = (spec(object, placed), &placed.trigger);
    let refers = trigger.authentication_ref.is_some() || names_variables(trigger);
    if refers { parse_alone(&spec) } else { parse(&spec) }
}

/// A trigger as its event source reads it, without what comes from elsewhere.
fn spec(object: &Triggered, Placed { index, trigger, .. }: &Placed) -> TriggerSpec {
    TriggerSpec {
        kind: trigger.r#type.clone(),
        metadata: trigger.metadata.clone(),
        metric_type: trigger.metric_type.clone(),
        namespace: object.owner.namespace.to_string(),
        name: object.owner.name.to_string(),
        index: *index,
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
    use podscale_api::keda::ScaledObject;
    use serde_json::{Value, json};

    fn problems(trigger: Value) -> Vec<String> {
        let object = json!({"metadata": {"name": "web"}, "spec": {"triggers": [trigger]}});
        let object: ScaledObject = serde_json::from_value(object).expect("a ScaledObject");
        faults(&Triggered::from(&object)).into_iter().map(|fault| fault.problem).collect()
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

    fn measures(trigger: Value) -> Result<Measured, String> {
        let object = json!({"metadata": {"name": "web"}, "spec": {"triggers": [trigger]}});
        let object: ScaledObject = serde_json::from_value(object).expect("a ScaledObject");
        measured(&Triggered::from(&object))
    }

    #[test]
    fn targets_are_found_where_each_type_has_them() {
        let number = |value: f64, is_whole| TargetNow::Number { value, is_whole };
        let quantity = Quantity::parse("1Gi").expect("an amount");
        for (kind, metric_type, metadata, field, now) in [
            (
                "kafka",
                "",
                json!({"bootstrapServers": "k:1", "consumerGroup": "g", "topic": "t", "lagThreshold": "7"}),
                "lagThreshold",
                number(7.0, true),
            ),
            (
                "prometheus",
                "",
                json!({"serverAddress": "http://p:1", "query": "q", "threshold": "2.5"}),
                "threshold",
                number(2.5, false),
            ),
            (
                "metrics-api",
                "",
                json!({"url": "http://m:1/", "valueLocation": "a", "targetValue": "4"}),
                "targetValue",
                number(4.0, false),
            ),
            (
                "redis-streams",
                "",
                json!({"address": "r:1", "stream": "s", "consumerGroup": "g", "lagCount": "9"}),
                "lagCount",
                number(9.0, true),
            ),
            // One that says nothing has the target of its type.
            (
                "redis",
                "",
                json!({"address": "r:1", "listName": "jobs"}),
                "listLength",
                number(5.0, true),
            ),
            ("cpu", "Utilization", json!({"value": "60"}), "value", TargetNow::Percent(60)),
            (
                "memory",
                "AverageValue",
                json!({"value": "1Gi"}),
                "value",
                TargetNow::Amount(quantity),
            ),
        ] {
            let trigger = json!({"type": kind, "metricType": metric_type, "metadata": metadata});
            let found = measures(trigger).unwrap_or_else(|error| panic!("{kind}: {error}"));
            let path = format!("spec.triggers[0].metadata.{field}");
            assert_eq!(found.targets, [TriggerTarget { path, now }], "{kind}");
        }
    }

    #[test]
    fn a_trigger_without_its_credentials_still_says_what_it_measures() {
        let mut trigger = json!({"type": "rabbitmq", "authenticationRef": {"name": "keys"},
            "metadata": {"queueName": "jobs", "mode": "MessageRate", "value": "30"}});
        let found = measures(trigger.clone()).expect("what it measures");
        let now = TargetNow::Number { value: 30.0, is_whole: false };
        let path = "spec.triggers[0].metadata.value".to_owned();
        assert_eq!(found.targets, [TriggerTarget { path, now }]);
        trigger["metadata"]["value"] = json!("many");
        let error = measures(trigger.clone()).expect_err("no number");
        assert!(error.contains("many"), "{error}");
        trigger["metadata"]["value"] = json!("0");
        assert!(measures(trigger).is_err(), "without a target");
    }
}
