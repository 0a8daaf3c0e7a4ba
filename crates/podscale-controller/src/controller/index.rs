//! Everything the controller knows of its objects: one entry per object, in one place, behind one
//! lock. Watch events are applied here synchronously; workers take what is due from here and leave
//! here what they learned; what is gone is dropped here and nowhere else.

mod adoption;
mod claims;
mod due;
mod entry;
pub(super) mod histories;
mod selectors;
mod subscribers;
#[cfg(test)]
mod tests;
mod upkeep;

use super::dry_run::{Comparison, ObservedWrite};
use super::manage::Manage;
use super::observer::OtherSelector;
use super::overrides::Overrides;
use super::ownership::Management;
use super::recalled::Recalled;
use crate::dialect::{Key, Kind, Managed};
use crate::settings::span;
use crate::source::Topic;
use adoption::Departed;
use claims::{Claims, TargetNumber};
use due::{Due, Queue, QueueState};
use entry::{Entry, Rules};
use histories::Histories;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use podscale_api::pod::Pod;
use podscale_client::clock::Clock;
use podscale_client::watch::Change;
use podscale_core::{Settings, Span, Time};
use selectors::Selectors;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use subscribers::unsubscribe;
use tokio::sync::Notify;

pub(super) use claims::same_target_message;
pub(super) use due::MOMENTS;

/// The objects of the controller. Shared by watches, workers and the history store.
pub(crate) struct Index {
    clock: Clock,
    rules: Rules,
    state: Mutex<State>,
    /// Something may be due sooner than the one that is waited for.
    sooner: Notify,
    /// A history should be stored soon.
    rescaled: Notify,
}

#[derive(Default)]
struct State {
    /// Boxed, since a part of the table is always empty.
    entries: HashMap<Key, Box<Entry>>,
    /// How many of them are gone, and stay until their reconcile ends.
    gone: usize,
    queue: Queue,
    selectors: Selectors,
    claims: Claims,
    /// Who asked about what is announced under a topic.
    subscribers: HashMap<Topic, BTreeSet<Key>>,
    histories: Histories,
    departed: Departed,
}

/// What a reconcile begins with; small, since thousands of them may wait for their sources.
pub(super) struct ReconcileStart {
    pub(super) managed: Managed,
    /// The object's own sync period, if it has one.
    pub(super) period: Option<Duration>,
    /// Dry run: what another controller wrote since the last reconcile. Nearly always nothing.
    pub(super) observed: Option<Box<ObservedWrite>>,
}

/// What a stored status says.
pub(super) enum StatusStored {
    /// What was decided.
    Decided,
    /// That another controller manages the object.
    Conflict,
    /// That this autoscaler has the same target.
    SameTarget(Key),
}

/// What a decision needs besides what was observed.
pub(super) struct ReconcileState {
    pub(super) recalled: Recalled,
    pub(super) overrides: Option<Arc<Overrides>>,
    pub(super) management: Management,
    /// The autoscaler that has the same target and goes before this one, if there is one.
    pub(super) precedent: Option<Key>,
    /// How often the object is reconciled.
    pub(super) period: Span,
    /// Whether what is wrong with its annotations is still to be reported.
    pub(super) report_annotations: bool,
    /// The version of its target in which that was taken out of its ownership, if it was.
    pub(super) released: Option<Box<str>>,
    /// The object that made `precedent`, if it was not a person.
    pub(super) behind: Option<Arc<str>>,
}

impl Index {
    /// An empty index.
    pub(crate) fn new(
        clock: Clock,
        period: Duration,
        settings: Settings,
        manage: Manage,
        dry_run: bool,
    ) -> Index {
        let rules = Rules { period, settings, manage, dry_run };
        let (state, sooner, rescaled) = (Mutex::default(), Notify::new(), Notify::new());
        Index { clock, rules, state, sooner, rescaled }
    }

    fn now_micros(&self) -> i64 {
        self.clock.now().as_microsecond()
    }

