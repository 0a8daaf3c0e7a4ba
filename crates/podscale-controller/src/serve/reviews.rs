//! Remembers for a short time what the API server said about a token or an access, in a bounded number
//! of entries. Many who want to know the same at once ask once.

use parking_lot::Mutex;
use podscale_client::call::CallError;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long an answer holds, good or bad.
const MAX_AGE: Duration = Duration::from_secs(10);
/// How many answers are remembered.
const MAX_ANSWERS: usize = 16_384;
/// How long the API server may take.
const DEADLINE: Duration = Duration::from_secs(10);

type Answer<V> = Arc<OnceCell<Result<V, CallError>>>;

/// One question that was asked.
struct Asked<V> {
    at: Instant,
    answer: Answer<V>,
}

impl<V> Asked<V> {
    /// Whether the answer, which may be on its way, is good enough now. A failure is no answer.
    fn holds(&self, now: Instant) -> bool {
        let failed = matches!(self.answer.get(), Some(Err(_)));
        !failed && now.saturating_duration_since(self.at) < MAX_AGE
    }
}

struct State<K, V> {
    asked: HashMap<K, Asked<V>>,
    /// In the order in which they were asked; those that were asked again are there twice.
    order: VecDeque<(Instant, K)>,
}

/// Answers by question. Clones share them.
pub struct Reviews<K, V>(Arc<Mutex<State<K, V>>>);

impl<K, V> Clone for Reviews<K, V> {
    fn clone(&self) -> Reviews<K, V> {
        Reviews(Arc::clone(&self.0))
    }
}

impl<K, V> Default for Reviews<K, V> {
    fn default() -> Reviews<K, V> {
        let state = State { asked: HashMap::new(), order: VecDeque::new() };
        Reviews(Arc::new(Mutex::new(state)))
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Reviews<K, V> {
    /// What is remembered, or else what `ask` finds out.
    ///
    /// # Errors
    /// The API server could not be asked.
    pub async fn get(
        &self,
        key: &K,
        ask: impl Future<Output = Result<V, CallError>>,
    ) -> Result<V, CallError> {
        let answer = self.answer(key, Instant::now());
        let asking = async {
            let asked = tokio::time::timeout(DEADLINE, ask).await;
            asked.unwrap_or(Err(CallError::Late(DEADLINE)))
        };
        answer.get_or_init(|| asking).await.clone()
    }

    /// How many answers are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.lock().asked.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn answer(&self, key: &K, now: Instant) -> Answer<V> {
        let mut state = self.0.lock();
        if let Some(asked) = state.asked.get(key).filter(|asked| asked.holds(now)) {
            return Arc::clone(&asked.answer);
        }
        state.forget(now);
        let answer = Answer::default();
        state.order.push_back((now, key.clone()));
        state.asked.insert(key.clone(), Asked { at: now, answer: Arc::clone(&answer) });
        answer
    }
}

impl<K: Eq + Hash, V> State<K, V> {
    /// Forgets what is too old, and the oldest while there is too much.
    fn forget(&mut self, now: Instant) {
        while let Some((at, _)) = self.order.front() {
            let old = now.saturating_duration_since(*at) >= MAX_AGE;
            if !old && self.order.len() < MAX_ANSWERS {
                return;
            }
            let Some((at, key)) = self.order.pop_front() else { return };
            if self.asked.get(&key).is_some_and(|asked| asked.at == at) {
                self.asked.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_ten_seconds_and_a_failure_not_at_all() {
        let (reviews, asked) = (Reviews::<&str, u32>::default(), AtomicU32::new(0));
        let get = async |key, fails: bool| {
            let ask = async {
                tokio::task::yield_now().await;
                let count = asked.fetch_add(1, Ordering::Relaxed);
                if fails { Err(CallError::Unreachable("down".to_owned())) } else { Ok(count) }
            };
            reviews.get(&key, ask).await.ok()
        };
        let many = futures::future::join_all((0..50).map(|_| get("a", false))).await;
        assert!(many.iter().all(|answer| *answer == Some(0)), "asked once for all");
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(get("a", false).await, Some(0));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(get("a", false).await, Some(1), "it is too old");
        assert_eq!((get("b", true).await, get("b", false).await), (None, Some(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_bounded() {
        let reviews = Reviews::<usize, usize>::default();
        for key in 0..MAX_ANSWERS + 10 {
            reviews.get(&key, async { Ok(key) }).await.expect("an answer");
        }
        assert_eq!(reviews.len(), MAX_ANSWERS);
        tokio::time::advance(MAX_AGE).await;
        reviews.get(&0, async { Ok(0) }).await.expect("an answer");
        assert_eq!(reviews.len(), 1, "what is too old is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_does_not_answer_is_not_waited_for() {
        let reviews = Reviews::<u8, u8>::default();
        let answer = reviews.get(&0, std::future::pending()).await;
        assert_eq!(answer, Err(CallError::Late(DEADLINE)));
    }
}
