//! The way to one source of metrics: so many questions at a time, each with a deadline. A source
//! that does not answer in time is left alone for a while, and then tried by one for all, so that
//! nobody waits for it in a queue.

use crate::trouble::{News, Trouble};
use crate::watch::call::CallError;
use parking_lot::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How many questions a source is asked at the same time.
const PLACES: usize = 32;
/// How long an answer may take.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long a source that did not answer is left alone at first; it doubles each time.
const FIRST_REST: Duration = Duration::from_secs(5);
/// How long it is left alone at most.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// How long a source must not fail before that is told: it may fail for one metric and answer for
/// another.
const QUIET: Duration = Duration::from_secs(60);

/// The way to one source.
pub struct Gate {
    /// How large its last answer was.
    pub size: AtomicUsize,
    places: Semaphore,
    rest: Mutex<Option<Rest>>,
    trouble: Mutex<Trouble>,
}

#[derive(Clone, Copy)]
struct Rest {
    until: Instant,
    length: Duration,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate {
            size: AtomicUsize::new(0),
            places: Semaphore::new(PLACES),
            rest: Mutex::default(),
            trouble: Mutex::new(Trouble::over_after(QUIET)),
        }
    }
}

impl Gate {
    /// Asks, unless the source is being left alone.
    ///
    /// # Errors
    /// The question failed, or there was no answer in time, now or a moment ago.
    pub async fn ask<T>(
        &self,
        question: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let tries = self.enter()?;
        let place = self.places.acquire().await;
        // Those who waited for a place have waited long enough if the source has failed meanwhile.
        if !tries {
            self.enter()?;
        }
        let answer = tokio::time::timeout(PATIENCE, question).await;
        drop(place);
        match answer {
            Ok(answer) => {
                *self.rest.lock() = None;
                answer
            }
            Err(_) => {
                let mut rest = self.rest.lock();
                // Many may fail at once; together they are one failure.
                if rest.is_none_or(|rest| Instant::now() >= rest.until) {
                    let length = rest.map_or(FIRST_REST, |rest| rest.length.saturating_mul(2));
                    let length = length.min(LONGEST_REST);
                    *rest = Some(Rest { until: Instant::now() + length, length });
                }
                Err(CallError::Late(PATIENCE))
            }
        }
    }

    /// Tells the log of a source that fails, and that it answers again. That one metric does not exist
    /// is no trouble of its source; the autoscaler's conditions tell it.
    pub fn tell(&self, source: &str, failure: Option<&CallError>) {
        let trouble = failure.filter(|error| match error {
            CallError::Refused { code, .. } => *code >= 500 || matches!(code, 401 | 403),
            CallError::Unreachable(_) | CallError::Unreadable(_) | CallError::Late(_) => true,
        });
        match (self.trouble.lock().news(trouble.is_some(), std::time::Instant::now()), trouble) {
            (News::Trouble, Some(error)) => {
                tracing::warn!(source, %error, "cannot read metrics");
            }
            (News::Over, _) => tracing::info!(source, "metrics can be read again"),
            _ => {}
        }
    }

    /// Lets nobody in while the source rests. The first who comes afterwards tries it, and until that
    /// has an answer it rests for the others; whether it is this one.
    fn enter(&self) -> Result<bool, CallError> {
        let (mut rest, now) = (self.rest.lock(), Instant::now());
        let Some(rest) = &mut *rest else { return Ok(false) };
        if now < rest.until {
            return Err(CallError::Late(PATIENCE));
        }
        rest.until = now + PATIENCE;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_source_that_does_not_answer_is_left_alone_for_longer_and_longer() {
        let gate = Gate::default();
        let never = || async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok(())
        };
        let mut waited = Vec::new();
        for _ in 0..60 {
            let began = Instant::now();
            assert!(gate.ask(never()).await.is_err());
            if began.elapsed() >= PATIENCE {
                waited.push(began);
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        let gaps: Vec<u64> = waited.windows(2).map(|w| (w[1] - w[0]).as_secs()).collect();
        assert_eq!(gaps, [15, 20, 30, 50, 70, 70, 70], "its patience and its rests");
        tokio::time::sleep(LONGEST_REST).await;
        assert!(gate.ask(async { Ok(()) }).await.is_ok());
        assert!(gate.ask(async { Ok(()) }).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_rest_one_tries_for_all() {
        let gate = Gate::default();
        let slow = |seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(())
        };
        let all = async |seconds| {
            let began = Instant::now();
            let asking = (0..100).map(|_| async {
                let answer = gate.ask(slow(seconds)).await;
                (answer.is_ok(), began.elapsed().as_secs())
            });
            let mut ends = futures::future::join_all(asking).await;
            ends.sort_unstable();
            ends.dedup();
            ends
        };
        assert_eq!(all(1).await, [(true, 1), (true, 2), (true, 3), (true, 4)], "so many at a time");
        assert_eq!(all(3600).await, [(false, 10)], "nobody knew better");
        assert_eq!(all(1).await, [(false, 0)], "it rests");
        tokio::time::sleep(FIRST_REST).await;
        assert_eq!(all(3600).await, [(false, 0), (false, 10)], "one tries");
        tokio::time::sleep(FIRST_REST * 2).await;
        assert_eq!(all(1).await, [(false, 0), (true, 1)], "one tries");
        assert_eq!(all(1).await.len(), 4, "it is back");
    }
}