    /// The entry of an object that is there; of another object of that name there is none.
    fn entry(&self, key: &Key, uid: &str) -> Option<MappedMutexGuard<'_, Entry>> {
        let find = |state: &mut State| {
            let entry = state.entries.get_mut(key)?;
            (!entry.gone && entry.managed.uid() == uid).then_some(())
        };
        let mut state = self.state.lock();
        find(&mut state)?;
        MutexGuard::try_map(state, |state| state.entries.get_mut(key).map(Box::as_mut)).ok()
    }

    /// Takes in a change of the objects of one kind; those that are gone.
    ///
    /// The order within one object: an old version is ignored; what the object says of its own
    /// settings comes first, since the sync period decides when it is due; then what another
    /// controller wrote is compared with what was known before; only then is the new version known.
    pub(crate) fn apply(&self, kind: &'static Kind, change: Change<Managed>) -> Vec<Key> {
        let now = self.now_micros();
        let mut state = self.state.lock();
        let mut gone = Vec::new();
        state.claims.take_in(kind, &change, &self.rules.manage);
        match self.rules.manage.filter(change) {
            Change::All(all) => {
                let there: HashSet<&Key> = all.iter().map(|managed| &managed.key).collect();
                let is_left = |key: &Key, entry: &Entry| {
                    key.kind == kind && !entry.gone && !there.contains(key)
                };
                let left = state.entries.iter().filter(|(key, entry)| is_left(key, entry));
                gone.extend(left.map(|(key, _)| key.clone()));
                gone.iter().for_each(|key| state.remove(key));
                for managed in all {
                    // What was decided before keeps its moment, so that a start does not decide
                    // everything at once.
                    let known = managed.wire.status().observed_generation;
                    let decided = known == Some(managed.model.generation);
                    state.put(managed, &self.rules, now, decided);
                }
            }
            Change::Applied(managed) => state.put(managed, &self.rules, now, false),
            Change::Deleted(managed) => {
                state.remove(&managed.key);
                gone.push(managed.key);
            }
        }
        drop(state);
        self.sooner.notify_one();
        gone
    }

    /// Waits for the next object that is due, takes it, and returns by how much it is late.
    pub(super) async fn next(&self) -> (Key, Duration) {
        loop {
            let sooner = self.sooner.notified();
            let next = self.state.lock().take(self.now_micros());
            match next {
                Due::Now(key, late) => return (key, Duration::from_micros(late.unsigned_abs())),
                Due::In(wait) => {
                    tokio::select! {
                        biased;
                        () = sooner => {}
                        () = self.clock.sleep(wait) => {}
                    }
                }
                Due::Never => sooner.await,
            }
        }
    }

    /// Puts an object back after it was reconciled.
    pub(super) fn done(&self, key: &Key) {
        let now = self.now_micros();
        let mut state = self.state.lock();
        let State { entries, queue, gone, .. } = &mut *state;
        match entries.get_mut(key) {
            Some(entry) if entry.gone => {
                entries.remove(key);
                *gone -= 1;
            }
            Some(entry) => {
                let period = due::micros(entry.period(&self.rules));
                queue.finish(key, &mut entry.queue_state, now, period);
                drop(state);
                self.sooner.notify_one();
            }
            None => {}
        }
    }

    /// What a reconcile of an object begins with.
    pub(super) fn open(&self, key: &Key) -> Option<ReconcileStart> {
        let mut state = self.state.lock();
        let entry = state.entries.get_mut(key).filter(|entry| !entry.gone)?;
        Some(ReconcileStart {
            managed: entry.managed.clone(),
            period: entry.own_period(),
            observed: entry.comparison.as_mut().and_then(Comparison::take_observed).map(Box::new),
        })
    }

    /// What a decision about an object needs. A conflict that has been quiet for long enough ends
    /// here.
    pub(super) fn reconcile_state(
        &self,
        key: &Key,
        uid: &str,
        now: Time,
    ) -> Option<ReconcileState> {
        let (precedent, behind) = self.state.lock().precedent_and_owner(key);
        let mut entry = self.entry(key, uid)?;
        let period = span(entry.period(&self.rules));
        entry.ownership.end_if_quiet(now, period);
        if let Some(inherited) = entry.inherited.take() {
            entry.recalled = *inherited;
        }
        let reported = std::mem::replace(&mut entry.annotations_reported, true);
        Some(ReconcileState {
            recalled: entry.recalled.clone(),
            overrides: entry.overrides.clone(),
            management: entry.management(precedent.as_ref()),
            precedent,
            period,
            report_annotations: !reported,
            released: entry.released.clone(),
            behind,
        })
    }

    /// Keeps what an object's history has become; after a rescale it should be stored soon.
    pub(super) fn commit(&self, key: &Key, uid: &str, recalled: Recalled, rescaled: bool) {
        let Some(mut entry) = self.entry(key, uid) else { return };
        entry.recalled = recalled;
        drop(entry);
        if self.state.lock().histories.changed(uid, rescaled) {
            self.rescaled.notify_one();
        }
    }

    /// Registers the selector of an object's target.
    pub(super) fn register_selector(&self, key: &Key, uid: &str, selector: &str) {
        let mut state = self.state.lock();
        let there = state.entries.get(key).is_some_and(|e| !e.gone && e.managed.uid() == uid);
        if state.precedent(key).is_some() {
            // Whoever goes before it is to see the target as its own.
            state.selectors.remove(key);
        } else if there {
            state.selectors.register(key, selector);
        }
    }

    /// The other objects of the namespace whose targets' selectors may pick any of these pods, by name.
    pub(super) fn selector_overlap(&self, key: &Key, pods: &[Arc<Pod>]) -> Vec<OtherSelector> {
        self.state.lock().selectors.overlap(key, pods)
    }

    /// When the status of an object was last sent.
    pub(super) fn status_sent(&self, key: &Key, uid: &str) -> Option<Time> {
        self.entry(key, uid)?.status_sent
    }

    /// The status of an object is being sent.
    pub(super) fn sending_status(&self, key: &Key, uid: &str, now: Time) {
        if let Some(mut entry) = self.entry(key, uid) {
            entry.status_sent = Some(now);
        }
    }

    /// The status of an object was stored, and how. The answer is known, unless that version or a newer one is: whoever
    /// brought it may know better what the object means, which can depend on others.
    pub(super) fn status_stored(&self, managed: Managed, what: StatusStored) {
        let Some(mut entry) = self.entry(&managed.key, managed.uid()) else { return };
        match what {
            StatusStored::Decided => entry.ownership.wrote(),
            StatusStored::Conflict => entry.ownership.reported(),
            StatusStored::SameTarget(other) => entry.reported_precedent = Some(other),
        }
        if entry.managed.metadata().resource_version != managed.metadata().resource_version {
            entry.replace(managed);
        }
    }

    /// Dry run: changes what is remembered of an object's comparison.
    pub(super) fn compare<T>(
        &self,
        key: &Key,
        uid: &str,
        compare: impl FnOnce(&mut Comparison) -> T,
    ) -> Option<T> {
        let mut entry = self.entry(key, uid)?;
        Some(compare(entry.comparison.get_or_insert_default()))
    }

    /// Whether an object is there.
    pub(super) fn contains(&self, key: &Key) -> bool {
        self.state.lock().entries.get(key).is_some_and(|entry| !entry.gone)
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        let state = self.state.lock();
        state.entries.len() - state.gone
    }

    /// How many are due and wait for a worker.
    pub(crate) fn due(&self) -> usize {
        self.state.lock().queue.count_due(self.now_micros())
    }
}

