//! Writes autoscalers of other kinds as ScaledObjects.

use serde_json::{Map, Value, json};

use super::super::{ConvertError, Hub, Loss, Written};
use super::{OR_ZERO, formula, said};
use crate::hpa::v2::{HorizontalPodAutoscalerSpec, MetricSpec, metric_type};
use crate::keda::annotations::{PAUSED, PAUSED_REPLICAS, PAUSED_SCALE_IN, PAUSED_SCALE_OUT};
use crate::keda::scaled_object::KIND;
use crate::keda::trigger::RESOURCE_TYPES;
use crate::keda::{API_VERSION, POLLING_INTERVAL_SECONDS};
use crate::pod_autoscaler::spec::metric_type as own_type;
use crate::time::GoDuration;
use std::collections::BTreeSet;

/// The fields of a schedule that a trigger of cron has as well.
const OF_CRON: [&str; 5] = ["name", "timeZone", "start", "end", "minReplicas"];
/// The metric of an autoscaler that has none.
const DEFAULT_UTILIZATION: &str = "80";

/// Everything that is written, and what cannot be.
#[derive(Default)]
struct Writing {
    /// With the places of their metrics among all.
    triggers: Vec<(usize, Value)>,
    crons: Vec<Value>,
    /// The container whose variables triggers name.
    container: Option<String>,
    expression: Option<Loss>,
    /// How often it is decided, in seconds.
    interval: i64,
    spec: Map<String, Value>,
    annotations: Map<String, Value>,
    idle: Option<i64>,
    losses: Vec<Loss>,
}

/// Writes one.
pub(super) fn write(hub: &Hub) -> Result<Written, ConvertError> {
    let spec = &hub.hpa.spec;
    let mut writing = Writing { interval: interval(hub), ..Writing::default() };
    let own: BTreeSet<usize> =
        hub.beyond.iter().filter_map(|said| whole_metric(&said.field)).collect();
    let mut places = (0..).filter(|place| !own.contains(place));
    for (index, (metric, place)) in spec.metrics.iter().zip(&mut places).enumerate() {
        match resource(metric) {
            Some(trigger) => writing.triggers.push((place, trigger)),
            None => {
                let field = format!("spec.metrics[{index}]");
                writing.losses.push(said(field, serde_json::to_value(metric)?));
            }
        }
    }
    let has_metrics = !spec.metrics.is_empty() || !own.is_empty();
    // A metric is there before its name and what is made of it.
    let (whole, others): (Vec<&Loss>, Vec<&Loss>) =
        hub.beyond.iter().partition(|said| whole_metric(&said.field).is_some());
    for loss in whole.into_iter().chain(others) {
        writing.take(loss);
    }
    if !has_metrics {
        let usual = json!({"type": "cpu", "metricType": "Utilization",
            "metadata": {"value": DEFAULT_UTILIZATION}});
        writing.triggers.push((0, usual));
    }
    if writing.triggers.is_empty() {
        let none = "none of its metrics can be a trigger: only cpu, memory, queries with a server and \
                    triggers can";
        return Err(ConvertError::Unsuitable(none.to_owned()));
    }
    writing.triggers.sort_by_key(|(place, _)| *place);
    let mut fields = fields(spec, writing.idle)?;
    let modifiers = writing.modifiers();
    fields.append(&mut writing.spec);
    if let Some(container) = writing.container {
        fields["scaleTargetRef"]["envSourceContainerName"] = container.into();
    }
    if let Some(modifiers) = modifiers {
        fields.entry("advanced").or_insert_with(|| json!({}))["scalingModifiers"] = modifiers;
        let lost = |(index, cron)| said(format!("spec.schedules[{index}]"), cron);
        // Beside a formula, KEDA asks no trigger by itself.
        writing.losses.extend(writing.crons.drain(..).enumerate().map(lost));
    }
    let triggers = writing.triggers.into_iter().map(|(_, trigger)| trigger).chain(writing.crons);
    fields.insert("triggers".to_owned(), triggers.collect());
    let mut metadata = serde_json::to_value(&hub.hpa.metadata)?;
    for (name, value) in writing.annotations {
        metadata["annotations"][name] = value;
    }
    let object =
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": fields});
    Ok(Written { object, losses: writing.losses })
}

/// How often it is decided, in seconds, which is how often a ScaledObject is polled.
fn interval(hub: &Hub) -> i64 {
    let period = hub.beyond.iter().find(|said| said.field == "spec.syncPeriod");
    let period = period.and_then(|said| seconds(&said.value));
    period.unwrap_or(i64::from(POLLING_INTERVAL_SECONDS)).max(1)
}

/// The place of a metric that a field is the whole of.
fn whole_metric(field: &str) -> Option<usize> {
    field.strip_prefix("spec.metrics[")?.strip_suffix(']')?.parse().ok()
}

/// The place of a metric whose name a field is.
fn metric_name(field: &str) -> Option<usize> {
    field.strip_prefix("spec.metrics[")?.strip_suffix("].name")?.parse().ok()
}

