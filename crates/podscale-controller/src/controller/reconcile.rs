//! One reconcile of one object: observe, run the pass, perform what it asks for, report.

mod beside;
mod conflict;
mod costs;
mod own_status;
mod permits;
mod upkeep;

use super::act::Actor;
use super::dry_run::{self, Attempt, Comparison, ObservedWrite};
use super::index::{Index, ReconcileStart, ReconcileState, StatusStored};
use super::observe::{Observation, Observatory, ObserveRequest};
use super::observer::{Decided, Observer};
use super::ownership::{Management, says_conflict};
use super::recalled::Recalled;
use super::refresh::{RefreshDemand, RefreshRate};
use super::target::{Freshness, Target};
use crate::dialect::{After, Key, Managed, NewStatus, Upkeep, WireObject};
use crate::metrics::Metrics;
use crate::settings::span;
use crate::source::FRESHNESS_PARTS;
use crate::time::now;
use conflict::{Conflict, conflict};
#[cfg(test)]
pub(super) use permits::WRITE_PERMITS;
pub(super) use permits::WritePermits;
use podscale_client::clock::Clock;
use podscale_core::pass::{Pass, ScaleWrite, StatusWrite, Withheld, Write};
use podscale_core::snapshot::ScaleError;
use podscale_core::{Event, Rescale, Settings, Snapshot, Span, StatusChange, Time};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// The reason of events about annotations.
const INVALID_ANNOTATION: &str = "InvalidAnnotation";
/// No answer is used by another object after this time.
const LONGEST_MAX_AGE: Duration = Duration::from_secs(4);

/// Reconciles objects; shared by all workers.
pub(super) struct Reconciler {
    pub(super) index: Arc<Index>,
    pub(super) observatory: Observatory,
    pub(super) actor: Actor,
    pub(super) clock: Clock,
    pub(super) period: Duration,
    pub(super) settings: Settings,
    pub(super) dry_run: bool,
    pub(super) refresh_rate: RefreshRate,
    pub(super) metrics: Metrics,
    pub(super) observers: Vec<Arc<dyn Observer>>,
    pub(super) write_permits: WritePermits,
}

/// A target that turned out to have changed before anything was written.
struct Changed;

impl Reconciler {
    /// Reconciles one object; the permit is held for as long as it runs, or until it waits to write.
    pub(super) async fn reconcile(&self, key: &Key, mut permit: OwnedSemaphorePermit) {
        for freshness in [Freshness::Watched, Freshness::Current] {
            if self.attempt(key, freshness, &mut permit).await.is_ok() {
                break;
            }
        }
        // What was reported of an object that went meanwhile goes as well.
        if !self.index.contains(key) {
            self.gone(key);
        }
    }

    /// Reports that an object is gone.
    pub(super) fn gone(&self, key: &Key) {
        self.observers.iter().for_each(|observer| observer.gone(key));
    }

    async fn attempt(
        &self,
        key: &Key,
        freshness: Freshness,
        permit: &mut OwnedSemaphorePermit,
    ) -> Result<(), Changed> {
        let Some(ReconcileStart { mut managed, period, observed }) = self.index.open(key) else {
            return Ok(());
        };
        if let Some(observed) = &observed {
            managed = observed.rewind(&managed);
        }
        if let Some(upkeep) = managed.wire.upkeep()
            && !matches!(upkeep, Upkeep::Prepare { .. })
            && self.may_maintain(&managed)
        {
            match Box::pin(self.maintain(managed, upkeep)).await {
                Some(maintained) => managed = maintained,
                None => return Ok(()),
            }
        }
        let period = period.unwrap_or(self.period);
        let max_age = (period / FRESHNESS_PARTS).min(LONGEST_MAX_AGE);
        let observed = observed.as_deref();
        let request = ObserveRequest { object: &managed, freshness, max_age, period, observed };
        let observation = self.observatory.observe(request).await;
        // Sources may be slow, so many may wait for them. What follows needs more memory and waits for
        // nobody but the API server, which takes only so much at once.
        let write_permit = self.write_permits.acquire(permit).await;
        if write_permit.has_waited && observed.is_none() {
            // What would be written now is not what is asked for any more.
            let Some(newest) = self.index.newest(&managed) else { return Ok(()) };
            managed = newest;
        }
        // Not before: polls of many new objects would wait until the API server has taken in as many patches.
        if let Some(prepare @ Upkeep::Prepare { .. }) = managed.wire.upkeep()
            && self.may_maintain(&managed)
        {
            match Box::pin(self.maintain(managed, prepare)).await {
                Some(prepared) => managed = prepared,
                None => return Ok(()),
            }
        }
        Box::pin(self.conclude(&managed, observation, observed)).await
    }

