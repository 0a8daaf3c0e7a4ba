//! Observes what one decision depends on: the target, its pods, and what each metric says.

use super::deletion_cost::may_change;
use super::dry_run::ObservedWrite;
use super::index::Index;
use super::observer::{Inputs, OtherSelector, Took};
use super::owned::{counts_owned, of_pods, owned};
use super::target::{Freshness, Target, TargetReader};
use crate::dialect::Managed;
use crate::pods::Pods;
use crate::source::{Answer, Question, Sources, Topic};
use futures::future::join_all;
use podscale_api::metrics::PodMetrics;
use podscale_api::observe::{Answers, Measured, Other, Selected, Surroundings, select};
use podscale_api::pod::Pod;
use podscale_api::selector::Selector;
use podscale_core::decide::reads_metrics;
use podscale_core::model::Milli;
use podscale_core::snapshot::{Reading, Sample, Scale, ScaleError, Selection};
use podscale_core::{Span, Time};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What was observed.
pub(super) struct Observation {
    pub(super) target: Result<Target, ScaleError>,
    /// The target's size; in a dry run, as the other controller found it.
    pub(super) scale: Result<Scale, ScaleError>,
    pub(super) selection: Selection,
    pub(super) readings: Vec<Reading>,
    /// The pods of the selection, in its order, where deletion costs may have to change; else none.
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) began: Instant,
    pub(super) took: Took,
    /// Kept only if somebody wants it.
    pub(super) inputs: Option<Box<Inputs>>,
}

/// Observes; shared by all workers.
pub(super) struct Observatory {
    pub(super) index: Arc<Index>,
    pub(super) targets: TargetReader,
    pub(super) pods: Arc<Pods>,
    pub(super) sources: Sources,
    /// Whether somebody wants to know what decisions are made on.
    pub(super) keep_inputs: bool,
}

/// How one object is observed.
pub(super) struct ObserveRequest<'a> {
    pub(super) object: &'a Managed,
    pub(super) freshness: Freshness,
    /// How old answers may be that were given to others.
    pub(super) max_age: Duration,
    /// How often it is reconciled.
    pub(super) period: Duration,
    /// Dry run: the write of another controller, from whose side it is observed.
    pub(super) observed: Option<&'a ObservedWrite>,
}

/// What the target's pods and the metrics say.
#[derive(Default)]
struct Gathered {
    selection: Option<Selection>,
    readings: Vec<Reading>,
    waits: SmallVec<[Duration; 2]>,
    pods: Vec<Arc<Pod>>,
    others: Vec<OtherSelector>,
    answers: Vec<Answer>,
}

impl Observatory {
    /// Observes an object. Pods and metrics are read only where a decision reads them: a size that is
    /// out of bounds, or zero, is decided without them.
    pub(super) async fn observe(&self, request: ObserveRequest<'_>) -> Observation {
        let (began, object) = (Instant::now(), request.object);
        let namespace = &object.key.namespace;
        let target = self.targets.read(namespace, &object.model.target, request.freshness).await;
        let mut scale = target.as_ref().map(scale_of).map_err(Clone::clone);
        if let (Some(observed), Ok(scale)) = (request.observed, &mut scale) {
            observed.rewind_scale(scale);
        }
        let gathered = match (&target, &scale) {
            (Ok(target), Ok(scale))
                if reads_metrics(&object.model, *scale, || object.wire.status()) =>
            {
                self.gather(&request, target).await
            }
            _ => Gathered::default(),
        };
        let Gathered { selection, readings, waits, pods, others, answers } = gathered;
        let costs = if may_change(object, &pods) { pods.clone() } else { Vec::new() };
        let inputs = self.keep_inputs.then(|| {
            let mut read = target.as_ref().map(|t| t.scale.clone()).map_err(Clone::clone);
            if let (Ok(read), Ok(scale)) = (&mut read, &scale) {
                (read.spec.replicas, read.status.replicas) =
                    (scale.spec_replicas, scale.status_replicas);
            }
            Box::new(Inputs { scale: read, pods, others, answers })
        });
        let took = Took { whole: Duration::ZERO, metrics: waits };
        let selection = selection.unwrap_or(Selection::NoSelector);
        Observation { target, scale, selection, readings, pods: costs, began, took, inputs }
    }

