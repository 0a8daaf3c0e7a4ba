//! Texts of the status that `kubectl get` shows in one line.

use crate::hpa::target;
use crate::hpa::v2::{CrossVersionObjectReference, MetricTarget, metric_type as hpa_type};
use crate::pod_autoscaler::PodAutoscaler;
use crate::pod_autoscaler::spec::{Metric, metric_type};
use crate::quantity::Quantity;
use crate::translate::status::values;
use podscale_core::Autoscaler;
use podscale_core::model::{self, Source};
use podscale_core::status::Current;
use std::borrow::Cow;

/// How many metrics are shown.
const SHOWN: usize = 3;
/// How much of a name is shown.
const NAME_CHARS: usize = 40;

/// A target as kind and name.
pub(super) fn reference(target: &CrossVersionObjectReference) -> String {
    format!("{}/{}", target.kind, target.name)
}

/// Each metric's value and target: `cpu: 45%/80%, queue: 3/10 (avg)`.
pub(super) fn targets<'a>(
    metrics: impl ExactSizeIterator<Item = (Option<Current>, (&'a Metric, &'a model::Metric))>,
) -> String {
    let more = metrics.len().saturating_sub(SHOWN);
    let shown: Vec<String> = metrics
        .take(SHOWN)
        .map(|(current, (metric, model))| target(current.as_ref(), metric, model))
        .collect();
    let rest = if more > 0 { format!(" + {more} more...") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

/// Each metric's target where no value is known.
pub(super) fn unknown_targets(pa: &PodAutoscaler, model: &Autoscaler) -> String {
    targets(pa.spec.metrics.iter().zip(&model.metrics).map(|metric| (None, metric)))
}

fn target(current: Option<&Current>, metric: &Metric, model: &model::Metric) -> String {
    let Some((title, resource, target)) = parts(metric, model) else {
        return format!("{}: <unknown>", metric.hpa.r#type);
    };
    let title: String = metric.name.as_deref().unwrap_or(title).chars().take(NAME_CHARS).collect();
    let unknown = || "<unknown>".to_owned();
    let values = current.map(|current| values(current, resource)).unwrap_or_default();
    let text = |quantity: Option<&Quantity>| quantity.map_or_else(unknown, ToString::to_string);
    if let Some(wanted) = target.average_utilization {
        let used = values.average_utilization;
        let used = used.map_or_else(unknown, |percent| format!("{percent}%"));
        return format!("{title}: {used}/{wanted}%");
    }
    if let Some(wanted) = &target.average_value {
        let average = if resource.is_empty() { " (avg)" } else { "" };
        return format!("{title}: {}/{wanted}{average}", text(values.average_value.as_ref()));
    }
    let wanted = text(target.value.as_ref());
    format!("{title}: {}/{wanted}", text(values.value.as_ref()))
}

/// A metric's name, its resource if it has one, and its target.
fn parts<'a>(
    metric: &'a Metric,
    model: &'a model::Metric,
) -> Option<(&'a str, &'a str, Cow<'a, MetricTarget>)> {
    let hpa = &metric.hpa;
    if let (Some(_), Source::Trigger(trigger)) = (metric.event_source(), &*model.source) {
        return Some((&trigger.name, "", Cow::Owned(target::of_model(model.target))));
    }
    let (title, resource, target): (&str, &str, &MetricTarget) = match hpa.r#type.as_str() {
        hpa_type::RESOURCE => {
            let source = hpa.resource.as_ref()?;
            (&source.name, &source.name, &source.target)
        }
        hpa_type::CONTAINER_RESOURCE => {
            let source = hpa.container_resource.as_ref()?;
            (&source.name, &source.name, &source.target)
        }
        hpa_type::PODS => {
            let source = hpa.pods.as_ref()?;
            (&source.metric.name, "", &source.target)
        }
        hpa_type::OBJECT => {
            let source = hpa.object.as_ref()?;
            (&source.metric.name, "", &source.target)
        }
        hpa_type::EXTERNAL => {
            let source = hpa.external.as_ref()?;
            (&source.metric.name, "", &source.target)
        }
        metric_type::PROMETHEUS => {
            let source = metric.prometheus.as_ref()?;
            (&source.query, "", &source.target)
        }
        _ => return None,
    };
    Some((title, resource, Cow::Borrowed(target)))
}
