//! One poll of one ScaledJob: asks its triggers, creates the Jobs that are missing, deletes those that are too old, and
//! reports.

use super::beside::Beside;
use super::known::{Job, Jobs, State, name_of};
use super::triggers::OfObject;
use super::write::Writer;
use crate::controller::observer::{JobsDecided, Observer, StatusStored};
use crate::controller::ownership::{Management, conflict_message};
use crate::dialect::scaled_job::SCALED_JOB;
use crate::dialect::{CONFLICT_REASON, Key};
use crate::time::now;
use crate::triggers::{ObjectName, Triggers};
use futures::future::join_all;
use podscale_api::keda::annotations::is_job_paused;
use podscale_api::keda::check;
use podscale_api::keda::scaled_job::{HISTORY_LIMIT, ScaledJob, ScaledJobStatus};
use podscale_api::translate::polling;
use podscale_api::translate::scaled_job::made::{hold, job};
use podscale_api::translate::scaled_job::rules;
use podscale_api::translate::scaled_job::status::{Found, Polled, events, to_wire, with_conflict};
use podscale_client::clock::Clock;
use podscale_core::jobs::{JobSnapshot, decide};
use podscale_core::{Event, Withheld};
use std::sync::Arc;

/// What Jobs say of who made them.
const MADE_BY: (&str, &str) = ("podscale", env!("CARGO_PKG_VERSION"));
/// The most Jobs that are deleted in one poll for the sake of the limits of history.
const MOST_DELETED: usize = 500;
/// How many writes of one object are under way at a time.
const AT_ONCE: usize = 16;
/// Where an object is found to be wrong that has triggers which cannot be made.
const ENSURE: &str = "Failed to ensure ScaledJob is correctly created";

/// What is remembered of an object from poll to poll.
#[derive(Default)]
pub(super) struct Memory {
    /// Which object it is of, among those of the same name.
    uid: String,
    /// Its triggers.
    pub(super) triggers: OfObject,
    /// The generation whose forerunners' Jobs have been dealt with.
    begun: Option<i64>,
    /// Who else works on it.
    beside: Beside,
}

/// One poll.
struct Poll<'a> {
    object: &'a ScaledJob,
    name: &'a ObjectName,
    management: Management,
    /// Why nothing is written, if so.
    withheld: Option<Withheld>,
}

/// Polls.
pub(super) struct Poller {
    pub(super) triggers: Arc<Triggers>,
    pub(super) jobs: Arc<Jobs>,
    pub(super) writer: Writer,
    pub(super) clock: Clock,
    /// Whether nothing is written.
    pub(super) dry_run: bool,
    /// Who hears of what is decided.
    pub(super) observers: Vec<Arc<dyn Observer>>,
}

impl Poller {
    /// Polls an object once.
    pub(super) async fn poll(&self, object: &ScaledJob, memory: &mut Memory) {
        let name = name_of(object);
        if memory.uid != object.metadata.uid {
            *memory = Memory { uid: object.metadata.uid.clone(), ..Memory::default() };
        }
        if object.metadata.deletion_timestamp.is_some() {
            return self.release(object, &name).await;
        }
        let (management, withheld) = self.management(object, &name, memory);
        if let Some(patch) = hold(object, true).filter(|_| withheld.is_none()) {
            // The watch shows the change, and the object is polled then.
            if let Err(error) = self.writer.patch(object, &patch).await {
                tracing::warn!(scaled_job = %shown(&name), %error, "cannot add the finalizer");
            }
            return;
        }
        let is_paused = is_job_paused(&object.metadata.annotations);
        let poll = Poll { object, name: &name, management, withheld };
        if is_paused {
            memory.begun = None;
            self.conclude(&poll, memory, Found::Paused).await;
        } else if let Err(why) = self.scale(&poll, memory).await {
            self.conclude(&poll, memory, Found::Refused(&why)).await;
        }
        self.triggers.note_pause(&name, is_paused);
    }

    /// Reports that an object is gone.
    pub(super) fn gone(&self, name: &ObjectName) {
        let key = key_of(name);
        self.observers.iter().for_each(|observer| observer.gone(&key));
    }

    /// Who manages an object, and why nothing is written if so. In a dry run another controller is nothing special.
    fn management(
        &self,
        object: &ScaledJob,
        name: &ObjectName,
        memory: &mut Memory,
    ) -> (Management, Option<Withheld>) {
        if self.dry_run {
            return (Management::Active, Some(Withheld::DryRun));
        }
        let has_foreign_jobs = self.jobs.take_foreign(name);
        let management = memory.beside.look(object, has_foreign_jobs, now(&self.clock));
        let is_ours = management == Management::Active;
        (management, (!is_ours).then_some(Withheld::OtherController))
    }