    /// The target's pods and what each metric says.
    async fn gather(&self, request: &ObserveRequest<'_>, target: &Target) -> Gathered {
        let selector = target.scale.status.selector.as_str();
        let (mut answers, waits) = self.ask(request, selector).await;
        let Managed { key, model, .. } = request.object;
        let only_owned = counts_owned(model);
        let mut pods = match Selector::parse(selector) {
            Ok(parsed) if !selector.is_empty() => {
                if !only_owned {
                    self.index.register_selector(key, request.object.uid(), selector);
                }
                self.pods.select(&key.namespace, &parsed)
            }
            _ => Vec::new(),
        };
        if only_owned {
            pods = owned(self.targets.watched(), target, &key.namespace, pods).await;
            answers = answers.into_iter().map(|answer| of_pods(answer, &pods)).collect();
        }
        if let Some(observed) = request.observed {
            pods.retain(|pod| observed.existed_before(pod));
        }
        // Pods that it owns are those of no other target, whoever's selector picks them too.
        let others = if only_owned { Vec::new() } else { self.index.selector_overlap(key, &pods) };
        let named: Vec<Other<'_>> = others
            .iter()
            .map(|OtherSelector { kind, name, selector }| Other { kind, name, selector })
            .collect();
        let seen: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let kind = key.kind.name;
        let around = Surroundings { kind, selector, pods: &seen, others: &named };
        let (selection, readings) = match select(model, &around) {
            Ok(selected) => {
                let read = |(place, answer)| reading(&selected, place, answer);
                (selected.selection(), answers.iter().enumerate().map(read).collect())
            }
            Err(unusable) => (unusable, Vec::new()),
        };
        Gathered { selection: Some(selection), readings, waits, pods, others, answers }
    }

    /// What the source of each metric answers, and how long that took. The object is notified of
    /// new answers from now on.
    async fn ask(
        &self,
        request: &ObserveRequest<'_>,
        selector: &str,
    ) -> (Vec<Answer>, SmallVec<[Duration; 2]>) {
        let Managed { key, model, .. } = request.object;
        let question = |metric| Question {
            namespace: &key.namespace,
            metric,
            pods: selector,
            max_age: request.max_age,
            period: request.period,
        };
        let uid = request.object.uid();
        let topic = |metric| self.sources.find(metric)?.topic(&question(metric));
        let topics: SmallVec<[Option<Topic>; 2]> =
            model.metrics.iter().map(|metric| topic(&metric.source)).collect();
        self.index.subscribe(key, uid, topics.iter().flatten().cloned().collect());
        let asking = model.metrics.iter().zip(&topics).map(async |(metric, topic)| {
            let began = Instant::now();
            let answer = self.sources.ask(question(&metric.source)).await;
            if let Some(topic) = topic.as_ref().filter(|_| answer.failure().is_none()) {
                self.index.answered(key, uid, topic);
            }
            (answer, began.elapsed())
        });
        join_all(asking).await.into_iter().unzip()
    }
}

fn scale_of(target: &Target) -> Scale {
    Scale {
        spec_replicas: target.scale.spec.replicas,
        status_replicas: target.scale.status.replicas,
    }
}

/// What one metric says, given what its source answered.
fn reading(selected: &Selected<'_>, place: usize, answer: &Answer) -> Reading {
    let mut answers = Answers {
        pod_metrics: Ok(&[]),
        custom_metrics: Ok(&[]),
        external_metrics: Ok(&[]),
        unselected: None,
    };
    let used: Vec<&PodMetrics>;
    match answer {
        Answer::Resource(values) => {
            used = values.iter().map(|of_pod| &**of_pod).collect();
            answers.pod_metrics = Ok(&used);
        }
        Answer::Custom(values) => answers.custom_metrics = Ok(values),
        Answer::External(values) => answers.external_metrics = Ok(values),
        Answer::Value(value) => {
            let measured = |(value, taken): &(Milli, Time)| {
                let sample = Sample { value: *value, taken: *taken, window: Span(0) };
                Measured { sample, pod: None }
            };
            let values: Vec<Measured<'_>> = value.iter().map(measured).collect();
            return selected.read_measured(place, &values);
        }
        Answer::Trigger { .. } | Answer::Inputs(_) => return trigger_reading(answer),
        Answer::Nothing => {}
        Answer::Failed(error) => return Reading::Failed(Arc::clone(error)),
    }
    selected.read(place, &answers)
}

/// What a trigger says, or what the inputs of a formula say.
fn trigger_reading(answer: &Answer) -> Reading {
    match answer {
        Answer::Trigger { value, active, taken } => {
            Reading::Trigger { value: *value, active: *active, taken: Some(*taken) }
        }
        Answer::Inputs(inputs) => Reading::Inputs(inputs.iter().map(trigger_reading).collect()),
        Answer::Failed(error) => Reading::Failed(Arc::clone(error)),
        _ => Reading::Empty,
    }
}
