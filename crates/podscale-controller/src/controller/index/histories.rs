//! What earlier decisions left behind, and what of it is not stored yet. Histories are stored in
//! shards by the uid of their object, so that one rescale does not rewrite those of all.

use super::{Index, State};
use crate::controller::recalled::Recalled;
use podscale_core::{History, Span, Time};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Among how many shards histories are spread when they are stored.
pub(in crate::controller) const SHARDS: u8 = 32;
/// No window and no period reaches further back, so what is older decides nothing.
const LONGEST_MEMORY: Span = Span::seconds(3600);
/// What was learned of the demand for an object that is there is of use for longer, also while that is paused.
const LONGEST_LEARNED: Span = Span::seconds(14 * 86_400);

/// The shard that an object's history is stored in.
pub(in crate::controller) fn shard(uid: &str) -> u8 {
    Sha256::digest(uid.as_bytes()).first().map_or(0, |byte| byte % SHARDS)
}

/// What is not stored yet, and what was stored of objects that have not been seen.
#[derive(Default)]
pub(super) struct Histories {
    /// Stored by the last leader, and not claimed yet; by uid.
    restored: HashMap<Box<str>, Recalled>,
    /// Shards with something that is not stored.
    changed: BTreeSet<u8>,
    /// Those of them that should be stored soon.
    urgent: BTreeSet<u8>,
}

impl Histories {
    /// What the last leader stored.
    pub(super) fn restored(restored: HashMap<Box<str>, Recalled>) -> Histories {
        Histories { restored, ..Histories::default() }
    }

    /// What was stored of an object, which has it from now on.
    pub(super) fn claim(&mut self, uid: &str) -> Option<Recalled> {
        self.restored.remove(uid)
    }

    /// An object's history has changed, or went with the object; after a rescale it should be stored
    /// soon. Whether that is news.
    pub(super) fn changed(&mut self, uid: &str, rescaled: bool) -> bool {
        let shard = shard(uid);
        self.changed.insert(shard);
        rescaled && self.urgent.insert(shard)
    }

    pub(super) fn is_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Takes the shards that should be stored soon, or all that have changed.
    pub(super) fn take_changed(&mut self, all: bool) -> BTreeSet<u8> {
        let urgent = std::mem::take(&mut self.urgent);
        if all {
            return std::mem::take(&mut self.changed);
        }
        self.changed.retain(|shard| !urgent.contains(shard));
        urgent
    }

    /// Notes that these shards should be stored soon.
    pub(super) fn store_soon(&mut self, shards: impl IntoIterator<Item = u8>) {
        for shard in shards {
            self.changed.insert(shard);
            self.urgent.insert(shard);
        }
    }

    /// What these shards hold, by uid, of known objects and of those not seen yet, without what is
    /// too old to matter.
    pub(super) fn shards<'a>(
        &'a self,
        known: impl Iterator<Item = (&'a str, &'a History)>,
        shards: &BTreeSet<u8>,
        now: Time,
    ) -> BTreeMap<u8, BTreeMap<String, Vec<u8>>> {
        let mut parts: BTreeMap<u8, BTreeMap<String, Vec<u8>>> =
            shards.iter().map(|shard| (*shard, BTreeMap::new())).collect();
        let known = known.map(|(uid, history)| (uid, history, Presence::Seen));
        let restored = self.restored.iter();
        let restored =
            restored.map(|(uid, recalled)| (&**uid, &recalled.history, Presence::NotSeen));
        for (uid, history, presence) in known.chain(restored) {
            if let Some(part) = parts.get_mut(&shard(uid))
                && matters(history, presence, now)
            {
                part.insert(uid.to_owned(), history.to_bytes());
            }
        }
        parts
    }
}

/// What the history store needs.
impl Index {
    /// Puts what another leader stored in the place of everything that is known.
    pub(in crate::controller) fn restore(&self, stored: HashMap<Box<str>, Recalled>) {
        let mut state = self.state.lock();
        let State { entries, histories, .. } = &mut *state;
        *histories = Histories::restored(stored);
        for entry in entries.values_mut() {
            entry.recalled = histories.claim(entry.managed.uid()).unwrap_or_default();
        }
    }

    /// Notes that another leader may have decided meanwhile, but not what.
    pub(in crate::controller) fn interrupt(&self) {
        let mut state = self.state.lock();
        state.entries.values_mut().for_each(|entry| entry.recalled.interrupted = true);
    }

    /// Waits until some history should be stored soon.
    pub(in crate::controller) async fn rescaled(&self) {
        loop {
            let rescaled = self.rescaled.notified();
            if self.state.lock().histories.is_urgent() {
                return;
            }
            rescaled.await;
        }
    }

