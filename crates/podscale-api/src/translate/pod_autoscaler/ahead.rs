//! What a PodAutoscaler says of queues, of the demand of a window, and of sizes ahead of it.

use super::span;
use crate::pod_autoscaler::spec::PodAutoscalerSpec;
use podscale_core::Span;
use podscale_core::model::{Ahead, Headroom, Lead, Milli, Predict, Queue, Tolerance, Window};

/// What a profile stands for, where the spec does not say otherwise.
struct Profile {
    predict: Option<Predict>,
    lead: Option<Lead>,
    headroom: Option<Headroom>,
    tolerance: Option<Tolerance>,
}

/// Room that comes and goes would turn the size around more often than the demand does; what is a little too large stays.
const CALM: Tolerance = Tolerance { up: None, down: Some(0.3) };

/// What rules are where neither the spec nor a profile says.
const PREDICT: Predict = Predict { confidence_percent: 50, scale_in_guard: Span::seconds(600) };
const LEAD: Lead = Lead { most_percent: 25 };
const HEADROOM: Headroom =
    Headroom { confidence_percent: 90, most_percent: 50, overload_permille: None };

/// Room that is learned, so that the demand is above the ready pods in so many thousandths of the time.
const fn learned(overload_permille: u16) -> Headroom {
    Headroom { most_percent: 100, overload_permille: Some(overload_permille), ..HEADROOM }
}

fn profile(name: Option<&str>) -> Profile {
    match name {
        Some("Balanced") => Profile {
            predict: Some(PREDICT),
            lead: None,
            headroom: Some(learned(10)),
            tolerance: Some(CALM),
        },
        Some("Cheap") => {
            let predict = Predict { scale_in_guard: Span(0), ..PREDICT };
            Profile { predict: Some(predict), lead: None, headroom: None, tolerance: None }
        }
        Some("Safe") => {
            let scale_in_guard = Span::seconds(900);
            let predict = Predict { confidence_percent: 90, scale_in_guard };
            Profile {
                predict: Some(predict),
                lead: None,
                headroom: Some(learned(2)),
                tolerance: Some(CALM),
            }
        }
        _ => Profile { predict: None, lead: None, headroom: None, tolerance: None },
    }
}

/// How a queue is served; nothing if one of its metrics is not there, which is an error of the spec.
pub(super) fn queue(spec: &PodAutoscalerSpec) -> Option<Queue> {
    let queue = spec.queue.as_ref()?;
    let place = |name: &str| spec.whole_metric(name).and_then(|place| u32::try_from(place).ok());
    Some(Queue {
        length: place(&queue.length)?,
        arrivals: place(&queue.arrivals)?,
        per_pod: Milli(queue.items_per_second.as_ref()?.milli_value()),
        within: span(queue.within.as_deref()).unwrap_or(Span::seconds(60)),
    })
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

/// How far a profile lets the size be off, where the behavior does not say.
pub(super) fn tolerance(spec: &PodAutoscalerSpec) -> Option<Tolerance> {
    profile(spec.profile.as_deref()).tolerance
}

/// What is done ahead of the demand: what the spec says, and in its place what its profile says.
pub(super) fn ahead(spec: &PodAutoscalerSpec) -> Ahead {
    let Profile { predict, lead, headroom, .. } = profile(spec.profile.as_deref());
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
    let headroom = match &spec.headroom {
        None => headroom,
        Some(given) => {
            let usual = headroom.unwrap_or(HEADROOM);
            let confidence = given.confidence.and_then(|percent| u8::try_from(percent).ok());
            let limit = given.limit_percent.and_then(|percent| u32::try_from(percent).ok());
            let overload =
                given.overload_permille.and_then(|permille| u16::try_from(permille).ok());
            Some(Headroom {
                confidence_percent: confidence.unwrap_or(usual.confidence_percent),
                most_percent: limit.unwrap_or(usual.most_percent),
                // Who says how many of past gains there is to be room for goes by the gains.
                overload_permille: overload
                    .or(usual.overload_permille.filter(|_| given.confidence.is_none())),
            })
        }
    };
    let headroom = headroom.filter(|headroom| headroom.most_percent > 0);
    Ahead { start_up: span(spec.start_up_time.as_deref()), predict, lead, headroom }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tolerances of a profile, above and below one.
    fn of(name: &str) -> Option<(Option<f64>, Option<f64>)> {
        let spec = PodAutoscalerSpec { profile: Some(name.into()), ..PodAutoscalerSpec::default() };
        tolerance(&spec).map(|tolerance| (tolerance.up, tolerance.down))
    }

    #[test]
    fn profiles_that_learn_room_keep_what_is_a_little_too_large() {
        assert_eq!(of("Balanced"), Some((None, Some(0.3))));
        assert_eq!(of("Safe"), of("Balanced"));
        assert_eq!(of("Cheap"), None);
    }
}
