//! KEDA's ScaledObject as a form. Triggers of cpu, memory, prometheus and cron are metrics and schedules of a
//! PodAutoscaler; those of other types are known to nobody else.

mod place;
#[cfg(test)]
mod tests;
mod write;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ConvertError, Form, Hub, Loss, Written};
use crate::hpa::convert::as_written;
use crate::hpa::v2;
use crate::keda::annotations::{self, Orders, Pause};
use crate::keda::scaled_object::{
    Fallback, KIND, NAME_LABEL, ScaledObject, ScaledObjectSpec, behavior,
};
use crate::keda::trigger::Trigger;
use crate::keda::{API_VERSION, FINALIZER};
use crate::time::GoDuration;
use podscale_core::Span;

/// What KEDA makes of a query without an answer, as a part of the query.
const OR_ZERO: &str = ") or vector(0)";
/// The fields of a trigger of prometheus that a PodAutoscaler has as well.
const OF_QUERY: [&str; 5] =
    ["serverAddress", "query", "threshold", "activationThreshold", "ignoreNullValues"];
/// The annotations that are fields of a PodAutoscaler.
const ORDERS: [&str; 4] = [
    annotations::PAUSED,
    annotations::PAUSED_REPLICAS,
    annotations::PAUSED_SCALE_IN,
    annotations::PAUSED_SCALE_OUT,
];

/// The form.
pub(super) struct ScaledObjects;

impl Form for ScaledObjects {
    fn name(&self) -> &'static str {
        "so"
    }

    fn describes(&self, object: &Value) -> bool {
        object["apiVersion"] == API_VERSION && object["kind"] == KIND
    }

    /// The status is left out: the controller writes another one for another kind.
    fn read(&self, object: &Value) -> Result<Hub, ConvertError> {
        let given = ScaledObject::deserialize(object)?;
        let spec = &given.spec;
        let mut reading = Reading::default();
        for (index, trigger) in spec.triggers.iter().enumerate() {
            reading.take(index, trigger);
        }
        if reading.metrics.is_empty() && reading.own.is_empty() {
            let types: Vec<&str> = spec.triggers.iter().map(|trigger| &*trigger.r#type).collect();
            let types = types.join(", ");
            return Err(ConvertError::Unsuitable(format!(
                "none of its triggers can be a metric of another kind: {types}"
            )));
        }
        let target = &spec.scale_target_ref;
        let mut fields = json!({"maxReplicas": spec.max(), "minReplicas": spec.min_while_active(),
            "metrics": reading.metrics, "scaleTargetRef": {"apiVersion": target.api_version(),
                "kind": target.kind(), "name": target.name}});
        if let Some(behavior) = spec.hpa_config().and_then(|config| config.behavior.as_ref()) {
            fields["behavior"] = serde_json::to_value(behavior)?;
        }
        let hpa = json!({"apiVersion": v2::API_VERSION, "kind": v2::KIND,
            "metadata": metadata(&object["metadata"]), "spec": fields});
        reading.take_rest(&given);
        let Reading { own, beyond, unread, .. } = reading;
        let own =
            own.into_iter().map(|(index, value)| said(format!("spec.metrics[{index}]"), value));
        let beyond = own.chain(beyond).collect();
        Ok(Hub { hpa: as_written(&hpa)?, beyond, unread })
    }

    fn path(&self, object: &Value, path: &str) -> Option<String> {
        place::native(object, path)
    }

    fn path_beyond(&self, object: &Value, path: &str) -> Option<String> {
        place::beyond(object, path)
    }

    fn write(&self, hub: &Hub) -> Result<Written, ConvertError> {
        write::write(hub)
    }
}

/// What was found so far.
#[derive(Default)]
struct Reading {
    /// Metrics of `autoscaling/v2`.
    metrics: Vec<Value>,
    /// Metrics that only a PodAutoscaler has, with their places among all.
    own: Vec<(usize, Value)>,
    schedules: usize,
    beyond: Vec<Loss>,
    unread: Vec<Loss>,
}

