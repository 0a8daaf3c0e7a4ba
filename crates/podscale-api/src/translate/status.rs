//! The status of an autoscaler, from its wire form and back.

use super::{object_ref, series};
use crate::hpa::v2::{
    self, HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, MetricSpec, MetricStatus,
    MetricValueStatus, metric_type,
};
use crate::hpa::wording::{HPA, about_hpa};
use crate::quantity::{Format, Quantity};
use crate::time::Timestamp;
use podscale_core::decision::MetricResults;
use podscale_core::model::{Milli, Source};
use podscale_core::status::{
    Condition, ConditionKind, ConditionStatus, Current, Note, Status, StoredMetric,
};
use podscale_core::{Decision, Snapshot, Time};
use std::sync::Arc;

/// What a stored status says, as the rules see it.
#[must_use]
pub fn from_wire(status: &HorizontalPodAutoscalerStatus) -> Status {
    Status {
        observed_generation: status.observed_generation,
        last_scale: status.last_scale_time.map(|t| t.0),
        last_active: None,
        current_replicas: status.current_replicas,
        desired_replicas: status.desired_replicas,
        metrics: status.current_metrics.iter().flatten().map(stored_metric).collect(),
        conditions: status.conditions.iter().map(|c| condition(c, HPA)).collect(),
    }
}

/// A stored condition of an autoscaler of this kind, as the rules see it.
pub(super) fn condition(condition: &v2::Condition, kind: &str) -> Condition {
    let known = ConditionKind::ALL.into_iter().find(|k| k.name() == condition.r#type);
    Condition {
        kind: known.ok_or_else(|| condition.r#type.as_str().into()),
        status: match condition.status.as_str() {
            "True" => ConditionStatus::True,
            "False" => ConditionStatus::False,
            other => ConditionStatus::Other(other.into()),
        },
        since: condition.last_transition_time.map(|t| t.0),
        note: Note::text(condition.reason.clone(), &*about_hpa(&condition.message, kind)),
    }
}

pub(super) fn stored_metric(metric: &MetricStatus) -> StoredMetric {
    if metric.r#type.is_empty() {
        return StoredMetric::Unread;
    }
    known_metric(metric).unwrap_or(StoredMetric::Foreign)
}

fn known_metric(metric: &MetricStatus) -> Option<StoredMetric> {
    let (source, values) = match metric.r#type.as_str() {
        metric_type::RESOURCE => {
            let resource = metric.resource.as_ref()?;
            (Source::Resource { name: resource.name.as_str().into() }, &resource.current)
        }
        metric_type::CONTAINER_RESOURCE => {
            let resource = metric.container_resource.as_ref()?;
            let (name, container) = (&*resource.name, &*resource.container);
            let source =
                Source::ContainerResource { name: name.into(), container: container.into() };
            (source, &resource.current)
        }
        metric_type::PODS => {
            let pods = metric.pods.as_ref()?;
            (Source::Pods(series(&pods.metric)), &pods.current)
        }
        metric_type::OBJECT => {
            let object = metric.object.as_ref()?;
            let described = object_ref(&object.described_object);
            let source = Source::Object { series: series(&object.metric), object: described };
            (source, &object.current)
        }
        metric_type::EXTERNAL => {
            let external = metric.external.as_ref()?;
            (Source::External(series(&external.metric)), &external.current)
        }
        _ => return None,
    };
    Some(StoredMetric::Known { source: Arc::new(source), current: current(values)? })
}

/// What a metric said, unless it is finer than what ours say.
pub(super) fn current(values: &MetricValueStatus) -> Option<Current> {
    Some(Current {
        value: exact_milli(values.value.as_ref())?,
        average_value: exact_milli(values.average_value.as_ref())?,
        average_utilization: values.average_utilization,
    })
}

/// The amount in thousandths; the outer `None` if it has a finer part, which ours never have.
fn exact_milli(quantity: Option<&Quantity>) -> Option<Option<Milli>> {
    let Some(quantity) = quantity else { return Some(None) };
    let milli = quantity.milli_value();
    let same = Quantity::from_milli(milli, Format::DecimalSi).cmp(quantity).is_eq();
    same.then_some(Some(Milli(milli)))
}

