//! Who asked about what, so that new samples enqueue exactly those objects.

use super::{Index, State};
use crate::dialect::Key;
use crate::source::Topic;
use std::collections::{BTreeSet, HashMap, HashSet};

impl Index {
    /// New samples arrived: whoever asked about them is enqueued, each at most once in its minimum
    /// interval.
    pub(in crate::controller) fn announced(&self, topics: &HashSet<Topic>) {
        let now = self.now_micros();
        let mut state = self.state.lock();
        let State { entries, queue, subscribers, .. } = &mut *state;
        let keys: BTreeSet<&Key> =
            topics.iter().filter_map(|topic| subscribers.get(topic)).flatten().collect();
        for key in keys {
            if let Some(entry) = entries.get_mut(key) {
                queue.enqueue_spaced(key, &mut entry.queue_state, now);
            }
        }
        drop(state);
        self.sooner.notify_one();
    }

    /// Notes what an object asked, so that it is notified of new answers.
    pub(in crate::controller) fn subscribe(&self, key: &Key, uid: &str, topics: BTreeSet<Topic>) {
        let mut state = self.state.lock();
        let State { entries, subscribers, .. } = &mut *state;
        let Some(entry) = entries.get_mut(key).filter(|e| !e.gone && e.managed.uid() == uid) else {
            return;
        };
        if entry.topics == topics {
            return;
        }
        unsubscribe(subscribers, key, &entry.topics);
        for topic in &topics {
            subscribers.entry(topic.clone()).or_default().insert(key.clone());
        }
        entry.topics = topics;
    }
}

/// Forgets that an object asked about these topics.
pub(super) fn unsubscribe(
    subscribers: &mut HashMap<Topic, BTreeSet<Key>>,
    key: &Key,
    topics: &BTreeSet<Topic>,
) {
    for topic in topics {
        if let Some(keys) = subscribers.get_mut(topic) {
            keys.remove(key);
            if keys.is_empty() {
                subscribers.remove(topic);
            }
        }
    }
}
