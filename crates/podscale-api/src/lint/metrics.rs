//! Lints about metrics and their targets.

use super::{Autoscaler, Lint, Manifests, Remark, Workload, remark};
use crate::hpa::default::CPU_UTILIZATION;
use crate::hpa::v2::{MetricSpec, MetricTarget, metric_type, target_type};
use crate::quantity::Quantity;
use crate::written::Written;
use podscale_core::snapshot::MissingRequest;
use serde_json::Value;

pub(super) const LINTS: &[Lint] = &[
    Lint {
        name: "duplicate-metric",
        reason: "Of two targets for one metric the one that asks for more replicas always wins, so the other has no effect.",
        check: duplicate_metric,
    },
    Lint {
        name: "no-limits",
        reason: "With utilizationOf: Limits a utilization is a share of what pods are limited to; without a limit the metric fails and nothing is scaled down.",
        check: no_limits,
    },
    Lint {
        name: "no-requests",
        reason: "Utilization is a share of what pods request; without a request the metric fails and nothing is scaled down.",
        check: no_requests,
    },
    Lint {
        name: "target-above-limit",
        reason: "Containers cannot use more than their limit, so a target above it is never reached and nothing is scaled up.",
        check: target_above_limit,
    },
    Lint {
        name: "target-type-mismatch",
        reason: "Controllers go by which value is set and not by target.type, so people who read the type are misled.",
        check: target_type_mismatch,
    },
];

/// The target of a metric and the name of its source's field.
fn target(metric: &MetricSpec) -> Option<(&'static str, &MetricTarget)> {
    match metric.r#type.as_str() {
        metric_type::OBJECT => metric.object.as_ref().map(|source| ("object", &source.target)),
        metric_type::PODS => metric.pods.as_ref().map(|source| ("pods", &source.target)),
        metric_type::RESOURCE => {
            metric.resource.as_ref().map(|source| ("resource", &source.target))
        }
        metric_type::CONTAINER_RESOURCE => {
            let source = metric.container_resource.as_ref();
            source.map(|source| ("containerResource", &source.target))
        }
        metric_type::EXTERNAL => {
            metric.external.as_ref().map(|source| ("external", &source.target))
        }
        _ => None,
    }
}

/// The resource of a metric, and its container if only one is meant.
fn resource(metric: &MetricSpec) -> Option<(&str, Option<&str>)> {
    match metric.r#type.as_str() {
        metric_type::RESOURCE => metric.resource.as_ref().map(|source| (&*source.name, None)),
        metric_type::CONTAINER_RESOURCE => {
            let source = metric.container_resource.as_ref();
            source.map(|source| (&*source.name, Some(&*source.container)))
        }
        _ => None,
    }
}

fn duplicate_metric(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    if autoscaler.form() == Written::PodAutoscaler {
        let combine = autoscaler.object.pointer("/spec/combine");
        let largest = combine.is_none_or(|combine| combine == "Max");
        return if largest { repeated(&bare_metrics(autoscaler.object)) } else { Vec::new() };
    }
    let without_target = |metric: &MetricSpec| {
        let mut metric = metric.clone();
        let nothing = MetricTarget::default;
        if let Some(source) = &mut metric.object {
            source.target = nothing();
        }
        if let Some(source) = &mut metric.pods {
            source.target = nothing();
        }
        if let Some(source) = &mut metric.resource {
            source.target = nothing();
        }
        if let Some(source) = &mut metric.container_resource {
            source.target = nothing();
        }
        if let Some(source) = &mut metric.external {
            source.target = nothing();
        }
        metric
    };
    let metrics: Vec<MetricSpec> = autoscaler.hpa.spec.metrics.iter().map(without_target).collect();
    repeated(&metrics)
}

/// The metrics of a PodAutoscaler as they are written, without names and targets.
fn bare_metrics(object: &Value) -> Vec<Value> {
    let metrics = object.pointer("/spec/metrics").and_then(Value::as_array);
    let mut metrics = metrics.cloned().unwrap_or_default();
    for fields in metrics.iter_mut().filter_map(Value::as_object_mut) {
        fields.remove("name");
        for source in fields.values_mut().filter_map(Value::as_object_mut) {
            source.remove("target");
        }
    }
    metrics
}

fn repeated<T: PartialEq>(metrics: &[T]) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (index, metric) in metrics.iter().enumerate() {
        if let Some(first) = metrics.iter().take(index).position(|earlier| earlier == metric) {
            let field = format!("spec.metrics[{index}]");
            remarks.push(remark(field, format!("the same metric as spec.metrics[{first}]")));
        }
    }
    remarks
}

