//! Looks at whatever is due, many at a time, while this replica leads.

use super::pass::Passes;
use super::schedule::Schedule;
use crate::election::Term;
use crate::keep::Keeper;
use crate::meters::Meters;
use crate::telemetry::spans;
use crate::watch::world::Key;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::Instrument;

/// How long the end of what has begun is waited for, since another replica waits to lead; time of the
/// wall.
const GRACE: Duration = Duration::from_millis(700);

/// Who decides, and when.
pub(super) struct Turns {
    pub(super) passes: Arc<Passes>,
    pub(super) schedule: Arc<Schedule>,
    pub(super) meters: Meters,
    pub(super) concurrency: usize,
    pub(super) keeper: Option<Keeper>,
    pub(super) synced: watch::Receiver<bool>,
    pub(super) leading: watch::Receiver<Option<Term>>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// Why deciding ended.
enum End {
    /// Somebody asked for it.
    Stopped,
    /// This replica does not lead any more.
    Lost,
}

impl Turns {
    /// Decides in every term until told to stop, then stores what the next leader must know.
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
            self.meters.leads(true);
            let end = self.lead(term).await;
            self.meters.leads(false);
            if let End::Stopped = end {
                if let Some(keeper) = &self.keeper {
                    keeper.finish(term).await;
                }
                return;
            }
        }
    }

    /// Decides for as long as the term lasts. A slow object holds one place of many, and a call has a
    /// deadline, so none can hold up the others for long.
    async fn lead(&self, term: Term) -> End {
        let mut running = JoinSet::new();
        let end = tokio::select! {
            biased;
            () = stop(self.stopped.clone()) => End::Stopped,
            () = loss(self.leading.clone()) => End::Lost,
            () = self.take_turns(term, &mut running) => End::Stopped,
            () = self.keep(term) => End::Stopped,
        };
        if let End::Stopped = end {
            let rest = async { while running.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(GRACE, rest).await;
        }
        // Whoever leads now must not be disturbed by what has begun before.
        running.shutdown().await;
        end
    }

    async fn keep(&self, term: Term) {
        match &self.keeper {
            Some(keeper) => keeper.keep(term).await,
            None => std::future::pending().await,
        }
    }

    async fn take_turns(&self, term: Term, running: &mut JoinSet<()>) {
        if let Some(keeper) = &self.keeper {
            keeper.load(term).await;
        }
        let began = Instant::now();
        let places = Arc::new(Semaphore::new(self.concurrency.max(1)));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            let (key, late) = self.next(running).await;
            // Nothing could be done before the term began.
            self.meters.due(late.min(began.elapsed()));
            tracing::trace!(autoscaler = %key, ?late, "due");
            let (passes, schedule) = (Arc::clone(&self.passes), Arc::clone(&self.schedule));
            let span = spans::look(&key);
            let turn = async move {
                let _place = place;
                let turn = Turn { schedule, key };
                passes.pass(&turn.key).await;
            };
            running.spawn(turn.instrument(span));
        }
    }

    /// The next that is due. First those that have ended are let go: each would keep its room.
    async fn next(&self, running: &mut JoinSet<()>) -> (Key, Duration) {
        let mut next = pin!(self.schedule.next());
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

/// An autoscaler's turn: however it ends, the next one comes.
struct Turn {
    schedule: Arc<Schedule>,
    key: Key,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.schedule.done(&self.key);
    }
}
