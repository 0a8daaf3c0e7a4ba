//! What earlier decisions left behind, of all autoscalers, and what of it is not stored yet.

use crate::watch::world::Key;
use parking_lot::Mutex;
use podscale_core::history::{Learned, Recommendation};
use podscale_core::{History, Span, Time};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tokio::sync::Notify;

/// Among how many parts histories are spread when they are stored.
pub const SHARDS: u8 = 32;
/// No window and no period reaches further back, so what is older decides nothing.
const LONGEST_MEMORY: Span = Span::seconds(3600);

/// The part that an object's history is stored in.
#[must_use]
pub fn shard(uid: &str) -> u8 {
    Sha256::digest(uid.as_bytes()).first().map_or(0, |byte| byte % SHARDS)
}

/// The histories of all autoscalers.
#[derive(Default)]
pub struct Histories {
    state: Mutex<State>,
    rescaled: Notify,
}

#[derive(Default)]
struct State {
    by_key: HashMap<Key, Remembered>,
    /// Stored by whoever led before, and not asked for yet; by uid.
    restored: HashMap<Box<str>, Recalled>,
    /// Parts with something that is not stored.
    changed: BTreeSet<u8>,
    /// Those of them that should be stored soon.
    urgent: BTreeSet<u8>,
}

/// The history of one object; another object of the same name does not inherit it.
struct Remembered {
    uid: Box<str>,
    recalled: Recalled,
}

/// A history, and whether somebody may have decided since without it being known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recalled {
    /// The history.
    pub history: History,
    /// Whether recommendations may be missing at its end.
    pub interrupted: bool,
}

impl Recalled {
    /// Mends an interrupted history as a controller that has just started does: the size that is
    /// found counts as recommended, so that nothing is scaled down for want of memory.
    pub fn mend(&mut self, replicas: i32, at: Time) {
        if self.interrupted && !self.history.recommendations.is_empty() {
            let first = Some(Recommendation { replicas, at });
            self.history.commit(&Learned { first, ..Learned::default() });
        }
        self.interrupted = false;
    }
}

impl Histories {
    /// The history of an object.
    #[must_use]
    pub fn recall(&self, key: &Key, uid: &str) -> Recalled {
        let state = self.state.lock();
        let known = state.by_key.get(key).filter(|remembered| *remembered.uid == *uid);
        let known = known.map(|remembered| &remembered.recalled);
        known.or_else(|| state.restored.get(uid)).cloned().unwrap_or_default()
    }

    /// Keeps what an object's history has become; after a rescale it should be stored soon.
    pub fn remember(&self, key: &Key, uid: &str, recalled: Recalled, rescaled: bool) {
        let mut state = self.state.lock();
        state.restored.remove(uid);
        state.by_key.insert(key.clone(), Remembered { uid: uid.into(), recalled });
        let shard = shard(uid);
        state.changed.insert(shard);
        if rescaled && state.urgent.insert(shard) {
            drop(state);
            self.rescaled.notify_one();
        }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        let mut state = self.state.lock();
        if let Some(gone) = state.by_key.remove(key) {
            state.changed.insert(shard(&gone.uid));
        }
    }

    /// Puts what somebody else stored in the place of everything that is known.
    pub fn restore(&self, stored: HashMap<Box<str>, Recalled>) {
        let mut state = self.state.lock();
        *state = State { restored: stored, ..State::default() };
    }

    /// Notes that somebody else may have decided meanwhile, but not what.
    pub fn interrupt(&self) {
        let mut state = self.state.lock();
        for (_, Remembered { uid, mut recalled }) in std::mem::take(&mut state.by_key) {
            recalled.interrupted = true;
            state.restored.insert(uid, recalled);
        }
    }

    /// Waits until something should be stored soon.
    pub async fn rescaled(&self) {
        loop {
            let rescaled = self.rescaled.notified();
            if !self.state.lock().urgent.is_empty() {
                return;
            }
            rescaled.await;
        }
    }

    /// Takes the parts that should be stored soon, or all that have changed.
    #[must_use]
    pub fn take_changed(&self, all: bool) -> BTreeSet<u8> {
        let mut state = self.state.lock();
        let urgent = std::mem::take(&mut state.urgent);
        if all {
            return std::mem::take(&mut state.changed);
        }
        state.changed.retain(|shard| !urgent.contains(shard));
        urgent
    }

