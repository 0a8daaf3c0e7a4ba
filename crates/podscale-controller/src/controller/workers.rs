//! The workers: reconcile whatever is due, many objects at a time, while this replica leads.

use super::history_store::HistoryStore;
use super::index::Index;
use super::reconcile::Reconciler;
use crate::dialect::Key;
use crate::metrics::Metrics;
use crate::source::Announcements;
use crate::spans;
use podscale_client::election::Term;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::Instrument;

/// How long running reconciles may take to end, since another replica waits to lead; wall-clock.
const GRACE_PERIOD: Duration = Duration::from_millis(700);

/// Reconciles objects while this replica leads.
pub(super) struct Workers {
    pub(super) reconciler: Arc<Reconciler>,
    pub(super) index: Arc<Index>,
    pub(super) metrics: Metrics,
    pub(super) concurrency: usize,
    pub(super) history_store: Option<HistoryStore>,
    pub(super) synced: watch::Receiver<bool>,
    pub(super) leading: watch::Receiver<Option<Term>>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// Why reconciling ended.
enum End {
    /// Somebody asked for it.
    Stopped,
    /// This replica does not lead any more.
    Lost,
}

impl Workers {
    /// Reconciles in every term until it is stopped, then stores what the next leader must know.
    pub(super) async fn run(self) {
        // Without all pods known, healthy targets would look empty.
        let (mut synced, mut leading) = (self.synced.clone(), self.leading.clone());
        loop {
            let term = async {
                synced.wait_for(|known| *known).await.ok()?;
                *leading.wait_for(Option::is_some).await.ok()?
            };
            let term = tokio::select! {
                biased;
                () = stop(self.stopped.clone()) => return,
                term = term => term,
            };
            let Some(term) = term else { return };
            self.metrics.leads(true);
            let end = self.lead(term).await;
            self.metrics.leads(false);
            if let End::Stopped = end {
                if let Some(history_store) = &self.history_store {
                    history_store.finish(term).await;
                }
                return;
            }
        }
    }

    /// Reconciles for as long as the term lasts. A slow object holds one permit of many, and a call has
    /// a deadline, so none can hold up the others for long.
    async fn lead(&self, term: Term) -> End {
        let mut running = JoinSet::new();
        let end = tokio::select! {
            biased;
            () = stop(self.stopped.clone()) => End::Stopped,
            () = loss(self.leading.clone()) => End::Lost,
            () = self.work(term, &mut running) => End::Stopped,
            () = self.store_histories(term) => End::Stopped,
        };
        if let End::Stopped = end {
            let rest = async { while running.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(GRACE_PERIOD, rest).await;
        }
        // Whoever leads now must not be disturbed by what has begun before.
        running.shutdown().await;
        end
    }

    async fn store_histories(&self, term: Term) {
        match &self.history_store {
            Some(history_store) => history_store.store_rescaled(term).await,
            None => std::future::pending().await,
        }
    }

    async fn work(&self, term: Term, running: &mut JoinSet<()>) {
        if let Some(history_store) = &self.history_store {
            history_store.load(term).await;
        }
        let began = Instant::now();
        let permits = Arc::new(Semaphore::new(self.concurrency.max(1)));
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            let (key, late) = self.next(running).await;
            // Nothing could be done before the term began.
            self.metrics.due(late.min(began.elapsed()));
            tracing::trace!(autoscaler = %key, ?late, "due");
            let (reconciler, index) = (Arc::clone(&self.reconciler), Arc::clone(&self.index));
            let span = spans::reconcile(&key);
            // Made here, so that it is put back even if the task is ended before it begins.
            let taken = Taken { index, key };
            let work = async move { reconciler.reconcile(&taken.key, permit).await };
            running.spawn(work.instrument(span));
        }
    }

    /// The next that is due. First those that have ended are let go: each would keep its room.
    async fn next(&self, running: &mut JoinSet<()>) -> (Key, Duration) {
        let mut next = pin!(self.index.next());
        loop {
            tokio::select! {
                biased;
                // Whoever panicked has been reported by the runtime.
                Some(_) = running.join_next() => {}
                next = &mut next => return next,
            }
        }
    }
}

async fn stop(mut stopped: watch::Receiver<bool>) {
    // Whoever could ask for more is gone as well.
    let _ = stopped.wait_for(|stop| *stop).await;
}

async fn loss(mut leading: watch::Receiver<Option<Term>>) {
    if leading.wait_for(Option::is_none).await.is_err() {
        // Without an election nobody else will ever lead.
        std::future::pending::<()>().await;
    }
}

/// An object that is being reconciled: however that ends, it is put back.
struct Taken {
    index: Arc<Index>,
    key: Key,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.index.done(&self.key);
    }
}

/// Enqueues the objects that asked about what is announced, for ever.
pub(super) async fn enqueue_announced(index: Arc<Index>, mut announcements: Announcements) {
    while let Some(news) = announcements.next().await {
        index.announced(&news);
    }
}