/// The status to store after a decision on the object as it was read.
#[must_use]
pub fn to_wire(
    decision: &Decision,
    snapshot: &Snapshot<'_>,
    hpa: &HorizontalPodAutoscaler,
) -> HorizontalPodAutoscalerStatus {
    let status = decision.status(snapshot);
    let stored = hpa.status.as_ref();
    HorizontalPodAutoscalerStatus {
        observed_generation: status.observed_generation,
        last_scale_time: status.last_scale.map(stored_time),
        current_replicas: status.current_replicas,
        desired_replicas: status.desired_replicas,
        current_metrics: match decision.metrics {
            MetricResults::Untouched => stored.and_then(|s| s.current_metrics.clone()),
            MetricResults::NotRead => None,
            MetricResults::Read => {
                let metrics = decision.read_metrics().zip(&hpa.spec.metrics);
                Some(metrics.map(|(current, spec)| wire_metric(current.as_ref(), spec)).collect())
            }
        },
        conditions: status.conditions.iter().map(|c| wire_condition(c, stored)).collect(),
    }
}

/// Kubernetes stores whole seconds.
pub(super) fn stored_time(time: Time) -> Timestamp {
    Timestamp(time.whole_seconds())
}

fn wire_condition(
    condition: &Condition,
    stored: Option<&HorizontalPodAutoscalerStatus>,
) -> v2::Condition {
    let name = match &condition.kind {
        Ok(kind) => kind.name(),
        Err(name) => name,
    };
    let before = stored.and_then(|s| s.conditions.iter().find(|c| c.r#type == name));
    v2::Condition {
        r#type: name.to_owned(),
        status: condition.status.name().to_owned(),
        last_transition_time: condition.since.map(stored_time),
        reason: condition.note.reason().to_owned(),
        message: condition.note.message().into_owned(),
        // No rule sets it, and none clears it.
        observed_generation: before.and_then(|c| c.observed_generation),
    }
}

/// A quantity in the form that it has once the API server has read it.
fn as_stored(quantity: Quantity) -> Quantity {
    Quantity::parse(&quantity.to_string()).unwrap_or(quantity)
}

/// What a metric said, in the form that a resource's amounts have; others are named by nothing.
pub(super) fn values(current: &Current, resource: &str) -> MetricValueStatus {
    let format = if resource == "memory" { Format::BinarySi } else { Format::DecimalSi };
    let quantity = |Milli(milli): Milli| as_stored(Quantity::from_milli(milli, format));
    MetricValueStatus {
        value: current.value.map(quantity),
        average_value: current.average_value.map(quantity),
        average_utilization: current.average_utilization,
    }
}

pub(super) fn wire_metric(current: Option<&Current>, spec: &MetricSpec) -> MetricStatus {
    let Some(current) = current else { return MetricStatus::default() };
    let values = |resource: &str| values(current, resource);
    let mut status = MetricStatus { r#type: spec.r#type.clone(), ..MetricStatus::default() };
    match spec.r#type.as_str() {
        metric_type::RESOURCE => {
            status.resource = spec.resource.as_ref().map(|s| v2::ResourceMetricStatus {
                name: s.name.clone(),
                current: values(&s.name),
            });
        }
        metric_type::CONTAINER_RESOURCE => {
            status.container_resource = spec
                .container_resource
                .as_ref()
                .map(|s| v2::ContainerResourceMetricStatus {
                    name: s.name.clone(),
                    container: s.container.clone(),
                    current: values(&s.name),
                })
                .map(Box::new);
        }
        metric_type::PODS => {
            status.pods = spec
                .pods
                .as_ref()
                .map(|s| v2::PodsMetricStatus { metric: s.metric.clone(), current: values("") })
                .map(Box::new);
        }
        metric_type::OBJECT => {
            status.object = spec
                .object
                .as_ref()
                .map(|s| v2::ObjectMetricStatus {
                    metric: s.metric.clone(),
                    described_object: s.described_object.clone(),
                    current: values(""),
                })
                .map(Box::new);
        }
        _ => {
            status.external = spec
                .external
                .as_ref()
                .map(|s| v2::ExternalMetricStatus { metric: s.metric.clone(), current: values("") })
                .map(Box::new);
        }
    }
    status
}
