//! PodAutoscalers in Recordings: what they mean, and what their event sources measured, which the HPA that they are
//! recorded as says.

use super::checked;
use crate::hpa::v2::HorizontalPodAutoscaler;
use crate::pod_autoscaler::PodAutoscaler;
use crate::pod_autoscaler::hpa_form::recorded_problem;
use crate::translate::scaled_object::{TriggerMetric, recorded_trigger};
use podscale_core::Autoscaler;
use serde_json::Value;

/// What a recorded object means.
#[must_use]
pub fn replayed(hpa: &HorizontalPodAutoscaler, noted: Value) -> Autoscaler {
    let problem = recorded_problem(&noted);
    // A recorded spec was written from this very type.
    let spec = serde_json::from_value(noted).unwrap_or_default();
    let pa = PodAutoscaler { metadata: hpa.metadata.clone(), spec, ..PodAutoscaler::default() };
    let metric = |place: usize| hpa.spec.metrics.get(place).and_then(|m| m.external.as_deref());
    let measured: Vec<TriggerMetric> =
        pa.spec.triggers().filter_map(|(place, ..)| metric(place).map(recorded_trigger)).collect();
    match problem {
        Some(problem) => checked(&pa, Err(&problem)),
        None => checked(&pa, Ok(&measured)),
    }
}
