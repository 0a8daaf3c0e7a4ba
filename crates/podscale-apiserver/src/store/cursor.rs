//! A reader's place in a resource's history. It reads when it likes; who is too slow is told so.

use std::sync::Arc;

use tokio::sync::watch;

use super::history::History;
use super::{Event, Expired, Store};
use crate::resource::GroupResource;

/// Most events handed out at once.
const BATCH: usize = 256;

/// What a cursor found.
#[derive(Debug)]
pub struct Batch {
    /// New events, oldest first.
    pub events: Vec<Arc<Event>>,
    /// Everything up to this revision has been handed out.
    pub revision: u64,
}

/// A place in a resource's history.
#[derive(Debug)]
pub struct Cursor {
    store: Store,
    resource: GroupResource,
    position: u64,
    revision: u64,
    latest: watch::Receiver<u64>,
}

impl Cursor {
    pub(super) fn new(store: Store, resource: GroupResource, history: &History) -> Self {
        Self::at(store, resource, history, history.end())
    }

    pub(super) fn at(
        store: Store,
        resource: GroupResource,
        history: &History,
        position: u64,
    ) -> Self {
        Self { store, resource, position, revision: 0, latest: history.subscribe() }
    }

    /// The events since the last call; none if there are none yet.
    pub fn read(&mut self) -> Result<Batch, Expired> {
        let state = self.store.shared.read();
        let Some(table) = state.tables.get(&self.resource) else {
            return Ok(Batch { events: Vec::new(), revision: state.revision });
        };
        let Some(events) = table.history.since(self.position, BATCH) else {
            let oldest = table.history.oldest();
            return Err(Expired { requested: self.revision, oldest });
        };
        self.position += events.len() as u64;
        let caught_up = self.position == table.history.end();
        let last = events.last().map(|event| event.object.revision);
        let revision = if caught_up { state.revision } else { last.unwrap_or(self.revision) };
        self.revision = revision;
        Ok(Batch { events, revision })
    }

    /// Waits until there may be something new to read.
    pub async fn changed(&mut self) {
        loop {
            if *self.latest.borrow_and_update() > self.position {
                return;
            }
            if self.latest.changed().await.is_err() {
                // The store is gone; nothing will ever come.
                std::future::pending::<()>().await;
            }
        }
    }
}
