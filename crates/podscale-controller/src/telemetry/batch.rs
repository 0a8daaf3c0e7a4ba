//! Collects items in a bounded queue, and gives them out in batches.

use super::send::{Accepted, SendError};
use super::settings::{BatchSettings, Signal};
use crate::metrics::Metrics;
use podscale_client::outage::{Notice, Outage};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::{mpsc, watch};

/// Where items are put; never waits.
pub(super) struct Queue<T> {
    items: mpsc::Sender<T>,
    overflow: Arc<AtomicU64>,
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

impl<T> Queue<T> {
    /// Takes an item, or counts it as lost if the queue is full.
    pub(super) fn put(&self, item: T) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.items.try_send(item) {
            self.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Where batches come out.
pub(super) struct Batches<T> {
    items: mpsc::Receiver<T>,
    overflow: Arc<AtomicU64>,
    settings: BatchSettings,
}

/// A queue and its other end.
pub(super) fn queue<T>(settings: BatchSettings) -> (Queue<T>, Batches<T>) {
    let (sender, receiver) = mpsc::channel(settings.queue_items);
    let overflow = Arc::<AtomicU64>::default();
    let queue = Queue { items: sender, overflow: Arc::clone(&overflow) };
    (queue, Batches { items: receiver, overflow, settings })
}

impl<T> Batches<T> {
    /// The next items: as many as are sent at once, or as many as there are some time after the
    /// first. Once it is asked to finish no more are taken, and `None` comes after the last.
    pub(super) async fn next(&mut self, finish: &mut watch::Receiver<bool>) -> Option<Vec<T>> {
        let mut batch = Vec::new();
        if self.more(&mut batch, finish).await == 0 {
            return None;
        }
        let delay = self.settings.delay;
        let enough = async {
            while batch.len() < self.settings.batch_items && self.more(&mut batch, finish).await > 0
            {
            }
        };
        let _ = tokio::time::timeout(delay, enough).await;
        Some(batch)
    }

    /// Waits for more items; how many came, none only after the end.
    async fn more(&mut self, batch: &mut Vec<T>, finish: &mut watch::Receiver<bool>) -> usize {
        let room = self.settings.batch_items.saturating_sub(batch.len());
        if !self.items.is_closed() {
            tokio::select! {
                biased;
                count = self.items.recv_many(batch, room) => return count,
                // Whoever could ask for the end is gone as well.
                _ = finish.wait_for(|finish| *finish) => self.items.close(),
            }
        }
        self.items.recv_many(batch, room).await
    }

    /// How many items found the queue full since the last call.
    pub(super) fn overflow(&self) -> u64 {
        self.overflow.swap(0, Ordering::Relaxed)
    }
}

/// Counts what is lost, and logs an outage when it begins, once in a while, and when it ends.
pub(super) struct Losses {
    signal: Signal,
    url: String,
    metrics: Metrics,
    lost: u64,
    outage: Outage,
}

impl Losses {
    /// Nothing is lost yet.
    pub(super) fn new(signal: Signal, url: String, metrics: Metrics) -> Losses {
        Losses { signal, url, metrics, lost: 0, outage: Outage::default() }
    }

    /// A request with so many items ended, and so many items found the queue full before it.
    pub(super) fn sent(&mut self, items: u64, overflow: u64, result: &Result<Accepted, SendError>) {
        let (lost, problem) = match result {
            Ok(accepted) if accepted.rejected > 0 => {
                let problem = format!("the collector rejects some of it: {}", accepted.message);
                (accepted.rejected, Some(problem))
            }
            Ok(_) => (0, None),
            Err(error) => (items, Some(error.to_string())),
        };
        let lost = lost.saturating_add(overflow);
        self.metrics.telemetry_lost(self.signal.name(), lost);
        self.lost = self.lost.saturating_add(lost);
        let problem = problem
            .or_else(|| (overflow > 0).then(|| "more is queued than can be sent".to_owned()));
        self.log(problem, Instant::now());
    }

    fn log(&mut self, problem: Option<String>, now: Instant) {
        let (signal, url) = (self.signal.name(), &self.url);
        match self.outage.observe(problem.is_some(), now) {
            Notice::Nothing => {}
            Notice::Over => {
                tracing::info!(lost = self.lost, "{signal} reach the collector again");
                self.lost = 0;
            }
            Notice::Ongoing => {
                let (lost, problem) = (self.lost, problem.unwrap_or_default());
                tracing::warn!(%problem, lost, "{signal} do not reach the collector at {url}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
