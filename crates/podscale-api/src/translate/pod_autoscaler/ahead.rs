//! What a PodAutoscaler says of the demand of a window, and of sizes ahead of it.

use super::span;
use crate::pod_autoscaler::spec::PodAutoscalerSpec;
use podscale_core::Span;
use podscale_core::model::{Ahead, Lead, Predict, Window};

/// What a profile stands for, where the spec does not say otherwise.
struct Profile {
    predict: Option<Predict>,
    lead: Option<Lead>,
}

/// What rules are where neither the spec nor a profile says.
const PREDICT: Predict = Predict { confidence_percent: 50, scale_in_guard: Span::seconds(600) };
const LEAD: Lead = Lead { most_percent: 25 };

fn profile(name: Option<&str>) -> Profile {
    match name {
        Some("Balanced") => Profile { predict: Some(PREDICT), lead: Some(LEAD) },
        Some("Cheap") => {
            let predict = Predict { scale_in_guard: Span(0), ..PREDICT };
            Profile { predict: Some(predict), lead: None }
        }
        Some("Safe") => {
            let scale_in_guard = Span::seconds(900);
            let predict = Predict { confidence_percent: 90, scale_in_guard };
            Profile { predict: Some(predict), lead: Some(Lead { most_percent: 100 }) }
        }
        _ => Profile { predict: None, lead: None },
    }
}

/// How sizes follow the mean demand.
pub(super) fn window(spec: &PodAutoscalerSpec) -> Option<Window> {
    let window = spec.window.as_ref()?;
    let percent = window.panic_threshold_percent.and_then(|percent| u32::try_from(percent).ok());
    Some(Window {
        stable: span(window.stable.as_deref()).unwrap_or(Span::seconds(60)),
        panic: span(window.panic.as_deref()).unwrap_or(Span::seconds(6)),
        panic_percent: percent.unwrap_or(200),
    })
}

/// What is done ahead of the demand: what the spec says, and in its place what its profile says.
pub(super) fn ahead(spec: &PodAutoscalerSpec) -> Ahead {
    let Profile { predict, lead } = profile(spec.profile.as_deref());
    let predict = match &spec.predict {
        None => predict,
        Some(given) => {
            let usual = predict.unwrap_or(PREDICT);
            let confidence = given.confidence.and_then(|percent| u8::try_from(percent).ok());
            let guard = span(given.scale_in_guard.as_deref());
            Some(Predict {
                confidence_percent: confidence.unwrap_or(usual.confidence_percent),
                scale_in_guard: guard.unwrap_or(usual.scale_in_guard),
            })
        }
    };
    let lead = match &spec.lead {
        None => lead,
        Some(given) => {
            let limit = given.limit_percent.and_then(|percent| u32::try_from(percent).ok());
            Some(Lead { most_percent: limit.unwrap_or(lead.unwrap_or(LEAD).most_percent) })
        }
    };
    let lead = lead.filter(|lead| lead.most_percent > 0);
    Ahead { start_up: span(spec.start_up_time.as_deref()), predict, lead }
}
