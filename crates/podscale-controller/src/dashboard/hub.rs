//! The state that the dashboard shows, and who has seen how much of it.
//!
//! Nothing is queued for a reader. Every change gets the next version; a reader says up to which
//! version it has seen things and gets what changed since, however slow it is. So a slow browser
//! costs nothing, and a reconnect goes on where it stopped.

use super::history::{Capacity, History, Point};
use super::model::{Row, key_text};
use super::picture::Picture;
use crate::controller::observer::{Decided, JobsDecided, Observer};
use crate::dialect::Key;
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tokio::sync::watch;

/// What all histories together may hold; each gets its share, up to its own limit.
const ALL_POINTS: usize = 100_000;
const ALL_DECISIONS: usize = 20_000;
const POINTS: usize = 2_000;
const DECISIONS: usize = 250;
/// How many removals are remembered for readers that were away.
const REMOVALS: usize = 4_096;
const TREND: usize = 40;

/// What the controller publishes into and the dashboard reads from. Clones share one state.
#[derive(Clone, Debug)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    clock: Clock,
    /// Tells one run of the program from another, so that no version of an earlier run counts.
    run: String,
    state: Mutex<State>,
    changed: watch::Sender<Signal>,
}

/// What wakes waiting readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signal {
    pub version: u64,
    pub closed: bool,
}

#[derive(Debug, Default)]
struct State {
    version: u64,
    entries: BTreeMap<Arc<str>, Entry>,
    /// Which entry changed last at which version.
    order: BTreeMap<u64, Arc<str>>,
    removed: VecDeque<(u64, Arc<str>)>,
    /// Removals up to this version may have been forgotten.
    forgotten: u64,
}

#[derive(Debug)]
struct Entry {
    version: u64,
    latest: Arc<Picture>,
    history: History,
}

/// One autoscaler as it is. It becomes a [`Row`] when it is written out, which nobody who decides
/// waits for.
#[derive(Debug)]
pub(super) struct Glimpse {
    pub latest: Arc<Picture>,
    trend: Vec<i32>,
}

impl Glimpse {
    fn row(&self) -> Row {
        Row {
            view: self.latest.view(),
            outcome: self.latest.outcome,
            reason: match self.latest.conflict() {
                Some(conflict) => conflict.to_owned(),
                None => self.latest.reason(),
            },
            trend: self.trend.clone(),
        }
    }
}

impl Serialize for Glimpse {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.row().serialize(serializer)
    }
}

/// One autoscaler with its past, or what of its past is new.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Past {
    pub key: Arc<str>,
    #[serde(serialize_with = "in_words")]
    pub latest: Arc<Picture>,
    pub points: Vec<Point>,
    #[serde(serialize_with = "all_in_words")]
    pub decisions: Vec<Arc<Picture>>,
}

fn in_words<S: Serializer>(decision: &Picture, serializer: S) -> Result<S::Ok, S::Error> {
    decision.decision().serialize(serializer)
}

fn all_in_words<S: Serializer>(all: &[Arc<Picture>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|decision| decision.decision()))
}

/// What changed since a version.
#[derive(Debug)]
pub(super) struct Changes {
    pub version: u64,
    /// Whether everything that is not among the rows is gone.
    pub whole: bool,
    pub rows: Vec<Glimpse>,
    pub removed: Vec<Arc<str>>,
    pub past: Option<Past>,
}

impl Hub {
    /// An empty hub whose times are the clock's.
    #[must_use]
    pub fn new(clock: Clock) -> Hub {
        let run = format!("{:x}", jiff::Timestamp::now().as_microsecond());
        // Version 0 is that of a reader who has seen nothing, not even an empty hub.
        let (changed, _) = watch::channel(Signal { version: 1, closed: false });
        let state = Mutex::new(State { version: 1, ..State::default() });
        Hub(Arc::new(Inner { clock, run, state, changed }))
    }

