//! What a decision was made on, in the form of a step of a Recording: of the namespace only what can
//! have mattered.

use super::Entry;
use crate::source::Answer;
use podscale_api::hpa::v2::{MetricIdentifier, MetricSpec};
use podscale_api::metrics::PodMetrics;
use podscale_api::pod::Pod;
use podscale_api::recording::{
    OtherAutoscaler, RecordedAnswer, RecordedScale, RecordedScaleSpec, RecordedScaleStatus, Step,
    StepErrors,
};
use podscale_api::selector::Selector;
use podscale_api::time::ExactTimestamp;
use podscale_core::pass::{ScaleWrite, StatusWrite, WriteOutcome};
use podscale_core::snapshot::ScaleError;
use std::collections::HashSet;
use std::sync::Arc;

/// The inputs of a decision as a step, without the decision.
pub(super) fn step(entry: &Entry) -> Step {
    let inputs = &entry.inputs;
    let mut step = Step {
        time: ExactTimestamp(entry.now),
        spec: None,
        scale: None,
        other_autoscalers: Vec::new(),
        pods: Vec::new(),
        pod_metrics: Vec::new(),
        custom_metrics: Vec::new(),
        external_metrics: Vec::new(),
        answers: Vec::new(),
        written_at: None,
        scale_withheld: None,
        status_withheld: None,
        errors: None,
        decision: None,
        decision_saturating: None,
    };
    let mut errors = StepErrors::default();
    match &inputs.scale {
        Ok(scale) => {
            let selector = scale.status.selector.clone();
            step.scale = Some(RecordedScale {
                spec: Some(RecordedScaleSpec { replicas: Some(scale.spec.replicas) }),
                status: Some(RecordedScaleStatus {
                    replicas: Some(scale.status.replicas),
                    selector: Some(selector.to_string()),
                }),
            });
            add_surroundings(&mut step, entry, &selector);
        }
        // The spec itself says that its version makes no sense.
        Err(ScaleError::ApiVersion(_)) => {}
        Err(ScaleError::NoResource(error)) => errors.rest_mapping = Some(error.to_string()),
        Err(ScaleError::Unreadable(error)) => errors.get_scale = Some(error.to_string()),
    }
    let writes = &entry.writes;
    step.written_at = writes.scale_ended_at.map(ExactTimestamp);
    match &writes.scale {
        WriteOutcome::Ended(ScaleWrite::Withheld(why)) => step.scale_withheld = Some(*why),
        WriteOutcome::Ended(ScaleWrite::Failed(error)) => {
            errors.update_scale = Some(error.to_string());
        }
        _ => {}
    }
    match &writes.status {
        WriteOutcome::Ended(StatusWrite::Withheld(why)) => step.status_withheld = Some(*why),
        WriteOutcome::Ended(StatusWrite::Failed(error)) => {
            errors.update_status = Some(error.to_string());
        }
        _ => {}
    }
    step.errors = (errors != StepErrors::default()).then_some(errors);
    step
}

/// Pods, metrics and other autoscalers, as far as the selector can have met them.
fn add_surroundings(step: &mut Step, entry: &Entry, selector: &str) {
    let inputs = &entry.inputs;
    let parsed = (!selector.is_empty()).then(|| Selector::parse(selector).ok()).flatten();
    let Some(parsed) = parsed else { return };
    let picked = |pod: &Pod| parsed.matches(|key| pod.metadata.labels.get(key));
    let (mut named, mut shared) = (HashSet::new(), None);
    for (place, (spec, answer)) in entry.hpa.spec.metrics.iter().zip(&inputs.answers).enumerate() {
        if let Answer::Custom(values) = answer {
            named.extend(values.iter().map(|value| &*value.described_object.name));
        }
        let plain = is_plain(&entry.hpa.spec.metrics, spec);
        let Ok(metric) = u32::try_from(place) else { continue };
        let mut own = RecordedAnswer { metric, ..RecordedAnswer::default() };
        match answer {
            Answer::Nothing => continue,
            Answer::Failed(error) => own.error = Some(error.to_string()),
            Answer::Resource(values) => {
                let first = *shared.get_or_insert(values);
                let same = first.iter().zip(values.iter()).all(|(a, b)| Arc::ptr_eq(a, b))
                    && first.len() == values.len();
                let list = if same { &mut step.pod_metrics } else { &mut own.pod_metrics };
                if list.is_empty() {
                    let ours =
                        |m: &&Arc<PodMetrics>| parsed.matches(|key| m.metadata.labels.get(key));
                    list.extend(values.iter().filter(ours).map(|m| PodMetrics::clone(m)));
                }
                if same {
                    continue;
                }
            }
            Answer::Custom(values) if plain => {
                step.custom_metrics.extend(values.iter().cloned());
                continue;
            }
            Answer::Custom(values) => own.custom_metrics = values.to_vec(),
            Answer::External(values) if plain => {
                step.external_metrics.extend(values.iter().cloned());
                continue;
            }
            Answer::External(values) => own.external_metrics = values.to_vec(),
        }
        step.answers.push(own);
    }
    let matters = |pod: &&Arc<Pod>| picked(pod) || named.contains(&*pod.metadata.name);
    step.pods = inputs.pods.iter().filter(matters).map(|pod| Pod::clone(pod)).collect();
    let overlaps = |selector: &str| {
        Selector::parse(selector).is_ok_and(|other| {
            let also = |pod: &Pod| other.matches(|key| pod.metadata.labels.get(key));
            step.pods.iter().any(|pod| picked(pod) && also(pod))
        })
    };
    let overlapping = inputs.others.iter().filter(|(_, selector)| overlaps(selector));
    let other = |(name, selector): &(_, _)| OtherAutoscaler {
        name: AsRef::<str>::as_ref(name).to_owned(),
        selector: AsRef::<str>::as_ref(selector).to_owned(),
    };
    step.other_autoscalers = overlapping.map(other).collect();
}

/// Whether a metric finds its values among those of all by its name alone.
fn is_plain(all: &[MetricSpec], metric: &MetricSpec) -> bool {
    let Some(own) = series(metric) else { return true };
    let namesakes = all.iter().filter_map(series).filter(|other| other.name == own.name);
    own.selector.is_none() && namesakes.count() == 1
}

fn series(metric: &MetricSpec) -> Option<&MetricIdentifier> {
    let pods = metric.pods.as_ref().map(|source| &source.metric);
    let object = metric.object.as_ref().map(|source| &source.metric);
    pods.or(object).or(metric.external.as_ref().map(|source| &source.metric))
}