fn target_type_mismatch(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (index, metric) in autoscaler.hpa.spec.metrics.iter().enumerate() {
        let Some((source, target)) = target(metric) else { continue };
        let set = [
            (target_type::VALUE, "value", target.value.is_some()),
            (target_type::AVERAGE_VALUE, "averageValue", target.average_value.is_some()),
            (target_type::UTILIZATION, "averageUtilization", target.average_utilization.is_some()),
        ];
        let wanted = set.iter().find(|(kind, ..)| *kind == target.r#type);
        let given: Vec<&str> = set.iter().filter(|one| one.2).map(|one| one.1).collect();
        if wanted.is_some_and(|(.., is_set)| !is_set) && !given.is_empty() {
            remarks.push(remark(
                format!("spec.metrics[{index}].{source}.target.type"),
                format!("the type is {}, but {} is set", target.r#type, given.join(" and ")),
            ));
        }
    }
    remarks
}

/// A metric with a utilization target, and the workload that it is measured at.
struct Utilization<'a> {
    /// Where the metric is.
    field: String,
    resource: &'a str,
    container: Option<&'a str>,
    percent: i32,
    /// Whether it is a share of limits and not of requests.
    of_limits: bool,
    workload: &'a Workload,
}

fn utilizations<'a>(
    autoscaler: &Autoscaler<'a>,
    manifests: &Manifests<'a>,
) -> Vec<Utilization<'a>> {
    let hpa = autoscaler.hpa;
    let workload = manifests.workloads.iter().find(|workload| workload.is_target_of(hpa));
    let Some(workload) = workload else { return Vec::new() };
    if hpa.spec.metrics.is_empty() {
        let field = "spec.metrics[0].resource".to_owned();
        let (resource, container, percent) = ("cpu", None, CPU_UTILIZATION);
        let of_limits = false;
        let default = Utilization { field, resource, container, percent, of_limits, workload };
        return if autoscaler.form().has_default_metric() { vec![default] } else { Vec::new() };
    }
    let metrics = hpa.spec.metrics.iter().enumerate();
    let with_percent = metrics.filter_map(|(index, metric)| {
        let (resource, container) = resource(metric)?;
        let (source, target) = target(metric)?;
        let field = format!("spec.metrics[{index}].{source}");
        let percent = target.average_utilization?;
        let share = format!("/spec/metrics/{index}/utilizationOf");
        let of_limits = autoscaler.object.pointer(&share).is_some_and(|share| share == "Limits");
        Some(Utilization { field, resource, container, percent, of_limits, workload })
    });
    with_percent.collect()
}

fn no_requests(autoscaler: &Autoscaler<'_>, manifests: &Manifests<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for Utilization { field, resource, container, of_limits, workload, .. } in
        utilizations(autoscaler, manifests)
    {
        if of_limits {
            continue;
        }
        let Err(missing) = workload.pod.requested_milli(resource, container) else { continue };
        let Workload { kind, name, .. } = workload;
        let problem = match missing {
            MissingRequest::NoContainer { container, .. } => {
                format!("{kind} {name} has no container {container:?}")
            }
            MissingRequest::Container { container, .. } => {
                format!("container {container:?} of {kind} {name} requests no {resource}")
            }
            // Limits are not asked for here.
            MissingRequest::PodLevel { .. } | MissingRequest::Limit { .. } => {
                format!("the pods of {kind} {name} request no {resource}")
            }
        };
        remarks.push(remark(field, problem));
    }
    remarks
}

fn no_limits(autoscaler: &Autoscaler<'_>, manifests: &Manifests<'_>) -> Vec<Remark> {
    let shares = utilizations(autoscaler, manifests).into_iter();
    let unlimited = shares.filter(|share| {
        share.of_limits && limit_milli(share.workload, share.resource, share.container).is_none()
    });
    unlimited
        .map(|Utilization { field, resource, workload: Workload { kind, name, .. }, .. }| {
            remark(field, format!("not all containers of {kind} {name} have a limit of {resource}"))
        })
        .collect()
}

fn target_above_limit(autoscaler: &Autoscaler<'_>, manifests: &Manifests<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for Utilization { field, resource, container, percent, of_limits, workload } in
        utilizations(autoscaler, manifests)
    {
        if of_limits {
            if percent > 100 {
                let field = format!("{field}.target.averageUtilization");
                remarks.push(remark(field, format!("pods cannot use {percent}% of their limits")));
            }
            continue;
        }
        let Ok(requested) = workload.pod.requested_milli(resource, container) else { continue };
        let Some(limit) = limit_milli(workload, resource, container) else { continue };
        let wanted = requested.saturating_mul(i64::from(percent)) / 100;
        if wanted > limit && requested > 0 {
            let most = limit.saturating_mul(100) / requested;
            remarks.push(remark(
                format!("{field}.target.averageUtilization"),
                format!(
                    "{percent}% of the requested {resource} is more than the limits of {} {} allow, which is {most}%",
                    workload.kind, workload.name
                ),
            ));
        }
    }
    remarks
}

/// What a pod or one of its containers can use at most; nothing if something in it is not limited.
fn limit_milli(workload: &Workload, name: &str, container: Option<&str>) -> Option<i64> {
    let spec = &workload.pod.spec;
    let whole = spec.resources.limits.get(name).filter(|_| container.is_none());
    if let Some(whole) = whole {
        return Some(whole.milli_value());
    }
    let sidecars = spec.init_containers.iter().filter(|one| one.is_sidecar());
    let running = spec.containers.iter().chain(sidecars);
    running
        .filter(|one| container.is_none_or(|name| *one.name == *name))
        .map(|one| one.resources.limits.get(name).map(Quantity::milli_value))
        .try_fold(0_i64, |sum, limit| Some(sum.saturating_add(limit?)))
}
