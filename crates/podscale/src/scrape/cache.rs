//! Answers that several may use for a while: each is fetched once, also if many ask at once.

use crate::clock::Clock;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How many answers are kept at most.
const KEPT: usize = 16_384;

/// Answers by question, each as old as `fresh` at most.
pub struct Cache<K, V> {
    clock: Clock,
    fresh: SignedDuration,
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
    /// An empty cache.
    pub fn new(clock: Clock, fresh: Duration) -> Cache<K, V> {
        let answers = Answers { by_question: HashMap::new(), swept: clock.now() };
        let fresh = SignedDuration::try_from(fresh).unwrap_or(SignedDuration::MAX);
        Cache { clock, fresh, answers: Mutex::new(answers) }
    }

    /// The answer to a question, fetched if there is none or only an old one.
    pub async fn get<F: Future<Output = V>>(&self, question: K, fetch: impl FnOnce() -> F) -> V {
        let entry = self.entry(question);
        entry.answer.get_or_init(fetch).await.clone()
    }

    fn entry(&self, question: K) -> Entry<V> {
        let now = self.clock.now();
        let is_fresh = |entry: &Entry<V>| now.duration_since(entry.asked) < self.fresh;
        let mut answers = self.answers.lock();
        if now.duration_since(answers.swept) >= self.fresh || answers.by_question.len() >= KEPT {
            answers.by_question.retain(|_, entry| is_fresh(entry));
            answers.swept = now;
            if answers.by_question.len() >= KEPT {
                answers.by_question.clear();
            }
        }
        let new = || Entry { asked: now, answer: Arc::default() };
        let entry = answers.by_question.entry(question).or_insert_with(new);
        if !is_fresh(entry) {
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
        let cache = Cache::new(Clock::wall(), Duration::from_secs(3));
        let fetched = AtomicU32::new(0);
        let fetch = || async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            fetched.fetch_add(1, Ordering::Relaxed)
        };
        let (a, b, c) =
            tokio::join!(cache.get("x", fetch), cache.get("x", fetch), cache.get("y", fetch));
        assert_eq!((a, a + c), (b, 1), "one fetch for each question");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(cache.get("x", fetch).await, a);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(cache.get("x", fetch).await, 2);
    }
}
