//! One look at one autoscaler: observe, decide, act, learn.

use super::contest::{self, Contests, Stance};
use super::histories::Histories;
use super::observer::{Decided, Inputs, Observer, StatusWrite, Took};
use super::overrides::{Own, Owns};
use super::refresh::{Load, RefreshRate};
use super::rivals::Rivals;
use super::schedule::MOMENTS;
use super::shadow::{Look, Reason, Shadows, Theirs, Verdict};
use crate::act::{Actor, Sight, Target, now};
use crate::clock::Clock;
use crate::meters::Meters;
use crate::scrape::{Answer, Scraper};
use crate::settings::span;
use crate::telemetry::spans;
use crate::watch::world::{Key, Known, World};
use futures::future::join_all;
use parking_lot::Mutex;
use podscale_api::hpa::v2::{HorizontalPodAutoscaler, MetricSpec};
use podscale_api::metrics::PodMetrics;
use podscale_api::observe::{Answers, Selected, Surroundings, select};
use podscale_api::pod::Pod;
use podscale_api::selector::Selector;
use podscale_api::translate;
use podscale_core::snapshot::{Reading, Scale, ScaleError, Selection};
use podscale_core::{Decision, ScaleWrite, Settings, Snapshot, Span, StatusChange, Time, decide};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The reason of events about annotations.
const INVALID_ANNOTATION: &str = "InvalidAnnotation";

/// Why nothing is scaled in a dry run.
const DRY_RUN: &str = "dry run: nothing is written";
/// Why nothing is scaled while another controller looks after the object.
const CONTESTED: &str = "another controller looks after this autoscaler";
/// A metric's value may be used by several looks within this part of a period, and no longer: by those
/// of one moment, but not of the next.
pub const FRESH_PART: u32 = 2 * MOMENTS;

/// What every pass needs.
pub struct Passes {
    /// What is known of the cluster.
    pub world: Arc<World>,
    /// Reads the metrics.
    pub scraper: Scraper,
    /// Does what was decided.
    pub actor: Actor,
    /// The time.
    pub clock: Clock,
    /// What is the same for all autoscalers that do not say otherwise.
    pub settings: Settings,
    /// What autoscalers say otherwise.
    pub owns: Owns,
    /// Objects over which another controller fights.
    pub contests: Contests,
    /// In a dry run: what another controller writes.
    pub shadows: Option<Shadows>,
    /// How often an object is looked at that does not say otherwise.
    pub period: Span,
    /// Counts.
    pub meters: Meters,
    /// Who is told.
    pub observers: Vec<Arc<dyn Observer>>,
    /// What passes leave behind.
    pub memory: Memory,
    /// How old a metric's value may be to be used once more.
    pub fresh: Duration,
    /// How often statuses are written for their values alone.
    pub refresh_rate: RefreshRate,
}

/// What is noted on the way for those who are told.
#[derive(Default)]
struct Notes {
    took: Took,
    /// Kept only if somebody wants it.
    inputs: Option<Inputs>,
}

impl Notes {
    /// The target was found with another size than it was read with.
    fn found(&mut self, found: Scale) {
        if let Some(Inputs { scale: Ok(scale), .. }) = &mut self.inputs {
            (scale.spec.replicas, scale.status.replicas) = (found.wanted, found.existing);
        }
    }
}

/// What passes leave behind for later ones.
#[derive(Default)]
pub struct Memory {
    /// The histories.
    pub histories: Arc<Histories>,
    rivals: Rivals,
    /// When which status was written last.
    written: Mutex<HashMap<Key, Time>>,
}

impl Memory {
    /// Forgets an autoscaler that is gone.
    pub fn forget(&self, key: &Key) {
        self.histories.forget(key);
        self.rivals.forget(key);
        self.written.lock().remove(key);
    }
}

impl Passes {
    /// Looks at one autoscaler and does what follows.
    pub async fn pass(&self, key: &Key) {
        if self.look(key, Sight::Watched).await.is_none() {
            self.look(key, Sight::Fresh).await;
        }
    }

