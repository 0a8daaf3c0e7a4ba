//! The last changes of one resource, in order, each once.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::watch;

use super::Object;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new.
    Added,
    /// It has a new version.
    Modified,
    /// It is gone; the event carries its last state.
    Deleted,
}

/// One change of one object.
#[derive(Debug, Clone)]
pub struct Event {
    /// What happened.
    pub change: Change,
    /// The new version, or the last one.
    pub object: Arc<Object>,
    /// The version before.
    pub previous: Option<Arc<Object>>,
}

impl Event {
    pub(super) fn new(
        change: Change,
        object: Arc<Object>,
        previous: Option<Arc<Object>>,
    ) -> Arc<Self> {
        Arc::new(Self { change, object, previous })
    }
}

/// The asked-for revision is no longer (or not yet) in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too old resource version: {requested} ({oldest})")]
pub struct Expired {
    /// What was asked for.
    pub requested: u64,
    /// The oldest revision that can be continued from.
    pub oldest: u64,
}

#[derive(Debug)]
pub(super) struct History {
    events: VecDeque<Arc<Event>>,
    /// How many events came before those kept.
    dropped: u64,
    /// The newest revision that can no longer be told apart from older ones.
    oldest: u64,
    capacity: usize,
    latest: watch::Sender<u64>,
}

impl History {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            events: VecDeque::new(),
            dropped: 0,
            oldest: 0,
            capacity,
            latest: watch::Sender::new(0),
        }
    }

    pub(super) fn push(&mut self, event: Arc<Event>) {
        if self.events.len() >= self.capacity
            && let Some(dropped) = self.events.pop_front()
        {
            self.oldest = dropped.object.revision;
            self.dropped += 1;
        }
        self.events.push_back(event);
        self.latest.send_replace(self.end());
    }

    pub(super) fn compact(&mut self, revision: u64) {
        self.dropped = self.end();
        self.events.clear();
        self.oldest = revision;
        self.latest.send_replace(self.dropped);
    }

    /// The position after the last event.
    pub(super) fn end(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    /// The position of the first event after a revision.
    pub(super) fn position_after(&self, revision: u64) -> Result<u64, Expired> {
        if revision < self.oldest {
            return Err(Expired { requested: revision, oldest: self.oldest });
        }
        let before = self.events.partition_point(|event| event.object.revision <= revision);
        Ok(self.dropped + before as u64)
    }

    /// All events after a revision.
    pub(super) fn after(&self, revision: u64) -> Result<Vec<Arc<Event>>, Expired> {
        let position = self.position_after(revision)?;
        Ok(self.since(position, usize::MAX).unwrap_or_default())
    }

    /// Up to `limit` events from a position on; `None` if some of them are gone.
    pub(super) fn since(&self, position: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        let skip = position.checked_sub(self.dropped)?;
        let skip = usize::try_from(skip).ok()?;
        Some(self.events.iter().skip(skip).take(limit).cloned().collect())
    }

    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }
}
