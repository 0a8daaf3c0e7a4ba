//! What polls triggers, by the keys that the model has for them, and what it found last.

use super::ObjectName;
use super::hidden::Hidden;
use crate::metrics::{ObjectReport, TriggerReport, TriggersReport};
use crate::time::now;
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use podscale_core::Time;
use podscale_core::model::{Milli, Targets};
use podscale_scalers::{Scaler, TriggerError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a poll may take; sources have shorter deadlines of their own.
const POLL_DEADLINE: Duration = Duration::from_secs(30);
/// Values of the model are thousandths.
const THOUSANDTHS: f64 = 1000.0;

/// What a trigger gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Polled {
    /// How much.
    pub(crate) value: Milli,
    /// Whether its source says that there is something to do.
    pub(crate) active: bool,
    /// When it was asked.
    pub(crate) taken: Time,
}

/// Why a trigger gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PollError {
    /// In words.
    pub(super) problem: Arc<str>,
    /// Whether its source answered all the same, perhaps since it refuses what the trigger proves itself with.
    pub(super) is_answer: bool,
}

/// How one metric of a trigger is polled.
pub(super) struct Polls {
    /// Whose trigger it is.
    pub(super) object: ObjectName,
    /// The name of the metric; a source may have several.
    pub(super) metric: Arc<str>,
    /// What its value is compared with.
    pub(super) targets: Targets,
    /// Whether its source names its metrics itself.
    pub(super) is_told: bool,
    /// What asks the source.
    pub(super) scaler: Arc<dyn Scaler>,
    /// What metrics call the trigger.
    pub(super) label: Arc<str>,
    /// Which trigger of the object it is.
    pub(super) index: usize,
    /// How long an answer is used again, where the object says so.
    pub(super) kept: Option<Duration>,
    /// What must not show in errors.
    pub(super) hidden: Hidden,
}

/// One metric of a trigger that is connected to its source.
pub(crate) struct Connection {
    polls: Polls,
    found: Mutex<Found>,
}

/// What polls have found.
#[derive(Clone, Copy, Default)]
struct Found {
    last: Option<Polled>,
    took: Duration,
    errors: u64,
}

/// The connections of one object, by key.
pub(crate) type Connections = Vec<(Arc<str>, Connection)>;

impl Connection {
    /// One that was not polled yet.
    pub(super) fn new(polls: Polls) -> Connection {
        Connection { polls, found: Mutex::default() }
    }

    /// Whose trigger it is.
    pub(super) fn object(&self) -> &ObjectName {
        &self.polls.object
    }

    /// How long an answer is used again.
    #[cfg(test)]
    pub(super) fn kept(&self) -> Option<Duration> {
        self.polls.kept
    }

    /// What the trigger gives now, or gave before if that may be used again.
    ///
    /// # Errors
    /// Its source did not answer, or not with a value.
    pub(super) async fn poll(&self, clock: &Clock) -> Result<Polled, PollError> {
        let (began, last) = (Instant::now(), self.found.lock().last);
        if let (Some(kept), Some(last)) = (self.polls.kept, last)
            && now(clock).since(last.taken).0 < i64::try_from(kept.as_micros()).unwrap_or(i64::MAX)
        {
            return Ok(last);
        }
        let asked = self.ask(clock).await;
        let mut found = self.found.lock();
        found.took = began.elapsed();
        match &asked {
            Ok(polled) => found.last = Some(*polled),
            Err(_) => found.errors = found.errors.saturating_add(1),
        }
        asked
    }

    async fn ask(&self, clock: &Clock) -> Result<Polled, PollError> {
        let Polls { metric, scaler, hidden, .. } = &self.polls;
        let deadline = Instant::now() + POLL_DEADLINE;
        let failed = |problem: String, is_answer| {
            Err(PollError { problem: hidden.answer(problem).into(), is_answer })
        };
        let values = match tokio::time::timeout_at(deadline, scaler.poll(deadline)).await {
            Ok(Ok(values)) => values,
            Ok(Err(error)) => {
                let is_away = error.is_outage() || matches!(error, TriggerError::Open { .. });
                return failed(error.to_string(), !is_away);
            }
            Err(_) => {
                let seconds = POLL_DEADLINE.as_secs();
                return failed(format!("no answer within {seconds} s"), false);
            }
        };
        let Some(value) = values.iter().find(|value| value.metric_name == **metric) else {
            return failed(format!("the source gave no value of {metric}"), true);
        };
        Ok(Polled { value: milli(value.value), active: value.active, taken: now(clock) })
    }

