//! How a source announces that new samples arrived: under a topic, to whoever asked about it.

use jiff::Timestamp;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many topics may wait to be taken in. Each waits at most once, so that a source that announces
/// faster than anybody listens costs no memory.
const MAX_WAITING: usize = 1 << 17;

/// What an answer is about, for instance one query of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Topic(pub(crate) Arc<str>);

/// Whom of those who asked an announcement concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unseen {
    /// Those who were answered before this time: by then the values were there.
    Before(Timestamp),
    /// All of them.
    ByAll,
}

/// What is announced: each topic once, with whom it concerns.
pub(crate) type News = HashMap<Topic, Unseen>;

/// Announces new samples. Clones share one queue.
#[derive(Clone)]
pub(crate) struct Notifier {
    waiting: Arc<Mutex<News>>,
    wake: mpsc::Sender<()>,
}

impl Notifier {
    /// New samples arrived, which nobody has seen yet.
    pub(crate) fn announce(&self, topics: impl IntoIterator<Item = Topic>) {
        self.announce_unseen(topics.into_iter().map(|topic| (topic, Unseen::ByAll)));
    }

    /// New samples arrived, which some may have been answered with already. Never waits: while too many topics are
    /// queued, further ones are dropped, and whoever asked hears of the samples at the end of its sync period.
    pub(crate) fn announce_unseen(&self, news: impl IntoIterator<Item = (Topic, Unseen)>) {
        let mut waiting = self.waiting.lock();
        for (topic, unseen) in news {
            if waiting.len() >= MAX_WAITING {
                tracing::debug!("new samples are not announced: too many topics are queued");
                break;
            }
            let known = waiting.entry(topic).or_insert(unseen);
            *known = unseen.max(*known);
        }
        let any = !waiting.is_empty();
        drop(waiting);
        if any {
            // If it is full, the listener is about to look anyway.
            let _ = self.wake.try_send(());
        }
    }
}

/// The listening end.
pub(crate) struct Announcements {
    waiting: Arc<Mutex<News>>,
    wake: mpsc::Receiver<()>,
}

impl Announcements {
    /// Waits for announcements, and takes all that are there, each topic once; nothing once nobody
    /// can announce any more.
    pub(crate) async fn next(&mut self) -> Option<News> {
        loop {
            let alive = self.wake.recv().await.is_some();
            let topics = std::mem::take(&mut *self.waiting.lock());
            if !topics.is_empty() {
                return Some(topics);
            }
            if !alive {
                return None;
            }
        }
    }
}

/// Both ends of a queue of announcements.
pub(crate) fn notifications() -> (Notifier, Announcements) {
    let (sender, receiver) = mpsc::channel(1);
    let waiting = Arc::<Mutex<News>>::default();
    let announcements = Announcements { waiting: Arc::clone(&waiting), wake: receiver };
    (Notifier { waiting, wake: sender }, announcements)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn topics_wait_once_and_none_is_lost() {
        let topic = |number: usize| Topic(number.to_string().into());
        let (notifier, mut announcements) = notifications();
        for _ in 0..3 {
            notifier.announce((0..10_000).map(topic));
        }
        notifier.announce([]);
        assert_eq!(announcements.next().await.map(|topics| topics.len()), Some(10_000));
        let before = |second| Unseen::Before(Timestamp::from_second(second).expect("a time"));
        notifier.announce([topic(1)]);
        notifier.announce_unseen([(topic(1), before(5)), (topic(2), before(5))]);
        notifier.announce_unseen([(topic(2), before(9)), (topic(2), before(7))]);
        drop(notifier);
        let expected = HashMap::from([(topic(1), Unseen::ByAll), (topic(2), before(9))]);
        assert_eq!(announcements.next().await, Some(expected), "the newest values count");
        assert_eq!(announcements.next().await, None);
    }
}