impl Reading {
    fn take(&mut self, index: usize, trigger: &Trigger) {
        let field = format!("spec.triggers[{index}]");
        let place = self.metrics.len() + self.own.len();
        if let Some(metric) = resource(trigger) {
            self.metrics.push(metric);
        } else if let Some(metric) = query(trigger) {
            let others = trigger.metadata.iter().filter(|(name, _)| !OF_QUERY.contains(&&***name));
            let lost = |(name, value): (&String, &String)| {
                said(format!("{field}.metadata.{name}"), json!(value))
            };
            self.unread.extend(others.map(lost));
            if let Some(reference) = &trigger.authentication_ref {
                self.unread.push(said(format!("{field}.authenticationRef"), json!(reference)));
            }
            self.own.push((place, metric));
        } else if let Some(schedule) = schedule(trigger, self.schedules) {
            self.beyond.push(said(format!("spec.schedules[{}]", self.schedules), schedule));
            self.schedules += 1;
        } else {
            self.unread.push(said(field, json!(trigger)));
        }
    }

    /// What is beside the triggers.
    fn take_rest(&mut self, object: &ScaledObject) {
        let spec = &object.spec;
        let mut say = |field: &str, value: Value| self.beyond.push(said(field, value));
        let has_idle = spec.idle().is_some() && !self.own.is_empty();
        if let Some(idle) = spec.idle().filter(|_| has_idle) {
            say("spec.scaleToZero.idleReplicas", json!(idle));
            say("spec.scaleToZero.coolDown", json!(seconds(spec.cooldown_seconds())));
            say("spec.scaleToZero.zeroByOthers", json!("Wake"));
        }
        if let Some(interval) = spec.polling_interval {
            say("spec.syncPeriod", json!(seconds(interval)));
        }
        match &spec.fallback {
            Some(Fallback { failure_threshold, replicas, behavior: how })
                if matches!(&**how, "" | behavior::STATIC) =>
            {
                let after = failure_threshold.saturating_mul(spec.polling_interval_seconds());
                say("spec.fallback.replicas", json!(replicas));
                say("spec.fallback.after", json!(seconds(after.max(1))));
            }
            Some(fallback) => self.unread.push(said("spec.fallback", json!(fallback))),
            None => {}
        }
        self.take_orders(&Orders::read(&object.metadata.annotations));
        self.take_unread(spec);
    }

    fn take_orders(&mut self, orders: &Orders) {
        let mut say = |field: &str, value: Value| self.beyond.push(said(field, value));
        match orders.pause {
            Pause::No => {}
            Pause::At(replicas) => say("spec.hold.replicas", json!(replicas.max(0))),
            Pause::AsItIs | Pause::Unreadable(_) => say("spec.mode", json!("Paused")),
        }
        if orders.scale_in_paused {
            say("spec.pause.scaleDown", json!({}));
        }
        if orders.scale_out_paused {
            say("spec.pause.scaleUp", json!({}));
        }
        if orders.force_activation {
            let field = format!("metadata.annotations[{}]", annotations::FORCE_ACTIVATION);
            self.unread.push(said(field, json!("true")));
        }
    }

    /// What no other kind has.
    fn take_unread(&mut self, spec: &ScaledObjectSpec) {
        let mut lose = |field: &str, value: Value| self.unread.push(said(field, value));
        if spec.idle().is_some() && self.own.is_empty() {
            lose("spec.minReplicaCount", json!(spec.min_replica_count.unwrap_or_default()));
        }
        if let Some(initial) = spec.initial_cooldown_period {
            lose("spec.initialCooldownPeriod", json!(initial));
        }
        if let Some(modifiers) = spec.modifiers() {
            lose("spec.advanced.scalingModifiers", json!(modifiers));
        }
        if spec.advanced.as_ref().is_some_and(|it| it.restore_to_original_replica_count) {
            lose("spec.advanced.restoreToOriginalReplicaCount", json!(true));
        }
        if let Some(config) = spec.hpa_config().filter(|config| !config.name.is_empty()) {
            lose("spec.advanced.horizontalPodAutoscalerConfig.name", json!(config.name));
        }
    }
}

