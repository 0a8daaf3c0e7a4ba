//! Decides the steps of a Recording anew, each on what the one before it left.

use crate::chpa::{self, Chpa};
use crate::hpa::v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, KIND,
};
use crate::keda::scaled_object;
use crate::observe::{Answers, Measured, Other, Selected, Surroundings, select};
use crate::pod::{Pod, PodPhase};
use crate::pod_autoscaler;
use crate::recording::{
    Origin, OtherAutoscaler, RecordedAnswer, RecordedDecision, RecordedEvent, RecordedValue,
    Recording, Step, StepErrors,
};
use crate::translate;
use podscale_core::model::{Milli, PrometheusQuery, Source, Trigger};
use podscale_core::pod::Sample;
use podscale_core::snapshot::{Reading, Scale, ScaleError};
use podscale_core::status::StoredMetric;
use podscale_core::{
    Autoscaler, Decision, History, Outcome, Pass, ScaleWrite, Settings, Snapshot, Span, Status,
    StatusWrite, Time, Write,
};
use std::sync::Arc;

pub mod difference;
pub mod jobs;

/// How often a write of the scale is tried while it meets conflicts.
const SCALE_WRITE_TRIES: u32 = 5;
/// How long after a conflict it is tried again.
const CONFLICT_PAUSE: Span = Span(10_000);

/// What the autoscaler of a Recording means.
pub type Translate = fn(&HorizontalPodAutoscaler) -> Autoscaler;

/// The state of one autoscaler between two steps.
pub struct Replayer {
    settings: Settings,
    /// What the autoscaler was.
    kind: String,
    translate: Translate,
    hpa: HorizontalPodAutoscaler,
    autoscaler: Autoscaler,
    status: Status,
    history: History,
    replicas: i32,
    selector: String,
}

/// The model of a recorded autoscaler, whatever its kind was.
fn model(hpa: &HorizontalPodAutoscaler) -> Autoscaler {
    match Origin::of(hpa) {
        Some(origin) if origin.kind == chpa::KIND => {
            let metadata = hpa.metadata.clone();
            chpa::translate::autoscaler(&Chpa::new(metadata, origin.spec))
        }
        Some(origin) if origin.kind == scaled_object::KIND => {
            translate::scaled_object::replayed(hpa, origin.spec)
        }
        Some(origin) if origin.kind == pod_autoscaler::KIND => {
            translate::pod_autoscaler::replayed(hpa, origin.spec)
        }
        _ => translate::autoscaler(hpa),
    }
}

/// The status that a Recording begins with.
fn first_status(hpa: &HorizontalPodAutoscaler) -> Status {
    match Origin::of(hpa) {
        Some(origin) if origin.kind == scaled_object::KIND => {
            translate::scaled_object::replayed_status(origin.spec)
        }
        _ => hpa.status.as_ref().map(translate::status::from_wire).unwrap_or_default(),
    }
}

/// A status whose metrics are those of the autoscaler: in the form of an HPA, queries and values of event sources are
/// external metrics of their names.
fn with_queries(mut status: Status, autoscaler: &Autoscaler) -> Status {
    for (stored, metric) in status.metrics.iter_mut().zip(&autoscaler.metrics) {
        if let StoredMetric::Known { source, .. } = stored
            && let (
                Source::External(series),
                Source::Prometheus(PrometheusQuery { name, .. })
                | Source::Trigger(Trigger { name, .. }),
            ) = (&**source, &*metric.source)
            && series.name == *name
        {
            *source = Arc::clone(&metric.source);
        }
    }
    status
}

/// One step, decided anew.
pub struct Replayed<'a> {
    /// The decision in the form of the recording.
    pub outcome: RecordedDecision,
    /// The decision as the core made it.
    pub decision: &'a Decision,
    /// What became of it.
    pub pass: &'a Outcome,
    /// What it was made on.
    pub snapshot: &'a Snapshot<'a>,
}

impl Replayer {
    /// At the beginning of a Recording.
    #[must_use]
    pub fn new(recording: &Recording) -> Replayer {
        Replayer::translated(recording, model)
    }

    /// At the beginning of a Recording whose autoscaler is to be understood in another way.
    #[must_use]
    pub fn translated(recording: &Recording, translate: Translate) -> Replayer {
        let hpa = recording.autoscaler.clone();
        let autoscaler = translate(&hpa);
        let status = first_status(&hpa);
        Replayer {
            settings: recording.controller.into(),
            kind: Origin::of(&hpa).map_or_else(|| KIND.to_owned(), |origin| origin.kind),
            translate,
            status: with_queries(status, &autoscaler),
            autoscaler,
            hpa,
            history: recording.history.as_ref().map(History::from).unwrap_or_default(),
            replicas: 0,
            selector: String::new(),
        }
    }

