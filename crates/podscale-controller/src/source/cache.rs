//! Answers that several may use for a while: each is fetched once, also if many ask at once.

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How many answers are kept at most.
const MOST_ANSWERS: usize = 16_384;

/// Answers by question, kept for a while.
pub(super) struct Cache<K, V> {
    clock: Clock,
    kept: SignedDuration,
    answers: Mutex<Answers<K, V>>,
}

struct Answers<K, V> {
    by_question: HashMap<K, Entry<V>>,
    swept: Timestamp,
}

#[derive(Clone)]
struct Entry<V> {
    asked: Timestamp,
    answer: Arc<OnceCell<V>>,
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    /// An empty cache that keeps no answer longer than this.
    pub(super) fn new(clock: Clock, kept: Duration) -> Cache<K, V> {
        let answers = Answers { by_question: HashMap::new(), swept: clock.now() };
        let kept = SignedDuration::try_from(kept).unwrap_or(SignedDuration::MAX);
        Cache { clock, kept, answers: Mutex::new(answers) }
    }

    /// The answer to a question, fetched if there is none that is young enough.
    pub(super) async fn get<F: Future<Output = V>>(
        &self,
        question: K,
        max_age: Duration,
        fetch: impl FnOnce() -> F,
    ) -> V {
        let max_age =
            SignedDuration::try_from(max_age).unwrap_or(SignedDuration::MAX).min(self.kept);
        let entry = self.entry(question, max_age);
        // Of all who wait only one fetches, so what that takes is not part of each of them.
        entry.answer.get_or_init(|| Box::pin(fetch())).await.clone()
    }

    fn entry(&self, question: K, max_age: SignedDuration) -> Entry<V> {
        let now = self.clock.now();
        let younger = |entry: &Entry<V>, than| now.duration_since(entry.asked) < than;
        let mut answers = self.answers.lock();
        if now.duration_since(answers.swept) >= self.kept
            || answers.by_question.len() >= MOST_ANSWERS
        {
            answers.by_question.retain(|_, entry| younger(entry, self.kept));
            answers.swept = now;
            if answers.by_question.len() >= MOST_ANSWERS {
                answers.by_question.clear();
            }
        }
        let new = || Entry { asked: now, answer: Arc::default() };
        let entry = answers.by_question.entry(question).or_insert_with(new);
        if !younger(entry, max_age) {
            *entry = new();
        }
        entry.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn fetches_once_until_it_is_old() {
        let cache = Cache::new(Clock::wall(), Duration::from_secs(60));
        let max_age = Duration::from_secs(3);
        let fetched = AtomicU32::new(0);
        let fetch = || async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            fetched.fetch_add(1, Ordering::Relaxed)
        };
        let (a, b, c) = tokio::join!(
            cache.get("x", max_age, fetch),
            cache.get("x", max_age, fetch),
            cache.get("y", max_age, fetch)
        );
        assert_eq!((a, a + c), (b, 1), "one fetch for each question");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(cache.get("x", max_age, fetch).await, a);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(cache.get("x", max_age, fetch).await, 2);
    }
}
