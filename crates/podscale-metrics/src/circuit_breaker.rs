//! The circuit breaker of one server: so many calls at a time, each with a deadline. A server that
//! fails is not called for a while (open), and then by one caller for all (half-open), so that nobody
//! waits for it in a queue.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// What a breaker allows, and for how long it stays open.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many calls are made at the same time.
    pub concurrent_calls: usize,
    /// How long the breaker stays open after the first failure; it doubles with each further one.
    pub first_pause: Duration,
    /// How long it stays open at most.
    pub longest_pause: Duration,
}

/// Why a call gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupted<E> {
    /// The server failed a moment ago, and is left alone for so long.
    Open(Duration),
    /// There was no answer within the deadline.
    Late,
    /// The call failed by itself.
    Failed(E),
}

/// The breaker of one server.
pub struct CircuitBreaker {
    limits: Limits,
    permits: Semaphore,
    /// Set while it is open or half-open.
    open: Mutex<Option<Open>>,
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
    /// A closed breaker.
    #[must_use]
    pub fn new(limits: Limits) -> CircuitBreaker {
        let permits = Semaphore::new(limits.concurrent_calls);
        CircuitBreaker { limits, permits, open: Mutex::default() }
    }

    /// Makes a call that may take so long, unless the breaker is open. It opens if the call takes longer, or
    /// fails in a way that `is_outage` says the server is at fault for.
    ///
    /// # Errors
    /// The call failed, or there was no answer in time, now or a moment ago.
    pub async fn call<T, E>(
        &self,
        deadline: Duration,
        is_outage: impl FnOnce(&E) -> bool,
        call: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Interrupted<E>> {
        let mut permission = self.enter(deadline).map_err(Interrupted::Open)?;
        let permit = self.permits.acquire().await;
        // Those who waited for a permit have waited long enough if the server has failed meanwhile.
        if permission == Permission::Closed {
            permission = self.enter(deadline).map_err(Interrupted::Open)?;
        }
        let answer = tokio::time::timeout(deadline, call).await;
        drop(permit);
        match answer {
            Ok(Err(error)) if is_outage(&error) => {
                self.trip(&permission);
                Err(Interrupted::Failed(error))
            }
            Ok(answer) => {
                *self.open.lock() = None;
                answer.map_err(Interrupted::Failed)
            }
            Err(_) => {
                self.trip(&permission);
                Err(Interrupted::Late)
            }
        }
    }

    /// Opens the breaker. Many may fail at once; together they are one failure, and so is one that probes.
    fn trip(&self, permission: &Permission) {
        let (mut open, now) = (self.open.lock(), Instant::now());
        if *permission == Permission::Probe || open.is_none_or(|open| now >= open.until) {
            let pause = open.map_or(self.limits.first_pause, |open| open.pause.saturating_mul(2));
            let pause = pause.min(self.limits.longest_pause);
            *open = Some(Open { until: now + pause, pause });
        }
    }

    /// Refuses while it is open. Whoever comes first afterwards probes the server, and until that has
    /// an answer the breaker stays open for the others.
    fn enter(&self, deadline: Duration) -> Result<Permission, Duration> {
        let (mut open, now) = (self.open.lock(), Instant::now());
        let Some(open) = &mut *open else { return Ok(Permission::Closed) };
        if now < open.until {
            return Err(open.until - now);
        }
        open.until = now + deadline;
        Ok(Permission::Probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        concurrent_calls: 4,
        first_pause: Duration::from_secs(2),
        longest_pause: Duration::from_secs(30),
    };
    const DEADLINE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn failures_that_come_at_once_open_it_for_longer_and_longer() {
        let breaker = CircuitBreaker::new(LIMITS);
        let mut asked = Vec::new();
        let began = Instant::now();
        for _ in 0..100 {
            let call = async { Err::<(), _>("refused") };
            if breaker.call(DEADLINE, |_| true, call).await == Err(Interrupted::Failed("refused")) {
                asked.push(began.elapsed().as_secs());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(asked, [0, 2, 6, 14, 30, 60, 90]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_fault_of_the_server_leaves_it_closed() {
        let breaker = CircuitBreaker::new(LIMITS);
        for _ in 0..3 {
            let call = async { Err::<(), _>("no such queue") };
            let answer = breaker.call(DEADLINE, |_| false, call).await;
            assert_eq!(answer, Err(Interrupted::Failed("no such queue")));
        }
        let broken = breaker.call(DEADLINE, |_| true, async { Err::<(), _>("refused") }).await;
        assert_eq!(broken, Err(Interrupted::Failed("refused")));
        let waits = breaker.call(DEADLINE, |_| true, async { Ok::<_, &str>(()) }).await;
        assert_eq!(waits, Err(Interrupted::Open(Duration::from_secs(2))));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(breaker.call(DEADLINE, |_| true, async { Ok::<_, &str>(1) }).await, Ok(1));
        assert_eq!(breaker.call(DEADLINE, |_| true, async { Ok::<_, &str>(2) }).await, Ok(2));
    }
}
