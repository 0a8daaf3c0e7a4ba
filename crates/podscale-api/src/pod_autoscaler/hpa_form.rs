//! A PodAutoscaler in the form of an HPA.

use super::spec::{self, metric_type, query_title};
use super::status::{MetricStatus, PodAutoscalerStatus};
use super::{KIND, PodAutoscaler};
use crate::hpa::v2::{
    self, HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
};
use crate::hpa::wording::condition_about_hpa;
use crate::recording::Origin;

/// The object as Recordings hold it: in the form of an HPA, which says what it was. Its status is as a
/// decision leaves that of an HPA, so that one step can be seen to follow from another.
#[must_use]
pub fn recorded(pa: &PodAutoscaler) -> HorizontalPodAutoscaler {
    let mut hpa = hpa_form(pa);
    if let Some(status) = &mut hpa.status {
        status.current_metrics = status.current_metrics.take().filter(|all| !all.is_empty());
        for condition in &mut status.conditions {
            condition.observed_generation = None;
        }
    }
    // What was read as JSON can be put into JSON.
    if let Ok(spec) = serde_json::to_value(&pa.spec) {
        Origin::note(KIND, &spec, &mut hpa);
    }
    hpa
}

/// What the object would be as an HPA: without all that an HPA does not have. A query to Prometheus
/// becomes an external metric of its name.
#[must_use]
pub fn hpa_form(pa: &PodAutoscaler) -> HorizontalPodAutoscaler {
    let PodAutoscaler { metadata, spec, status, .. } = pa;
    let direction = |rules: &Option<spec::ScalingRules>| rules.as_ref().map(|r| r.hpa.clone());
    HorizontalPodAutoscaler {
        kind: v2::KIND.to_owned(),
        api_version: v2::API_VERSION.to_owned(),
        metadata: metadata.clone(),
        spec: HorizontalPodAutoscalerSpec {
            scale_target_ref: spec.scale_target_ref.clone(),
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics: spec.metrics.iter().map(|m| hpa_metric(m, &metadata.namespace)).collect(),
            behavior: spec.behavior.as_ref().map(|behavior| HorizontalPodAutoscalerBehavior {
                scale_up: direction(&behavior.scale_up),
                scale_down: direction(&behavior.scale_down),
            }),
        },
        status: status.as_ref().map(hpa_status),
    }
}

fn hpa_metric(metric: &spec::Metric, namespace: &str) -> v2::MetricSpec {
    let mut hpa = metric.hpa.clone();
    if hpa.r#type == metric_type::PROMETHEUS
        && let Some(source) = &metric.prometheus
    {
        let name = query_title(metric.name.as_deref(), &source.query);
        let name = v2::MetricIdentifier { name, selector: None };
        hpa.r#type = v2::metric_type::EXTERNAL.to_owned();
        let external = v2::ExternalMetricSource { metric: name, target: source.target.clone() };
        hpa.external = Some(Box::new(external));
    }
    // An HPA names even the namespace that is always meant.
    if let Some(object) = &mut hpa.object
        && object.described_object.kind == "Namespace"
        && object.described_object.name.is_empty()
    {
        object.described_object.name = namespace.to_owned();
    }
    hpa
}

/// As much of a status as an HPA has.
fn hpa_status(status: &PodAutoscalerStatus) -> HorizontalPodAutoscalerStatus {
    HorizontalPodAutoscalerStatus {
        observed_generation: status.observed_generation,
        last_scale_time: status.last_scale_time,
        current_replicas: status.current_replicas,
        desired_replicas: status.desired_replicas,
        current_metrics: Some(status.current_metrics.iter().map(hpa_metric_status).collect()),
        conditions: status.conditions.iter().map(|c| condition_about_hpa(c, KIND)).collect(),
    }
}

fn hpa_metric_status(metric: &MetricStatus) -> v2::MetricStatus {
    let Some(prometheus) = &metric.prometheus else { return metric.hpa.clone() };
    let name = query_title(metric.name.as_deref(), &prometheus.query);
    let identifier = v2::MetricIdentifier { name, selector: None };
    let current = prometheus.current.clone();
    v2::MetricStatus {
        r#type: v2::metric_type::EXTERNAL.to_owned(),
        external: Some(Box::new(v2::ExternalMetricStatus { metric: identifier, current })),
        ..v2::MetricStatus::default()
    }
}

/// An HPA of the same meaning as a PodAutoscaler: pods are picked by the selector, as the HPA does.
#[must_use]
pub fn from_hpa(hpa: &HorizontalPodAutoscaler) -> PodAutoscaler {
    let HorizontalPodAutoscalerSpec {
        scale_target_ref,
        min_replicas,
        max_replicas,
        metrics,
        behavior,
    } = hpa.spec.clone();
    let direction = |rules: v2::HpaScalingRules| spec::ScalingRules {
        hpa: rules,
        ..spec::ScalingRules::default()
    };
    PodAutoscaler {
        kind: KIND.to_owned(),
        api_version: super::API_VERSION.to_owned(),
        metadata: hpa.metadata.clone(),
        spec: spec::PodAutoscalerSpec {
            scale_target_ref,
            min_replicas,
            max_replicas,
            metrics: metrics.into_iter().map(spec::Metric::from).collect(),
            behavior: behavior.map(|behavior| spec::Behavior {
                scale_up: behavior.scale_up.map(direction),
                scale_down: behavior.scale_down.map(direction),
            }),
            pod_selection: Some("Selector".to_owned()),
            ..spec::PodAutoscalerSpec::default()
        },
        status: None,
    }
}
