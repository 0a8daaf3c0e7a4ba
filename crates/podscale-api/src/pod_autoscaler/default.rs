//! What the API server fills in, for objects that it has not seen.

use super::fields::SPEC;
use super::spec::{Behavior, PodAutoscalerSpec, ScalingRules};
use crate::hpa::default::{CPU_UTILIZATION, cpu_metric, default_behavior};
use crate::hpa::v2::HorizontalPodAutoscalerBehavior;
use serde_json::Value;

/// Fills in what the HPA has too and what was left open, once; doing it again changes nothing. The
/// defaults of the other fields are those of the model.
pub fn default_spec(spec: &mut PodAutoscalerSpec) {
    spec.min_replicas.get_or_insert(1);
    if spec.metrics.is_empty() {
        spec.metrics.push(cpu_metric(CPU_UTILIZATION).into());
    }
    if let Some(behavior) = &mut spec.behavior {
        default_directions(behavior);
    }
}

fn default_directions(behavior: &mut Behavior) {
    let take = |direction: &mut Option<ScalingRules>| {
        direction.as_mut().map(|rules| std::mem::take(&mut rules.hpa))
    };
    let mut hpa = HorizontalPodAutoscalerBehavior {
        scale_up: take(&mut behavior.scale_up),
        scale_down: take(&mut behavior.scale_down),
    };
    default_behavior(&mut hpa);
    behavior.scale_up.get_or_insert_default().hpa = hpa.scale_up.unwrap_or_default();
    behavior.scale_down.get_or_insert_default().hpa = hpa.scale_down.unwrap_or_default();
}

/// What the API server fills in at a field such as `spec.metrics[1].aggregate`, if it does.
pub(crate) fn filled_in(path: &str) -> Option<Value> {
    let mut object = &SPEC;
    let mut parts = path.strip_prefix("spec.")?.split('.').peekable();
    while let Some(part) = parts.next() {
        let name = part.split('[').next()?;
        let field = object.fields.iter().find(|field| field.name == name)?;
        if parts.peek().is_none() {
            return field.default_value();
        }
        object = field.shape.object()?;
    }
    None
}
