//! The stream of server-sent events: first everything, then what changes.
//!
//! Events: `state` (the list begins anew), `changes` (rows, removals), `past` (the watched
//! autoscaler's whole history), `more` (what is new in it), `tick` (nothing happened, the clock
//! goes on). The id of an event is the run and the version that a reader has seen with it.

use super::hub::{Changes, Glimpse, Hub, Signal};
use axum::response::sse::Event;
use futures::Stream;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// How long changes are gathered before they are sent.
const GATHER: Duration = Duration::from_millis(150);
/// After so much silence a sign of life is sent.
const TICK: Duration = Duration::from_secs(5);
/// How many rows one event carries.
const ROWS: usize = 500;

/// What a reader saw of an earlier stream, up to the event of an id.
pub(super) enum Seen<'a> {
    Nothing,
    /// The list; it watched another autoscaler.
    List(&'a str),
    /// All of it: the same stream goes on.
    All(&'a str),
}

/// One browser that listens.
pub(super) struct Reader {
    hub: Hub,
    signal: watch::Receiver<Signal>,
    watched: Option<String>,
    seen: Option<u64>,
    /// Of the watched autoscaler's past; 0 is nothing.
    past_seen: u64,
    waiting: VecDeque<Event>,
    /// Held while the stream lives: their number is limited.
    _place: OwnedSemaphorePermit,
}

impl Reader {
    /// A reader that has seen what `seen` says.
    pub(super) fn new(
        hub: Hub,
        watched: Option<String>,
        seen: &Seen<'_>,
        place: OwnedSemaphorePermit,
    ) -> Reader {
        let version = |id: &str| {
            let (run, version) = id.split_once('-')?;
            if run == hub.run() { version.parse::<u64>().ok() } else { None }
        };
        let (seen, past_seen) = match *seen {
            Seen::Nothing => (None, 0),
            Seen::List(id) => (version(id), 0),
            Seen::All(id) => (version(id), version(id).unwrap_or(0)),
        };
        let signal = hub.subscribe();
        Reader { hub, signal, watched, seen, past_seen, waiting: VecDeque::new(), _place: place }
    }

    /// The events, until the hub is closed.
    pub(super) fn stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        futures::stream::unfold(self, async |mut reader| {
            let event = reader.next().await?;
            Some((Ok(event), reader))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let signal = *self.signal.borrow_and_update();
            if signal.closed {
                return None;
            }
            let watched = self.watched.as_deref();
            let new_past = watched.is_some() && self.past_seen == 0;
            let changes = match self.seen {
                None => Some(self.hub.everything(watched)),
                Some(seen) if seen != signal.version || new_past => {
                    Some(self.hub.changes(seen, watched, self.past_seen))
                }
                Some(_) => None,
            };
            if let Some(changes) = changes {
                self.enqueue(changes);
                continue;
            }
            match tokio::time::timeout(TICK, self.signal.changed()).await {
                Err(_) => return Some(event("tick", self.time())),
                Ok(Err(_)) => return None,
                Ok(Ok(())) if self.signal.borrow().closed => return None,
                Ok(Ok(())) => tokio::time::sleep(GATHER).await,
            }
        }
    }

    fn enqueue(&mut self, changes: Changes) {
        let Changes { version, whole, rows, removed, past } = changes;
        let mut name = if whole { "state" } else { "changes" };
        for (place, rows) in chunks(rows).into_iter().enumerate() {
            let mut data = self.time();
            data["rows"] = json!(rows);
            if place == 0 && !removed.is_empty() {
                data["removed"] = json!(removed);
            }
            self.waiting.push_back(event(name, data));
            name = "changes";
        }
        let from_start = whole || self.past_seen == 0;
        match past {
            Some(past) => {
                let mut data = self.time();
                data["past"] = json!(past);
                let name = if from_start { "past" } else { "more" };
                self.waiting.push_back(event(name, data));
            }
            None if from_start && self.watched.is_some() => {
                self.waiting.push_back(event("past", self.time()));
            }
            None => {}
        }
        // Only with the last of them has the reader seen this version.
        if let Some(last) = self.waiting.pop_back() {
            self.waiting.push_back(last.id(format!("{}-{version}", self.hub.run())));
        }
        self.seen = Some(version);
        self.past_seen = version;
    }

    fn time(&self) -> Value {
        let clock = self.hub.clock();
        json!({"now": clock.now().as_millisecond(), "speed": clock.speed()})
    }
}

fn event(name: &str, data: Value) -> Event {
    Event::default().event(name).data(data.to_string())
}

/// At least one, possibly empty.
fn chunks(rows: Vec<Glimpse>) -> Vec<Vec<Glimpse>> {
    let mut chunks = vec![Vec::new()];
    for row in rows {
        if let Some(last) = chunks.last_mut()
            && last.len() < ROWS
        {
            last.push(row);
        } else {
            chunks.push(vec![row]);
        }
    }
    chunks
}