    /// What was read around the autoscaler.
    fn around<'a>(&'a self, pods: &'a [&'a Pod], others: &'a [Other<'a>]) -> Surroundings<'a> {
        Surroundings { kind: &self.kind, selector: &self.selector, pods, others }
    }

    /// Decides a step and takes over what it leads to. `observe` is given the decision before that.
    pub fn step<T>(&mut self, step: &Step, observe: impl FnOnce(Replayed<'_>) -> T) -> T {
        self.take_in(step);
        let no_errors = StepErrors::default();
        let errors = step.errors.as_ref().unwrap_or(&no_errors);
        let scale = self.scale(step, errors);
        let others: Vec<_> = step.other_autoscalers.iter().map(OtherAutoscaler::as_other).collect();
        let pods: Vec<_> = step.pods.iter().collect();
        let pod_metrics: Vec<_> = step.pod_metrics.iter().collect();
        let answers = Answers {
            pod_metrics: unless(&errors.pod_metrics, &pod_metrics),
            custom_metrics: unless(&errors.custom_metrics, &step.custom_metrics),
            external_metrics: unless(&errors.external_metrics, &step.external_metrics),
            unselected: None,
        };
        let selected = select(&self.autoscaler, &self.around(&pods, &others));
        let (pods, readings) = match &selected {
            Ok(selected) => {
                let specs = self.hpa.spec.metrics.iter().enumerate();
                let reading = |(place, spec)| match answer_to(step, place) {
                    Some(answer) => answered(selected, place, answer, step.time.0),
                    None => selected.read(place, &Answers { unselected: Some(spec), ..answers }),
                };
                (selected.selection(), specs.map(reading).collect())
            }
            Err(trouble) => (trouble.clone(), Vec::new()),
        };
        let snapshot = Snapshot {
            now: step.time.0,
            settings: &self.settings,
            autoscaler: &self.autoscaler,
            status: &self.status,
            history: &self.history,
            scale: &scale,
            pods: &pods,
            readings: &readings,
        };
        let pass = self.run(&snapshot, step, errors);
        let decision = &pass.decision;
        let replicas = decision.replicas().unwrap_or(self.replicas);
        let written = pass.is_status_written();
        let stored = if written {
            translate::status::to_wire(decision, &snapshot, &self.hpa)
        } else {
            self.hpa.status.clone().unwrap_or_default()
        };
        let outcome = RecordedDecision::of(decision, replicas, written, stored);
        let next_status = written.then(|| (decision.status(&snapshot), outcome.status.clone()));
        let result = observe(Replayed { outcome, decision, pass: &pass, snapshot: &snapshot });

        self.history.commit(&decision.learned);
        self.replicas = replicas;
        if let Some((status, wire)) = next_status {
            self.status = status;
            self.hpa.status = Some(wire);
        }
        result
    }

    /// Drives a pass whose writes end as the step says.
    fn run(&self, snapshot: &Snapshot<'_>, step: &Step, errors: &StepErrors) -> Outcome {
        let mut pass = Pass::begin(snapshot);
        loop {
            match pass.next_write() {
                Write::Scale(_) => {
                    let (write, at) = self.write_scale(step, errors);
                    pass.scale_ended(write, at);
                }
                Write::Status(_) => pass.status_ended(match (step.status_withheld, errors) {
                    (Some(why), _) => StatusWrite::Withheld(why),
                    (None, StepErrors { update_status: Some(error), .. }) => {
                        StatusWrite::Failed(error.as_str().into())
                    }
                    (None, _) => StatusWrite::Written,
                }),
                Write::Nothing => return pass.finish(),
            }
        }
    }

    /// Takes over what is new in a step: the spec, the target's size and selector.
    fn take_in(&mut self, step: &Step) {
        if let Some(spec) = &step.spec {
            self.hpa.spec = spec.clone();
            self.hpa.metadata.generation += 1;
            self.autoscaler = (self.translate)(&self.hpa);
        }
        let Some(scale) = &step.scale else { return };
        if let Some(replicas) = scale.spec.as_ref().and_then(|s| s.replicas) {
            self.replicas = replicas;
        }
        if let Some(selector) = scale.status.as_ref().and_then(|s| s.selector.as_ref()) {
            self.selector.clone_from(selector);
        }
    }

    fn scale(&self, step: &Step, errors: &StepErrors) -> Result<Scale, ScaleError> {
        let version = &self.hpa.spec.scale_target_ref.api_version;
        if version.matches('/').count() > 1 {
            let error = format!("unexpected GroupVersion string: {version}");
            return Err(ScaleError::ApiVersion(error.into()));
        }
        if let Some(error) = &errors.rest_mapping {
            return Err(ScaleError::NoResource(error.as_str().into()));
        }
        if let Some(error) = &errors.get_scale {
            return Err(ScaleError::Unreadable(error.as_str().into()));
        }
        let status = step.scale.as_ref().and_then(|s| s.status.as_ref());
        let status_replicas = status.and_then(|s| s.replicas).unwrap_or_else(|| {
            let alive = step.pods.iter().filter(|p| p.status.phase != Some(PodPhase::Failed));
            i32::try_from(alive.count()).unwrap_or(i32::MAX)
        });
        Ok(Scale { spec_replicas: self.replicas, status_replicas })
    }

    /// How the write of the scale ends, and when.
    fn write_scale(&self, step: &Step, errors: &StepErrors) -> (ScaleWrite, Time) {
        let now = step.time.0;
        if let Some(why) = step.scale_withheld {
            return (ScaleWrite::Withheld(why), now);
        }
        let conflicts = errors.update_scale_conflicts;
        let write = if conflicts >= SCALE_WRITE_TRIES {
            ScaleWrite::Failed(conflict(&self.hpa.spec.scale_target_ref))
        } else if let Some(error) = &errors.update_scale {
            ScaleWrite::Failed(error.as_str().into())
        } else {
            ScaleWrite::Written
        };
        let pauses = i64::from(conflicts.min(SCALE_WRITE_TRIES - 1));
        let at = now.after(Span(CONFLICT_PAUSE.0 * pauses));
        (write, step.written_at.map_or(at, |written| written.0))
    }
}