/// What `autoscaling/v2` says beside metrics.
fn fields(
    spec: &HorizontalPodAutoscalerSpec,
    idle: Option<i64>,
) -> Result<Map<String, Value>, ConvertError> {
    let target = &spec.scale_target_ref;
    let mut reference = json!({"name": target.name});
    for (name, value) in [("apiVersion", &target.api_version), ("kind", &target.kind)] {
        if !value.is_empty() {
            reference[name] = json!(value);
        }
    }
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
    set("scaleTargetRef", reference);
    let min = i64::from(spec.min_replicas.unwrap_or(1));
    match idle {
        Some(0) if min <= 1 => set("minReplicaCount", json!(0)),
        Some(idle) => {
            set("idleReplicaCount", json!(idle));
            set("minReplicaCount", json!(min));
        }
        None => set("minReplicaCount", json!(min)),
    }
    set("maxReplicaCount", json!(spec.max_replicas));
    if let Some(behavior) = &spec.behavior {
        let config = json!({"behavior": serde_json::to_value(behavior)?});
        set("advanced", json!({"horizontalPodAutoscalerConfig": config}));
    }
    Ok(fields)
}

impl Writing {
    /// Takes in what a PodAutoscaler says beyond `autoscaling/v2`.
    fn take(&mut self, loss: &Loss) {
        let Loss { field, value } = loss;
        let taken = match &**field {
            "spec.scaleToZero" => self.rest(Some(0)),
            "spec.scaleToZero.idleReplicas" => self.rest(value.as_i64()),
            "spec.scaleToZero.zeroByOthers" => value == "Wake",
            "spec.scaleToZero.coolDown" => {
                let idle = self.idle.or(Some(0));
                self.rest(idle) && self.set_seconds("cooldownPeriod", value, 0)
            }
            "spec.syncPeriod" => self.set_seconds("pollingInterval", value, 1),
            "spec.fallback.replicas" => self.fall_back("replicas", value.as_i64()),
            "spec.fallback.after" => {
                let interval = self.interval;
                let failures = seconds(value).map(|seconds| (seconds / interval).max(1));
                self.fall_back("failureThreshold", failures)
            }
            "spec.mode" if value == "Paused" => self.order(PAUSED, "true"),
            "spec.mode" => value == "Active",
            "spec.hold.replicas" => self.order(PAUSED_REPLICAS, &value.to_string()),
            "spec.pause.scaleDown" => self.order(PAUSED_SCALE_IN, "true"),
            "spec.pause.scaleUp" => self.order(PAUSED_SCALE_OUT, "true"),
            "spec.schedules" => return self.take_schedules(value),
            "spec.combine" => value == "Expression",
            "spec.expression" => {
                self.expression = Some(loss.clone());
                true
            }
            field if field.ends_with("].trigger.envSourceContainerName") => {
                self.name_container(value)
            }
            field => match (whole_metric(field), metric_name(field)) {
                (Some(place), _) => self.take_metric(place, value),
                (None, Some(place)) => self.name(place, value),
                (None, None) => false,
            },
        };
        if !taken {
            self.losses.push(loss.clone());
        }
    }

    fn take_metric(&mut self, place: usize, metric: &Value) -> bool {
        if let Some(trigger) = query(metric) {
            self.triggers.push((place, trigger));
            return true;
        }
        let trigger = event_source(metric);
        trigger.map(|trigger| self.triggers.push((place, trigger))).is_some()
    }

    /// All triggers of a ScaledObject name variables of the same container.
    fn name_container(&mut self, name: &Value) -> bool {
        let Some(name) = name.as_str() else { return false };
        self.container.get_or_insert_with(|| name.to_owned()) == name
    }

    fn name(&mut self, place: usize, name: &Value) -> bool {
        let found = self.triggers.iter_mut().find(|(found, _)| *found == place);
        found.map(|(_, trigger)| trigger["name"] = name.clone()).is_some()
    }

    /// An expression as a formula, if it can be one.
    fn modifiers(&mut self) -> Option<Value> {
        let lost = self.expression.take()?;
        let is_resource =
            |trigger: &Value| RESOURCE_TYPES.iter().any(|kind| trigger["type"] == **kind);
        let (resources, others): (Vec<&Value>, Vec<&Value>) =
            self.triggers.iter().map(|(_, trigger)| trigger).partition(|one| is_resource(one));
        let names: Vec<&str> = (others.iter().chain(&resources))
            .map(|trigger| trigger["name"].as_str().unwrap_or_default())
            .collect();
        let text = lost.value.as_str().unwrap_or_default();
        let Some(compared) = formula::to_formula(text, &names, resources.len()) else {
            self.losses.push(lost);
            return None;
        };
        let target = compared.target.to_string();
        let mut modifiers = json!({"formula": compared.formula, "target": target});
        if compared.is_for_all {
            modifiers["metricType"] = json!("Value");
        }
        Some(modifiers)
    }

    fn take_schedules(&mut self, schedules: &Value) {
        for (index, schedule) in schedules.as_array().into_iter().flatten().enumerate() {
            match cron(schedule) {
                Some(trigger) => self.crons.push(trigger),
                None => {
                    self.losses.push(said(format!("spec.schedules[{index}]"), schedule.clone()));
                }
            }
        }
    }

