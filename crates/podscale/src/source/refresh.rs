//! Questions that are asked again in the background, so that whoever asked decides as soon as the answer is
//! another one, and not only at the end of its sync period.

use super::subscriptions::{Notifier, Topic};
use futures::StreamExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// How long a question is asked again after somebody asked it last.
const KEPT: SignedDuration = SignedDuration::from_mins(5);
/// How many questions are asked again; whoever has a further one waits for its sync period.
const MOST_QUESTIONS: usize = 1024;
/// How many are under way at once.
const CONCURRENT_QUESTIONS: usize = 8;

/// How often questions are asked again, and who hears of new answers.
#[derive(Clone)]
pub(crate) struct Refreshing {
    /// How often; wall-clock.
    pub(crate) every: Duration,
    /// Who hears of it.
    pub(crate) notifier: Notifier,
}

/// A source that can ask again what it was asked.
pub(super) trait Refresh: Send + Sync + 'static {
    /// What is asked again.
    type Question: Send + 'static;

    /// What was asked lately.
    fn recent(&self) -> Vec<Self::Question>;

    /// Asks again, with an answer that is younger than this; the topics whose values are others now.
    fn again(&self, question: Self::Question, max_age: Duration) -> BoxFuture<'_, HashSet<Topic>>;
}

impl Refreshing {
    /// Asks again what this source was asked, until the source is gone.
    pub(super) fn follow<S: Refresh>(self, source: &Arc<S>) {
        let source = Arc::downgrade(source);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(self.every).await;
                let Some(source) = source.upgrade() else { return };
                self.round(&*source).await;
            }
        });
    }

    /// Asks everything once; each new answer is announced as it comes. What somebody else asked within half
    /// of the interval is new enough.
    pub(super) async fn round<S: Refresh>(&self, source: &S) {
        let max_age = self.every / 2;
        let asked = source.recent().into_iter().map(|question| source.again(question, max_age));
        let mut answers = futures::stream::iter(asked).buffer_unordered(CONCURRENT_QUESTIONS);
        while let Some(topics) = answers.next().await {
            self.notifier.announce(topics);
        }
    }
}

/// The questions that were asked lately, each with the last answer that was compared.
pub(super) struct Recent<K, V>(Mutex<HashMap<K, Entry<V>>>);

struct Entry<V> {
    asked: Timestamp,
    last: Option<V>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, V> Recent<K, V> {
    /// Somebody asks this now; whether it is asked again in the background.
    pub(super) fn ask(&self, question: K, now: Timestamp) -> bool {
        let mut entries = self.0.lock();
        if let Some(entry) = entries.get_mut(&question) {
            entry.asked = now;
            return true;
        }
        if entries.len() >= MOST_QUESTIONS {
            return false;
        }
        entries.insert(question, Entry { asked: now, last: None });
        true
    }

    /// What is asked again; what nobody asked for a while is forgotten.
    pub(super) fn questions(&self, now: Timestamp) -> Vec<K> {
        let mut entries = self.0.lock();
        entries.retain(|_, entry| now.duration_since(entry.asked) < KEPT);
        entries.keys().cloned().collect()
    }

    /// Whoever asked first has this answer; others are compared with it.
    pub(super) fn first(&self, question: &K, answer: impl FnOnce() -> V) {
        if let Some(entry) = self.0.lock().get_mut(question)
            && entry.last.is_none()
        {
            entry.last = Some(answer());
        }
    }

    /// The next answer; gives back the one before.
    pub(super) fn replace(&self, question: &K, answer: V) -> Option<V> {
        self.0.lock().get_mut(question)?.last.replace(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_asks_any_more_is_forgotten_and_there_are_not_too_many() {
        let at = |minute: i64| Timestamp::from_second(minute * 60).expect("a time");
        let recent = Recent::<usize, u8>::default();
        assert!((0..MOST_QUESTIONS).all(|number| recent.ask(number, at(0))));
        assert!(!recent.ask(MOST_QUESTIONS, at(0)), "one too many");
        assert!(recent.ask(7, at(4)));
        recent.first(&7, || 1);
        recent.first(&7, || 2);
        assert_eq!(recent.replace(&7, 3), Some(1), "the first one stays the first");
        assert_eq!(recent.questions(at(6)), [7]);
        assert_eq!(recent.replace(&8, 1), None);
        assert!(recent.ask(MOST_QUESTIONS, at(6)));
    }
}
