//! `v2alpha1` to and from `v2`, by way of `v2beta1`, of which it is a part. Metrics that it has no room for are
//! kept in the annotation that `v1` has for them.

use super::{annotations, metrics};
use crate::hpa::v2::{self, HorizontalPodAutoscalerStatus};
use crate::hpa::{v2alpha1 as alpha, v2beta1 as beta};

/// A `v2alpha1` autoscaler as `v2`, with what its annotations say; nothing is filled in.
pub(super) fn up(mut hpa: alpha::HorizontalPodAutoscaler) -> v2::HorizontalPodAutoscaler {
    let own = hpa.spec.metrics.into_iter().map(|spec| metrics::spec_up(spec_to_beta(spec)));
    let specs = own.chain(annotations::metrics(&hpa.metadata).unwrap_or_default()).collect();
    let current = annotations::current_metrics(&hpa.metadata).or_else(|| {
        let current = hpa.status.current_metrics?;
        Some(current.into_iter().map(|one| metrics::status_up(status_to_beta(one))).collect())
    });
    let behavior = annotations::behavior(&hpa.metadata);
    annotations::remove(&mut hpa.metadata);
    v2::HorizontalPodAutoscaler {
        kind: v2::KIND.into(),
        api_version: v2::API_VERSION.into(),
        metadata: hpa.metadata,
        spec: v2::HorizontalPodAutoscalerSpec {
            scale_target_ref: hpa.spec.scale_target_ref,
            min_replicas: hpa.spec.min_replicas,
            max_replicas: hpa.spec.max_replicas,
            metrics: specs,
            behavior,
        },
        status: Some(HorizontalPodAutoscalerStatus {
            observed_generation: hpa.status.observed_generation,
            last_scale_time: hpa.status.last_scale_time,
            current_replicas: hpa.status.current_replicas,
            desired_replicas: hpa.status.desired_replicas,
            current_metrics: current,
            conditions: hpa.status.conditions,
        }),
    }
}

/// A `v2` autoscaler as `v2alpha1`.
pub(super) fn down(hpa: &v2::HorizontalPodAutoscaler) -> alpha::HorizontalPodAutoscaler {
    let status = hpa.status.clone().unwrap_or_default();
    let mut metadata = hpa.metadata.clone();
    annotations::remove(&mut metadata);
    let mut own = Vec::new();
    let mut others = Vec::new();
    for spec in &hpa.spec.metrics {
        match spec_of_beta(metrics::spec_down(spec)) {
            Some(expressible) => own.push(expressible),
            None => others.push(spec),
        }
    }
    let current = status.current_metrics.as_ref().map(|current| {
        let shown = current.iter().map(|one| status_of_beta(metrics::status_down(one)));
        (current, shown.collect::<Vec<_>>())
    });
    // Once one of them has no room, the annotation holds all, so that their order is kept.
    let kept = match &current {
        Some((all, shown)) if shown.iter().any(Option::is_none) => all.as_slice(),
        _ => &[],
    };
    annotations::keep(&mut metadata, &others, kept, &[]);
    annotations::keep_behavior(&mut metadata, hpa.spec.behavior.as_ref());
    alpha::HorizontalPodAutoscaler {
        kind: v2::KIND.into(),
        api_version: alpha::API_VERSION.into(),
        metadata,
        spec: alpha::HorizontalPodAutoscalerSpec {
            scale_target_ref: hpa.spec.scale_target_ref.clone(),
            min_replicas: hpa.spec.min_replicas,
            max_replicas: hpa.spec.max_replicas,
            metrics: own,
        },
        status: alpha::HorizontalPodAutoscalerStatus {
            observed_generation: status.observed_generation,
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_metrics: current.map(|(_, shown)| shown.into_iter().flatten().collect()),
            conditions: status.conditions,
        },
    }
}

fn spec_to_beta(spec: alpha::MetricSpec) -> beta::MetricSpec {
    beta::MetricSpec {
        r#type: spec.r#type,
        object: spec.object.map(|source| beta::ObjectMetricSource {
            target: source.target,
            metric_name: source.metric_name,
            target_value: source.target_value,
            ..beta::ObjectMetricSource::default()
        }),
        pods: spec.pods.map(|source| beta::PodsMetricSource {
            metric_name: source.metric_name,
            target_average_value: source.target_average_value,
            selector: None,
        }),
        resource: spec.resource,
        ..beta::MetricSpec::default()
    }
}

/// Nothing if `v2alpha1` has no room for it.
fn spec_of_beta(spec: beta::MetricSpec) -> Option<alpha::MetricSpec> {
    let beta::MetricSpec { r#type, object, pods, resource, container_resource, external } = spec;
    let selects = object
        .as_ref()
        .is_some_and(|source| source.selector.is_some() || source.average_value.is_some())
        || pods.as_ref().is_some_and(|source| source.selector.is_some());
    if selects || container_resource.is_some() || external.is_some() {
        return None;
    }
    Some(alpha::MetricSpec {
        r#type,
        object: object.map(|source| alpha::ObjectMetricSource {
            target: source.target,
            metric_name: source.metric_name,
            target_value: source.target_value,
        }),
        pods: pods.map(|source| alpha::PodsMetricSource {
            metric_name: source.metric_name,
            target_average_value: source.target_average_value,
        }),
        resource,
    })
}

fn status_to_beta(status: alpha::MetricStatus) -> beta::MetricStatus {
    beta::MetricStatus {
        r#type: status.r#type,
        object: status.object.map(|found| beta::ObjectMetricStatus {
            target: found.target,
            metric_name: found.metric_name,
            current_value: found.current_value,
            ..beta::ObjectMetricStatus::default()
        }),
        pods: status.pods.map(|found| beta::PodsMetricStatus {
            metric_name: found.metric_name,
            current_average_value: found.current_average_value,
            selector: None,
        }),
        resource: status.resource,
        ..beta::MetricStatus::default()
    }
}

/// Nothing if `v2alpha1` has no room for it.
fn status_of_beta(status: beta::MetricStatus) -> Option<alpha::MetricStatus> {
    let beta::MetricStatus { r#type, object, pods, resource, container_resource, external } =
        status;
    let selects = object
        .as_ref()
        .is_some_and(|found| found.selector.is_some() || found.average_value.is_some())
        || pods.as_ref().is_some_and(|found| found.selector.is_some());
    if selects || container_resource.is_some() || external.is_some() {
        return None;
    }
    Some(alpha::MetricStatus {
        r#type,
        object: object.map(|found| alpha::ObjectMetricStatus {
            target: found.target,
            metric_name: found.metric_name,
            current_value: found.current_value,
        }),
        pods: pods.map(|found| alpha::PodsMetricStatus {
            metric_name: found.metric_name,
            current_average_value: found.current_average_value,
        }),
        resource,
    })
}
