//! The circuit breaker of one server: so many calls at a time, each with a deadline. A server that
//! does not answer in time is not called for a while (open), and then by one caller for all
//! (half-open), so that nobody waits for it in a queue.

use parking_lot::Mutex;
use podscale_client::call::CallError;
use podscale_client::outage::{Notice, Outage};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

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
    permits: Semaphore,
    /// Set while it is open or half-open.
    open: Mutex<Option<Open>>,
    outage: Mutex<Outage>,
}

#[derive(Clone, Copy)]
struct Open {
    /// Nobody calls before; whoever comes first afterwards probes the server.
    until: Instant,
    pause: Duration,
}

/// What the breaker allows.
#[derive(PartialEq)]
enum Permission {
    /// It is closed: everybody may call.
    Closed,
    /// It is half-open, and this caller probes the server.
    Probe,
}

impl CircuitBreaker {
    /// A closed breaker for a server of this name.
    pub(super) fn new(name: &'static str) -> CircuitBreaker {
        CircuitBreaker {
            name,
            permits: Semaphore::new(CONCURRENT_CALLS),
            open: Mutex::default(),
            outage: Mutex::new(Outage::over_after(QUIET)),
        }
    }

    /// Makes a call, unless the breaker is open.
    ///
    /// # Errors
    /// The call failed, or there was no answer in time, now or a moment ago.
    pub(super) async fn call<T>(
        &self,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let permission = self.enter()?;
        let permit = self.permits.acquire().await;
        // Those who waited for a permit have waited long enough if the server has failed meanwhile.
        if permission == Permission::Closed {
            self.enter()?;
        }
        let answer = tokio::time::timeout(DEADLINE, call).await;
        drop(permit);
        match answer {
            Ok(answer) => {
                *self.open.lock() = None;
                answer
            }
            Err(_) => {
                self.trip();
                Err(CallError::Late(DEADLINE))
            }
        }
    }

    /// Opens the breaker. Many may fail at once; together they are one failure.
    fn trip(&self) {
        let (mut open, now) = (self.open.lock(), Instant::now());
        if open.is_none_or(|open| now >= open.until) {
            let pause = open.map_or(FIRST_PAUSE, |open| open.pause.saturating_mul(2));
            let pause = pause.min(LONGEST_PAUSE);
            *open = Some(Open { until: now + pause, pause });
        }
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

    /// Refuses while it is open. Whoever comes first afterwards probes the server, and until that has
    /// an answer the breaker stays open for the others.
    fn enter(&self) -> Result<Permission, CallError> {
        let (mut open, now) = (self.open.lock(), Instant::now());
        let Some(open) = &mut *open else { return Ok(Permission::Closed) };
        if now < open.until {
            return Err(CallError::Late(DEADLINE));
        }
        open.until = now + DEADLINE;
        Ok(Permission::Probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