    /// Notes that these parts should be stored soon.
    pub fn hurry(&self, shards: impl IntoIterator<Item = u8>) {
        let mut state = self.state.lock();
        for shard in shards {
            state.changed.insert(shard);
            state.urgent.insert(shard);
        }
        self.rescaled.notify_one();
    }

    /// What these parts hold, by uid, without what is too old to matter.
    #[must_use]
    pub fn of_shards(
        &self,
        shards: &BTreeSet<u8>,
        now: Time,
    ) -> BTreeMap<u8, BTreeMap<String, Vec<u8>>> {
        let mut parts: BTreeMap<u8, BTreeMap<String, Vec<u8>>> =
            shards.iter().map(|shard| (*shard, BTreeMap::new())).collect();
        let state = self.state.lock();
        let known = state.by_key.values().map(|known| (&known.uid, &known.recalled.history));
        let restored = state.restored.iter().map(|(uid, recalled)| (uid, &recalled.history));
        for (uid, history) in known.chain(restored) {
            if let Some(part) = parts.get_mut(&shard(uid))
                && newest(history) > now.before(LONGEST_MEMORY)
            {
                part.insert(uid.to_string(), history.to_bytes());
            }
        }
        parts
    }
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

    fn key(name: &str) -> Key {
        Key { namespace: "shop".into(), name: name.into() }
    }

    fn recalled(seconds: &[i64], interrupted: bool) -> Recalled {
        let recommendation =
            |s: &i64| Recommendation { replicas: 3, at: Time(0).after(Span::seconds(*s)) };
        let recommendations = seconds.iter().map(recommendation).collect();
        Recalled { history: History { recommendations, ..History::default() }, interrupted }
    }

    #[test]
    fn an_object_has_its_own_history_and_a_namesake_has_not() {
        let histories = Histories::default();
        histories.remember(&key("web"), "1", recalled(&[5], false), false);
        assert_eq!(histories.recall(&key("web"), "1"), recalled(&[5], false));
        assert_eq!(histories.recall(&key("web"), "2"), Recalled::default());
        histories.interrupt();
        assert_eq!(histories.recall(&key("web"), "1"), recalled(&[5], true));
        histories.restore(HashMap::from([("2".into(), recalled(&[7], false))]));
        assert_eq!(histories.recall(&key("web"), "1"), Recalled::default());
        assert_eq!(histories.recall(&key("any"), "2"), recalled(&[7], false));
    }

    #[test]
    fn what_is_not_stored_is_known() {
        let histories = Histories::default();
        histories.remember(&key("a"), "1", recalled(&[5000], false), true);
        histories.remember(&key("b"), "2", recalled(&[5000], false), false);
        histories.remember(&key("c"), "3", recalled(&[1000], false), false);
        let (one, others) = (shard("1"), BTreeSet::from([shard("2"), shard("3")]));
        assert!(!others.contains(&one), "the uids of this test are in different parts");
        let soon = histories.take_changed(false);
        assert_eq!(soon, BTreeSet::from([one]));
        let now = Time(0).after(Span::seconds(5010));
        let parts = histories.of_shards(&soon, now);
        let names = |part: &BTreeMap<String, Vec<u8>>| part.keys().cloned().collect::<Vec<_>>();
        assert_eq!(parts.values().map(names).collect::<Vec<_>>(), [["1"]]);
        assert_eq!(histories.take_changed(false), BTreeSet::new());
        let rest = histories.take_changed(true);
        assert_eq!(rest, others);
        let parts = histories.of_shards(&rest, now);
        let uids: Vec<String> = parts.values().flat_map(names).collect();
        assert_eq!(uids, ["2"], "what is older than an hour is left out");
    }

    #[test]
    fn an_interrupted_history_is_mended_with_the_size_that_is_found() {
        let at = Time(0).after(Span::seconds(100));
        let mut mended = recalled(&[40], true);
        mended.mend(3, at);
        assert_eq!(mended, recalled(&[40, 100], false));
        for mut untouched in [recalled(&[40], false), recalled(&[], true)] {
            let before = untouched.history.clone();
            untouched.mend(3, at);
            assert_eq!(untouched, Recalled { history: before, interrupted: false });
        }
    }
}