    /// Asks and acts.
    ///
    /// # Errors
    /// What is wrong with the object.
    async fn scale(&self, poll: &Poll<'_>, memory: &mut Memory) -> Result<(), String> {
        let Poll { object, name, withheld, .. } = *poll;
        if let Err(wrong) = check::scaled_job(object) {
            memory.triggers.forget();
            self.triggers.forget(name);
            return Err(wrong.to_string());
        }
        let triggers = memory.triggers.ask(&self.triggers, object).await;
        let triggers = triggers.map_err(|problem| format!("{ENSURE}: {problem}"))?;
        let generation = object.metadata.generation;
        if memory.begun != Some(generation) && withheld.is_none() {
            self.roll_out(object, name).await?;
            self.writer.record(object, &polling::started(&object.spec.triggers));
            memory.begun = Some(generation);
        }
        let counts = self.counts(object, &self.jobs.of(name)).await?;
        let snapshot = JobSnapshot { rules: rules(&object.spec), counts, triggers };
        let plan = decide(&snapshot);
        let (mut created, mut refusal) = (0, None);
        if withheld.is_none() {
            let wanted = usize::try_from(plan.create).unwrap_or(0);
            (created, refusal) = self.create(object, name, wanted).await;
            self.prune(object, name).await;
        }
        let polled = Polled { snapshot: &snapshot, plan, created, refusal: refusal.as_deref() };
        self.conclude(poll, memory, Found::Polled(polled)).await;
        Ok(())
    }

    /// Deletes the Jobs that another generation made, unless they are to be left alone.
    ///
    /// # Errors
    /// One cannot be deleted, and why.
    async fn roll_out(&self, object: &ScaledJob, name: &ObjectName) -> Result<(), String> {
        if object.spec.leaves_older_jobs() {
            return Ok(());
        }
        let generation = object.metadata.generation.to_string();
        let mut older = self.jobs.of(name);
        older.retain(|job| job.generation.as_deref() != Some(&generation));
        if older.is_empty() {
            return Ok(());
        }
        let whose = format!("{} jobs owned by the previous version of the scaledJob", older.len());
        let begun = format!("Deleting {whose}");
        self.writer.record(object, &[Event::normal("ScaledJobRolloutCleanupStarted", begun)]);
        let foreground = object.spec.rollout.propagation_policy == "foreground";
        let propagation = if foreground { "Foreground" } else { "Background" };
        for some in older.chunks(AT_ONCE) {
            let deleted = some.iter().map(|job| self.writer.delete(job, propagation));
            let mut ended = join_all(deleted).await.into_iter().zip(some);
            if let Some((Err(error), job)) = ended.find(|(ended, _)| ended.is_err()) {
                let message = format!("Failed to delete job {}: {error}", job.name);
                let event = Event::warning("ScaledJobRolloutCleanupFailed", message);
                self.writer.record(object, &[event]);
                return Err(format!("Not able to delete job: {}: {error}", job.name));
            }
        }
        let done = Event::normal("ScaledJobRolloutCleanupCompleted", format!("Deleted {whose}"));
        self.writer.record(object, &[done]);
        Ok(())
    }

    /// Creates Jobs; how many, and why others were not. One that fails does not stop the rest, but where none of
    /// several can be created (a quota), no more are tried.
    async fn create(
        &self,
        object: &ScaledJob,
        name: &ObjectName,
        wanted: usize,
    ) -> (usize, Option<String>) {
        let made = job(object, MADE_BY);
        let (mut created, mut refused, mut first) = (0, 0, None);
        let mut left = wanted;
        while left > 0 {
            let before = created;
            let some = left.min(AT_ONCE);
            let creations = (0..some).map(|_| self.writer.create(&name.namespace, &made));
            for ended in join_all(creations).await {
                match ended {
                    Ok(job) => {
                        created += 1;
                        // The watch may show it after the next poll.
                        self.jobs.created(job);
                    }
                    Err(error) => {
                        refused += 1;
                        first.get_or_insert_with(|| error.to_string());
                    }
                }
            }
            if created == before {
                break;
            }
            left -= some;
        }
        // Each names the Job that it is about, so the same reason is never the same text.
        if let Some(error) = &first {
            tracing::warn!(scaled_job = %shown(name), %error, created, refused, wanted, "cannot create Jobs");
        }
        (created, first)
    }

    /// Deletes the oldest Jobs that have ended, beyond those to be kept.
    async fn prune(&self, object: &ScaledJob, name: &ObjectName) {
        let known = self.jobs.of(name);
        let spec = &object.spec;
        let surplus: Vec<&Job> = [
            (State::Complete, spec.successful_jobs_history_limit),
            (State::Failed, spec.failed_jobs_history_limit),
        ]
        .into_iter()
        .flat_map(|(state, limit)| surplus(&known, state, limit))
        .take(MOST_DELETED)
        .collect();
        for some in surplus.chunks(AT_ONCE) {
            let deleted = some.iter().map(|job| self.writer.delete(job, "Background"));
            for error in join_all(deleted).await.into_iter().filter_map(Result::err) {
                tracing::warn!(scaled_job = %shown(name), %error, "cannot delete a Job that has ended");
            }
        }
    }