    /// Decides on what was observed, performs it, and reports it.
    async fn conclude(
        &self,
        object: &Managed,
        mut observation: Observation,
        observed: Option<&ObservedWrite>,
    ) -> Result<(), Changed> {
        let (key, uid, now) = (&object.key, object.uid(), now(&self.clock));
        let Some(mut state) = self.index.reconcile_state(key, uid, now) else { return Ok(()) };
        if let Ok(scale) = &observation.scale {
            state.recalled.repair_after_interruption(scale.spec_replicas, now);
        }
        let behavior = object.model.behavior.as_ref();
        state.recalled.carry_over(behavior, &object.wire.changes_carried_over());
        let (state, status) = (state, object.wire.status());
        let snapshot = Snapshot {
            now,
            settings: state.overrides.as_deref().map_or(&self.settings, |o| &o.settings),
            autoscaler: &object.model,
            status: &status,
            history: &state.recalled.history,
            scale: &observation.scale,
            pods: &observation.selection,
            readings: &observation.readings,
        };
        let mut pass = Pass::begin(&snapshot);
        // What the pass decides is compared before any write is reported to it.
        let attempt = self.dry_run.then(|| Attempt::new(pass.decision(), &snapshot, observed));
        let compared = attempt.as_ref().map(|attempt| (attempt, observed));
        let own = self.perform(&mut pass, &observation, &state, object, compared).await?;
        self.keep_status_current(object, &pass, &state).await;
        self.disown(object, &observation.target, &state).await;
        let outcome = pass.finish();
        if self.withheld(&state).is_none() {
            match own {
                Some(events) => self.actor.record_own(object, &events),
                None => self.actor.record(object, &outcome.decision.events),
            }
        }
        self.report_invalid_annotations(object, &state);
        let same_inputs = attempt.as_ref().is_none_or(|attempt| attempt.same_inputs());
        if let Some(attempt) = attempt {
            self.compare(object, observed, &snapshot, attempt, state.period);
        }
        observation.took.whole = observation.began.elapsed();
        let (took, inputs) = (&observation.took, observation.inputs.as_deref());
        let conflict = conflict(object, &state).map(|conflict| conflict.message);
        let conflict = conflict.as_deref();
        let decided =
            Decided { object, snapshot: &snapshot, outcome: &outcome, took, inputs, conflict };
        // What left nothing behind is no step of a Recording: the next one does not follow from it.
        for observer in self.observers.iter().filter(|o| same_inputs || !o.wants_inputs()) {
            observer.decided(&decided);
        }
        Ok(())
    }

