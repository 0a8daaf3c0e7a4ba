//! The native autoscaler that one of singlecloud stands for.

use super::alias::{Alias, is_label_name, is_series_name, labels_of};
use super::from_hpa::{is_shown, target_kind};
use super::{Autoscaler, CustomMetric, Invalid, ResourceMetric, TARGET_KINDS};
use crate::hpa::v2::{
    API_VERSION, CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
    KIND, MetricIdentifier, MetricSpec, MetricTarget, PodsMetricSource, ResourceMetricSource,
    metric_type, target_type,
};
use crate::labels::Labels;
use crate::meta::ObjectMeta;
use crate::names::{label_key_errors, label_value_errors};
use crate::quantity::Quantity;
use crate::selector::LabelSelector;

/// The group and version of both kinds of targets.
const TARGET_VERSION: &str = "apps/v1";

/// The autoscaler that it stands for in a namespace.
///
/// # Errors
/// Says which metric makes no sense, and why.
pub fn to_hpa(
    autoscaler: &Autoscaler,
    namespace: &str,
) -> Result<HorizontalPodAutoscaler, Invalid> {
    let (hpa, mut wrong) = to_hpa_all(autoscaler, namespace);
    if wrong.is_empty() { Ok(hpa) } else { Err(wrong.swap_remove(0)) }
}

/// The autoscaler that it stands for in a namespace as far as its metrics make sense, and why the others make none.
pub fn to_hpa_all(
    autoscaler: &Autoscaler,
    namespace: &str,
) -> (HorizontalPodAutoscaler, Vec<Invalid>) {
    let mut hpa = HorizontalPodAutoscaler {
        kind: KIND.to_owned(),
        api_version: API_VERSION.to_owned(),
        metadata: ObjectMeta {
            name: autoscaler.name.clone(),
            namespace: namespace.to_owned(),
            ..ObjectMeta::default()
        },
        ..HorizontalPodAutoscaler::default()
    };
    let (spec, wrong) = spec(autoscaler, &hpa);
    hpa.spec = spec;
    label(&mut hpa.metadata.labels, &hpa.spec.scale_target_ref);
    (hpa, wrong)
}

/// What a stored autoscaler becomes. What singlecloud has no field for stays as it is: the behavior, and
/// metrics of other kinds.
///
/// # Errors
/// As [`to_hpa`].
pub fn update_hpa(
    stored: &HorizontalPodAutoscaler,
    autoscaler: &Autoscaler,
) -> Result<HorizontalPodAutoscaler, Invalid> {
    let mut hpa = stored.clone();
    let (mut spec, mut wrong) = spec(autoscaler, stored);
    if !wrong.is_empty() {
        return Err(wrong.swap_remove(0));
    }
    let before = &stored.spec.scale_target_ref;
    if target_kind(before) == autoscaler.scale_target_kind
        && before.name == autoscaler.scale_target_name
    {
        spec.scale_target_ref = before.clone();
    }
    let hidden = stored.spec.metrics.iter().filter(|metric| !is_shown(metric));
    spec.metrics.extend(hidden.cloned());
    spec.behavior.clone_from(&stored.spec.behavior);
    let labels = &mut hpa.metadata.labels;
    let old = target_kind(before);
    if labels.get(&old) == Some(&*before.name) {
        labels.remove(&old);
    }
    label(labels, &spec.scale_target_ref);
    hpa.spec = spec;
    Ok(hpa)
}

/// Says in a label which workload it is for, if a label can say that.
fn label(labels: &mut Labels, target: &CrossVersionObjectReference) {
    let kind = target_kind(target);
    if TARGET_KINDS.contains(&kind.as_str()) && label_value_errors(&target.name).is_empty() {
        labels.insert(kind, target.name.as_str());
    }
}

fn spec(
    autoscaler: &Autoscaler,
    stored: &HorizontalPodAutoscaler,
) -> (HorizontalPodAutoscalerSpec, Vec<Invalid>) {
    let (mut metrics, mut wrong): (Vec<MetricSpec>, Vec<Invalid>) = (Vec::new(), Vec::new());
    for (at, metric) in autoscaler.resource_metrics.iter().enumerate() {
        match resource(metric, &format!("resourceMetrics[{at}]")) {
            Ok(metric) => metrics.push(metric),
            Err(invalid) => wrong.push(invalid),
        }
    }
    for (at, metric) in autoscaler.custom_metrics.iter().enumerate() {
        let spec = custom(metric, stored, at).and_then(|spec| match twice(&metrics, &spec) {
            Some(name) => {
                let message = format!(
                    "duplicate hpa custom metric alias name {name} in prometheus-adapter configmap"
                );
                Err(Invalid::new(format!("customMetrics[{at}]"), message))
            }
            None => Ok(spec),
        });
        match spec {
            Ok(metric) => metrics.push(metric),
            Err(invalid) => wrong.push(invalid),
        }
    }
    let spec = HorizontalPodAutoscalerSpec {
        scale_target_ref: CrossVersionObjectReference {
            // Singlecloud writes kinds in lower case, which Kubernetes' mappers understand.
            kind: autoscaler.scale_target_kind.clone(),
            name: autoscaler.scale_target_name.clone(),
            api_version: TARGET_VERSION.to_owned(),
        },
        min_replicas: Some(autoscaler.min_replicas),
        max_replicas: autoscaler.max_replicas,
        metrics,
        behavior: None,
    };
    (spec, wrong)
}

