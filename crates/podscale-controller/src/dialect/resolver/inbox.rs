//! What the watch brought and nobody has taken yet: of each object only the newest version, so that it never holds more
//! than there are objects.

use super::Resolvable;
use crate::triggers::ObjectName;
use parking_lot::Mutex;
use podscale_client::watch::Change;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// What has arrived.
pub(in crate::dialect) struct Inbox<T> {
    arrived: Mutex<Arrived<T>>,
    has_some: Notify,
}

/// What has arrived since it was last taken.
#[derive(Debug)]
pub(super) struct Arrived<T> {
    /// All objects that there were at some moment, if they were listed.
    pub(super) all: Option<Vec<Arc<T>>>,
    /// What came after that.
    pub(super) changed: BTreeMap<ObjectName, OneChange<T>>,
}

/// What became of one object.
#[derive(Debug)]
pub(super) enum OneChange<T> {
    /// It is new or has changed.
    Applied(Arc<T>),
    /// It is gone.
    Deleted(Arc<T>),
}

impl<T> Default for Inbox<T> {
    fn default() -> Inbox<T> {
        let arrived = Mutex::new(Arrived { all: None, changed: BTreeMap::new() });
        Inbox { arrived, has_some: Notify::new() }
    }
}

impl<T: Resolvable> Inbox<T> {
    /// Takes in a change.
    pub(in crate::dialect) fn put(&self, change: Change<T>) {
        let mut arrived = self.arrived.lock();
        match change {
            Change::All(all) => {
                let all = Some(all.into_iter().map(Arc::new).collect());
                *arrived = Arrived { all, changed: BTreeMap::new() };
            }
            Change::Applied(object) => {
                let name = object.owner();
                arrived.changed.insert(name, OneChange::Applied(Arc::new(object)));
            }
            Change::Deleted(object) => {
                let name = object.owner();
                arrived.changed.insert(name, OneChange::Deleted(Arc::new(object)));
            }
        }
        drop(arrived);
        self.has_some.notify_one();
    }

    /// Waits until something has arrived.
    pub(super) async fn arrival(&self) {
        self.has_some.notified().await;
    }

    /// Takes out all that has arrived.
    pub(super) fn take(&self) -> Arrived<T> {
        let none = Arrived { all: None, changed: BTreeMap::new() };
        std::mem::replace(&mut *self.arrived.lock(), none)
    }
}
