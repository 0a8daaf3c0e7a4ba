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

    /// The metadata of an object was written. The answer is known unless something newer is, or the watch has brought the
    /// same version, perhaps with another meaning.
    pub(in crate::controller) fn prepared(&self, managed: Managed) {
        let Some(mut entry) = self.entry(&managed.key, managed.uid()) else { return };
        if entry.managed.metadata().resource_version != managed.metadata().resource_version {
            entry.replace(managed);
        }
    }

    /// An object as it is known now: somebody may have written to it since it was taken. Nothing if it is gone or means
    /// something else, so that it is to be reconciled again anyway.
    pub(in crate::controller) fn newest(&self, managed: &Managed) -> Option<Managed> {
        let entry = self.entry(&managed.key, managed.uid())?;
        (entry.managed.model == managed.model).then(|| entry.managed.clone())
    }
}
