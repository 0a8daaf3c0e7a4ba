//! How a source announces that new samples arrived: under a topic, to whoever asked about it.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many topics may wait to be taken in. Each waits at most once, so that a source that announces
/// faster than anybody listens costs no memory.
const MAX_WAITING: usize = 1 << 17;

/// What an answer is about, for instance one query of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Topic(pub(crate) Arc<str>);

/// Announces new samples. Clones share one queue.
#[derive(Clone)]
pub(crate) struct Notifier {
    waiting: Arc<Mutex<HashSet<Topic>>>,
    wake: mpsc::Sender<()>,
}

impl Notifier {
    /// New samples arrived. Never waits: while too many topics are queued, further ones are dropped,
    /// and whoever asked hears of the samples at the end of its sync period.
    pub(crate) fn announce(&self, topics: impl IntoIterator<Item = Topic>) {
        let mut waiting = self.waiting.lock();
        for topic in topics {
            if waiting.len() >= MAX_WAITING {
                tracing::debug!("new samples are not announced: too many topics are queued");
                break;
            }
            waiting.insert(topic);
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
    waiting: Arc<Mutex<HashSet<Topic>>>,
    wake: mpsc::Receiver<()>,
}

impl Announcements {
    /// Waits for announcements, and takes all that are there, each topic once; nothing once nobody
    /// can announce any more.
    pub(crate) async fn next(&mut self) -> Option<HashSet<Topic>> {
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
    let waiting = Arc::<Mutex<HashSet<Topic>>>::default();
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
        notifier.announce([topic(1)]);
        drop(notifier);
        assert_eq!(announcements.next().await, Some(HashSet::from([topic(1)])));
        assert_eq!(announcements.next().await, None);
    }
}