impl State {
    /// Takes in an object; `decided` says that it need not be decided at once if it is new.
    fn put(&mut self, managed: Managed, rules: &Rules, now: i64, decided: bool) {
        let State { entries, queue, histories, claims, .. } = self;
        let key = managed.key.clone();
        let same = entries
            .get_mut(&key)
            .filter(|entry| !entry.gone && entry.managed.uid() == managed.uid());
        if let Some(entry) = same {
            let decides = entry.update(managed, rules, Time(now));
            claims.move_to(&mut entry.target, TargetNumber::of(&entry.managed), &key);
            if decides {
                queue.enqueue(&key, &mut entry.queue_state, due::after_change(now));
            }
            return;
        }
        let recalled = histories.claim(managed.uid());
        let mut entry = Box::new(Entry::new(managed, recalled.unwrap_or_default(), rules));
        // One of the same name may be under way; it is not started a second time.
        let running = entries.get(&key).is_some_and(|entry| entry.queue_state.is_running());
        self.remove(&key);
        if running {
            entry.queue_state = QueueState::running_again(now);
        } else {
            let period = due::micros(entry.period(rules));
            let at =
                if decided { due::next_moment(&key, period, now) } else { due::after_change(now) };
            self.queue.enqueue(&key, &mut entry.queue_state, at);
        }
        self.claims.add(entry.target, &key);
        if self.entries.insert(key.clone(), entry).is_some_and(|before| before.gone) {
            self.gone -= 1;
        }
        self.inherit(&key);
    }

    /// Drops everything that is known of an object. While it is being reconciled, a mark stays that
    /// it must not be started a second time.
    fn remove(&mut self, key: &Key) {
        self.bequeath(key);
        self.selectors.remove(key);
        let Some(entry) = self.entries.get_mut(key).filter(|entry| !entry.gone) else { return };
        unsubscribe(&mut self.subscribers, key, &entry.topics);
        self.claims.remove(entry.target, key);
        self.histories.changed(entry.managed.uid(), false);
        if entry.queue_state.is_running() {
            entry.gone = true;
            self.gone += 1;
        } else {
            self.queue.remove(key, &entry.queue_state);
            self.entries.remove(key);
        }
    }

    fn take(&mut self, now: i64) -> Due {
        let next = self.queue.take(now);
        if let Due::Now(key, _) = &next
            && let Some(entry) = self.entries.get_mut(key)
        {
            entry.queue_state = QueueState::running(now);
        }
        next
    }
}