    /// Performs what a pass asks for; the events of a kind that has its own. What was learned stands, whatever
    /// becomes of the status.
    async fn perform(
        &self,
        pass: &mut Pass<'_>,
        observation: &Observation,
        state: &ReconcileState,
        object: &Managed,
        attempt: Option<(&Attempt, Option<&ObservedWrite>)>,
    ) -> Result<Option<Vec<Event>>, Changed> {
        let rescale = match pass.next_write() {
            Write::Scale(rescale) => Some(rescale),
            _ => None,
        };
        if self.withheld(state).is_none() {
            self.set_costs(object, pass, &observation.pods, rescale).await;
        }
        if let Some(rescale) = rescale {
            let now = pass.snapshot().now;
            let (write, at) = self.write_scale(&observation.target, rescale, state, now).await?;
            pass.scale_ended(write, at);
        }
        self.commit(object, pass, &state.recalled, attempt);
        let hpa = self.keep_hpa(object, state).await;
        let (snapshot, target) = (pass.snapshot(), observation.target.as_ref().ok());
        let (target, hpa) = (target.map(|target| &*target.resource), hpa.as_ref());
        let after = After { snapshot, outcome: pass.outcome(), target, hpa };
        if let Some(own) = object.wire.after(after) {
            return Ok(Some(self.write_own_status(object, pass, own, state).await));
        }
        if let Write::Status(change) = pass.next_write() {
            let write = self.write_status(object, pass, change, state).await;
            pass.status_ended(write);
        }
        Ok(None)
    }

    /// Dry run: compares an attempt with what the other controller wrote or stored.
    fn compare(
        &self,
        object: &Managed,
        observed: Option<&ObservedWrite>,
        snapshot: &Snapshot<'_>,
        attempt: Attempt,
        period: Span,
    ) {
        let judge = |c: &mut Comparison| c.judge(observed, snapshot, attempt, period);
        if let Some(verdict) = self.index.compare(&object.key, object.uid(), judge).flatten() {
            dry_run::report(&object.key, verdict, &self.metrics);
        }
    }

    /// Gives the target its new size, unless that is to be withheld.
    async fn write_scale(
        &self,
        target: &Result<Target, ScaleError>,
        rescale: Rescale,
        state: &ReconcileState,
        now: Time,
    ) -> Result<(ScaleWrite, Time), Changed> {
        let Ok(target) = target else { return Ok((ScaleWrite::Withheld(Withheld::Gone), now)) };
        match self.withheld(state) {
            Some(why) => Ok((ScaleWrite::Withheld(why), now)),
            None => self.actor.resize(target, rescale.to).await.ok_or(Changed),
        }
    }

    /// Why nothing is written for an object, if so.
    fn withheld(&self, state: &ReconcileState) -> Option<Withheld> {
        let ceded = match (state.management, &state.precedent) {
            (Management::Active, _) => None,
            (_, Some(_)) => Some(Withheld::TargetTaken),
            (_, None) => Some(Withheld::OtherController),
        };
        dry_run::withheld(self.dry_run).or(ceded)
    }

    /// Keeps what was learned.
    fn commit(
        &self,
        object: &Managed,
        pass: &Pass<'_>,
        recalled: &Recalled,
        attempt: Option<(&Attempt, Option<&ObservedWrite>)>,
    ) {
        let mut learned = recalled.clone();
        learned.history.commit(pass.learned());
        if let Some((attempt, observed)) = attempt {
            learned = dry_run::remembered(recalled, learned, attempt, observed, &object.model);
        }
        let rescaled = pass.decision().rescaled_at.is_some();
        self.index.commit(&object.key, object.uid(), learned, rescaled);
    }

    /// Stores the status, unless that is to be withheld or can wait.
    async fn write_status(
        &self,
        object: &Managed,
        pass: &Pass<'_>,
        change: StatusChange,
        state: &ReconcileState,
    ) -> StatusWrite {
        if let Some(why) = self.withheld(state) {
            return StatusWrite::Withheld(why);
        }
        if !self.is_status_due(object, pass, change) {
            return StatusWrite::Withheld(Withheld::Deferred);
        }
        self.store_status(object, pass).await
    }

    /// Whether a status that differs so is to be written now.
    fn is_status_due(&self, object: &Managed, pass: &Pass<'_>, change: StatusChange) -> bool {
        let (key, uid, snapshot) = (&object.key, object.uid(), pass.snapshot());
        let demand = RefreshDemand { autoscalers: self.index.len(), period: span(self.period) };
        let last = self.index.status_sent(key, uid);
        let due = self.refresh_rate.is_due(change, last, snapshot.now, demand);
        due || must_be_stored(object, pass)
    }

