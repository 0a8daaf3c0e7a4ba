//! What one look at an autoscaler sees: the target, its pods, and what each metric says.

use super::super::observer::{Inputs, StatusWrite, Took};
use super::super::shadow::Theirs;
use super::{FRESH_PART, Passes};
use crate::act::{Sight, Target};
use crate::scrape::Answer;
use crate::telemetry::spans;
use crate::watch::world::{Key, Known};
use futures::future::join_all;
use podscale_api::hpa::v2::MetricSpec;
use podscale_api::metrics::PodMetrics;
use podscale_api::observe::{Answers, Selected, Surroundings, select};
use podscale_api::pod::Pod;
use podscale_api::selector::Selector;
use podscale_core::snapshot::{Reading, Scale, ScaleError, Selection};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a look has found.
pub(super) struct Seen {
    pub(super) target: Result<Target, ScaleError>,
    pub(super) selection: Selection,
    pub(super) readings: Vec<Reading>,
    pub(super) notes: Notes,
}

/// What is noted on the way for those who are told.
pub(super) struct Notes {
    pub(super) began: Instant,
    pub(super) took: Took,
    /// Kept only if somebody wants it.
    pub(super) inputs: Option<Box<Inputs>>,
}

impl Notes {
    fn new() -> Notes {
        Notes { began: Instant::now(), took: Took::default(), inputs: None }
    }

    /// The target was found with another size than it was read with.
    pub(super) fn found(&mut self, found: Scale) {
        if let Some(Ok(scale)) = self.inputs.as_mut().map(|inputs| &mut inputs.scale) {
            (scale.spec.replicas, scale.status.replicas) = (found.wanted, found.existing);
        }
    }
}

impl Passes {
    /// What there is to see: the target, its pods and what the metrics say.
    pub(super) async fn see(
        &self,
        key: &Key,
        known: &Known,
        theirs: Option<&Theirs>,
        sight: Sight,
    ) -> Seen {
        let mut notes = Notes::new();
        let period = self.owns.of(key).and_then(|own| own.period);
        let fresh = period.map_or(self.fresh, |period| self.fresh.min(period / FRESH_PART));
        let spec = &known.hpa.spec;
        let target = self.actor.scale(&key.namespace, &spec.scale_target_ref, sight).await;
        if self.observers.iter().any(|observer| observer.wants_inputs()) {
            notes.inputs = Some(Box::new(Inputs::of(&target)));
        }
        let (selection, readings) = match &target {
            Ok(target) => {
                let selector = &target.scale.status.selector;
                self.observe(key, known, selector, fresh, theirs, &mut notes).await
            }
            Err(_) => (Selection::NoSelector, Vec::new()),
        };
        Seen { target, selection, readings, notes }
    }

    /// The target's pods and what each metric says.
    async fn observe(
        &self,
        key: &Key,
        known: &Known,
        selector: &str,
        fresh: Duration,
        theirs: Option<&Theirs>,
        notes: &mut Notes,
    ) -> (Selection, Vec<Reading>) {
        let asking = known.hpa.spec.metrics.iter().map(async |metric| {
            let began = Instant::now();
            let reading = self.scraper.read(&known.hpa, metric, selector, fresh);
            (spans::read(metric, reading).await, began.elapsed())
        });
        let (answers, waits): (Vec<Answer>, _) = join_all(asking).await.into_iter().unzip();
        notes.took.metrics = waits;
        let mut pods = match Selector::parse(selector) {
            Ok(selector) => self.world.pods(&key.namespace, &selector),
            Err(_) => Vec::new(),
        };
        if let Some(theirs) = theirs {
            pods.retain(|pod| theirs.met(pod));
        }
        let rivals = self.memory.rivals.of(key, selector, &pods);
        let others: Vec<(&str, &str)> = rivals.iter().map(|(name, s)| (&**name, &**s)).collect();
        let seen: Vec<&Pod> = pods.iter().map(|pod| &**pod).collect();
        let around = Surroundings { selector, pods: &seen, others: &others };
        let (selection, readings) = match select(&known.autoscaler, &around) {
            Ok(selected) => {
                let asked = known.hpa.spec.metrics.iter().zip(&answers).enumerate();
                let read = |(place, (spec, answer))| answer_of(&selected, place, spec, answer);
                (selected.selection(), asked.map(read).collect())
            }
            Err(trouble) => (trouble, Vec::new()),
        };
        if let Some(inputs) = &mut notes.inputs {
            (inputs.pods, inputs.others, inputs.answers) = (pods, rivals, answers);
        }
        (selection, readings)
    }
}

impl Inputs {
    /// What is known once the target was looked for.
    fn of(target: &Result<Target, ScaleError>) -> Inputs {
        Inputs {
            scale: target.as_ref().map(|target| target.scale.clone()).map_err(Clone::clone),
            pods: Vec::new(),
            others: Vec::new(),
            answers: Vec::new(),
            write: None,
            status: StatusWrite::Unchanged,
        }
    }
}

/// What one metric says, given what its source answered.
fn answer_of(selected: &Selected<'_>, place: usize, spec: &MetricSpec, answer: &Answer) -> Reading {
    let mut answers = Answers {
        pod_metrics: Ok(&[]),
        custom_metrics: Ok(&[]),
        external_metrics: Ok(&[]),
        series_selected: true,
    };
    let used: Vec<&PodMetrics>;
    match answer {
        Answer::Resource(values) => {
            used = values.iter().map(|of_pod| &**of_pod).collect();
            answers.pod_metrics = Ok(&used);
        }
        Answer::Custom(values) => answers.custom_metrics = Ok(values),
        Answer::External(values) => answers.external_metrics = Ok(values),
        Answer::Nothing => {}
        Answer::Failed(error) => return Reading::Failed(Arc::clone(error)),
    }
    selected.read(place, spec, &answers)
}
