//! Servers that are asked: connections that triggers share, one answer for all who ask the same, and a circuit
//! breaker for each.

use crate::trigger::{ServerKey, TriggerError};
use parking_lot::Mutex;
use podscale_metrics::circuit_breaker::{CircuitBreaker, Interrupted, Limits};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OnceCell, SetOnce};
use tokio::time::Instant;

/// How many calls to one server are under way at once.
pub(crate) const CONCURRENT_CALLS: usize = 16;
/// How long a server is left alone when it fails: at most as long as triggers are not polled anyway.
const LIMITS: Limits = Limits {
    concurrent_calls: CONCURRENT_CALLS,
    first_pause: Duration::from_secs(2),
    longest_pause: Duration::from_secs(30),
};
/// A server that has not answered for so long is late, whatever the one who asked allows.
const LEAST_PATIENCE: Duration = Duration::from_millis(2500);
/// How many answers of one server are kept at most.
const MOST_ANSWERS: usize = 8192;
/// From how many entries on those are looked for that nobody uses any longer.
const SWEEP_FROM: usize = 64;

/// Everything that triggers share, by server. It is dropped with the last trigger that uses it.
#[derive(Default)]
pub(crate) struct Connections {
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    by_key: HashMap<ServerKey, Weak<dyn Any + Send + Sync>>,
    sweep_at: usize,
}

impl Shared {
    fn find<T: Send + Sync + 'static>(&self, key: &ServerKey) -> Option<Arc<T>> {
        self.by_key.get(key)?.upgrade()?.downcast().ok()
    }
}

impl Connections {
    /// What is shared under a key, made if nobody has it. Making it may take a while, and holds up nobody who shares
    /// something else: of two that were made at the same time the first is shared.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn share<T: Send + Sync + 'static, E>(
        &self,
        key: &ServerKey,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(known) = self.shared.lock().find(key) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        let mut shared = self.shared.lock();
        if let Some(known) = shared.find(key) {
            return Ok(known);
        }
        let any: Arc<dyn Any + Send + Sync> = made.clone();
        if shared.by_key.len() >= shared.sweep_at.max(SWEEP_FROM) {
            shared.by_key.retain(|_, entry| entry.strong_count() > 0);
            shared.sweep_at = shared.by_key.len().saturating_mul(2);
        }
        shared.by_key.insert(key.clone(), Arc::downgrade(&any));
        Ok(made)
    }

    /// How many servers there are.
    pub(crate) fn len(&self) -> usize {
        let shared = self.shared.lock();
        shared.by_key.values().filter(|entry| entry.strong_count() > 0).count()
    }
}

/// A server and what connects to it.
pub(crate) struct Server<C> {
    /// What connects to it.
    pub(crate) connection: C,
    name: Arc<str>,
    freshness: Duration,
    breaker: CircuitBreaker,
    /// Why it failed last.
    failure: Mutex<Option<Arc<str>>>,
    answers: Mutex<HashMap<Box<str>, Answer>>,
}

type Outcome = Result<Arc<[f64]>, TriggerError>;

#[derive(Clone)]
struct Answer {
    asked: Instant,
    shared: Arc<SharedAnswer>,
}

/// What all who ask the same wait for.
#[derive(Default)]
struct SharedAnswer {
    outcome: OnceCell<Outcome>,
    /// When the server was called.
    called: SetOnce<Instant>,
}

impl<C> Server<C> {
    /// A server that was not asked yet; answers are shared for so long.
    pub(crate) fn new(key: &ServerKey, freshness: Duration, connection: C) -> Server<C> {
        Server {
            connection,
            name: key.address().into(),
            freshness,
            breaker: CircuitBreaker::new(LIMITS),
            failure: Mutex::default(),
            answers: Mutex::default(),
        }
    }

