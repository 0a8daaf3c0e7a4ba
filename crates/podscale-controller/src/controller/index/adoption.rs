//! An autoscaler that takes the place of another: an HPA becomes a PodAutoscaler, or comes back. What
//! decisions on the one have left behind counts on for the other, so that the size does not jump. For a
//! moment both are there, the new one first; it inherits when it comes, and once more when the other goes. Each kind
//! has a watch of its own, so that the other may be seen to go first: what it leaves behind is kept for that.

use super::State;
use super::entry::Entry;
use crate::controller::recalled::Recalled;
use crate::dialect::Key;
use crate::dialect::hpa::HPA;
use crate::dialect::pod_autoscaler::POD_AUTOSCALER;
use podscale_api::pod_autoscaler::adopt::ADOPTED;
use podscale_core::History;
use std::collections::VecDeque;

/// How many objects that have gone are remembered with what they left behind.
const MOST_DEPARTED: usize = 1000;

/// Objects that have gone before one has taken their place, the latest last. What they leave behind bears its times, so
/// that it does not matter how long ago that was.
#[derive(Default)]
pub(super) struct Departed(VecDeque<(Key, Recalled)>);

impl Departed {
    fn push(&mut self, key: &Key, recalled: Recalled) {
        self.take(key);
        if self.0.len() == MOST_DEPARTED {
            self.0.pop_front();
        }
        self.0.push_back((key.clone(), recalled));
    }

    fn take(&mut self, key: &Key) -> Option<Recalled> {
        let found = self.0.iter().rposition(|(departed, _)| departed == key)?;
        self.0.remove(found).map(|(_, recalled)| recalled)
    }
}

/// The object that an HPA or a PodAutoscaler changes places with.
fn counterpart(key: &Key) -> Option<Key> {
    let kind = match key.kind {
        kind if *kind == HPA => &POD_AUTOSCALER,
        kind if *kind == POD_AUTOSCALER => &HPA,
        _ => return None,
    };
    Some(Key { kind, ..key.clone() })
}

/// Whether a PodAutoscaler has taken the place of an HPA, which it keeps.
fn is_adopted(entry: &Entry) -> bool {
    entry.managed.metadata().annotations.get(ADOPTED).is_some()
}

impl State {
    /// Gives an object that has come what was left behind by the one whose place it takes.
    pub(super) fn inherit(&mut self, key: &Key) {
        let Some(from) = counterpart(key) else { return };
        let there = |key: &Key| self.entries.get(key).filter(|entry| !entry.gone);
        let Some(new) = there(key) else { return };
        let recalled = match there(&from) {
            Some(old) if is_adopted(old) || is_adopted(new) => Some(old.left_behind().clone()),
            Some(_) => None,
            // Of PodAutoscalers, only those are remembered that had taken the place of an HPA.
            None if is_adopted(new) || key.kind.is_native() => self.departed.take(&from),
            None => None,
        };
        if let Some(recalled) = recalled {
            self.hand_over(recalled, key);
        }
    }

    /// Gives what an object that goes leaves behind to the one that takes its place, now or when that comes.
    pub(super) fn bequeath(&mut self, key: &Key) {
        let Some(to) = counterpart(key) else { return };
        let there = |key: &Key| self.entries.get(key).filter(|entry| !entry.gone);
        let Some(old) = there(key).filter(|old| old.left_behind().history != History::default())
        else {
            return;
        };
        match there(&to) {
            Some(new) if is_adopted(old) || is_adopted(new) => {
                let recalled = old.left_behind().clone();
                self.hand_over(recalled, &to);
            }
            Some(_) => {}
            None if is_adopted(old) || key.kind.is_native() => {
                let recalled = old.left_behind().clone();
                self.departed.push(key, recalled);
            }
            None => {}
        }
    }

    fn hand_over(&mut self, mut recalled: Recalled, to: &Key) {
        if recalled.history == History::default() {
            return;
        }
        if to.kind.is_native() {
            recalled.history.memory = None;
            recalled.history.forecaster = None;
        }
        if let Some(new) = self.entries.get_mut(to) {
            self.histories.changed(new.managed.uid(), true);
            // It may be under way, and leave behind what it began with.
            new.inherited = Some(Box::new(recalled));
        }
    }
}
