//! The circuit breaker of one server of metrics, which says in the log when it fails and when it is well again.

use parking_lot::Mutex;
use podscale_client::call::CallError;
use podscale_client::outage::{Notice, Outage};
use podscale_metrics::circuit_breaker::{CircuitBreaker as Breaker, Interrupted, Limits};
use std::time::Duration;

/// How many calls are made at the same time.
const CONCURRENT_CALLS: usize = 32;
/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long the breaker stays open after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// How long it stays open at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a server must not fail before its outage counts as over: it may fail for one metric and
/// answer for another.
const QUIET: Duration = Duration::from_secs(60);

/// The breaker of one server.
pub(super) struct CircuitBreaker {
    name: &'static str,
    breaker: Breaker,
    outage: Mutex<Outage>,
}

impl CircuitBreaker {
    /// A closed breaker for a server of this name.
    pub(super) fn new(name: &'static str) -> CircuitBreaker {
        let limits = Limits {
            concurrent_calls: CONCURRENT_CALLS,
            first_pause: FIRST_PAUSE,
            longest_pause: LONGEST_PAUSE,
        };
        let outage = Mutex::new(Outage::over_after(QUIET));
        CircuitBreaker { name, breaker: Breaker::new(limits), outage }
    }

    /// Makes a call, unless the breaker is open. It opens for a server that does not answer in time, not for
    /// one that refuses.
    ///
    /// # Errors
    /// The call failed, or there was no answer in time, now or a moment ago.
    pub(super) async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let answer = self.breaker.call(DEADLINE, |_| false, call).await;
        answer.map_err(|interrupted| match interrupted {
            Interrupted::Failed(error) => error,
            Interrupted::Open(_) | Interrupted::Late => CallError::Late(DEADLINE),
        })
    }

    /// Logs that the server fails, and that it answers again. That one metric does not exist is no
    /// failure of its server; the object's conditions say it.
    pub(super) fn report(&self, failure: Option<&CallError>) {
        let failure = failure.filter(|error| match error {
            CallError::Refused { code, .. } => *code >= 500 || matches!(code, 401 | 403),
            CallError::Unreachable(_) | CallError::Unreadable(_) | CallError::Late(_) => true,
        });
        let notice = self.outage.lock().observe(failure.is_some(), std::time::Instant::now());
        match (notice, failure) {
            (Notice::Ongoing, Some(error)) => {
                tracing::warn!(source = self.name, %error, "cannot read metrics");
            }
            (Notice::Over, _) => tracing::info!(source = self.name, "metrics can be read again"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_is_left_alone_for_longer_and_longer() {
        let breaker = CircuitBreaker::new("slow");
        let never = || async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            Ok(())
        };
        let mut waited = Vec::new();
        for _ in 0..60 {
            let began = Instant::now();
            assert!(breaker.call(never()).await.is_err());
            if began.elapsed() >= DEADLINE {
                waited.push(began);
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        let gaps: Vec<u64> = waited.windows(2).map(|w| (w[1] - w[0]).as_secs()).collect();
        assert_eq!(gaps, [15, 20, 30, 50, 70, 70, 70], "the deadline and the pauses");
        tokio::time::sleep(LONGEST_PAUSE).await;
        assert!(breaker.call(async { Ok(()) }).await.is_ok());
        assert!(breaker.call(async { Ok(()) }).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn half_open_one_probes_for_all() {
        let breaker = CircuitBreaker::new("slow");
        let slow = |seconds| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(())
        };
        let all = async |seconds| {
            let began = Instant::now();
            let calls = (0..100).map(|_| async {
                let answer = breaker.call(slow(seconds)).await;
                (answer.is_ok(), began.elapsed().as_secs())
            });
            let mut ends = futures::future::join_all(calls).await;
            ends.sort_unstable();
            ends.dedup();
            ends
        };
        assert_eq!(all(1).await, [(true, 1), (true, 2), (true, 3), (true, 4)], "so many at a time");
        assert_eq!(all(3600).await, [(false, 10)], "nobody knew better");
        assert_eq!(all(1).await, [(false, 0)], "it is open");
        tokio::time::sleep(FIRST_PAUSE).await;
        assert_eq!(all(3600).await, [(false, 0), (false, 10)], "one probes");
        tokio::time::sleep(FIRST_PAUSE * 2).await;
        assert_eq!(all(1).await, [(false, 0), (true, 1)], "one probes");
        assert_eq!(all(1).await.len(), 4, "it is closed again");
    }
}
