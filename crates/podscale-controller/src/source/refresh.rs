//! Questions that are asked again in the background, so that whoever asked decides as soon as the answer is
//! another one, and not only at the end of its sync period.

use super::subscriptions::{News, Notifier};
use futures::StreamExt;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

/// A younger answer is asked for by nobody, nor more often: Prometheus has a sample every so many seconds at best.
pub(super) const YOUNGEST_ASKED: Duration = Duration::from_secs(5);
/// How long a question is asked again after somebody asked it last: so long, but at least for so many of the periods
/// in which it is asked.
const KEPT: SignedDuration = SignedDuration::from_mins(5);
const KEPT_PERIODS: i32 = 2;
/// How many questions are asked again; whoever has a further one waits for its sync period.
const MOST_QUESTIONS: usize = 1024;
/// How many are under way at once.
const CONCURRENT_QUESTIONS: usize = 8;

/// How often questions are asked again, and who hears of new answers.
#[derive(Clone)]
pub(crate) struct Refreshing {
    /// How often, but not more often than there are samples; wall-clock.
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

    /// Asks again, with an answer that is younger than this; what is new since the last time.
    fn again(&self, question: Self::Question, max_age: Duration) -> BoxFuture<'_, News>;
}

impl Refreshing {
    /// Asks again what this source was asked, until the source is gone.
    pub(super) fn follow<S: Refresh>(self, source: &Arc<S>) {
        let source = Arc::downgrade(source);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(self.interval()).await;
                let Some(source) = source.upgrade() else { return };
                self.round(&*source).await;
            }
        });
    }

    fn interval(&self) -> Duration {
        self.every.max(YOUNGEST_ASKED)
    }

    /// Asks everything once; each new answer is announced as it comes, to those who do not have it yet. What
    /// somebody else asked within half of the interval is new enough.
    pub(super) async fn round<S: Refresh>(&self, source: &S) {
        let max_age = self.interval() / 2;
        let asked = source.recent().into_iter().map(|question| source.again(question, max_age));
        let mut answers = futures::stream::iter(asked).buffer_unordered(CONCURRENT_QUESTIONS);
        while let Some(news) = answers.next().await {
            self.notifier.announce_unseen(news);
        }
    }
}

/// The questions that were asked lately, each with its newest answer, whoever asked for that.
pub(super) struct Recent<K, V>(Mutex<HashMap<K, Entry<V>>>);

struct Entry<V> {
    /// How long it is asked again if nobody asks it any more.
    until: Timestamp,
    newest: Option<Newest<V>>,
}

struct Newest<V> {
    /// When it was asked for.
    read: Timestamp,
    answer: V,
    /// What was new by this time has been announced.
    announced: Timestamp,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Recent<K, V> {
    /// Somebody asks this now, and will in such a period; whether it is asked again in the background.
    pub(super) fn ask(&self, question: K, now: Timestamp, period: Duration) -> bool {
        let period = SignedDuration::try_from(period).unwrap_or(SignedDuration::MAX);
        let kept = period.checked_mul(KEPT_PERIODS).unwrap_or(SignedDuration::MAX).max(KEPT);
        let until = now.saturating_add(kept).unwrap_or(Timestamp::MAX);
        let mut entries = self.0.lock();
        if let Some(entry) = entries.get_mut(&question) {
            entry.until = entry.until.max(until);
            return true;
        }
        if entries.len() >= MOST_QUESTIONS {
            return false;
        }
        entries.insert(question, Entry { until, newest: None });
        true
    }

    /// What is asked again; what nobody asked for a while is forgotten.
    pub(super) fn questions(&self, now: Timestamp) -> Vec<K> {
        let mut entries = self.0.lock();
        entries.retain(|_, entry| now < entry.until);
        entries.keys().cloned().collect()
    }

    /// The newest answer.
    pub(super) fn newest(&self, question: &K) -> Option<V> {
        self.0.lock().get(question)?.newest.as_ref().map(|newest| newest.answer.clone())
    }

    /// Notes an answer that was asked for at this time. The first one is news to nobody.
    pub(super) fn note(&self, question: &K, read: Timestamp, answer: V) {
        let mut entries = self.0.lock();
        let Some(entry) = entries.get_mut(question) else { return };
        match &mut entry.newest {
            Some(newest) if newest.read > read => {}
            Some(newest) => (newest.read, newest.answer) = (read, answer),
            None => entry.newest = Some(Newest { read, answer, announced: read }),
        }
    }

    /// The newest answer, which is announced now, and the time up to which what is new in it has been.
    pub(super) fn announce(&self, question: &K) -> Option<(V, Timestamp)> {
        let mut entries = self.0.lock();
        let newest = entries.get_mut(question)?.newest.as_mut()?;
        let before = std::mem::replace(&mut newest.announced, newest.read);
        Some((newest.answer.clone(), before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).expect("a time")
    }

    fn minutes(minutes: u64) -> Duration {
        Duration::from_secs(minutes * 60)
    }

    #[test]
    fn what_nobody_asks_any_more_is_forgotten_and_there_are_not_too_many() {
        let recent = Recent::<usize, u8>::default();
        assert!((0..MOST_QUESTIONS).all(|number| recent.ask(number, at(0), minutes(1))));
        assert!(!recent.ask(MOST_QUESTIONS, at(0), minutes(1)), "one too many");
        assert!(recent.ask(7, at(4), minutes(1)));
        assert!(recent.ask(8, at(0), minutes(4)), "asked every four minutes");
        let mut kept = recent.questions(at(6));
        kept.sort_unstable();
        assert_eq!(kept, [7, 8]);
        assert_eq!(recent.questions(at(8)), [7]);
        recent.note(&8, at(8), 1);
        assert_eq!(recent.newest(&8), None, "nobody asks it");
        assert!(recent.ask(MOST_QUESTIONS, at(8), minutes(1)));
    }

    #[test]
    fn an_answer_is_announced_once_and_older_ones_count_for_nothing() {
        let recent = Recent::<&str, u8>::default();
        recent.ask("q", at(0), minutes(1));
        assert_eq!(recent.announce(&"q"), None);
        recent.note(&"q", at(1), 1);
        assert_eq!(recent.announce(&"q"), Some((1, at(1))), "whoever asked has the first");
        recent.note(&"q", at(3), 3);
        recent.note(&"q", at(2), 2);
        assert_eq!(recent.newest(&"q"), Some(3));
        assert_eq!(recent.announce(&"q"), Some((3, at(1))));
        assert_eq!(recent.announce(&"q"), Some((3, at(3))));
    }

    #[test]
    fn prometheus_is_not_asked_more_often_than_it_has_samples() {
        let (notifier, _announcements) = super::super::notifications();
        for (every, expected) in [(1, YOUNGEST_ASKED), (15, Duration::from_secs(15))] {
            let every = Duration::from_secs(every);
            assert_eq!(Refreshing { every, notifier: notifier.clone() }.interval(), expected);
        }
    }
}
