//! An autoscaler that takes the place of another: an HPA becomes a PodAutoscaler, or comes back. What
//! decisions on the one have left behind counts on for the other, so that the size does not jump. For a
//! moment both are there, the new one first; it inherits when it comes, and once more when the other goes.

use super::State;
use super::entry::Entry;
use crate::dialect::Key;
use crate::dialect::hpa::HPA;
use crate::dialect::pod_autoscaler::POD_AUTOSCALER;
use podscale_api::pod_autoscaler::adopt::ADOPTED;
use podscale_core::History;

/// The object that an HPA or a PodAutoscaler changes places with.
fn counterpart(key: &Key) -> Option<Key> {
    let kind = match key.kind {
        kind if *kind == HPA => &POD_AUTOSCALER,
        kind if *kind == POD_AUTOSCALER => &HPA,
        _ => return None,
    };
    Some(Key { kind, ..key.clone() })
}

impl State {
    /// Gives an object that has come what was left behind by the one whose place it takes.
    pub(super) fn inherit(&mut self, key: &Key) {
        if let Some(from) = counterpart(key) {
            self.hand_over(&from, key);
        }
    }

    /// Gives what an object that goes leaves behind to the one that takes its place.
    pub(super) fn bequeath(&mut self, key: &Key) {
        if let Some(to) = counterpart(key) {
            self.hand_over(key, &to);
        }
    }

    /// One of the two must be there in the place of the other: the PodAutoscaler keeps the HPA.
    fn hand_over(&mut self, from: &Key, to: &Key) {
        let there = |key: &Key| self.entries.get(key).filter(|entry| !entry.gone);
        let (Some(old), Some(new)) = (there(from), there(to)) else { return };
        let adopted = |entry: &Entry| entry.managed.metadata().annotations.get(ADOPTED).is_some();
        if !(adopted(old) || adopted(new)) || old.recalled.history == History::default() {
            return;
        }
        let mut recalled = old.recalled.clone();
        if to.kind.is_native() {
            recalled.history.memory = None;
            recalled.history.forecaster = None;
        }
        let uid = new.managed.uid().to_owned();
        self.histories.changed(&uid, true);
        if let Some(new) = self.entries.get_mut(to) {
            // It may be under way, and leave behind what it began with.
            new.inherited = Some(Box::new(recalled));
        }
    }
}
