//! KEDA's ScaledObject as a form. Triggers of cpu and memory are metrics of every form. Those of prometheus and cron are
//! queries and schedules of a PodAutoscaler as far as these can say all that they say, and all others its metrics of
//! type Trigger.

mod formula;
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
use crate::keda::check::number;
use crate::keda::scaled_object::{
    Fallback, KIND, NAME_LABEL, ScaledObject, ScaledObjectSpec, ScalingModifiers, behavior,
};
use crate::keda::trigger::Trigger;
use crate::keda::{self, API_VERSION, FINALIZER};
use crate::pod_autoscaler::spec::metric_type;
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
        let mut reading = Reading { of: Some(spec), ..Reading::default() };
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
        let Reading { own, beyond, unread, names, .. } = reading;
        let names = names
            .into_iter()
            .map(|(at, name)| said(format!("spec.metrics[{at}].name"), json!(name)));
        let own =
            own.into_iter().map(|(index, value)| said(format!("spec.metrics[{index}]"), value));
        let beyond = own.chain(names).chain(beyond).collect();
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
struct Reading<'a> {
    /// Of what.
    of: Option<&'a ScaledObjectSpec>,
    /// Metrics of `autoscaling/v2`.
    metrics: Vec<Value>,
    /// Metrics that only a PodAutoscaler has, with their places among all.
    own: Vec<(usize, Value)>,
    /// The names of metrics that `autoscaling/v2` has, with their places among all.
    names: Vec<(usize, String)>,
    schedules: usize,
    beyond: Vec<Loss>,
    unread: Vec<Loss>,
}

impl Reading<'_> {
    fn take(&mut self, index: usize, trigger: &Trigger) {
        let field = format!("spec.triggers[{index}]");
        let place = self.metrics.len() + self.own.len();
        let Some(spec) = self.of else { return };
        if !trigger.name.is_empty() && !is_name(&trigger.name) {
            self.unread.push(said(format!("{field}.name"), json!(trigger.name)));
        }
        if let Some(metric) = resource(trigger) {
            self.metrics.push(metric);
            if let Some(name) = name_of_resource(index, spec) {
                self.names.push((place, name));
            }
        } else if let Some(schedule) = schedule(trigger, spec, self.schedules) {
            self.beyond.push(said(format!("spec.schedules[{}]", self.schedules), schedule));
            self.schedules += 1;
        } else if let Some(metric) = query(trigger).or_else(|| event_source(trigger, spec)) {
            self.own.push((place, metric));
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
            let field = "spec.advanced.scalingModifiers";
            match expression(spec, modifiers) {
                Some(expression) => {
                    self.beyond.push(said("spec.combine", json!("Expression")));
                    self.beyond.push(said("spec.expression", json!(expression)));
                    let active = &modifiers.activation_target;
                    if number(active).is_some_and(|above| above > 0.0) {
                        self.unread.push(said(format!("{field}.activationTarget"), json!(active)));
                    }
                }
                None => self.unread.push(said(field, json!(modifiers))),
            }
        }
        let mut lose = |field: &str, value: Value| self.unread.push(said(field, value));
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

/// Whether metrics can be called so.
fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    let rest = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(first) && name.chars().all(rest) && name.len() <= 63
}

/// What a metric of cpu or memory is called: with a formula every metric has a name, and no other has the same.
fn name_of_resource(index: usize, spec: &ScaledObjectSpec) -> Option<String> {
    let trigger = spec.triggers.get(index)?;
    if is_name(&trigger.name) {
        return Some(trigger.name.clone());
    }
    spec.modifiers()?;
    let kind = &trigger.r#type;
    let same = |other: &&Trigger| other.r#type == *kind && !is_name(&other.name);
    let before = spec.triggers.iter().take(index).filter(same).count();
    let numbered = (2_usize..).map(|number| format!("{kind}_{number}"));
    let names = std::iter::once(kind.clone()).chain(numbered);
    let is_free = |name: &String| spec.triggers.iter().all(|other| other.name != *name);
    names.filter(is_free).nth(before)
}

/// Any other trigger as a metric of a PodAutoscaler, with all that it says.
fn event_source(trigger: &Trigger, spec: &ScaledObjectSpec) -> Option<Value> {
    if trigger.r#type.is_empty() || trigger.is_resource() {
        return None;
    }
    let mut source = json!({"type": trigger.r#type, "metadata": trigger.metadata});
    let mut set = |name: &str, value: Value| source[name] = value;
    if let Some(reference) = &trigger.authentication_ref {
        set("authenticationRef", json!(reference));
    }
    if !trigger.metric_type.is_empty() {
        set("metricType", json!(trigger.metric_type));
    }
    if trigger.use_cached_metrics {
        set("useCachedMetrics", json!(true));
    }
    let container = &spec.scale_target_ref.env_source_container_name;
    if !container.is_empty() {
        set("envSourceContainerName", json!(container));
    }
    let mut metric = Map::new();
    if is_name(&trigger.name) {
        metric.insert("name".to_owned(), json!(trigger.name));
    }
    metric.insert("type".to_owned(), json!(metric_type::TRIGGER));
    metric.insert("trigger".to_owned(), source);
    Some(Value::Object(metric))
}

/// A formula as an expression of a PodAutoscaler, if it can be one: every trigger that is no metric of pods must have a
/// name, and those that are decide beside it.
fn expression(spec: &ScaledObjectSpec, modifiers: &ScalingModifiers) -> Option<String> {
    let names = keda::formula::names(&spec.triggers);
    let triggers = spec.triggers.iter().enumerate();
    let resources = triggers.filter(|(_, trigger)| resource(trigger).is_some());
    let others: Vec<String> =
        resources.filter_map(|(index, _)| name_of_resource(index, spec)).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let compared = formula::Compared {
        formula: modifiers.formula.clone(),
        target: number(&modifiers.target)?,
        is_for_all: modifiers.metric_type == "Value",
    };
    let are_names = names.iter().all(|name| is_name(name));
    are_names.then(|| formula::to_expression(&compared, &names, &others))?
}

/// A trigger of prometheus as a metric of a PodAutoscaler, if that can say all that it says.
fn query(trigger: &Trigger) -> Option<Value> {
    let has_others = trigger.metadata.keys().any(|name| !OF_QUERY.contains(&name.as_str()))
        || trigger.authentication_ref.is_some()
        || trigger.use_cached_metrics;
    if trigger.r#type != "prometheus" || has_others {
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
    if is_name(&trigger.name) {
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

/// A trigger of cron as a schedule of a PodAutoscaler; as an input of a formula it is a number.
fn schedule(trigger: &Trigger, spec: &ScaledObjectSpec, number: usize) -> Option<Value> {
    if trigger.r#type != "cron" || spec.modifiers().is_some() {
        return None;
    }
    let given = |name: &str| trigger.metadata.get(name);
    let replicas = given("desiredReplicas")?.parse::<i32>().ok()?;
    let name = format!("cron-{number}");
    Some(json!({"name": name, "timeZone": given("timezone")?, "start": given("start")?,
        "end": given("end")?, "minReplicas": replicas}))
}