    /// Its name in errors.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The numbers that a question gives now, or gave somebody else a moment ago. What is left until the deadline counts
    /// from the call: that many ask at the same moment and have to wait for their turn is no fault of the server. Whoever
    /// polls has a deadline for all of it.
    ///
    /// # Errors
    /// The call failed, took too long, or the server is left alone.
    pub(crate) async fn ask<F: Future<Output = Result<Vec<f64>, TriggerError>>>(
        &self,
        question: &str,
        deadline: Instant,
        call: impl FnOnce() -> F,
    ) -> Outcome {
        let patience = deadline.saturating_duration_since(Instant::now());
        let shared = self.answer(question).shared;
        // Whoever asks first asks for all, within its own time; the others wait as long as theirs. Thousands may wait
        // until the server may be called: only calls that have begun take the room of a request.
        let begun = async {
            // Whoever goes on after somebody gave up is late as the first one was.
            let _ = shared.called.set(Instant::now());
            Box::pin(call()).await
        };
        let fetch = || async { self.call(patience, begun).await.map(Into::into) };
        let late = async {
            let called = *shared.called.wait().await;
            tokio::time::sleep_until(called + patience).await;
        };
        tokio::select! {
            biased;
            outcome = shared.outcome.get_or_init(fetch) => outcome.clone(),
            () = late => Err(TriggerError::Late(self.name.clone())),
        }
    }

    fn answer(&self, question: &str) -> Answer {
        let now = Instant::now();
        let mut answers = self.answers.lock();
        if let Some(answer) = answers.get(question) {
            // What nobody waits for any more was given up, and would be late for ever; one reference is the map's.
            let is_usable = match answer.shared.outcome.initialized() {
                true => now.duration_since(answer.asked) < self.freshness,
                false => Arc::strong_count(&answer.shared) > 1,
            };
            if is_usable {
                return answer.clone();
            }
        }
        let is_fresh = |answer: &Answer| now.duration_since(answer.asked) < self.freshness;
        if answers.len() >= MOST_ANSWERS {
            answers.retain(|_, answer| is_fresh(answer));
        }
        if answers.len() >= MOST_ANSWERS {
            answers.clear();
        }
        let answer = Answer { asked: now, shared: Arc::default() };
        answers.insert(question.into(), answer.clone());
        answer
    }

    async fn call<T>(
        &self,
        patience: Duration,
        call: impl Future<Output = Result<T, TriggerError>>,
    ) -> Result<T, TriggerError> {
        // A little less than whoever waits, so that it is the call that is late and not the waiting.
        let left = patience.saturating_sub((patience / 50).min(Duration::from_millis(50)));
        // Whoever has less patience gives up alone: that says nothing about the server, and others may wait on.
        let patience = left.max(LEAST_PATIENCE);
        let answer = self.breaker.call(patience, TriggerError::is_outage, call).await;
        let error = match answer {
            Ok(answer) => {
                *self.failure.lock() = None;
                return Ok(answer);
            }
            Err(Interrupted::Failed(error)) => error,
            Err(Interrupted::Late) => TriggerError::Late(self.name.clone()),
            Err(Interrupted::Open(_)) => {
                let last = self.failure.lock().clone();
                let last = last.unwrap_or_else(|| format!("{} failed", self.name).into());
                return Err(TriggerError::Open(last));
            }
        };
        if error.is_outage() {
            *self.failure.lock() = Some(error.to_string().into());
        }
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn server() -> Server<()> {
        Server::new(&ServerKey::new("t", "a:1", &[]), Duration::from_secs(1), ())
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(3)
    }

    #[tokio::test(start_paused = true)]
    async fn one_call_serves_all_who_ask_the_same() {
        let (server, calls) = (server(), AtomicU32::new(0));
        let ask = async |question: &str| {
            let call = || async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                Ok(vec![f64::from(calls.fetch_add(1, Ordering::Relaxed))])
            };
            server.ask(question, soon(), call).await.expect("an answer")[0]
        };
        let (a, b, c) = tokio::join!(ask("x"), ask("x"), ask("y"));
        assert_eq!((a, a + c), (b, 1.0), "one call for each question");
        assert_eq!(ask("x").await, a, "it is fresh");
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(ask("x").await, 2.0, "it is not");
    }

