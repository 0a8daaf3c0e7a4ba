//! ScaledObjects in Recordings: as HPAs that say what they were. What their triggers measure are the metrics of the HPA;
//! what is made of several is noted beside the spec.

use super::{CheckError, TriggerMetric, autoscaler, hpa_form, step};
use crate::hpa::v2::{ExternalMetricSource, HorizontalPodAutoscaler, MetricSpec, MetricTarget};
use crate::keda::scaled_object::{KIND, ScaledObject, ScaledObjectSpec};
use crate::quantity::Quantity;
use crate::recording::Origin;
use crate::time::Timestamp;
use podscale_core::model::{EventSource, Milli, Scope, Source, Targets, Trigger, TriggerOf};
use podscale_core::{Autoscaler, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// What is noted of an object.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Noted {
    /// Its spec.
    object: ScaledObjectSpec,
    /// The names of the metrics that its formula is made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
    /// What is wrong with its triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// When its status says that it was last active.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_active_time: Option<Timestamp>,
    /// Whether an HPA beside it decides how many replicas an active target has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    left_to_hpa: bool,
}

/// An object in the form that Recordings hold.
#[must_use]
pub fn recorded(
    object: &ScaledObject,
    model: &Autoscaler,
    checked: &Result<(), CheckError>,
) -> HorizontalPodAutoscaler {
    let extensions = model.extensions.as_deref();
    let of_triggers = checked.as_ref().err().filter(|error| error.step == step::HPA);
    let noted = Noted {
        object: object.spec.clone(),
        inputs: model.metrics.iter().flat_map(|metric| inputs(&metric.source)).collect(),
        problem: of_triggers.map(|error| error.problem.clone()),
        last_active_time: object.status.as_ref().and_then(|status| status.last_active_time),
        left_to_hpa: extensions.is_some_and(|it| it.activation.scope == Scope::Activation),
    };
    let mut hpa = hpa_form(object, model);
    Origin::note(KIND, &serde_json::to_value(noted).unwrap_or_default(), &mut hpa);
    hpa
}

fn inputs(source: &Source) -> Vec<String> {
    match source {
        Source::Trigger(Trigger { of: TriggerOf::Formula(made), .. }) => {
            made.inputs.iter().map(|(name, _)| name.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

/// What a recorded object means.
#[must_use]
pub fn replayed(hpa: &HorizontalPodAutoscaler, noted: Value) -> Autoscaler {
    // A recorded spec was written from this very type.
    let noted: Noted = serde_json::from_value(noted).unwrap_or_default();
    let spec = noted.object;
    let is_composite = spec.modifiers().is_some();
    let metrics = hpa.spec.metrics.iter();
    let mut triggers: Vec<TriggerMetric> =
        metrics.filter_map(|metric| measured(metric, is_composite)).collect();
    triggers.extend(noted.inputs.iter().map(|name| external(name, Targets::default())));
    let triggers = noted.problem.map_or(Ok(triggers), Err);
    let object = ScaledObject { metadata: hpa.metadata.clone(), spec, ..ScaledObject::default() };
    let mut model = autoscaler(&object, &triggers);
    if let Some(extensions) = &mut model.extensions
        && noted.left_to_hpa
    {
        extensions.activation.scope = Scope::Activation;
    }
    model
}

/// The spec of a recorded object.
#[must_use]
pub fn recorded_spec(noted: Value) -> ScaledObjectSpec {
    let noted: Noted = serde_json::from_value(noted).unwrap_or_default();
    noted.object
}

/// Whether an HPA beside a recorded object decided how many replicas an active target has.
#[must_use]
pub fn was_left_to_hpa(hpa: &HorizontalPodAutoscaler) -> bool {
    let origin = Origin::of(hpa).filter(|origin| origin.kind == KIND);
    let noted = origin.and_then(|origin| serde_json::from_value::<Noted>(origin.spec).ok());
    noted.is_some_and(|noted| noted.left_to_hpa)
}

/// What a recorded object's status said, as far as it has a part in decisions.
#[must_use]
pub fn replayed_status(noted: Value) -> Status {
    let noted: Noted = serde_json::from_value(noted).unwrap_or_default();
    Status { last_active: noted.last_active_time.map(|Timestamp(at)| at), ..Status::default() }
}

/// What a trigger measures, from the metric that it is of an HPA; a composite stands for others.
fn measured(metric: &MetricSpec, is_composite: bool) -> Option<TriggerMetric> {
    if let Some(resource) = &metric.resource {
        let source = Source::Resource { name: resource.name.as_str().into() };
        return Some(TriggerMetric::Resource { source, targets: targets(&resource.target) });
    }
    if let Some(resource) = &metric.container_resource {
        let (name, container) = (resource.name.as_str().into(), resource.container.as_str().into());
        let source = Source::ContainerResource { name, container };
        return Some(TriggerMetric::Resource { source, targets: targets(&resource.target) });
    }
    metric.external.as_deref().filter(|_| !is_composite).map(recorded_trigger)
}

/// What an event source measures, from the external metric that it is of an HPA.
#[must_use]
pub fn recorded_trigger(metric: &ExternalMetricSource) -> TriggerMetric {
    external(&metric.metric.name, targets(&metric.target))
}

fn external(name: &str, targets: Targets) -> TriggerMetric {
    let name: Arc<str> = name.into();
    // Nobody asks it again.
    let source = EventSource { kind: "recorded".into(), key: Arc::clone(&name) };
    TriggerMetric::External { name, source, targets }
}

fn targets(target: &MetricTarget) -> Targets {
    let milli = |amount: &Quantity| Milli(amount.milli_value());
    Targets {
        value: target.value.as_ref().map(milli),
        average_value: target.average_value.as_ref().map(milli),
        average_utilization: target.average_utilization,
        ..Targets::default()
    }
}
