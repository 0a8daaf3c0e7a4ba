//! All objects, in memory. One revision counts every write; each resource keeps a bounded history
//! of its changes, from which watches and past lists are served without holding writers up.

mod cursor;
mod history;
mod object;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use imbl::OrdMap;
use parking_lot::RwLock;
use serde_json::Value;

pub use cursor::{Batch, Cursor};
pub use history::{Change, Event, Expired};
pub use object::{Fields, Object};

use crate::resource::GroupResource;
use history::History;

/// The objects of one resource by key, as they were at one moment.
pub type Objects = OrdMap<Arc<str>, Arc<Object>>;

/// A consistent view of one resource.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The store's revision at that moment.
    pub revision: u64,
    /// All objects of the resource.
    pub objects: Objects,
}

/// An object about to be written; the store adds the revision.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The object.
    pub value: Value,
    /// Values that field selectors ask for.
    pub fields: Fields,
}

/// Why a write did not happen.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// There is already an object under that key.
    Exists(Arc<Object>),
    /// There is no object under that key.
    Missing,
    /// The object has changed since it was read.
    Changed(Arc<Object>),
}

/// The keys under which objects are stored: `namespace/name`, or the name alone.
pub fn key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// All objects of all resources.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<RwLock<State>>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    capacity: usize,
    tables: HashMap<GroupResource, Table>,
}

#[derive(Debug)]
struct Table {
    objects: Objects,
    history: History,
}

impl State {
    fn table(&mut self, resource: &GroupResource) -> &mut Table {
        let capacity = self.capacity;
        self.tables
            .entry(resource.clone())
            .or_insert_with(|| Table { objects: OrdMap::new(), history: History::new(capacity) })
    }

    fn next_revision(&mut self) -> u64 {
        self.revision = self.revision.saturating_add(1);
        self.revision
    }
}

impl Store {
    /// An empty store that remembers this many changes of each resource.
    pub fn new(history_capacity: usize) -> Self {
        Self {
            shared: Arc::new(RwLock::new(State {
                revision: 1,
                capacity: history_capacity.max(1),
                tables: HashMap::new(),
            })),
        }
    }

    /// The revision of the last write.
    pub fn revision(&self) -> u64 {
        self.shared.read().revision
    }

    /// One object.
    pub fn get(&self, resource: &GroupResource, key: &str) -> Option<Arc<Object>> {
        self.shared.read().tables.get(resource)?.objects.get(key).cloned()
    }

    /// How many objects a resource has.
    pub fn count(&self, resource: &GroupResource) -> usize {
        self.shared.read().tables.get(resource).map_or(0, |table| table.objects.len())
    }

    /// All objects of a resource as they are now.
    pub fn snapshot(&self, resource: &GroupResource) -> Snapshot {
        let state = self.shared.read();
        let objects = state.tables.get(resource).map(|table| table.objects.clone());
        Snapshot { revision: state.revision, objects: objects.unwrap_or_default() }
    }

    /// All objects of a resource as they were at a past revision.
    pub fn snapshot_at(
        &self,
        resource: &GroupResource,
        revision: u64,
    ) -> Result<Snapshot, Expired> {
        let state = self.shared.read();
        let Some(table) = state.tables.get(resource) else {
            return Ok(Snapshot { revision, objects: OrdMap::new() });
        };
        let mut objects = table.objects.clone();
        let undo = table.history.after(revision)?;
        drop(state);
        for event in undo.iter().rev() {
            match &event.previous {
                Some(previous) => objects.insert(event.object.key.clone(), previous.clone()),
                None => objects.remove(&event.object.key),
            };
        }
        Ok(Snapshot { revision, objects })
    }

    /// The objects as they are now, and a cursor that starts right after.
    pub fn snapshot_and_follow(&self, resource: &GroupResource) -> (Snapshot, Cursor) {
        let mut state = self.shared.write();
        let revision = state.revision;
        let table = state.table(resource);
        let objects = table.objects.clone();
        let cursor = Cursor::new(self.clone(), resource.clone(), &table.history);
        (Snapshot { revision, objects }, cursor)
    }

    /// A cursor over the changes after a revision.
    pub fn follow(&self, resource: &GroupResource, revision: u64) -> Result<Cursor, Expired> {
        let mut state = self.shared.write();
        let current = state.revision;
        if revision > current {
            return Err(Expired { requested: revision, oldest: current });
        }
        let table = state.table(resource);
        let position = table.history.position_after(revision)?;
        Ok(Cursor::at(self.clone(), resource.clone(), &table.history, position))
    }

    /// Adds an object.
    pub fn create(
        &self,
        resource: &GroupResource,
        key: &str,
        draft: Draft,
    ) -> Result<Arc<Object>, Refusal> {
        let mut state = self.shared.write();
        if let Some(existing) = state.table(resource).objects.get(key) {
            return Err(Refusal::Exists(existing.clone()));
        }
        let revision = state.next_revision();
        let object = Arc::new(Object::new(key, revision, draft));
        let table = state.table(resource);
        table.objects.insert(object.key.clone(), object.clone());
        table.history.push(Event::new(Change::Added, object.clone(), None));
        Ok(object)
    }

    /// Replaces an object that still is at the expected revision.
    pub fn replace(
        &self,
        resource: &GroupResource,
        key: &str,
        expected: u64,
        draft: Draft,
    ) -> Result<Arc<Object>, Refusal> {
        let mut state = self.shared.write();
        let previous = state.expect(resource, key, expected)?;
        let revision = state.next_revision();
        let object = Arc::new(Object::new(key, revision, draft));
        let table = state.table(resource);
        table.objects.insert(object.key.clone(), object.clone());
        table.history.push(Event::new(Change::Modified, object.clone(), Some(previous)));
        Ok(object)
    }

    /// Removes an object that still is at the expected revision; `last` is what watchers see of it.
    pub fn remove(
        &self,
        resource: &GroupResource,
        key: &str,
        expected: u64,
        last: Draft,
    ) -> Result<Arc<Object>, Refusal> {
        let mut state = self.shared.write();
        let previous = state.expect(resource, key, expected)?;
        let revision = state.next_revision();
        let object = Arc::new(Object::new(key, revision, last));
        let table = state.table(resource);
        table.objects.remove(key);
        table.history.push(Event::new(Change::Deleted, object.clone(), Some(previous)));
        Ok(object)
    }

    /// Forgets all past changes, so that whoever is behind has to list again.
    pub fn compact(&self) {
        let mut state = self.shared.write();
        let revision = state.revision;
        for table in state.tables.values_mut() {
            table.history.compact(revision);
        }
    }
}

impl State {
    fn expect(
        &mut self,
        resource: &GroupResource,
        key: &str,
        expected: u64,
    ) -> Result<Arc<Object>, Refusal> {
        match self.table(resource).objects.get(key) {
            None => Err(Refusal::Missing),
            Some(object) if object.revision != expected => Err(Refusal::Changed(object.clone())),
            Some(object) => Ok(object.clone()),
        }
    }
}