    /// One look; `None` if the target turned out to have changed before anything was done.
    async fn look(&self, key: &Key, sight: Sight) -> Option<()> {
        let Some(mut known) = self.world.autoscaler(key) else { return Some(()) };
        let theirs = self.shadows.as_ref().and_then(|shadows| shadows.take(key));
        if let Some(Theirs { before, .. }) = &theirs {
            let hpa = HorizontalPodAutoscaler { status: before.clone(), ..known.hpa.clone() };
            known = Arc::new(Known { hpa, wants: Arc::clone(&known.wants) });
        }
        let Known { hpa, wants } = &*known;
        let (began, mut notes) = (Instant::now(), Notes::default());
        let own = self.owns.of(key);
        let settings = own.as_ref().map_or(&self.settings, |own| &own.settings);
        let mut recalled = self.memory.histories.recall(key, &hpa.metadata.uid);
        let period = own.as_ref().and_then(|own| own.period);
        let fresh = period.map_or(self.fresh, |period| self.fresh.min(period / FRESH_PART));
        let target = self.actor.scale(&key.namespace, &hpa.spec.scale_target_ref, sight).await;
        if self.observers.iter().any(|observer| observer.wants_inputs()) {
            notes.inputs = Some(Inputs::of(&target));
        }
        let (selection, readings) = match &target {
            Ok(target) => {
                let selector = &target.scale.status.selector;
                self.observe(key, &known, selector, fresh, theirs.as_ref(), &mut notes).await
            }
            Err(_) => (Selection::NoSelector, Vec::new()),
        };
        let status = hpa.status.as_ref().map(translate::status::from_wire).unwrap_or_default();
        let mut scale = match &target {
            Ok(target) => Ok(Scale {
                wanted: target.scale.spec.replicas,
                existing: target.scale.status.replicas,
            }),
            Err(error) => Err(error.clone()),
        };
        if let (Some(theirs), Ok(scale)) = (&theirs, &mut scale) {
            // It has been changed since by what is to be compared.
            scale.wanted = theirs.found;
            scale.existing = theirs.existed.unwrap_or(scale.existing);
            notes.found(*scale);
        }
        let now = now(&self.clock);
        if let Ok(scale) = &scale {
            recalled.mend(scale.wanted, now);
        }
        let snapshot = Snapshot {
            now,
            settings,
            autoscaler: &wants.autoscaler,
            status: &status,
            history: &recalled.history,
            scale: &scale,
            pods: &selection,
            readings: &readings,
        };
        let stance = self.stance(key, hpa, now);
        let mut decision = decide(&snapshot);
        let mut written = None;
        let ours =
            self.shadows.as_ref().map(|_| Look::of(&decision, &snapshot, hpa, theirs.as_ref()));
        let alike = ours.as_ref().is_none_or(|ours| ours.alike);
        if let (Some(rescale), Ok(target)) = (&decision.rescale, &target) {
            let (write, at) = match stance {
                Stance::Act => self.actor.resize(target, rescale.to).await?,
                Stance::StepBack | Stance::Away => (self.left_undone(), now),
            };
            decision.settle(&snapshot, &write, at);
            written = Some((write, at));
        }
        // What was learned stands, whatever becomes of the status.
        let mut learned = recalled.clone();
        if alike {
            decision.teach(&wants.autoscaler, &mut learned.history);
        }
        if let Some(theirs) = &theirs {
            theirs.teach(wants.autoscaler.behavior.as_ref(), &mut learned.history);
        }
        let rescaled = decision.rescaled_at.is_some();
        self.memory.histories.remember(key, &hpa.metadata.uid, learned, rescaled);
        let stored = self.store(key, &known, &snapshot, &mut decision, stance).await;
        self.tell(key, hpa, &decision, own.as_deref(), stance);
        if let Some(ours) = ours {
            self.compare(key, theirs.as_ref(), &snapshot, ours);
        }
        notes.took.whole = began.elapsed();
        if let Some(inputs) = &mut notes.inputs {
            (inputs.write, inputs.status) = (written, stored);
        }
        let decided = Decided {
            key,
            hpa,
            snapshot: &snapshot,
            decision: &decision,
            took: &notes.took,
            inputs: notes.inputs.as_ref(),
        };
        // What taught nothing is no step of a Recording: the next one does not follow from it.
        for observer in self.observers.iter().filter(|o| alike || !o.wants_inputs()) {
            observer.decided(&decided);
        }
        Some(())
    }

    /// Takes in a change of an object; whether it must be decided at once.
    #[must_use]
    pub fn saw(&self, hpa: &HorizontalPodAutoscaler) -> bool {
        let key = Key::of(hpa);
        let Some(before) = self.world.autoscaler(&key) else { return false };
        match &self.shadows {
            Some(shadows) => match Theirs::of(&before.hpa, hpa) {
                Some(theirs) => {
                    shadows.note(&key, theirs);
                    true
                }
                None => false,
            },
            None => {
                self.contests.saw(&before.hpa, hpa, now(&self.clock), self.period);
                false
            }
        }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        self.memory.forget(key);
        self.contests.forget(key);
        if let Some(shadows) = &self.shadows {
            shadows.forget(key);
        }
    }