/// The name of a metric of pods that is among others already.
fn twice<'a>(metrics: &[MetricSpec], spec: &'a MetricSpec) -> Option<&'a str> {
    let name = spec.pods.as_ref()?.metric.name.as_str();
    let mut known = metrics.iter().filter_map(|metric| metric.pods.as_ref());
    known.any(|pods| pods.metric.name == name).then_some(name)
}

fn resource(metric: &ResourceMetric, path: &str) -> Result<MetricSpec, Invalid> {
    let ResourceMetric { resource_name: name, target_type, average_value, average_utilization } =
        metric;
    if !super::RESOURCE_NAMES.contains(&name.as_str()) {
        let message = format!("resoucename {name} isn`t supported");
        return Err(Invalid::new(format!("{path}.resourceName"), message));
    }
    let target = match target_type.as_str() {
        target_type::UTILIZATION if *average_utilization == 0 => {
            return Err(Invalid::new(
                format!("{path}.averageUtilization"),
                "averageUtilization must not be empty when type is Utilization",
            ));
        }
        target_type::UTILIZATION => MetricTarget {
            r#type: target_type.clone(),
            average_utilization: Some(*average_utilization),
            ..MetricTarget::default()
        },
        target_type::AVERAGE_VALUE => average(average_value, path)?,
        other => {
            let message = format!("metric target type {other} is unsupported");
            return Err(Invalid::new(format!("{path}.targetType"), message));
        }
    };
    Ok(MetricSpec {
        r#type: metric_type::RESOURCE.to_owned(),
        resource: Some(ResourceMetricSource { name: name.clone(), target }),
        ..MetricSpec::default()
    })
}

fn average(value: &str, path: &str) -> Result<MetricTarget, Invalid> {
    let field = || format!("{path}.averageValue");
    if value.is_empty() {
        let message = "averageValue must not be empty when type is AverageValue";
        return Err(Invalid::new(field(), message));
    }
    let average = Quantity::parse(value).map_err(|error| {
        Invalid::new(field(), format!("parse metric averageValue failed: {error}"))
    })?;
    Ok(MetricTarget {
        r#type: target_type::AVERAGE_VALUE.to_owned(),
        average_value: Some(average),
        ..MetricTarget::default()
    })
}

fn custom(
    metric: &CustomMetric,
    stored: &HorizontalPodAutoscaler,
    at: usize,
) -> Result<MetricSpec, Invalid> {
    let path = &format!("customMetrics[{at}]");
    let CustomMetric { metric_name, labels, average_value } = metric;
    let name = if has_native(stored, metric) {
        metric_name.clone()
    } else {
        if !is_series_name(metric_name) {
            let message = format!("{metric_name:?} cannot be the name of a series in Prometheus");
            return Err(Invalid::new(format!("{path}.metricName"), message));
        }
        check_labels(labels, path)?;
        let alias = Alias {
            metric: metric_name.clone(),
            labels: labels.clone(),
            namespace: stored.metadata.namespace.clone(),
            autoscaler: stored.metadata.name.clone(),
        };
        alias.name()
    };
    let selector = (!labels.is_empty())
        .then(|| LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() });
    let pods = PodsMetricSource {
        metric: MetricIdentifier { name, selector },
        target: average(average_value, path)?,
    };
    Ok(MetricSpec {
        r#type: metric_type::PODS.to_owned(),
        pods: Some(Box::new(pods)),
        ..MetricSpec::default()
    })
}

/// Labels must be those of series, and can only be selected by if Kubernetes takes them as well.
fn check_labels(labels: &Labels, path: &str) -> Result<(), Invalid> {
    for (key, value) in labels.iter() {
        let field = || format!("{path}.labels.{key}");
        if !is_label_name(key) {
            let message = format!("{key:?} cannot be the name of a label in Prometheus");
            return Err(Invalid::new(field(), message));
        }
        let problems = [label_key_errors(key), label_value_errors(value)].concat();
        if let Some(problem) = problems.first() {
            let message = format!("Kubernetes cannot select by {key}={value:?}: {problem}");
            return Err(Invalid::new(field(), message));
        }
    }
    Ok(())
}

/// Whether the stored autoscaler has the metric under its own name: somebody else serves it, and it needs no
/// rule.
fn has_native(stored: &HorizontalPodAutoscaler, metric: &CustomMetric) -> bool {
    let mut pods = stored.spec.metrics.iter().filter_map(|metric| metric.pods.as_deref());
    pods.any(|pods| {
        pods.metric.name == metric.metric_name
            && labels_of(&pods.metric).as_ref() == Some(&metric.labels)
    })
}
