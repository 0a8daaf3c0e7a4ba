//! What polls triggers, by the keys that the model has for them.

use super::ObjectName;
use crate::time::now;
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use podscale_core::Time;
use podscale_core::model::Milli;
use podscale_scalers::{Scaler, TriggerError};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
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

/// One trigger that is connected to its source.
pub(crate) struct Connection {
    object: ObjectName,
    scaler: Box<dyn Scaler>,
    /// How long an answer is used again, where the object says so.
    kept: Option<Duration>,
    last: Mutex<Option<(Instant, Polled)>>,
}

/// The connections of one object, by key.
pub(crate) type Connections = Vec<(Arc<str>, Connection)>;

impl Connection {
    /// A trigger of an object that was not polled yet.
    pub(super) fn new(
        object: ObjectName,
        scaler: Box<dyn Scaler>,
        kept: Option<Duration>,
    ) -> Connection {
        Connection { object, scaler, kept, last: Mutex::default() }
    }

    /// Whose trigger it is.
    pub(super) fn object(&self) -> &ObjectName {
        &self.object
    }

    /// What the trigger gives now, or gave before if that may be used again.
    ///
    /// # Errors
    /// Its source did not answer, or not with a value.
    pub(super) async fn poll(&self, clock: &Clock) -> Result<Polled, PollError> {
        let began = Instant::now();
        let last = *self.last.lock();
        if let (Some(kept), Some((at, polled))) = (self.kept, last)
            && began.duration_since(at) < kept
        {
            return Ok(polled);
        }
        let deadline = began + POLL_DEADLINE;
        let answer = tokio::time::timeout_at(deadline, self.scaler.poll(deadline)).await;
        let failed = |problem: String, is_answer| PollError { problem: problem.into(), is_answer };
        let values = match answer {
            Ok(Ok(values)) => values,
            Ok(Err(error)) => {
                let is_away = error.is_outage() || matches!(error, TriggerError::Open { .. });
                return Err(failed(error.to_string(), !is_away));
            }
            Err(_) => {
                let seconds = POLL_DEADLINE.as_secs();
                return Err(failed(format!("no answer within {seconds} s"), false));
            }
        };
        let Some(value) = values.first() else {
            return Err(failed("the source gave no value".to_owned(), true));
        };
        let polled = Polled { value: milli(value.value), active: value.active, taken: now(clock) };
        *self.last.lock() = Some((began, polled));
        Ok(polled)
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
    keys: HashMap<ObjectName, Vec<Arc<str>>>,
}

impl Connected {
    /// The connection of a key.
    pub(super) fn get(&self, key: &str) -> Option<Arc<Connection>> {
        self.0.lock().by_key.get(key).cloned()
    }

    /// Puts connections in the place of those that an object had.
    pub(super) fn replace(&self, object: &ObjectName, connections: Connections) {
        let mut state = self.0.lock();
        state.remove(object);
        if connections.is_empty() {
            return;
        }
        let keys = connections.iter().map(|(key, _)| Arc::clone(key)).collect();
        state.keys.insert(object.clone(), keys);
        let shared = connections.into_iter().map(|(key, made)| (key, Arc::new(made)));
        state.by_key.extend(shared);
    }

    /// Drops the connections of an object.
    pub(super) fn remove(&self, object: &ObjectName) {
        self.0.lock().remove(object);
    }

    /// How many there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().by_key.len()
    }
}

impl State {
    fn remove(&mut self, object: &ObjectName) {
        for key in self.keys.remove(object).into_iter().flatten() {
            self.by_key.remove(&key);
        }
    }
}