fn unless<'a, T>(error: &'a Option<String>, values: &'a [T]) -> Result<&'a [T], &'a str> {
    match error {
        Some(error) => Err(error),
        None => Ok(values),
    }
}

/// What the API server answers to a write of something that has changed since it was read.
fn conflict(target: &CrossVersionObjectReference) -> Arc<str> {
    let resource = format!("{}s", target.kind.to_lowercase());
    let group = target.api_version.split_once('/').map_or("", |(group, _)| group);
    let separator = if group.is_empty() { "" } else { "." };
    let name = &target.name;
    format!(
        "Operation cannot be fulfilled on {resource}{separator}{group} \"{name}\": the object has \
         been modified; please apply your changes to the latest version and try again"
    )
    .into()
}

impl RecordedDecision {
    /// The decision of a pass in the form of a Recording. `stored` is the status as it is afterwards.
    #[must_use]
    pub fn of(
        decision: &Decision,
        replicas: i32,
        status_written: bool,
        stored: HorizontalPodAutoscalerStatus,
    ) -> RecordedDecision {
        RecordedDecision {
            replicas,
            rescaled: decision.rescaled_at.is_some(),
            error: decision.error.as_deref().map(str::to_owned),
            status_written,
            status: stored,
            events: decision.events.iter().map(RecordedEvent::from).collect(),
        }
    }
}

/// The answer that the metric at this place of the spec has of its own.
fn answer_to(step: &Step, place: usize) -> Option<&RecordedAnswer> {
    step.answers.iter().find(|answer| usize::try_from(answer.metric) == Ok(place))
}

/// What one metric says by an answer of its own.
fn answered(selected: &Selected<'_>, place: usize, answer: &RecordedAnswer, now: Time) -> Reading {
    if let Some(error) = &answer.error {
        return Reading::Failed(error.as_str().into());
    }
    if answer.active.is_some() || answer.inputs.is_some() {
        return trigger(answer, now);
    }
    if let Some(values) = &answer.values {
        let time = answer.time.map_or(now, |time| time.0);
        let measured: Vec<_> = values.iter().map(|value| measured(value, time)).collect();
        return selected.read_measured(place, &measured);
    }
    let pod_metrics: Vec<_> = answer.pod_metrics.iter().collect();
    let answers = Answers {
        pod_metrics: Ok(&pod_metrics),
        custom_metrics: Ok(&answer.custom_metrics),
        external_metrics: Ok(&answer.external_metrics),
        unselected: None,
    };
    selected.read(place, &answers)
}

/// What a trigger says, or what the inputs of a formula say.
fn trigger(answer: &RecordedAnswer, now: Time) -> Reading {
    if let Some(error) = &answer.error {
        return Reading::Failed(error.as_str().into());
    }
    if let Some(inputs) = &answer.inputs {
        return Reading::Inputs(inputs.iter().map(|input| trigger(input, now)).collect());
    }
    let time = answer.time.map_or(now, |time| time.0);
    let value = answer.values.iter().flatten().next();
    value.map_or(Reading::Empty, |value| Reading::Trigger {
        value: Milli(value.value.milli_value()),
        active: answer.active.unwrap_or_default(),
        taken: Some(value.time.map_or(time, |time| time.0)),
    })
}

fn measured(recorded: &RecordedValue, time: Time) -> Measured<'_> {
    Measured {
        sample: Sample {
            value: Milli(recorded.value.milli_value()),
            taken: recorded.time.map_or(time, |time| time.0),
            window: recorded.window.map_or(Span(0), |window| window.to_span()),
        },
        pod: recorded.pod.as_deref(),
    }
}
