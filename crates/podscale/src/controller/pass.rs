//! One look at one autoscaler: see, decide, act, learn.

mod see;

use super::contest::{self, Contests, Stance};
use super::histories::Histories;
use super::observer::{Decided, Observer, StatusWrite};
use super::overrides::{Own, Owns};
use super::refresh::{Load, RefreshRate};
use super::rivals::Rivals;
use super::schedule::MOMENTS;
use super::shadow::{Look, Reason, Shadows, Theirs, Verdict};
use crate::act::{Actor, Sight, now};
use crate::clock::Clock;
use crate::meters::Meters;
use crate::scrape::Scraper;
use crate::settings::span;
use crate::watch::world::{Key, Known, World};
use parking_lot::Mutex;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::translate;
use podscale_core::snapshot::Scale;
use podscale_core::{
    Decision, Pass, ScaleWrite, Settings, Snapshot, Span, StatusChange, StatusWrite as Stored,
    Time, Withheld, Write,
};
use see::Seen;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The reason of events about annotations.
const INVALID_ANNOTATION: &str = "InvalidAnnotation";

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
    /// Are lent to looks that act, [`HANDS`] of them.
    pub hands: Semaphore,
}

/// How many looks act at the same time: about as many calls as an API server takes at once on one
/// connection. More would wait all the same, each with all that it is about to write.
pub const HANDS: usize = 256;

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
        for sight in [Sight::Watched, Sight::Fresh] {
            if self.look(key, sight).await.is_some() {
                break;
            }
        }
        // What a look has left behind of an object that went meanwhile goes as well.
        if self.world.autoscaler(key).is_none() {
            self.forget(key);
        }
    }

    /// One look; `None` if the target turned out to have changed before anything was done.
    async fn look(&self, key: &Key, sight: Sight) -> Option<()> {
        let Some(mut known) = self.world.autoscaler(key) else { return Some(()) };
        // Nearly always nothing, so it is no part of each look that waits.
        let theirs = self.shadows.as_ref().and_then(|shadows| shadows.take(key)).map(Box::new);
        if let Some(theirs) = &theirs {
            let status = theirs.before.clone();
            let hpa = HorizontalPodAutoscaler { status, ..known.hpa.clone() };
            known = Arc::new(Known { hpa, autoscaler: Arc::clone(&known.autoscaler) });
        }
        let seen = self.see(key, &known, theirs.as_deref(), sight).await;
        // Sources may be slow, so many may wait for them. What follows needs more room and waits for
        // nobody but the API server, which takes only so much at once.
        let _hand = self.hands.acquire().await;
        Box::pin(self.conclude(key, &known, seen, theirs.as_deref())).await
    }

    /// Decides on what was seen, does it, and tells whoever wants to know.
    async fn conclude(
        &self,
        key: &Key,
        known: &Known,
        seen: Seen,
        theirs: Option<&Theirs>,
    ) -> Option<()> {
        let Known { hpa, autoscaler } = known;
        let Seen { target, selection, readings, mut notes } = seen;
        let own = self.owns.of(key);
        let settings = own.as_ref().map_or(&self.settings, |own| &own.settings);
        let mut recalled = self.memory.histories.recall(key, &hpa.metadata.uid);
        let status = hpa.status.as_ref().map(translate::status::from_wire).unwrap_or_default();
        let mut scale = match &target {
            Ok(target) => Ok(Scale {
                wanted: target.scale.spec.replicas,
                existing: target.scale.status.replicas,
            }),
            Err(error) => Err(error.clone()),
        };
        if let (Some(theirs), Ok(scale)) = (theirs, &mut scale) {
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
            autoscaler,
            status: &status,
            history: &recalled.history,
            scale: &scale,
            pods: &selection,
            readings: &readings,
        };
        let stance = self.stance(key, hpa, now);
        let mut pass = Pass::begin(&snapshot);
        let mut written = None;
        let ours = self.shadows.as_ref().map(|_| Look::of(pass.decision(), &snapshot, hpa, theirs));
        let alike = ours.as_ref().is_none_or(|ours| ours.alike);
        if let (Write::Scale(rescale), Ok(target)) = (pass.next_write(), &target) {
            let (write, at) = match stance {
                Stance::Act => self.actor.resize(target, rescale.to).await?,
                Stance::StepBack | Stance::Away => (self.withheld(), now),
            };
            pass.scale_ended(write.clone(), at);
            written = Some((write, at));
        }
        // What was learned stands, whatever becomes of the status.
        let mut learned = recalled.clone();
        if alike {
            learned.history.commit(pass.learned());
        }
        if let Some(theirs) = theirs {
            theirs.teach(autoscaler.behavior.as_ref(), &mut learned.history);
        }
        let rescaled = pass.decision().rescaled_at.is_some();
        self.memory.histories.remember(key, &hpa.metadata.uid, learned, rescaled);
        let stored = self.store(key, known, &mut pass, stance).await;
        let decision = pass.finish().decision;
        self.tell(key, hpa, &decision, own.as_deref(), stance);
        if let Some(ours) = ours {
            self.compare(key, theirs, &snapshot, ours);
        }
        notes.took.whole = notes.began.elapsed();
        if let Some(inputs) = &mut notes.inputs {
            (inputs.write, inputs.status) = (written, stored);
        }
        let decided = Decided {
            key,
            hpa,
            autoscaler,
            snapshot: &snapshot,
            decision: &decision,
            took: &notes.took,
            inputs: notes.inputs.as_deref(),
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

    /// Forgets an object that is gone, and tells it.
    pub fn forget(&self, key: &Key) {
        self.memory.forget(key);
        self.contests.forget(key);
        if let Some(shadows) = &self.shadows {
            shadows.forget(key);
        }
        self.observers.iter().for_each(|observer| observer.gone(key));
    }

    fn stance(&self, key: &Key, hpa: &HorizontalPodAutoscaler, now: Time) -> Stance {
        let said = contest::is_said(hpa.status.as_ref());
        match self.shadows {
            Some(_) => Stance::Away,
            None => self.contests.stance(key, said, now, self.period),
        }
    }

    /// How a rescale ends that is not to be done.
    fn withheld(&self) -> ScaleWrite {
        let dry = self.shadows.is_some();
        ScaleWrite::Withheld(if dry { Withheld::DryRun } else { Withheld::OtherController })
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
        pass: &mut Pass<'_>,
        stance: Stance,
    ) -> StatusWrite {
        let (hpa, said) = (&known.hpa, contest::is_said(known.hpa.status.as_ref()));
        let snapshot = pass.snapshot();
        let change = match pass.next_write() {
            Write::Status(change) => change,
            _ => StatusChange::None,
        };
        let (mut status, contested) = match stance {
            Stance::Away if change != StatusChange::None => return StatusWrite::PutOff,
            Stance::Away => return StatusWrite::Unchanged,
            Stance::Act if change == StatusChange::None && !said => {
                return StatusWrite::Unchanged;
            }
            Stance::Act if !said && !self.is_refreshed(key, change, snapshot.now) => {
                return StatusWrite::PutOff;
            }
            Stance::Act => (translate::status::to_wire(pass.decision(), snapshot, hpa), None),
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
                pass.status_ended(Stored::Written);
                StatusWrite::Written
            }
            Err(_) if stance == Stance::StepBack => {
                self.contests.unsaid(&Key::of(hpa));
                StatusWrite::PutOff
            }
            Err(error) if error.is_not_found() => StatusWrite::PutOff,
            Err(error) => {
                let error: Arc<str> = error.to_string().into();
                pass.status_ended(Stored::Failed(Arc::clone(&error)));
                StatusWrite::Failed(error)
            }
        }
    }
}
