//! Metrics and their statuses between the older form and that of `v2`.

use crate::hpa::v2::{self, MetricIdentifier, MetricTarget, MetricValueStatus, target_type};
use crate::hpa::v2beta1 as old;
use crate::quantity::Quantity;
use crate::selector::LabelSelector;

/// The target utilization, if this is a cpu metric with one.
pub(super) fn cpu_utilization(metric: &v2::MetricSpec) -> Option<i32> {
    let resource =
        metric.resource.as_ref().filter(|_| metric.r#type == v2::metric_type::RESOURCE)?;
    (resource.name == "cpu").then_some(resource.target.average_utilization).flatten()
}

/// The status of a cpu metric of which only the utilization is known.
pub(super) fn cpu_status(percent: i32) -> v2::MetricStatus {
    v2::MetricStatus {
        r#type: v2::metric_type::RESOURCE.into(),
        resource: Some(v2::ResourceMetricStatus {
            name: "cpu".into(),
            current: MetricValueStatus {
                average_utilization: Some(percent),
                ..MetricValueStatus::default()
            },
        }),
        ..v2::MetricStatus::default()
    }
}

fn identifier(name: String, selector: Option<LabelSelector>) -> MetricIdentifier {
    MetricIdentifier { name, selector }
}

/// The type of a target follows from which of its values is set.
fn resource_target(percent: Option<i32>, average: Option<Quantity>) -> MetricTarget {
    let kind = match percent {
        Some(_) => target_type::UTILIZATION,
        None => target_type::AVERAGE_VALUE,
    };
    MetricTarget {
        r#type: kind.into(),
        value: None,
        average_value: average,
        average_utilization: percent,
    }
}

fn value_target(value: Option<Quantity>, average: Option<Quantity>, kind: &str) -> MetricTarget {
    MetricTarget { r#type: kind.into(), value, average_value: average, average_utilization: None }
}

fn value_status(value: Option<Quantity>, average: Option<Quantity>) -> MetricValueStatus {
    MetricValueStatus { value, average_value: average, average_utilization: None }
}

fn resource_status(percent: Option<i32>, average: Quantity) -> MetricValueStatus {
    MetricValueStatus { value: None, average_value: Some(average), average_utilization: percent }
}

/// A metric of the older form in that of `v2`.
pub(super) fn spec_up(metric: old::MetricSpec) -> v2::MetricSpec {
    v2::MetricSpec {
        r#type: metric.r#type,
        object: metric.object.map(object_up).map(Box::new),
        pods: metric.pods.map(pods_up).map(Box::new),
        resource: metric.resource.map(|source| v2::ResourceMetricSource {
            name: source.name,
            target: resource_target(source.target_average_utilization, source.target_average_value),
        }),
        container_resource: metric
            .container_resource
            .map(|source| v2::ContainerResourceMetricSource {
                name: source.name,
                target: resource_target(
                    source.target_average_utilization,
                    source.target_average_value,
                ),
                container: source.container,
            })
            .map(Box::new),
        external: metric.external.map(external_up).map(Box::new),
    }
}

fn object_up(source: old::ObjectMetricSource) -> v2::ObjectMetricSource {
    // A value of zero next to an average stands for no value.
    let unset = source.average_value.is_some() && source.target_value.is_zero();
    let kind = match source.average_value {
        Some(_) => target_type::AVERAGE_VALUE,
        None => target_type::VALUE,
    };
    let value = (!unset).then_some(source.target_value);
    v2::ObjectMetricSource {
        described_object: source.target,
        target: value_target(value, source.average_value, kind),
        metric: identifier(source.metric_name, source.selector),
    }
}

fn pods_up(source: old::PodsMetricSource) -> v2::PodsMetricSource {
    let average = Some(source.target_average_value);
    v2::PodsMetricSource {
        metric: identifier(source.metric_name, source.selector),
        target: value_target(None, average, target_type::AVERAGE_VALUE),
    }
}

fn external_up(source: old::ExternalMetricSource) -> v2::ExternalMetricSource {
    let kind = match source.target_value {
        Some(_) => target_type::VALUE,
        None => target_type::AVERAGE_VALUE,
    };
    v2::ExternalMetricSource {
        metric: identifier(source.metric_name, source.metric_selector),
        target: value_target(source.target_value, source.target_average_value, kind),
    }
}

/// A metric of `v2` in the older form.
pub(super) fn spec_down(metric: &v2::MetricSpec) -> old::MetricSpec {
    old::MetricSpec {
        r#type: metric.r#type.clone(),
        object: metric.object.clone().map(|source| old::ObjectMetricSource {
            target: source.described_object,
            metric_name: source.metric.name,
            target_value: source.target.value.unwrap_or_default(),
            selector: source.metric.selector,
            average_value: source.target.average_value,
        }),
        pods: metric.pods.clone().map(|source| old::PodsMetricSource {
            metric_name: source.metric.name,
            target_average_value: source.target.average_value.unwrap_or_default(),
            selector: source.metric.selector,
        }),
        resource: metric.resource.clone().map(|source| old::ResourceMetricSource {
            name: source.name,
            target_average_utilization: source.target.average_utilization,
            target_average_value: source.target.average_value,
        }),
        container_resource: metric.container_resource.clone().map(|source| {
            old::ContainerResourceMetricSource {
                name: source.name,
                target_average_utilization: source.target.average_utilization,
                target_average_value: source.target.average_value,
                container: source.container,
            }
        }),
        external: metric.external.clone().map(|source| old::ExternalMetricSource {
            metric_name: source.metric.name,
            metric_selector: source.metric.selector,
            target_value: source.target.value,
            target_average_value: source.target.average_value,
        }),
    }
}

/// A status of the older form in that of `v2`.
pub(super) fn status_up(status: old::MetricStatus) -> v2::MetricStatus {
    v2::MetricStatus {
        r#type: status.r#type,
        object: status
            .object
            .map(|found| v2::ObjectMetricStatus {
                metric: identifier(found.metric_name, found.selector),
                current: value_status(Some(found.current_value), found.average_value),
                described_object: found.target,
            })
            .map(Box::new),
        pods: status
            .pods
            .map(|found| v2::PodsMetricStatus {
                metric: identifier(found.metric_name, found.selector),
                current: value_status(None, Some(found.current_average_value)),
            })
            .map(Box::new),
        resource: status.resource.map(|found| v2::ResourceMetricStatus {
            name: found.name,
            current: resource_status(
                found.current_average_utilization,
                found.current_average_value,
            ),
        }),
        container_resource: status
            .container_resource
            .map(|found| v2::ContainerResourceMetricStatus {
                name: found.name,
                current: resource_status(
                    found.current_average_utilization,
                    found.current_average_value,
                ),
                container: found.container,
            })
            .map(Box::new),
        external: status
            .external
            .map(|found| v2::ExternalMetricStatus {
                metric: identifier(found.metric_name, found.metric_selector),
                current: value_status(Some(found.current_value), found.current_average_value),
            })
            .map(Box::new),
    }
}

/// A status of `v2` in the older form.
pub(super) fn status_down(status: &v2::MetricStatus) -> old::MetricStatus {
    old::MetricStatus {
        r#type: status.r#type.clone(),
        object: status.object.clone().map(|found| old::ObjectMetricStatus {
            target: found.described_object,
            metric_name: found.metric.name,
            current_value: found.current.value.unwrap_or_default(),
            selector: found.metric.selector,
            average_value: found.current.average_value,
        }),
        pods: status.pods.clone().map(|found| old::PodsMetricStatus {
            metric_name: found.metric.name,
            current_average_value: found.current.average_value.unwrap_or_default(),
            selector: found.metric.selector,
        }),
        resource: status.resource.clone().map(|found| old::ResourceMetricStatus {
            name: found.name,
            current_average_utilization: found.current.average_utilization,
            current_average_value: found.current.average_value.unwrap_or_default(),
        }),
        container_resource: status.container_resource.clone().map(|found| {
            old::ContainerResourceMetricStatus {
                name: found.name,
                current_average_utilization: found.current.average_utilization,
                current_average_value: found.current.average_value.unwrap_or_default(),
                container: found.container,
            }
        }),
        external: status.external.clone().map(|found| old::ExternalMetricStatus {
            metric_name: found.metric.name,
            metric_selector: found.metric.selector,
            current_value: found.current.value.unwrap_or_default(),
            current_average_value: found.current.average_value,
        }),
    }
}
