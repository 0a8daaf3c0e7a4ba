//! What a decision was made on, in the form of a step of a Recording.

use super::Entry;
use crate::controller::observer::OtherSelector;
use crate::source::Answer;
use podscale_api::hpa::v2::{MetricIdentifier, MetricSpec};
use podscale_api::metrics::PodMetrics;
use podscale_api::pod::Pod;
use podscale_api::quantity::Format;
use podscale_api::recording::{
    OtherAutoscaler, RecordedAnswer, RecordedScale, RecordedScaleSpec, RecordedScaleStatus,
    RecordedValue, Step, StepErrors,
};
use podscale_api::selector::Selector;
use podscale_api::time::ExactTimestamp;
use podscale_api::{Labels, Quantity};
use podscale_core::Time;
use podscale_core::model::Milli;
use podscale_core::pass::{ScaleWrite, StatusWrite, WriteOutcome};
use podscale_core::snapshot::ScaleError;
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
        // The spec itself holds the invalid version.
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

/// Pods, metrics and other autoscalers. All of them were read with the selector, so that they are what
/// it selects; without a usable one they have no part in the decision.
fn add_surroundings(step: &mut Step, entry: &Entry, selector: &str) {
    if selector.is_empty() || Selector::parse(selector).is_err() {
        return;
    }
    let inputs = &entry.inputs;
    step.pods = inputs.pods.iter().map(|pod| Pod::clone(pod)).collect();
    let overlaps = |OtherSelector { kind, name, selector }: &OtherSelector| {
        let other = Selector::parse(selector).ok()?;
        let is_theirs = |pod: &Pod| other.matches(|key| pod.metadata.labels.get(key));
        let recorded = || OtherAutoscaler::new(kind, name, selector);
        step.pods.iter().any(is_theirs).then(recorded)
    };
    step.other_autoscalers = inputs.others.iter().filter_map(overlaps).collect();
    let mut shared = None;
    for (place, (spec, answer)) in entry.hpa.spec.metrics.iter().zip(&inputs.answers).enumerate() {
        let plain = is_plain(&entry.hpa.spec.metrics, spec);
        let Ok(metric) = u32::try_from(place) else { continue };
        let mut own = RecordedAnswer { metric, ..RecordedAnswer::default() };
        match answer {
            Answer::Nothing => continue,
            Answer::Trigger { .. } | Answer::Inputs(_) => {
                own = RecordedAnswer { metric, ..of_trigger(answer) };
            }
            Answer::Failed(error) => own.error = Some(error.to_string()),
            Answer::Value(value) => own.values = Some(value.iter().map(recorded_value).collect()),
            Answer::Resource(values) => {
                let copied = || values.iter().map(|of_pod| PodMetrics::clone(of_pod)).collect();
                match shared {
                    None => {
                        shared = Some(values);
                        step.pod_metrics = copied();
                        continue;
                    }
                    Some(first) if is_same(first, values) => continue,
                    Some(_) => own.pod_metrics = copied(),
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
}

/// What a trigger said, or what the inputs of a formula said.
fn of_trigger(answer: &Answer) -> RecordedAnswer {
    let nothing = RecordedAnswer::default();
    match answer {
        Answer::Trigger { value, active, taken } => {
            let values = Some(vec![recorded_value(&(*value, *taken))]);
            RecordedAnswer { values, active: Some(*active), ..nothing }
        }
        Answer::Inputs(inputs) => {
            RecordedAnswer { inputs: Some(inputs.iter().map(of_trigger).collect()), ..nothing }
        }
        Answer::Failed(error) => RecordedAnswer { error: Some(error.to_string()), ..nothing },
        _ => nothing,
    }
}

fn recorded_value((Milli(milli), time): &(Milli, Time)) -> RecordedValue {
    RecordedValue {
        value: Quantity::from_milli(*milli, Format::DecimalSi),
        time: Some(ExactTimestamp(*time)),
        window: None,
        labels: Labels::default(),
        pod: None,
        object: None,
    }
}

/// Whether two metrics were answered with the same values.
fn is_same(a: &[Arc<PodMetrics>], b: &[Arc<PodMetrics>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
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
