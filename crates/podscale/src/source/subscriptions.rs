//! How a source announces that new samples arrived: under a topic, to whoever asked about it.

use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Announcements that wait to be taken in. Each topic waits at most once, so that a source that
/// announces faster than anybody listens costs no memory.
const QUEUE: usize = 4096;

/// What an answer is about, for instance one query of one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Topic(pub(crate) Arc<str>);

/// Announces new samples. Clones share one queue.
#[derive(Clone)]
pub(crate) struct Notifier(mpsc::Sender<Topic>);

#[cfg_attr(not(test), expect(dead_code, reason = "the metrics APIs announce nothing"))]
impl Notifier {
    /// New samples arrived. Never waits: while too many announcements are queued, further ones are
    /// dropped, and whoever asked hears of the samples at the end of its sync period.
    pub(crate) fn announce(&self, topic: Topic) {
        if self.0.try_send(topic).is_err() {
            tracing::debug!("new samples are not announced: too many announcements are queued");
        }
    }
}

/// The listening end.
pub(crate) struct Announcements(mpsc::Receiver<Topic>);

impl Announcements {
    /// Waits for announcements, and takes all that are there, each topic once; nothing once nobody
    /// can announce any more.
    pub(crate) async fn next(&mut self) -> Option<HashSet<Topic>> {
        let mut topics = HashSet::from([self.0.recv().await?]);
        while let Ok(topic) = self.0.try_recv() {
            topics.insert(topic);
        }
        Some(topics)
    }
}

/// Both ends of a queue of announcements.
pub(crate) fn notifications() -> (Notifier, Announcements) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Notifier(sender), Announcements(receiver))
}