    fn rest(&mut self, idle: Option<i64>) -> bool {
        self.idle = idle.or(self.idle);
        idle.is_some()
    }

    fn set_seconds(&mut self, name: &str, value: &Value, least: i64) -> bool {
        let found = seconds(value).filter(|seconds| *seconds >= least);
        found.map(|seconds| self.spec.insert(name.to_owned(), json!(seconds))).is_some()
    }

    /// Both fields are required; the other one has the default of a PodAutoscaler until it comes.
    fn fall_back(&mut self, name: &str, value: Option<i64>) -> bool {
        let Some(value) = value else { return false };
        let usual = json!({"failureThreshold": 6, "replicas": 0, "behavior": "static"});
        self.spec.entry("fallback").or_insert(usual)[name] = json!(value);
        true
    }

    fn order(&mut self, annotation: &str, value: &str) -> bool {
        self.annotations.insert(annotation.to_owned(), json!(value));
        true
    }
}

/// The whole seconds of a duration.
fn seconds(value: &Value) -> Option<i64> {
    let GoDuration(nanoseconds) = GoDuration::parse(value.as_str()?).ok()?;
    Some(nanoseconds / 1_000_000_000)
}

/// A metric of cpu or memory as a trigger.
fn resource(metric: &MetricSpec) -> Option<Value> {
    let (name, container, target) = match &*metric.r#type {
        metric_type::RESOURCE => {
            let source = metric.resource.as_ref()?;
            (&source.name, None, &source.target)
        }
        metric_type::CONTAINER_RESOURCE => {
            let source = metric.container_resource.as_ref()?;
            (&source.name, Some(&source.container), &source.target)
        }
        _ => return None,
    };
    if !RESOURCE_TYPES.contains(&name.as_str()) {
        return None;
    }
    let (metric_type, value) = match (target.average_utilization, &target.average_value) {
        (Some(percent), _) => ("Utilization", percent.to_string()),
        (None, Some(amount)) => ("AverageValue", amount.to_string()),
        (None, None) => return None,
    };
    let mut metadata = json!({"value": value});
    if let Some(container) = container {
        metadata["containerName"] = json!(container);
    }
    Some(json!({"type": name, "metricType": metric_type, "metadata": metadata}))
}

/// A query of a PodAutoscaler as a trigger; one without a server has nobody to ask there.
fn query(metric: &Value) -> Option<Value> {
    let known = ["type", "name", "prometheus", "activation"];
    let has_others = metric.as_object()?.keys().any(|name| !known.contains(&name.as_str()));
    if metric["type"] != "Prometheus" || has_others {
        return None;
    }
    let source = &metric["prometheus"];
    let (server, query) = (source["server"].as_str()?, source["query"].as_str()?);
    let target = &source["target"];
    let (metric_type, threshold) = match (target["averageValue"].as_str(), target["value"].as_str())
    {
        (Some(value), _) => ("AverageValue", value),
        (None, value) => ("Value", value?),
    };
    let mut metadata = json!({"serverAddress": server, "threshold": threshold});
    match query.strip_prefix('(').and_then(|query| query.strip_suffix(OR_ZERO)) {
        Some(inner) => metadata["query"] = json!(inner),
        None => {
            metadata["query"] = json!(query);
            metadata["ignoreNullValues"] = json!("false");
        }
    }
    if let Some(activation) = metric["activation"].as_str() {
        metadata["activationThreshold"] = json!(activation);
    }
    let mut trigger =
        json!({"type": "prometheus", "metricType": metric_type, "metadata": metadata});
    if let Some(name) = metric["name"].as_str() {
        trigger["name"] = json!(name);
    }
    Some(trigger)
}

/// A metric of an event source as a trigger.
fn event_source(metric: &Value) -> Option<Value> {
    let source = metric["trigger"].as_object()?;
    if metric["type"] != own_type::TRIGGER {
        return None;
    }
    let mut trigger = source.clone();
    if trigger.get("useCachedMetrics") == Some(&Value::Bool(false)) {
        trigger.remove("useCachedMetrics");
    }
    trigger.entry("metadata").or_insert_with(|| json!({}));
    if let Some(name) = metric["name"].as_str() {
        trigger.insert("name".to_owned(), json!(name));
    }
    Some(Value::Object(trigger))
}

/// A schedule as a trigger, if it says nothing but how many there are at least between two times.
fn cron(schedule: &Value) -> Option<Value> {
    if schedule.as_object()?.keys().any(|name| !OF_CRON.contains(&name.as_str())) {
        return None;
    }
    let text = |name: &str| schedule[name].as_str();
    let replicas = schedule["minReplicas"].as_i64()?.to_string();
    let zone = text("timeZone").unwrap_or("UTC");
    Some(json!({"type": "cron", "metadata": {"timezone": zone, "start": text("start")?,
        "end": text("end")?, "desiredReplicas": replicas}}))
}
