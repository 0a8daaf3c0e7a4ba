//! A native autoscaler as singlecloud shows it.
//!
//! Amounts keep their units: an autoscaler that is read and sent back means the same.

use super::alias::{Alias, labels_of};
use super::{Autoscaler, CurrentMetrics, CustomMetric, RESOURCE_NAMES, ResourceMetric};
use super::{Status, TARGET_KINDS, TYPE};
use crate::hpa::v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, MetricIdentifier, MetricSpec,
    MetricStatus, MetricValueStatus, metric_type, target_type,
};
use crate::quantity::{Format, Quantity};

/// The smallest size where none is given.
const DEFAULT_MIN_REPLICAS: i32 = 1;

/// How singlecloud shows an autoscaler; [`left_out`] says what it cannot show.
pub fn from_hpa(hpa: &HorizontalPodAutoscaler) -> Autoscaler {
    let (spec, meta) = (&hpa.spec, &hpa.metadata);
    let shown = || spec.metrics.iter().filter(|metric| is_shown(metric));
    let resources = shown().filter_map(|metric| metric.resource.as_ref());
    let pods = shown().filter_map(|metric| metric.pods.as_deref());
    Autoscaler {
        id: meta.name.clone(),
        r#type: TYPE.to_owned(),
        creation_timestamp: meta.creation_timestamp,
        deletion_timestamp: meta.deletion_timestamp,
        name: meta.name.clone(),
        scale_target_kind: target_kind(&spec.scale_target_ref),
        scale_target_name: spec.scale_target_ref.name.clone(),
        min_replicas: spec.min_replicas.unwrap_or(DEFAULT_MIN_REPLICAS),
        max_replicas: spec.max_replicas,
        resource_metrics: resources
            .map(|resource| ResourceMetric {
                resource_name: resource.name.clone(),
                target_type: resource.target.r#type.clone(),
                average_value: amount(resource.target.average_value.as_ref()),
                average_utilization: resource.target.average_utilization.unwrap_or_default(),
            })
            .collect(),
        custom_metrics: pods
            .map(|pods| custom(hpa, &pods.metric, pods.target.average_value.as_ref()))
            .collect(),
        status: status(hpa),
        ..Autoscaler::default()
    }
}

/// What singlecloud cannot show of an autoscaler, by field; a change by it leaves all of this as it is.
pub fn left_out(hpa: &HorizontalPodAutoscaler) -> Vec<String> {
    let kind = target_kind(&hpa.spec.scale_target_ref);
    let mut fields = Vec::new();
    if !TARGET_KINDS.contains(&kind.as_str()) {
        fields.push("spec.scaleTargetRef.kind".to_owned());
    }
    for (at, metric) in hpa.spec.metrics.iter().enumerate().filter(|(_, m)| !is_shown(m)) {
        fields.push(format!("spec.metrics[{at}] ({})", metric.r#type));
    }
    if hpa.spec.behavior.is_some() {
        fields.push("spec.behavior".to_owned());
    }
    fields
}

/// The kind of a target in singlecloud's words.
pub(super) fn target_kind(target: &CrossVersionObjectReference) -> String {
    target.kind.to_ascii_lowercase()
}

/// Whether singlecloud has a field for a metric.
pub(super) fn is_shown(metric: &MetricSpec) -> bool {
    match (metric.r#type.as_str(), &metric.resource, &metric.pods) {
        (metric_type::RESOURCE, Some(resource), _) => {
            let known = [target_type::UTILIZATION, target_type::AVERAGE_VALUE];
            RESOURCE_NAMES.contains(&resource.name.as_str())
                && known.contains(&resource.target.r#type.as_str())
        }
        (metric_type::PODS, _, Some(pods)) => labels_of(&pods.metric).is_some(),
        _ => false,
    }
}

fn custom(
    hpa: &HorizontalPodAutoscaler,
    metric: &MetricIdentifier,
    average: Option<&Quantity>,
) -> CustomMetric {
    let (namespace, name) = (&hpa.metadata.namespace, &hpa.metadata.name);
    let alias = Alias::of(metric, namespace, name);
    CustomMetric {
        metric_name: alias.map_or_else(|| metric.name.clone(), |alias| alias.metric),
        labels: labels_of(metric).unwrap_or_default(),
        average_value: count(average),
    }
}

fn status(hpa: &HorizontalPodAutoscaler) -> Status {
    let Some(status) = &hpa.status else { return Status::default() };
    let metrics = status.current_metrics.as_deref().unwrap_or_default();
    let of_type = |wanted: &'static str| metrics.iter().filter(move |m| m.r#type == wanted);
    let resource = |metric: &MetricStatus| {
        let resource = metric.resource.as_ref()?;
        let MetricValueStatus { average_value, average_utilization, .. } = &resource.current;
        RESOURCE_NAMES.contains(&resource.name.as_str()).then(|| ResourceMetric {
            resource_name: resource.name.clone(),
            target_type: String::new(),
            average_value: amount(average_value.as_ref()),
            average_utilization: average_utilization.unwrap_or_default(),
        })
    };
    let pods = |metric: &MetricStatus| {
        let pods = metric.pods.as_deref()?;
        labels_of(&pods.metric)?;
        Some(custom(hpa, &pods.metric, pods.current.average_value.as_ref()))
    };
    Status {
        current_replicas: status.current_replicas,
        desired_replicas: status.desired_replicas,
        current_metrics: CurrentMetrics {
            resource_metrics: of_type(metric_type::RESOURCE).filter_map(resource).collect(),
            custom_metrics: of_type(metric_type::PODS).filter_map(pods).collect(),
        },
    }
}

/// An amount of a resource, with its unit.
fn amount(quantity: Option<&Quantity>) -> String {
    quantity.map(Quantity::to_string).unwrap_or_default()
}

/// A count in plain digits where it is a whole number, as clients expect it; else with its unit.
fn count(quantity: Option<&Quantity>) -> String {
    let Some(quantity) = quantity else { return String::new() };
    let whole = quantity.value();
    if Quantity::from_value(whole, Format::DecimalSi) == *quantity {
        return whole.to_string();
    }
    quantity.to_string()
}
