//! Which series there are, by the queries of the rules.

use crate::prometheus::{Client, PrometheusError};
use crate::rules::RuleSet;
use crate::rules::catalog::SeriesByQuery;
use futures::StreamExt;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How many queries for series are under way at once: they cost Prometheus more than others.
const CONCURRENT_QUERIES: usize = 4;
/// How long is waited between two rounds that somebody asks for: several times as long as the last one took,
/// so that they are a small part of what Prometheus does, but not so long that whoever asks gives up.
const PAUSES: u32 = 4;
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How a round went.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// How many queries for series were made.
    pub queries: usize,
    /// How many metrics there are.
    pub metrics: usize,
    /// The queries that failed, and why. They keep the series that they had.
    pub failures: Vec<(Box<str>, PrometheusError)>,
}

impl Discovered {
    /// The rules whose selectors Prometheus does not understand, and what it says. They never give anything,
    /// whatever is asked for.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &PrometheusError)> {
        let refused = self.failures.iter().filter(|(_, error)| is_wrong(error));
        refused.map(|(query, error)| (&**query, error))
    }

    /// Why it cannot be said which metrics there are, if it cannot. A selector that is wrong says nothing
    /// about the metrics of others.
    pub(super) fn doubt(&self) -> Option<PrometheusError> {
        self.unanswered().next().map(|(_, error)| error.clone())
    }

    /// The selectors that Prometheus could not answer for now, and why.
    pub fn unanswered(&self) -> impl Iterator<Item = (&str, &PrometheusError)> {
        let others = self.failures.iter().filter(|(_, error)| !is_wrong(error));
        others.map(|(query, error)| (&**query, error))
    }
}

/// Whether Prometheus refused a selector because it is none.
fn is_wrong(error: &PrometheusError) -> bool {
    matches!(error, PrometheusError::Refused { code: 400, .. })
}

/// What is known of series.
#[derive(Default)]
pub(super) struct Discovery {
    series: Mutex<Arc<SeriesByQuery>>,
    /// How many rounds have begun.
    begun: AtomicU64,
    /// The last round that ended; locked while one goes on.
    last: tokio::sync::Mutex<Option<Round>>,
}

/// A round that ended.
struct Round {
    number: u64,
    ended: Instant,
    took: Duration,
    outcome: Discovered,
}

impl Discovery {
    /// The series that are known.
    pub(super) fn series(&self) -> Arc<SeriesByQuery> {
        Arc::clone(&self.series.lock())
    }

    /// Makes a round, or shares one that somebody else began since; `round` asks and takes in what is
    /// found. On demand, rounds keep some distance.
    pub(super) async fn share<F: Future<Output = Discovered>>(
        &self,
        on_demand: bool,
        round: impl FnOnce() -> F,
    ) -> Discovered {
        let seen = self.begun.load(Ordering::Acquire);
        let mut last = self.last.lock().await;
        if let Some(known) = &*last {
            if known.number > seen {
                return known.outcome.clone();
            }
            if on_demand {
                let pause = known.took.saturating_mul(PAUSES);
                let pause = pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                tokio::time::sleep_until(known.ended + pause).await;
            }
        }
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let began = Instant::now();
        let outcome = round().await;
        let (ended, took) = (Instant::now(), began.elapsed());
        *last = Some(Round { number, ended, took, outcome: outcome.clone() });
        outcome
    }

    /// Waits while a round goes on; why the last one failed, if it did.
    pub(super) async fn settled(&self) -> Option<PrometheusError> {
        let last = self.last.lock().await;
        last.as_ref()?.outcome.doubt()
    }

    /// Asks for the series of all rules.
    pub(super) async fn round(
        &self,
        client: &Client,
        rules: &RuleSet,
        lookback: Duration,
    ) -> Discovered {
        let queries = rules.series_queries();
        let down = Mutex::new(None);
        // Owned names: with borrowed ones the compiler cannot see that this may move between threads.
        let names: Vec<Box<str>> = queries.iter().map(|query| Box::from(*query)).collect();
        let asked = names.into_iter().map(|query| {
            let down = &down;
            async move {
                let answer = ask(client, &query, lookback, down).await;
                (query, answer)
            }
        });
        let asked = futures::stream::iter(asked);
        let answers: Vec<_> = asked.buffer_unordered(CONCURRENT_QUERIES).collect().await;
        let mut series = SeriesByQuery::clone(&self.series());
        series.retain(|query, _| queries.contains(&&**query));
        let mut discovered = Discovered { queries: answers.len(), ..Discovered::default() };
        for (query, answer) in answers {
            match answer {
                Ok(shapes) => {
                    series.insert(query, shapes.into());
                }
                Err(error) => discovered.failures.push((query, error)),
            }
        }
        *self.series.lock() = Arc::new(series);
        discovered
    }
}

/// Asks for series. After a server that does not answer at all, nobody else waits for it in this round.
async fn ask(
    client: &Client,
    query: &str,
    lookback: Duration,
    down: &Mutex<Option<PrometheusError>>,
) -> Result<Vec<crate::prometheus::SeriesShape>, PrometheusError> {
    if let Some(error) = &*down.lock() {
        return Err(error.clone());
    }
    let answer = client.series(query, lookback).await;
    if let Err(error @ (PrometheusError::Late(_) | PrometheusError::Unreachable(_))) = &answer {
        *down.lock() = Some(error.clone());
    }
    answer
}