    /// Takes the shards that should be stored soon, or all that have changed.
    pub(in crate::controller) fn take_changed_shards(&self, all: bool) -> BTreeSet<u8> {
        self.state.lock().histories.take_changed(all)
    }

    /// Notes that these shards should be stored soon.
    pub(in crate::controller) fn store_soon(&self, shards: impl IntoIterator<Item = u8>) {
        self.state.lock().histories.store_soon(shards);
        self.rescaled.notify_one();
    }

    /// What these shards hold, by uid, without what is too old to matter.
    pub(in crate::controller) fn shards(
        &self,
        shards: &BTreeSet<u8>,
        now: Time,
    ) -> BTreeMap<u8, BTreeMap<String, Vec<u8>>> {
        let state = self.state.lock();
        let there = state.entries.values().filter(|entry| !entry.gone);
        let known = there.map(|entry| (entry.managed.uid(), &entry.left_behind().history));
        state.histories.shards(known, shards, now)
    }
}

/// Whether the object of a history is known to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Seen,
    /// It may be gone.
    NotSeen,
}

/// Whether what an object left behind can still decide something.
fn matters(history: &History, presence: Presence, now: Time) -> bool {
    let learns = presence == Presence::Seen && history.forecaster.is_some();
    let demand = history.memory.as_ref().filter(|_| learns).and_then(|memory| memory.demand);
    let learned = demand.is_some_and(|demand| demand.at > now.before(LONGEST_LEARNED));
    learned || newest(history) > now.before(LONGEST_MEMORY)
}

/// When something was last added.
fn newest(history: &History) -> Time {
    let recommendations = history.recommendations.iter().map(|r| r.at);
    let events = history.ups.iter().chain(&history.downs).map(|event| event.at);
    recommendations.chain(events).max().unwrap_or(Time(i64::MIN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::history::{Memory, Recommendation};
    use podscale_core::model::Milli;
    use podscale_core::predict::Demand;

    fn recalled(seconds: &[i64], interrupted: bool) -> Recalled {
        let recommendation =
            |s: &i64| Recommendation { replicas: 3, at: Time(0).after(Span::seconds(*s)) };
        let recommendations = seconds.iter().map(recommendation).collect();
        Recalled { history: History { recommendations, ..History::default() }, interrupted }
    }

    #[test]
    fn what_was_learned_of_a_demand_is_stored_for_longer_while_its_object_is_there() {
        use Presence::{NotSeen, Seen};
        let mut history = recalled(&[1000], false).history;
        let at = |seconds| Time(0).after(Span::seconds(seconds));
        for presence in [Seen, NotSeen] {
            assert!(matters(&history, presence, at(1500)), "{presence:?}");
            assert!(!matters(&history, presence, at(9000)), "{presence:?}");
        }
        let demand = Demand { replicas: Milli(1000), at: at(1000), horizon: Span::seconds(60) };
        let memory = Memory { demand: Some(demand), ..Memory::default() };
        history.memory = Some(Box::new(memory));
        assert!(!matters(&history, Seen, at(9000)), "nothing has learned from it");
        history.forecaster = Some(Box::default());
        assert!(matters(&history, Seen, at(9000)) && !matters(&history, Seen, at(15 * 86_400)));
        assert!(!matters(&history, NotSeen, at(9000)), "it may be gone for good");
    }

    #[test]
    fn what_is_not_stored_is_known() {
        let mut histories = Histories::default();
        let (a, b, c) =
            (recalled(&[5000], false), recalled(&[5000], false), recalled(&[1000], false));
        let known = || [("1", &a.history), ("2", &b.history), ("3", &c.history)].into_iter();
        assert!(histories.changed("1", true));
        assert!(!histories.changed("1", true), "that is no news");
        histories.changed("2", false);
        histories.changed("3", false);
        let (one, others) = (shard("1"), BTreeSet::from([shard("2"), shard("3")]));
        assert!(!others.contains(&one), "the uids of this test are in different shards");
        let soon = histories.take_changed(false);
        assert_eq!(soon, BTreeSet::from([one]));
        let now = Time(0).after(Span::seconds(5010));
        let names = |part: &BTreeMap<String, Vec<u8>>| part.keys().cloned().collect::<Vec<_>>();
        let parts = histories.shards(known(), &soon, now);
        assert_eq!(parts.values().map(names).collect::<Vec<_>>(), [["1"]]);
        assert_eq!(histories.take_changed(false), BTreeSet::new());
        let rest = histories.take_changed(true);
        assert_eq!(rest, others);
        let uids: Vec<String> =
            histories.shards(known(), &rest, now).values().flat_map(names).collect();
        assert_eq!(uids, ["2"], "what is older than an hour is left out");
    }
}
