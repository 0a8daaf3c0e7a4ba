//! Writes autoscalers of other kinds as ScaledObjects.

use serde_json::{Map, Value, json};

use super::super::{ConvertError, Hub, Loss, Written};
use super::{OR_ZERO, said};
use crate::hpa::v2::{HorizontalPodAutoscalerSpec, MetricSpec, metric_type};
use crate::keda::annotations::{PAUSED, PAUSED_REPLICAS, PAUSED_SCALE_IN, PAUSED_SCALE_OUT};
use crate::keda::scaled_object::KIND;
use crate::keda::trigger::RESOURCE_TYPES;
use crate::keda::{API_VERSION, POLLING_INTERVAL_SECONDS};
use crate::time::GoDuration;

/// The fields of a schedule that a trigger of cron has as well.
const OF_CRON: [&str; 5] = ["name", "timeZone", "start", "end", "minReplicas"];
/// The metric of an autoscaler that has none.
const DEFAULT_UTILIZATION: &str = "80";

/// Everything that is written, and what cannot be.
#[derive(Default)]
struct Writing {
    triggers: Vec<Value>,
    spec: Map<String, Value>,
    annotations: Map<String, Value>,
    idle: Option<i64>,
    losses: Vec<Loss>,
}

/// Writes one.
pub(super) fn write(hub: &Hub) -> Result<Written, ConvertError> {
    let spec = &hub.hpa.spec;
    let mut writing = Writing::default();
    for (index, metric) in spec.metrics.iter().enumerate() {
        match resource(metric) {
            Some(trigger) => writing.triggers.push(trigger),
            None => {
                let field = format!("spec.metrics[{index}]");
                writing.losses.push(said(field, serde_json::to_value(metric)?));
            }
        }
    }
    let is_metric = |said: &Loss| said.field.starts_with("spec.metrics[");
    let has_metrics = !spec.metrics.is_empty() || hub.beyond.iter().any(is_metric);
    for loss in &hub.beyond {
        writing.take(loss);
    }
    if !has_metrics {
        writing.triggers.push(json!({"type": "cpu", "metricType": "Utilization",
            "metadata": {"value": DEFAULT_UTILIZATION}}));
    }
    if writing.triggers.is_empty() {
        let none =
            "none of its metrics can be a trigger: only cpu, memory and queries with a server can";
        return Err(ConvertError::Unsuitable(none.to_owned()));
    }
    let mut fields = fields(spec, writing.idle)?;
    fields.extend(writing.spec);
    fields.insert("triggers".to_owned(), Value::Array(writing.triggers));
    let mut metadata = serde_json::to_value(&hub.hpa.metadata)?;
    for (name, value) in writing.annotations {
        metadata["annotations"][name] = value;
    }
    let object =
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": fields});
    Ok(Written { object, losses: writing.losses })
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
                let interval = i64::from(POLLING_INTERVAL_SECONDS);
                let failures = seconds(value).map(|seconds| (seconds / interval).max(1));
                self.fall_back("failureThreshold", failures)
            }
            "spec.mode" if value == "Paused" => self.order(PAUSED, "true"),
            "spec.mode" => value == "Active",
            "spec.hold.replicas" => self.order(PAUSED_REPLICAS, &value.to_string()),
            "spec.pause.scaleDown" => self.order(PAUSED_SCALE_IN, "true"),
            "spec.pause.scaleUp" => self.order(PAUSED_SCALE_OUT, "true"),
            "spec.schedules" => return self.take_schedules(value),
            field if field.starts_with("spec.metrics[") && field.ends_with(']') => {
                query(value).map(|trigger| self.triggers.push(trigger)).is_some()
            }
            _ => false,
        };
        if !taken {
            self.losses.push(loss.clone());
        }
    }

    fn take_schedules(&mut self, schedules: &Value) {
        for (index, schedule) in schedules.as_array().into_iter().flatten().enumerate() {
            match cron(schedule) {
                Some(trigger) => self.triggers.push(trigger),
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
