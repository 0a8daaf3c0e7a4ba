//! What the watch brought and nobody has taken yet: of each object only the newest version, so that it never holds more
//! than there are objects.

use crate::triggers::ObjectName;
use parking_lot::Mutex;
use podscale_api::keda::ScaledObject;
use podscale_client::watch::Change;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Notify;

/// What has arrived.
#[derive(Default)]
pub(super) struct Inbox {
    arrived: Mutex<Arrived>,
    has_some: Notify,
}

/// What has arrived since it was last taken.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    /// All objects that there were at some moment, if they were listed.
    pub(super) all: Option<Vec<Arc<ScaledObject>>>,
    /// What came after that.
    pub(super) changed: BTreeMap<ObjectName, OneChange>,
}

/// What became of one object.
#[derive(Debug)]
pub(super) enum OneChange {
    /// It is new or has changed.
    Applied(Arc<ScaledObject>),
    /// It is gone.
    Deleted(Arc<ScaledObject>),
}

impl Inbox {
    /// Takes in a change.
    pub(super) fn put(&self, change: Change<ScaledObject>) {
        let mut arrived = self.arrived.lock();
        match change {
            Change::All(all) => {
                let all = Some(all.into_iter().map(Arc::new).collect());
                *arrived = Arrived { all, changed: BTreeMap::new() };
            }
            Change::Applied(object) => {
                let name = ObjectName::of(&object);
                arrived.changed.insert(name, OneChange::Applied(Arc::new(object)));
            }
            Change::Deleted(object) => {
                let name = ObjectName::of(&object);
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
    pub(super) fn take(&self) -> Arrived {
        std::mem::take(&mut *self.arrived.lock())
    }
}
