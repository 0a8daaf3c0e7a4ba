//! Between the wire forms of autoscalers and the core's model. Past this point nothing knows which
//! version an object had.

use crate::hpa::v2::{
    self, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec, MetricIdentifier, MetricSpec,
    metric_type, target_type,
};
use crate::quantity::Quantity;
use crate::quote::quote;
use crate::selector::LabelSelector;
use podscale_core::model::{
    Behavior, Milli, ObjectRef, Policy, PolicyAmount, PolicySelect, ScalingRules, Series, Source,
    TargetKind, TargetRef, Targets,
};
use podscale_core::{Autoscaler, Metric, Span};

pub mod pod_autoscaler;
pub mod polling;
pub mod scaled_job;
pub mod scaled_object;
pub mod status;

/// The condition that says that another controller manages the object as well.
pub const CONFLICT_CONDITION: &str = "podscale.dev/Conflict";
/// The reason of that condition, and of the event that reports it.
pub const CONFLICT_REASON: &str = "AnotherController";

/// The model of a defaulted `autoscaling/v2` object. Never fails: what no rule knows becomes a
/// metric or a policy that says so.
#[must_use]
pub fn autoscaler(hpa: &HorizontalPodAutoscaler) -> Autoscaler {
    let HorizontalPodAutoscalerSpec {
        scale_target_ref: target,
        min_replicas,
        max_replicas,
        metrics,
        behavior,
    } = &hpa.spec;
    Autoscaler {
        namespace: hpa.metadata.namespace.as_str().into(),
        name: hpa.metadata.name.as_str().into(),
        generation: hpa.metadata.generation,
        target: TargetRef {
            api_version: target.api_version.as_str().into(),
            kind: target.kind.as_str().into(),
            name: target.name.as_str().into(),
        },
        min_replicas: min_replicas.unwrap_or(1),
        max_replicas: *max_replicas,
        metrics: metrics.iter().map(metric).collect(),
        behavior: behavior.as_ref().map(|b| Behavior {
            scale_up: rules(b.scale_up.as_ref()),
            scale_down: rules(b.scale_down.as_ref()),
        }),
        extensions: None,
    }
}

fn metric(spec: &MetricSpec) -> Metric {
    let (source, target) = source_and_target(spec)
        .unwrap_or_else(|| (Source::Unknown { quoted: quote(&spec.r#type).into() }, &EMPTY_TARGET));
    Metric::new(source, &targets(target))
}

static EMPTY_TARGET: v2::MetricTarget = v2::MetricTarget {
    r#type: String::new(),
    value: None,
    average_value: None,
    average_utilization: None,
};

/// The source that `type` names, if its field is set.
fn source_and_target(spec: &MetricSpec) -> Option<(Source, &v2::MetricTarget)> {
    Some(match spec.r#type.as_str() {
        metric_type::RESOURCE => {
            let resource = spec.resource.as_ref()?;
            (Source::Resource { name: resource.name.as_str().into() }, &resource.target)
        }
        metric_type::CONTAINER_RESOURCE => {
            let resource = spec.container_resource.as_ref()?;
            let (name, container) = (&*resource.name, &*resource.container);
            let source =
                Source::ContainerResource { name: name.into(), container: container.into() };
            (source, &resource.target)
        }
        metric_type::PODS => {
            let pods = spec.pods.as_ref()?;
            (Source::Pods(series(&pods.metric)), &pods.target)
        }
        metric_type::OBJECT => {
            let object = spec.object.as_ref()?;
            let described = object_ref(&object.described_object);
            let source = Source::Object { series: series(&object.metric), object: described };
            (source, &object.target)
        }
        metric_type::EXTERNAL => {
            let external = spec.external.as_ref()?;
            (Source::External(series(&external.metric)), &external.target)
        }
        _ => return None,
    })
}

fn object_ref(reference: &v2::CrossVersionObjectReference) -> ObjectRef {
    ObjectRef {
        api_version: reference.api_version.as_str().into(),
        kind: reference.kind.as_str().into(),
        name: reference.name.as_str().into(),
    }
}

fn series(metric: &MetricIdentifier) -> Series {
    let selector = metric.selector.as_ref();
    let parsed = selector.map(LabelSelector::to_selector).transpose();
    let query = parsed.as_ref().ok().and_then(|parsed| Some(parsed.as_ref()?.to_string().into()));
    Series {
        name: metric.name.as_str().into(),
        selector: selector.map(|s| LabelSelector::go_string(Some(s)).into()),
        query,
        selector_error: parsed.err().map(|e| e.to_string().into()),
    }
}

fn targets(target: &v2::MetricTarget) -> Targets {
    let milli = |q: &Option<Quantity>| q.as_ref().map(|q| Milli(q.milli_value()));
    Targets {
        kind: match target.r#type.as_str() {
            target_type::VALUE => TargetKind::Value,
            target_type::AVERAGE_VALUE => TargetKind::AverageValue,
            target_type::UTILIZATION => TargetKind::Utilization,
            _ => TargetKind::Unspecified,
        },
        value: milli(&target.value),
        average_value: milli(&target.average_value),
        average_utilization: target.average_utilization,
    }
}

/// The rules of one direction; one that is not there has no policies, which only an object that no
/// API server has defaulted can be.
fn rules(rules: Option<&v2::HpaScalingRules>) -> ScalingRules {
    let window = |r: &v2::HpaScalingRules| r.stabilization_window_seconds;
    let select = rules.and_then(|r| r.select_policy.as_deref());
    ScalingRules {
        stabilization_window: rules.and_then(window).map(|s| Span::seconds(i64::from(s))),
        select: match select {
            Some("Disabled") => PolicySelect::Disabled,
            Some("Min") => PolicySelect::Min,
            _ => PolicySelect::Max,
        },
        policies: rules
            .and_then(|r| r.policies.as_deref())
            .unwrap_or_default()
            .iter()
            .map(policy)
            .collect(),
        tolerance: rules.and_then(|r| r.tolerance.as_ref()).map(|t| t.as_approximate_f64()),
    }
}

fn policy(policy: &v2::HpaScalingPolicy) -> Policy {
    Policy {
        amount: match policy.r#type.as_str() {
            "Pods" => PolicyAmount::Pods(policy.value),
            "Percent" => PolicyAmount::Percent(policy.value),
            _ => PolicyAmount::Unknown,
        },
        period: Span::seconds(i64::from(policy.period_seconds)),
    }
}