    async fn store_status(&self, object: &Managed, pass: &Pass<'_>) -> StatusWrite {
        let snapshot = pass.snapshot();
        let decided = NewStatus::Decided { decision: pass.decision(), snapshot };
        self.store(object, object.wire.with_status(decided), snapshot.now).await
    }

    /// Stores an object with what was decided as its status.
    async fn store(&self, object: &Managed, new: Box<dyn WireObject>, now: Time) -> StatusWrite {
        self.index.sending_status(&object.key, object.uid(), now);
        match self.actor.store_status(object, new).await {
            Ok(stored) => {
                self.index.status_stored(stored, StatusStored::Decided);
                StatusWrite::Written
            }
            Err(error) if error.is_not_found() => StatusWrite::Withheld(Withheld::Gone),
            Err(error) => StatusWrite::Failed(error.to_string().into()),
        }
    }

    /// Keeps what the status says besides what was decided up to date, where the pass has nothing to write: of
    /// other controllers, and of what depends on the time.
    async fn keep_status_current(&self, object: &Managed, pass: &Pass<'_>, state: &ReconcileState) {
        if dry_run::withheld(self.dry_run).is_some() {
            return;
        }
        let snapshot = pass.snapshot();
        let found = snapshot.scale.as_ref().ok().map(|scale| scale.spec_replicas);
        match state.management {
            // Its status is its own, and shows the size that the other autoscaler gives the target.
            Management::Ceded
                if state.precedent.is_some()
                    && object.wire.is_conflict_stale(pass.decision(), snapshot) =>
            {
                self.store_conflict(object, state, found, snapshot.now).await;
            }
            Management::Ceded => {}
            Management::SteppingBack => {
                if let Some(Conflict { reason, message, .. }) =
                    self.store_conflict(object, state, found, snapshot.now).await
                {
                    tracing::warn!(autoscaler = %object.key, "{message}");
                    self.actor.warn(object, reason, message);
                }
            }
            Management::Active
                if must_be_stored(object, pass) && !pass.decision().changes_status(snapshot) =>
            {
                // That it could not be taken back shows at the next reconcile.
                let _ = self.store_status(object, pass).await;
            }
            Management::Active => {}
        }
    }

    /// Stores in the status that another controller manages the object, or that another autoscaler has its
    /// target. What could not be stored is stored by the next reconcile.
    async fn store_conflict(
        &self,
        object: &Managed,
        state: &ReconcileState,
        replicas: Option<i32>,
        now: Time,
    ) -> Option<Conflict> {
        let conflict = conflict(object, state)?;
        let (reason, message) = (conflict.reason, &*conflict.message);
        let status = NewStatus::Conflict { reason, message, replicas, now };
        let stored = self.actor.store_status(object, object.wire.with_status(status)).await.ok()?;
        self.index.status_stored(
            stored,
            match &state.precedent {
                Some(other) => StatusStored::SameTarget(other.clone()),
                None => StatusStored::Conflict,
            },
        );
        Some(conflict)
    }

    /// Reports once what is wrong with an object's annotations.
    fn report_invalid_annotations(&self, object: &Managed, state: &ReconcileState) {
        let Some(overrides) = state.overrides.as_deref().filter(|_| state.report_annotations)
        else {
            return;
        };
        for invalid in &overrides.invalid_annotations {
            tracing::warn!(autoscaler = %object.key, "{invalid}");
            if self.withheld(state).is_none() {
                self.actor.warn(object, INVALID_ANNOTATION, invalid.clone());
            }
        }
    }
}

/// Whether what is stored says something that is not so any more, whatever was decided: it may not wait.
fn must_be_stored(object: &Managed, pass: &Pass<'_>) -> bool {
    let snapshot = pass.snapshot();
    says_conflict(snapshot.status) || object.wire.is_status_stale(pass.decision(), snapshot)
}
