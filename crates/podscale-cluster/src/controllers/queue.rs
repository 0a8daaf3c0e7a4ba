//! Keys that wait to be worked on: each at most once in the queue and never by two workers at a
//! time, with a bounded number of workers, waits by the cluster's clock, and a growing pause after
//! each failure of a key.

use crate::call::CallError;
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The pause after a key's first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Tells the tasks of the controllers to end: when it holds `true` or its sender is gone.
pub type Shutdown = watch::Receiver<bool>;

/// Waits for the shutdown.
pub async fn ended(shutdown: &mut Shutdown) {
    // An error means that the sender is gone, which is a shutdown as well.
    let _ = shutdown.wait_for(|end| *end).await;
}

/// What is left to do for a key after it was worked on without error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes.
    Wait,
    /// Look again after this much of the clock's time.
    After(Duration),
}

/// A queue of keys; clones share it.
#[derive(Debug)]
pub struct Queue<K> {
    shared: Arc<Shared<K>>,
}

#[derive(Debug)]
struct Shared<K> {
    name: &'static str,
    clock: Clock,
    state: Mutex<State<K>>,
    wake: Notify,
}

#[derive(Debug)]
struct State<K> {
    ready: VecDeque<K>,
    queued: HashSet<K>,
    running: HashSet<K>,
    again: HashSet<K>,
    later: BTreeSet<(Instant, K)>,
    due: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Queue { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Clone + Ord + Hash> State<K> {
    fn add(&mut self, key: K) -> bool {
        if self.running.contains(&key) {
            self.again.insert(key);
            return false;
        }
        let new = self.queued.insert(key.clone());
        if new {
            self.ready.push_back(key);
        }
        new
    }

    /// Keeps the earlier of two times for the same key.
    fn add_at(&mut self, key: K, at: Instant) {
        if let Some(&known) = self.due.get(&key) {
            if known <= at {
                return;
            }
            self.later.remove(&(known, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.later.insert((at, key));
    }

    fn ripen(&mut self, now: Instant) {
        while let Some((at, key)) = self.later.pop_first() {
            if at > now {
                self.later.insert((at, key));
                break;
            }
            self.due.remove(&key);
            self.add(key);
        }
    }

    fn take(&mut self) -> Option<K> {
        let key = self.ready.pop_front()?;
        self.queued.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    fn finish(&mut self, key: &K) {
        self.running.remove(key);
        if self.again.remove(key) {
            self.add(key.clone());
        }
    }

    fn failed(&mut self, key: &K) -> Duration {
        let failures = self.failures.entry(key.clone()).or_insert(0);
        let pause = FIRST_PAUSE.saturating_mul(1 << (*failures).min(16)).min(LONGEST_PAUSE);
        *failures = failures.saturating_add(1);
        pause
    }
}

impl<K: Clone + Ord + Hash + Send + Sync + std::fmt::Debug + 'static> Queue<K> {
    /// An empty queue; the name is for the log.
    #[must_use]
    pub fn new(name: &'static str, clock: Clock) -> Self {
        let state = State {
            ready: VecDeque::new(),
            queued: HashSet::new(),
            running: HashSet::new(),
            again: HashSet::new(),
            later: BTreeSet::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
        };
        let shared = Shared { name, clock, state: Mutex::new(state), wake: Notify::new() };
        Queue { shared: Arc::new(shared) }
    }

    /// Asks for the key to be worked on soon.
    pub fn add(&self, key: K) {
        if self.shared.state.lock().add(key) {
            self.shared.wake.notify_one();
        }
    }

    /// Asks for the key to be worked on after this much of the clock's time.
    pub fn add_after(&self, key: K, after: Duration) {
        let at = Instant::now() + self.shared.clock.to_wall(after);
        self.shared.state.lock().add_at(key, at);
        self.shared.wake.notify_one();
    }

    /// How many keys wait for a worker now.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.state.lock().ready.len()
    }

    /// Whether no key waits for a worker now.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Works on the keys until the shutdown; work in progress is then given up.
    pub async fn run<W, F>(self, workers: usize, mut shutdown: Shutdown, work: W)
    where
        W: Fn(K) -> F,
        F: Future<Output = Result<Next, CallError>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        let mut keys = HashMap::new();
        loop {
            while tasks.len() < workers.max(1) {
                let mut state = self.shared.state.lock();
                state.ripen(Instant::now());
                let Some(key) = state.take() else { break };
                drop(state);
                let handle = tasks.spawn(work(key.clone()));
                keys.insert(handle.id(), key);
            }
            let due = self.shared.state.lock().later.first().map(|(at, _)| *at);
            let idle = tasks.len() < workers.max(1);
            tokio::select! {
                biased;
                () = ended(&mut shutdown) => return,
                Some(joined) = tasks.join_next_with_id() => {
                    let (id, result) = match joined {
                        Ok((id, result)) => (id, Ok(result)),
                        Err(error) => (error.id(), Err(error)),
                    };
                    if let Some(key) = keys.remove(&id) {
                        match result {
                            Ok(result) => self.settle(&key, result),
                            Err(error) => self.broke(&key, &error),
                        }
                    }
                }
                () = self.shared.wake.notified(), if idle => {}
                () = sleep_until(due), if idle && due.is_some() => {}
            }
        }
    }

    fn settle(&self, key: &K, result: Result<Next, CallError>) {
        let mut state = self.shared.state.lock();
        match result {
            Ok(next) => {
                state.failures.remove(key);
                if let Next::After(after) = next {
                    let at = Instant::now() + self.shared.clock.to_wall(after);
                    state.add_at(key.clone(), at);
                }
            }
            Err(error) => {
                let pause = state.failed(key);
                if error.is_expected() {
                    tracing::debug!(queue = self.shared.name, ?key, %error, "will try again");
                } else {
                    tracing::warn!(queue = self.shared.name, ?key, %error, "will try again");
                }
                state.add_at(key.clone(), Instant::now() + self.shared.clock.to_wall(pause));
            }
        }
        state.finish(key);
    }

    fn broke(&self, key: &K, error: &tokio::task::JoinError) {
        tracing::error!(queue = self.shared.name, ?key, %error, "work ended abnormally");
        let mut state = self.shared.state.lock();
        let pause = state.failed(key).max(Duration::from_secs(1));
        state.add_at(key.clone(), Instant::now() + self.shared.clock.to_wall(pause));
        state.finish(key);
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn failure() -> CallError {
        CallError::Deadline { what: "test".into() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_worked_on_once_at_a_time_and_again_when_added_meanwhile() {
        let queue = Queue::new("test", Clock::wall());
        let (end, shutdown) = watch::channel(false);
        let log = Arc::new(Mutex::new(Vec::new()));
        let active = Arc::new(AtomicUsize::new(0));
        for _ in 0..5 {
            queue.add("a");
        }
        assert_eq!(queue.len(), 1);
        let worker = {
            let (queue, log, active) = (queue.clone(), Arc::clone(&log), Arc::clone(&active));
            tokio::spawn(queue.clone().run(4, shutdown, move |key| {
                let (queue, log, active) = (queue.clone(), Arc::clone(&log), Arc::clone(&active));
                async move {
                    assert_eq!(active.fetch_add(1, Ordering::SeqCst), 0, "two workers on one key");
                    if log.lock().is_empty() {
                        queue.add(key);
                        queue.add(key);
                    }
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    active.fetch_sub(1, Ordering::SeqCst);
                    log.lock().push(key);
                    Ok(Next::Wait)
                }
            }))
        };
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(*log.lock(), ["a", "a"]);
        end.send(true).unwrap();
        worker.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn waits_follow_the_clock_and_failures_pause_longer_each_time() {
        let clock = Clock::fast(jiff::Timestamp::UNIX_EPOCH, 10.0);
        let queue = Queue::new("test", clock);
        let (_end, shutdown) = watch::channel(false);
        let log = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&log);
        let started = Instant::now();
        tokio::spawn(queue.clone().run(1, shutdown, move |key: u8| {
            let seen = Arc::clone(&seen);
            async move {
                seen.lock().push((key, started.elapsed().as_millis()));
                if key == 1 { Err(failure()) } else { Ok(Next::After(Duration::from_secs(100))) }
            }
        }));
        queue.add_after(2, Duration::from_secs(50));
        queue.add_after(2, Duration::from_secs(90));
        tokio::time::sleep(Duration::from_secs(16)).await;
        let times: Vec<u128> = log.lock().iter().map(|(_, at)| at / 1000).collect();
        assert_eq!(times, [5, 15]);
        log.lock().clear();
        queue.add(1);
        tokio::time::sleep(Duration::from_secs(2)).await;
        let tries: Vec<u128> = log.lock().iter().map(|(_, at)| *at).collect();
        let pauses: Vec<u128> = tries.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]), "{pauses:?}");
        assert!(pauses.len() > 5 && pauses[pauses.len() - 1] >= 500, "{pauses:?}");
    }
}