fn said(field: impl Into<String>, value: Value) -> Loss {
    Loss { field: field.into(), value }
}

fn seconds(number: i32) -> String {
    GoDuration::from_span(Span::seconds(i64::from(number))).to_short_string()
}

/// Metadata without what makes an object one of KEDA's.
fn metadata(given: &Value) -> Value {
    let mut metadata = given.clone();
    let mut drop_from = |part: &str, names: &[&str]| {
        let Some(fields) = metadata.get_mut(part).and_then(Value::as_object_mut) else { return };
        names.iter().for_each(|name| drop(fields.remove(*name)));
        if fields.is_empty() {
            drop(metadata.as_object_mut().and_then(|all| all.remove(part)));
        }
    };
    drop_from("annotations", &ORDERS);
    drop_from("labels", &[NAME_LABEL]);
    if let Some(fields) = metadata.as_object_mut()
        && let Some(Value::Array(finalizers)) = fields.get_mut("finalizers")
    {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
        if finalizers.is_empty() {
            fields.remove("finalizers");
        }
    }
    metadata
}

/// A trigger of cpu or memory as a metric.
fn resource(trigger: &Trigger) -> Option<Value> {
    if !trigger.is_resource() {
        return None;
    }
    let value = trigger.metadata.get("value")?;
    let target = match &*trigger.metric_type {
        "Utilization" => {
            json!({"type": "Utilization", "averageUtilization": value.parse::<i32>().ok()?})
        }
        "AverageValue" => json!({"type": "AverageValue", "averageValue": value}),
        _ => return None,
    };
    let mut source = json!({"name": trigger.r#type, "target": target});
    Some(match trigger.metadata.get("containerName") {
        Some(container) => {
            source["container"] = json!(container);
            json!({"type": "ContainerResource", "containerResource": source})
        }
        None => json!({"type": "Resource", "resource": source}),
    })
}

/// A trigger of prometheus as a metric of a PodAutoscaler.
fn query(trigger: &Trigger) -> Option<Value> {
    if trigger.r#type != "prometheus" {
        return None;
    }
    let given = |name: &str| trigger.metadata.get(name).map(String::as_str);
    let (server, query) = (given("serverAddress")?, given("query")?);
    let query = match given("ignoreNullValues") {
        Some("false") => query.to_owned(),
        _ => format!("({query}{OR_ZERO}"),
    };
    let threshold = given("threshold")?;
    let target = match &*trigger.metric_type {
        "Value" => json!({"type": "Value", "value": threshold}),
        _ => json!({"type": "AverageValue", "averageValue": threshold}),
    };
    let mut metric = Map::new();
    if !trigger.name.is_empty() {
        metric.insert("name".to_owned(), json!(trigger.name));
    }
    metric.insert("type".to_owned(), json!("Prometheus"));
    let source = json!({"server": server, "query": query, "target": target});
    metric.insert("prometheus".to_owned(), source);
    if let Some(activation) = given("activationThreshold") {
        metric.insert("activation".to_owned(), json!(activation));
    }
    Some(Value::Object(metric))
}

/// A trigger of cron as a schedule of a PodAutoscaler.
fn schedule(trigger: &Trigger, number: usize) -> Option<Value> {
    if trigger.r#type != "cron" {
        return None;
    }
    let given = |name: &str| trigger.metadata.get(name);
    let replicas = given("desiredReplicas")?.parse::<i32>().ok()?;
    let name = format!("cron-{number}");
    Some(json!({"name": name, "timeZone": given("timezone")?, "start": given("start")?,
        "end": given("end")?, "minReplicas": replicas}))
}