    /// Shows an autoscaler as it is after a decision.
    pub fn publish(&self, mut picture: Picture) {
        let mut state = self.0.state.lock();
        let state = &mut *state;
        state.version += 1;
        let version = state.version;
        let count = state.entries.len().max(1);
        let capacity = Capacity {
            points: (ALL_POINTS / count).clamp(2, POINTS),
            decisions: (ALL_DECISIONS / count).clamp(1, DECISIONS),
        };
        let key: Arc<str> = picture.key().into();
        if let Some(known) = state.entries.get(&key) {
            // Not every kind stores it.
            picture.last_scale = picture.last_scale.or(known.latest.last_scale);
        }
        let (point, latest) = (Point::new(version, &picture), Arc::new(picture));
        let entry = state.entries.entry(Arc::clone(&key)).or_insert_with(|| Entry {
            version,
            latest: Arc::clone(&latest),
            history: History::default(),
        });
        entry.history.add(point, &latest, capacity);
        state.order.remove(&entry.version);
        entry.version = version;
        entry.latest = latest;
        state.order.insert(version, key);
        self.0.changed.send_modify(|signal| signal.version = version);
    }

    /// Shows an autoscaler no more; the key is that of its view.
    pub fn remove(&self, key: &str) {
        let mut state = self.0.state.lock();
        let state = &mut *state;
        let Some((key, entry)) = state.entries.remove_entry(key) else {
            return;
        };
        state.order.remove(&entry.version);
        state.version += 1;
        let version = state.version;
        state.removed.push_back((version, key));
        if state.removed.len() > REMOVALS
            && let Some((version, _)) = state.removed.pop_front()
        {
            state.forgotten = version;
        }
        self.0.changed.send_modify(|signal| signal.version = version);
    }

    /// Ends all streams to browsers, so that a server can stop.
    pub fn close(&self) {
        self.0.changed.send_modify(|signal| signal.closed = true);
    }

    pub(super) fn clock(&self) -> Clock {
        self.0.clock
    }

    pub(super) fn run(&self) -> &str {
        &self.0.run
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Signal> {
        self.0.changed.subscribe()
    }

    /// Everything there is, with the past of one autoscaler.
    pub(super) fn everything(&self, watched: Option<&str>) -> Changes {
        let state = self.0.state.lock();
        Changes {
            version: state.version,
            whole: true,
            rows: state.entries.values().map(Entry::glimpse).collect(),
            removed: Vec::new(),
            past: watched.and_then(|key| state.past(key, 0)),
        }
    }

    /// What changed since a version, or everything where that is not known any more. Of the
    /// watched autoscaler's past, what came since a version of its own.
    pub(super) fn changes(&self, since: u64, watched: Option<&str>, past_since: u64) -> Changes {
        let state = self.0.state.lock();
        if since < state.forgotten || since > state.version {
            drop(state);
            return self.everything(watched);
        }
        let changed = state.order.range(since.saturating_add(1)..);
        let removed = state.removed.partition_point(|(version, _)| *version <= since);
        Changes {
            version: state.version,
            whole: false,
            rows: changed
                .filter_map(|(_, key)| state.entries.get(key))
                .map(Entry::glimpse)
                .collect(),
            removed: state
                .removed
                .range(removed..)
                .filter(|(_, key)| !state.entries.contains_key(key))
                .map(|(_, key)| Arc::clone(key))
                .collect(),
            past: watched
                .filter(|key| state.entries.get(*key).is_some_and(|e| e.version > past_since))
                .and_then(|key| state.past(key, past_since)),
        }
    }

    /// One autoscaler with its past.
    pub(super) fn one(&self, key: &str) -> Option<(Glimpse, Past)> {
        let state = self.0.state.lock();
        let row = state.entries.get(key).map(Entry::glimpse)?;
        Some((row, state.past(key, 0)?))
    }
}

impl State {
    fn past(&self, key: &str, since: u64) -> Option<Past> {
        let (key, entry) = self.entries.get_key_value(key)?;
        Some(Past {
            key: Arc::clone(key),
            latest: Arc::clone(&entry.latest),
            points: entry.history.points_since(since),
            decisions: entry.history.decisions_since(since),
        })
    }
}

impl Entry {
    fn glimpse(&self) -> Glimpse {
        Glimpse { latest: Arc::clone(&self.latest), trend: self.history.trend(TREND) }
    }
}

impl Observer for Hub {
    fn decided(&self, decided: &Decided<'_>) {
        self.publish(Picture::of(decided));
    }

    fn jobs_decided(&self, decided: &JobsDecided<'_>) {
        self.publish(Picture::of_jobs(decided));
    }

    fn gone(&self, key: &Key) {
        self.remove(&key_text(key.kind, &key.namespace, &key.name));
    }
}

#[cfg(test)]
mod tests;