    /// Reports what was found.
    async fn conclude(&self, poll: &Poll<'_>, memory: &mut Memory, found: Found<'_>) {
        let Poll { object, name, management, withheld } = *poll;
        let now = now(&self.clock);
        let status = to_wire(object, found, now);
        let is_silent = withheld.is_some();
        let events = if is_silent { Vec::new() } else { events(object, found, &status) };
        self.writer.record(object, &events);
        let conflict =
            (management != Management::Active).then(|| conflict_message(&object.metadata));
        if let (Management::SteppingBack, Some(message)) = (management, &conflict) {
            self.report_conflict(object, name, memory, message).await;
        }
        let failure = if is_silent || object.status.as_ref() == Some(&status) {
            None
        } else {
            Some(self.store(object, name, memory, status.clone()).await)
        };
        let stored = match &failure {
            None => StatusStored::Left,
            Some(None) => StatusStored::Written,
            Some(Some(why)) => StatusStored::Failed(why),
        };
        let (key, conflict) = (key_of(name), conflict.as_deref());
        let (key, status, events) = (&key, &status, &*events);
        let decided =
            JobsDecided { key, object, now, found, withheld, status, stored, events, conflict };
        self.observers.iter().for_each(|observer| observer.jobs_decided(&decided));
    }

    /// Stores a status; why it is not, if so.
    async fn store(
        &self,
        object: &ScaledJob,
        name: &ObjectName,
        memory: &mut Memory,
        status: ScaledJobStatus,
    ) -> Option<String> {
        let error = match self.writer.store(object, status).await {
            Ok(()) => {
                memory.beside.wrote();
                return None;
            }
            Err(error) => error,
        };
        // It is reported after the next poll.
        if !error.is_conflict() && !error.is_not_found() {
            tracing::warn!(scaled_job = %shown(name), %error, "cannot store the status");
        }
        Some(error.to_string())
    }

    /// Says that another controller works on an object; what could not be stored is stored by the next poll.
    async fn report_conflict(
        &self,
        object: &ScaledJob,
        name: &ObjectName,
        memory: &mut Memory,
        message: &str,
    ) {
        tracing::warn!(scaled_job = %shown(name), "{message}");
        let status = with_conflict(object, message);
        if self.store(object, name, memory, status).await.is_none() {
            self.writer.record(object, &[Event::warning(CONFLICT_REASON, message)]);
            memory.beside.reported();
        }
    }

    /// Lets an object go. Its Jobs go with it, as whatever belongs to an object does.
    async fn release(&self, object: &ScaledJob, name: &ObjectName) {
        self.triggers.forget(name);
        let Some(patch) = hold(object, false).filter(|_| !self.dry_run) else { return };
        match self.writer.patch(object, &patch).await {
            Ok(()) => {
                let deleted = Event::warning("ScaledJobDeleted", "ScaledJob was deleted");
                self.writer.record(object, &[polling::stopped(), deleted]);
            }
            Err(error) => {
                tracing::warn!(scaled_job = %shown(name), %error, "cannot remove the finalizer");
            }
        }
    }
}

/// The Jobs of one state beyond those to be kept, the oldest first. Those that failed do not say when: their order is
/// that of the list.
fn surplus(known: &[Job], state: State, limit: Option<i32>) -> Vec<&Job> {
    let mut ended: Vec<&Job> = known.iter().filter(|job| job.state == state).collect();
    ended.sort_by_key(|job| job.completed);
    let kept = usize::try_from(limit.unwrap_or(HISTORY_LIMIT)).unwrap_or(0);
    ended.truncate(ended.len().saturating_sub(kept));
    ended
}

/// The same name, with its kind.
pub(super) fn key_of(name: &ObjectName) -> Key {
    let (namespace, name) = (Arc::clone(&name.namespace), Arc::clone(&name.name));
    Key { namespace, name, kind: &SCALED_JOB }
}

fn shown(name: &ObjectName) -> String {
    format!("{}/{}", name.namespace, name.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_oldest_that_ended_go_first() {
        let job = |name: &str, kind: &str, second: u32| -> Job {
            let completed = (second > 0).then(|| format!("2026-01-01T00:00:{second:02}Z"));
            serde_json::from_value(json!({"metadata": {"name": name}, "status": {
                "conditions": [{"type": kind, "status": "True"}], "completionTime": completed}}))
            .expect("a Job")
        };
        let known = [
            job("a", "Complete", 3),
            job("b", "Complete", 1),
            job("c", "Failed", 0),
            job("d", "Complete", 2),
            job("e", "Failed", 0),
            job("f", "Suspended", 0),
        ];
        for (state, limit, expected) in [
            (State::Complete, Some(1), "b d"),
            (State::Complete, Some(0), "b d a"),
            (State::Complete, Some(5), ""),
            (State::Complete, None, ""),
            (State::Failed, Some(1), "c"),
            (State::Failed, Some(-1), "c e"),
        ] {
            let names: Vec<&str> =
                surplus(&known, state, limit).iter().map(|job| &*job.name).collect();
            assert_eq!(names.join(" "), expected, "{state:?}, {limit:?}");
        }
    }
}
