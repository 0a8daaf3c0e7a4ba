//! Who asked about what, so that new samples enqueue exactly those objects.

use super::entry::Entry;
use super::{Index, State};
use crate::dialect::Key;
use crate::source::{News, Topic, Unseen};
use std::collections::{BTreeMap, BTreeSet, HashMap};

impl Index {
    /// New samples arrived: whoever asked about them is enqueued, each at most once in its minimum
    /// interval, unless it was answered with them already.
    pub(in crate::controller) fn announced(&self, news: &News) {
        let now = self.now_micros();
        let mut state = self.state.lock();
        let State { entries, queue, subscribers, .. } = &mut *state;
        let mut keys = BTreeSet::new();
        for (topic, unseen) in news {
            let lacks = |key: &&Key| entries.get(*key).is_some_and(|e| e.lacks(topic, *unseen));
            keys.extend(subscribers.get(topic).into_iter().flatten().filter(lacks));
        }
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
        if entry.topics.keys().eq(&topics) {
            return;
        }
        unsubscribe(subscribers, key, &entry.topics);
        for topic in &topics {
            subscribers.entry(topic.clone()).or_default().insert(key.clone());
        }
        let mut before = std::mem::take(&mut entry.topics);
        let answered = |topic: Topic| {
            let answered = before.remove(&topic).flatten();
            (topic, answered)
        };
        entry.topics = topics.into_iter().map(answered).collect();
    }

    /// An object was answered under this topic just now.
    pub(in crate::controller) fn answered(&self, key: &Key, uid: &str, topic: &Topic) {
        let now = self.now_micros();
        if let Some(mut entry) = self.entry(key, uid)
            && let Some(answered) = entry.topics.get_mut(topic)
        {
            *answered = Some(now);
        }
    }
}

impl Entry {
    /// Whether what is announced is news to it.
    fn lacks(&self, topic: &Topic, unseen: Unseen) -> bool {
        match (unseen, self.topics.get(topic)) {
            (Unseen::Before(time), Some(Some(answered))) => *answered < time.as_microsecond(),
            _ => true,
        }
    }
}

/// Forgets that an object asked about these topics.
pub(super) fn unsubscribe(
    subscribers: &mut HashMap<Topic, BTreeSet<Key>>,
    key: &Key,
    topics: &BTreeMap<Topic, Option<i64>>,
) {
    for topic in topics.keys() {
        if let Some(keys) = subscribers.get_mut(topic) {
            keys.remove(key);
            if keys.is_empty() {
                subscribers.remove(topic);
            }
        }
    }
}
