//! A PodAutoscaler in the form of an HPA.

use super::spec::{self, metric_type, query_title};
use super::status::{MetricStatus, PodAutoscalerStatus};
use super::{KIND, PodAutoscaler};
use crate::hpa::target;
use crate::hpa::v2::{
    self, HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus,
};
use crate::hpa::wording::condition_about_hpa;
use crate::recording::Origin;
use podscale_core::model::Source;
use podscale_core::{Autoscaler, Metric};
use serde_json::Value;

/// Where it is noted beside a recorded spec what is wrong with its event sources.
const PROBLEM: &str = "podscale.dev/problem";

/// The object as Recordings hold it: in the form of an HPA, which says what it was. Its status is as a
/// decision leaves that of an HPA, so that one step can be seen to follow from another. What is wrong with its event
/// sources is noted beside its spec.
#[must_use]
pub fn recorded(
    pa: &PodAutoscaler,
    model: &Autoscaler,
    problem: Option<&str>,
) -> HorizontalPodAutoscaler {
    let mut hpa = hpa_form(pa, Some(model));
    if let Some(status) = &mut hpa.status {
        status.current_metrics = status.current_metrics.take().filter(|all| !all.is_empty());
        for condition in &mut status.conditions {
            condition.observed_generation = None;
        }
    }
    // What was read as JSON can be put into JSON.
    if let Ok(mut spec) = serde_json::to_value(&pa.spec) {
        if let Some(problem) = problem {
            spec[PROBLEM] = problem.into();
        }
        Origin::note(KIND, &spec, &mut hpa);
    }
    hpa
}

/// What was wrong with the event sources of a recorded object, given what is noted of it.
#[must_use]
pub fn recorded_problem(noted: &Value) -> Option<String> {
    noted.get(PROBLEM)?.as_str().map(str::to_owned)
}

/// What the object would be as an HPA: without all that an HPA does not have. A query to Prometheus and the value of
/// an event source become external metrics of their names; what the latter is compared with is known to the model.
#[must_use]
pub fn hpa_form(pa: &PodAutoscaler, model: Option<&Autoscaler>) -> HorizontalPodAutoscaler {
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
            metrics: (spec.metrics.iter().enumerate())
                .map(|(place, metric)| {
                    let model = model.and_then(|model| model.metrics.get(place));
                    hpa_metric(metric, model, &metadata.namespace)
                })
                .collect(),
            behavior: spec.behavior.as_ref().map(|behavior| HorizontalPodAutoscalerBehavior {
                scale_up: direction(&behavior.scale_up),
                scale_down: direction(&behavior.scale_down),
            }),
        },
        status: status.as_ref().map(hpa_status),
    }
}

fn hpa_metric(metric: &spec::Metric, model: Option<&Metric>, namespace: &str) -> v2::MetricSpec {
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
    if let Some(source) = metric.event_source() {
        let name = model.map_or(&*source.r#type, trigger_name).to_owned();
        let metric = v2::MetricIdentifier { name, selector: None };
        let target = model.map(|model| target::of_model(model.target)).unwrap_or_default();
        hpa.r#type = v2::metric_type::EXTERNAL.to_owned();
        hpa.external = Some(Box::new(v2::ExternalMetricSource { metric, target }));
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

/// The name under which an event source gives a value.
fn trigger_name(metric: &Metric) -> &str {
    match &*metric.source {
        Source::Trigger(trigger) => &trigger.name,
        other => other.type_name(),
    }
}

fn hpa_metric_status(metric: &MetricStatus) -> v2::MetricStatus {
    let (name, current) = match (&metric.prometheus, &metric.trigger) {
        (Some(query), _) => {
            (query_title(metric.name.as_deref(), &query.query), query.current.clone())
        }
        (None, Some(trigger)) => (trigger.metric.clone(), trigger.current.clone()),
        (None, None) => return metric.hpa.clone(),
    };
    let identifier = v2::MetricIdentifier { name, selector: None };
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
