//! A ScaledObject in the form of an HPA: the one that KEDA would make of it, between one replica and the most.

use crate::hpa::target;
use crate::hpa::v2::{
    self, CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
    MetricIdentifier, MetricSpec, metric_type,
};
use crate::keda::scaled_object::{NAME_LABEL, ScaledObject};
use crate::selector::LabelSelector;
use podscale_core::model::Source;
use podscale_core::{Autoscaler, Metric};

/// What the object would be as an HPA, given what it means: without all that an HPA does not have.
#[must_use]
pub fn hpa_form(object: &ScaledObject, model: &Autoscaler) -> HorizontalPodAutoscaler {
    let ScaledObject { metadata, spec, .. } = object;
    let target = &spec.scale_target_ref;
    HorizontalPodAutoscaler {
        kind: v2::KIND.to_owned(),
        api_version: v2::API_VERSION.to_owned(),
        metadata: metadata.clone(),
        spec: HorizontalPodAutoscalerSpec {
            scale_target_ref: CrossVersionObjectReference {
                kind: target.kind().to_owned(),
                name: target.name.clone(),
                api_version: target.api_version().to_owned(),
            },
            min_replicas: Some(spec.min_while_active()),
            max_replicas: spec.max(),
            metrics: model.metrics.iter().filter_map(|m| metric(m, &metadata.name)).collect(),
            behavior: spec.hpa_config().and_then(|config| config.behavior.clone()),
        },
        status: None,
    }
}

fn metric(metric: &Metric, object: &str) -> Option<MetricSpec> {
    let target = target::of_model(metric.target);
    Some(match &*metric.source {
        Source::Resource { name } => MetricSpec {
            r#type: metric_type::RESOURCE.to_owned(),
            resource: Some(v2::ResourceMetricSource { name: name.to_string(), target }),
            ..MetricSpec::default()
        },
        Source::ContainerResource { name, container } => {
            let (name, container) = (name.to_string(), container.to_string());
            let source = v2::ContainerResourceMetricSource { name, target, container };
            MetricSpec {
                r#type: metric_type::CONTAINER_RESOURCE.to_owned(),
                container_resource: Some(Box::new(source)),
                ..MetricSpec::default()
            }
        }
        Source::Trigger(trigger) => {
            let selector = LabelSelector {
                match_labels: [(NAME_LABEL, object)].into_iter().collect(),
                ..LabelSelector::default()
            };
            let metric =
                MetricIdentifier { name: trigger.name.to_string(), selector: Some(selector) };
            MetricSpec {
                r#type: metric_type::EXTERNAL.to_owned(),
                external: Some(Box::new(v2::ExternalMetricSource { metric, target })),
                ..MetricSpec::default()
            }
        }
        _ => return None,
    })
}