    fn stance(&self, key: &Key, hpa: &HorizontalPodAutoscaler, now: Time) -> Stance {
        let said = contest::is_said(hpa.status.as_ref());
        match self.shadows {
            Some(_) => Stance::Away,
            None => self.contests.stance(key, said, now, self.period),
        }
    }

    /// How a rescale ends that is not to be done.
    fn left_undone(&self) -> ScaleWrite {
        let why = if self.shadows.is_some() { DRY_RUN } else { CONTESTED };
        ScaleWrite::Failed(why.into())
    }

    /// Records what is worth telling people, and says once what is wrong with an object's settings.
    fn tell(
        &self,
        key: &Key,
        hpa: &HorizontalPodAutoscaler,
        decision: &Decision,
        own: Option<&Own>,
        stance: Stance,
    ) {
        let complaints = own.map(Own::complaints).unwrap_or_default();
        for complaint in complaints {
            tracing::warn!(autoscaler = %key, "{complaint}");
        }
        match stance {
            Stance::Away => return,
            Stance::StepBack => {
                let message = contest::message(hpa);
                tracing::warn!(autoscaler = %key, "{message}");
                self.actor.warn(hpa, contest::REASON, message);
            }
            Stance::Act => self.actor.record(hpa, &decision.events),
        }
        for complaint in complaints {
            self.actor.warn(hpa, INVALID_ANNOTATION, complaint.clone());
        }
    }

    /// In a dry run, says where another controller disagrees.
    fn compare(&self, key: &Key, theirs: Option<&Theirs>, snapshot: &Snapshot<'_>, ours: Look) {
        let Some(shadows) = &self.shadows else { return };
        let period = self.owns.of(key).and_then(|own| own.period).map_or(self.period, span);
        let verdict = shadows.compare(key, theirs, snapshot, ours, period);
        let Some(verdict) = verdict else { return };
        self.meters.compared(verdict);
        match verdict {
            Verdict::Agreed => {}
            Verdict::Disagreed(disagreement) => {
                tracing::warn!(autoscaler = %key, "{disagreement}");
            }
            Verdict::Unknown(reason @ Reason::OtherValues) => {
                tracing::warn!(autoscaler = %key, "cannot be compared: {reason}");
            }
            Verdict::Unknown(reason) => {
                tracing::debug!(autoscaler = %key, "a choice cannot be judged: {reason}");
            }
        }
    }

    /// Whether a status that differs so is to be written now.
    fn is_refreshed(&self, key: &Key, change: StatusChange, now: Time) -> bool {
        let last = self.memory.written.lock().get(key).copied();
        let load = Load { autoscalers: self.world.count_autoscalers(), period: self.period };
        self.refresh_rate.is_due(change, last, now, load)
    }

    async fn store(
        &self,
        key: &Key,
        known: &Known,
        snapshot: &Snapshot<'_>,
        decision: &mut Decision,
        stance: Stance,
    ) -> StatusWrite {
        let (hpa, said) = (&known.hpa, contest::is_said(known.hpa.status.as_ref()));
        let change = decision.status_change(snapshot);
        let (mut status, contested) = match stance {
            Stance::Away if change != StatusChange::None => return StatusWrite::PutOff,
            Stance::Away => return StatusWrite::Unchanged,
            Stance::Act if change == StatusChange::None && !said => {
                return StatusWrite::Unchanged;
            }
            Stance::Act if !said && !self.is_refreshed(key, change, snapshot.now) => {
                return StatusWrite::PutOff;
            }
            Stance::Act => (translate::status::to_wire(decision, snapshot, hpa), None),
            Stance::StepBack => {
                (hpa.status.clone().unwrap_or_default(), Some(contest::message(hpa)))
            }
        };
        if said || contested.is_some() {
            contest::say(&mut status, contested, snapshot.now);
        }
        self.memory.written.lock().insert(key.clone(), snapshot.now);
        match self.actor.store_status(hpa, status).await {
            Ok(stored) if stance == Stance::StepBack => {
                self.world.wrote(stored);
                StatusWrite::PutOff
            }
            Ok(stored) => {
                self.contests.own(&Key::of(&stored));
                self.world.wrote(stored);
                StatusWrite::Written
            }
            Err(_) if stance == Stance::StepBack => {
                self.contests.unsaid(&Key::of(hpa));
                StatusWrite::PutOff
            }
            Err(error) if error.is_not_found() => StatusWrite::PutOff,
            Err(error) => {
                let error = error.to_string();
                decision.status_write_failed(snapshot, &error);
                StatusWrite::Failed(error.into())
            }
        }
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
        let (selection, readings) = match select(&known.wants.autoscaler, &around) {
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