    #[tokio::test(start_paused = true)]
    async fn a_broken_server_is_left_alone_and_says_why() {
        let server = server();
        let refused = || async {
            let problem = "connection refused".into();
            Err(TriggerError::Unreachable { server: "a:1".into(), problem })
        };
        let error = server.ask("x", soon(), refused).await.expect_err("refused");
        assert_eq!(error.to_string(), "a:1 cannot be reached: connection refused");
        let answers = || async { Ok(vec![1.0]) };
        let error = server.ask("y", soon(), answers).await.expect_err("open");
        assert!(matches!(error, TriggerError::Open(_)), "{error:?}");
        assert_eq!(error.to_string(), "a:1 cannot be reached: connection refused");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(*server.ask("y", soon(), answers).await.expect("closed"), [1.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_its_deadline() {
        let (server, began) = (server(), Instant::now());
        let never = || std::future::pending();
        let error = server.ask("x", soon(), never).await.expect_err("late");
        assert_eq!(error, TriggerError::Late("a:1".into()));
        assert!(began.elapsed() <= Duration::from_secs(3));
        assert!(matches!(server.ask("y", soon(), never).await, Err(TriggerError::Open(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_late_who_waits_for_a_turn() {
        let (server, began) = (server(), Instant::now());
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok(vec![1.0])
        };
        let questions: Vec<String> = (0..3 * CONCURRENT_CALLS).map(|n| n.to_string()).collect();
        let asked = questions.iter().map(|question| server.ask(question, soon(), slow));
        let answers = futures::future::join_all(asked).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(began.elapsed().as_secs(), 6, "one after the other");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_was_given_up_is_asked_anew() {
        let server = server();
        let after = |millis| {
            move || async move {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok(vec![1.0])
            }
        };
        let impatient = || Instant::now() + Duration::from_millis(500);
        let late = server.ask("x", impatient(), after(900)).await;
        assert_eq!(late, Err(TriggerError::Late("a:1".into())));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(*server.ask("x", impatient(), after(100)).await.expect("in time"), [1.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn impatience_is_nobody_elses_problem() {
        let server = server();
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(vec![1.0])
        };
        let at_once = Instant::now() + Duration::from_millis(1);
        let (impatient, other) =
            tokio::join!(server.ask("x", at_once, slow), server.ask("x", soon(), slow));
        assert_eq!(impatient, Err(TriggerError::Late("a:1".into())));
        assert_eq!(*other.expect("an answer"), [1.0]);
        assert!(server.ask("y", soon(), slow).await.is_ok(), "it is not left alone");
    }

    #[test]
    fn nobody_waits_until_something_else_is_made() {
        let connections = Connections::default();
        let key = |n: usize| ServerKey::new("t", &format!("a:{n}"), &[]);
        let of = |n, value: u32| connections.share(&key(n), || Ok::<_, TriggerError>(value));
        let mut others = Vec::new();
        let made = connections.share(&key(1), || {
            // Others share meanwhile, the same as well.
            others.extend([of(1, 2)?, of(2, 3)?]);
            Ok::<_, TriggerError>(1_u32)
        });
        assert_eq!(made.map(|made| *made), Ok(2), "whoever came first stays");
    }

    #[test]
    fn what_is_shared_goes_with_its_last_user() {
        let connections = Connections::default();
        let key = |n: usize| ServerKey::new("t", &format!("a:{n}"), &[]);
        let share = |n, value: u32| {
            connections.share(&key(n), || Ok::<_, TriggerError>(value)).expect("shared")
        };
        let first = share(1, 1);
        assert_eq!((*share(1, 2), *share(2, 3)), (1, 3));
        assert_eq!(connections.len(), 1);
        drop(first);
        assert_eq!((connections.len(), *share(1, 4)), (0, 4));
        for n in 0..1000 {
            share(n, 0);
        }
        assert!(connections.shared.lock().by_key.len() <= 2 * SWEEP_FROM, "they are swept");
    }
}
