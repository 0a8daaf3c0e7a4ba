//! The way to one source of metrics: so many questions at a time, each with a deadline. A source
//! that does not answer in time is left alone for a while, so that nobody waits for it in a queue.

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

/// The way to one source.
pub struct Gate {
    /// How large its last answer was.
    pub size: AtomicUsize,
    places: Semaphore,
    rest: Mutex<Option<Rest>>,
}

#[derive(Clone, Copy)]
struct Rest {
    until: Instant,
    length: Duration,
}

impl Default for Gate {
    fn default() -> Gate {
        Gate { size: AtomicUsize::new(0), places: Semaphore::new(PLACES), rest: Mutex::default() }
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
        let rests = || self.rest.lock().is_some_and(|rest| Instant::now() < rest.until);
        if rests() {
            return Err(CallError::Late(PATIENCE));
        }
        let place = self.places.acquire().await;
        // Those who waited for a place have waited long enough if the source has failed meanwhile.
        if rests() {
            return Err(CallError::Late(PATIENCE));
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
}
