//! Whether an object may be written to, and what was written to it besides its status.

use super::Index;
use crate::controller::ownership::Management;
use crate::dialect::{Key, Managed};

impl Index {
    /// Whether an object is there and nobody else manages it or its target.
    pub(in crate::controller) fn is_ours(&self, key: &Key, uid: &str) -> bool {
        let precedent = self.state.lock().precedent(key);
        let Some(mut entry) = self.entry(key, uid) else { return false };
        entry.management(precedent.as_ref()) == Management::Active
    }

    /// The metadata of an object was written. The answer is known unless something newer is.
    pub(in crate::controller) fn prepared(&self, managed: Managed) {
        if let Some(mut entry) = self.entry(&managed.key, managed.uid()) {
            entry.replace(managed);
        }
    }

    /// An object as it is known now, if it means the same: somebody may have written to it since it was taken.
    pub(in crate::controller) fn newest(&self, managed: Managed) -> Managed {
        match self.entry(&managed.key, managed.uid()) {
            Some(entry) if entry.managed.model == managed.model => entry.managed.clone(),
            _ => managed,
        }
    }
}