    fn report(&self) -> TriggerReport {
        let (Polls { object, metric, label, index, .. }, found) = (&self.polls, *self.found.lock());
        TriggerReport {
            namespace: Arc::clone(&object.namespace),
            object: Arc::clone(&object.name),
            metric: Arc::clone(metric),
            scaler: Arc::clone(label),
            index: *index,
            value: found.last.map(|last| last.value.0 as f64 / THOUSANDTHS),
            is_active: found.last.is_some_and(|last| last.active),
            took: found.took,
            errors: found.errors,
            kind: object.kind,
        }
    }
}

/// A value in thousandths. The conversion saturates.
fn milli(value: f64) -> Milli {
    Milli((value * THOUSANDTHS).round() as i64)
}

/// All connections.
#[derive(Default)]
pub(super) struct Connected(Mutex<State>);

#[derive(Default)]
struct State {
    by_key: HashMap<Arc<str>, Arc<Connection>>,
    objects: HashMap<ObjectName, OfObject>,
}

/// What an object has.
#[derive(Default)]
struct OfObject {
    keys: Vec<Arc<str>>,
    is_paused: bool,
    /// Who listens to its sources; they stop with it.
    _listeners: Option<JoinSet<()>>,
}

impl Connected {
    /// The connection of a key.
    pub(super) fn get(&self, key: &str) -> Option<Arc<Connection>> {
        self.0.lock().by_key.get(key).cloned()
    }

    /// The metrics that the source of an object's trigger has named before, with what they are compared with.
    pub(super) fn named(&self, object: &ObjectName, index: usize) -> Vec<(Arc<str>, Targets)> {
        let state = self.0.lock();
        let keys = state.objects.get(object).into_iter().flat_map(|known| &known.keys);
        let polls = keys.filter_map(|key| Some(&state.by_key.get(key)?.polls));
        let of_trigger = polls.filter(|polls| polls.index == index && polls.is_told);
        of_trigger.map(|polls| (Arc::clone(&polls.metric), polls.targets)).collect()
    }

    /// Puts connections in the place of those that an object had, and who listens to them. What was counted goes on.
    pub(super) fn replace(
        &self,
        object: &ObjectName,
        connections: Connections,
        listeners: Option<JoinSet<()>>,
    ) {
        let mut state = self.0.lock();
        for (key, new) in &connections {
            if let Some(old) = state.by_key.get(key) {
                new.found.lock().errors = old.found.lock().errors;
            }
        }
        let before = state.remove(object).unwrap_or_default();
        let keys = connections.iter().map(|(key, _)| Arc::clone(key)).collect();
        let now = OfObject { keys, is_paused: before.is_paused, _listeners: listeners };
        state.objects.insert(object.clone(), now);
        let shared = connections.into_iter().map(|(key, made)| (key, Arc::new(made)));
        state.by_key.extend(shared);
    }

    /// Whether an object is paused.
    pub(super) fn note_pause(&self, object: &ObjectName, is_paused: bool) {
        if let Some(known) = self.0.lock().objects.get_mut(object) {
            known.is_paused = is_paused;
        }
    }

    /// Drops what an object has.
    pub(super) fn remove(&self, object: &ObjectName) {
        self.0.lock().remove(object);
    }

    /// What all gave last, in the order of their names.
    pub(super) fn report(&self) -> TriggersReport {
        let state = self.0.lock();
        let sorted: BTreeMap<&Arc<str>, &Arc<Connection>> = state.by_key.iter().collect();
        let triggers: Vec<TriggerReport> = sorted.values().map(|made| made.report()).collect();
        let errors = |known: &OfObject| {
            let of_key = |key| state.by_key.get(key).map_or(0, |made| made.found.lock().errors);
            known.keys.iter().map(of_key).fold(0, u64::saturating_add)
        };
        let sorted: BTreeMap<&ObjectName, &OfObject> = state.objects.iter().collect();
        let object = |(name, known): (&ObjectName, &OfObject)| ObjectReport {
            namespace: Arc::clone(&name.namespace),
            name: Arc::clone(&name.name),
            is_paused: known.is_paused,
            errors: errors(known),
            kind: name.kind,
        };
        TriggersReport { triggers, objects: sorted.into_iter().map(object).collect() }
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().by_key.len()
    }
}

impl State {
    fn remove(&mut self, object: &ObjectName) -> Option<OfObject> {
        let known = self.objects.remove(object)?;
        for key in &known.keys {
            self.by_key.remove(key);
        }
        Some(known)
    }
}
