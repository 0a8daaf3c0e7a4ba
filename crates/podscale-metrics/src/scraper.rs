//! Scrapes the kubelets of all nodes again and again, each at its own moment of every round. A node that
//! hangs or fails delays no other: it keeps its last samples until they are too old.

use crate::kubelet::{KubeletReader, ScrapeError, Target};
use crate::scrape::Scrape;
use crate::store::{Applied, Clock, Store};
use parking_lot::Mutex;
use queue::{Attempt, Queue};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub mod address;
pub mod fleet;
mod queue;
pub mod schedule;
#[cfg(test)]
mod tests;

/// How many kubelets are read at once that answered the last time.
const MAX_REQUESTS: usize = 512;
/// How many are read at once that did not: however many hang, the others have their own places.
const MAX_DOUBTFUL_REQUESTS: usize = 128;

/// Hears what became of scrapes. It must not wait.
pub trait Observer: Send + Sync {
    /// A node's scrape was applied, after so long; `outage` is how long none was, if the ones before
    /// failed.
    fn scraped(&self, node: &Arc<str>, scraped: &Scraped<'_>);

    /// A node's scrape failed.
    fn failed(&self, node: &Arc<str>, failed: &Failed<'_>);
}

/// A scrape that was applied.
#[derive(Debug)]
pub struct Scraped<'a> {
    /// What was read.
    pub scrape: &'a Scrape,
    /// What that changed.
    pub applied: &'a Applied,
    /// How long reading took; wall-clock.
    pub took: Duration,
    /// How long the scrapes before failed, if they did; wall-clock.
    pub outage: Option<Duration>,
}

/// A scrape that failed.
#[derive(Debug)]
pub struct Failed<'a> {
    /// Where the kubelet was asked.
    pub target: &'a Target,
    /// Why.
    pub error: &'a ScrapeError,
    /// Whether the one before did not fail.
    pub first: bool,
    /// How long it took; wall-clock.
    pub took: Duration,
}

/// What a scraper works with.
pub struct Config {
    /// How often each node is scraped; wall-clock.
    pub resolution: Duration,
    /// Reads kubelets.
    pub reader: KubeletReader,
    /// Where samples go.
    pub store: Arc<Store>,
    /// The time of samples that have none of their own.
    pub clock: Clock,
    /// Who hears of it.
    pub observer: Arc<dyn Observer>,
}

/// Scrapes while it lives.
pub struct Scraper {
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

struct Shared {
    config: Config,
    started: Instant,
    queue: Mutex<Queue>,
    /// Something may be due sooner than what is waited for.
    sooner: Notify,
}

impl Scraper {
    /// Begins with no nodes.
    #[must_use]
    pub fn start(config: Config) -> Scraper {
        let queue = Mutex::new(Queue::new(config.resolution));
        let (started, sooner) = (Instant::now(), Notify::new());
        let shared = Arc::new(Shared { config, started, queue, sooner });
        let mut task = JoinSet::new();
        task.spawn(run(Arc::clone(&shared)));
        Scraper { shared, _task: task }
    }

    /// A node is to be scraped there from now on.
    pub fn set(&self, node: &str, target: Target) {
        let now = self.shared.started.elapsed();
        self.shared.queue.lock().set(node, target, now);
        self.shared.sooner.notify_one();
    }

    /// A node left: it is not scraped any more, and what was known of it is forgotten.
    pub fn remove(&self, node: &str) {
        let Config { store, reader, .. } = &self.shared.config;
        let mut queue = self.shared.queue.lock();
        let target = queue.remove(node);
        // Under the lock, so that a scrape that is under way cannot come after it.
        store.remove(node);
        drop(queue);
        target.iter().for_each(|target| reader.forget(target));
    }

    /// Only these nodes stay.
    pub fn retain(&self, stays: impl Fn(&str) -> bool) {
        let gone: Vec<Arc<str>> =
            self.shared.queue.lock().nodes().filter(|node| !stays(node)).cloned().collect();
        gone.iter().for_each(|node| self.remove(node));
    }

    /// How many nodes are scraped.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shared.queue.lock().nodes().count()
    }
}

/// Starts each scrape when it is due, for ever.
async fn run(shared: Arc<Shared>) {
    let healthy = Arc::new(Semaphore::new(MAX_REQUESTS));
    let doubtful = Arc::new(Semaphore::new(MAX_DOUBTFUL_REQUESTS));
    let mut running = JoinSet::new();
    loop {
        let sooner = shared.sooner.notified();
        let now = shared.started.elapsed();
        let due = shared.queue.lock().due(now);
        match due {
            Ok(attempt) => {
                let permit = if attempt.doubtful {
                    // Without a place it is tried in the next round.
                    Arc::clone(&doubtful).try_acquire_owned().ok()
                } else {
                    Arc::clone(&healthy).acquire_owned().await.ok()
                };
                let Some(permit) = permit else {
                    shared.queue.lock().skip(&attempt, now);
                    continue;
                };
                let shared = Arc::clone(&shared);
                running.spawn(async move {
                    shared.scrape(attempt).await;
                    drop(permit);
                });
            }
            Err(wait) => {
                let wait = wait.unwrap_or(Duration::MAX);
                tokio::select! {
                    biased;
                    Some(_) = running.join_next() => {}
                    () = sooner => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
        while running.try_join_next().is_some() {}
    }
}

impl Shared {
    /// Scrapes one node once.
    async fn scrape(&self, attempt: Attempt) {
        let began = Instant::now();
        let read = self.config.reader.read(&attempt.target, attempt.form).await;
        let took = began.elapsed();
        let now = self.started.elapsed();
        let node = &attempt.node;
        let Config { store, clock, observer, .. } = &self.config;
        match read {
            Ok((scrape, form)) => {
                let mut queue = self.queue.lock();
                let Some(outage) = queue.succeeded(&attempt, form, now) else {
                    drop(queue);
                    return self.config.reader.forget(&attempt.target);
                };
                let applied = store.apply(node, &scrape, clock());
                drop(queue);
                observer
                    .scraped(node, &Scraped { scrape: &scrape, applied: &applied, took, outage });
            }
            Err(error) => {
                let failed = self.queue.lock().failed(&attempt, now);
                if let Some(first) = failed {
                    let (target, error) = (&attempt.target, &error);
                    observer.failed(node, &Failed { target, error, first, took });
                }
            }
        }
    }
}
