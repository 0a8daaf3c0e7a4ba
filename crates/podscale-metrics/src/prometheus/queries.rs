//! One query serves all who ask the same at about the same time.

use super::{Answer, Client, PrometheusError};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How many answers are kept at most.
const MOST_ANSWERS: usize = 4096;
/// How much the kept answers may take together before all are dropped: samples, and the texts of queries in
/// pieces of about the size of one.
const MOST_WEIGHT: usize = 1_000_000;
const SAMPLE_BYTES: usize = 128;
/// How long an answer is kept at most.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// What a query gave, shared by all who asked.
pub type Shared = Result<Arc<Answer>, PrometheusError>;

/// A client whose answers are shared.
pub struct Queries {
    client: Arc<Client>,
    entries: Mutex<HashMap<Arc<str>, Entry>>,
}

#[derive(Clone)]
struct Entry {
    asked: Instant,
    answer: Arc<OnceCell<Shared>>,
}

impl Queries {
    /// Nothing was asked yet.
    #[must_use]
    pub fn new(client: Arc<Client>) -> Queries {
        Queries { client, entries: Mutex::default() }
    }

    /// The client behind it.
    #[must_use]
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// What a query gives now, or gave somebody else within this time. Failures are shared as well, so
    /// that a server in trouble is not asked by everybody.
    ///
    /// # Errors
    /// As [`Client::query`].
    pub async fn get(&self, query: &str, max_age: Duration) -> Shared {
        let entry = self.entry(query, max_age.min(LONGEST_KEPT));
        let ask = || Box::pin(async { self.client.query(query).await.map(Arc::new) });
        entry.answer.get_or_init(ask).await.clone()
    }

    fn entry(&self, query: &str, max_age: Duration) -> Entry {
        let now = Instant::now();
        let mut entries = self.entries.lock();
        if let Some(entry) = entries.get(query) {
            // Whoever comes while an answer is awaited waits for it, however short the time.
            let awaited = !entry.answer.initialized();
            if awaited || now.duration_since(entry.asked) < max_age {
                return entry.clone();
            }
        }
        entries.retain(|_, entry| now.duration_since(entry.asked) < LONGEST_KEPT);
        let weight = |(query, entry): (&Arc<str>, &Entry)| {
            let samples = match entry.answer.get() {
                Some(Ok(answer)) => answer.vector.samples.len(),
                _ => 0,
            };
            samples + query.len() / SAMPLE_BYTES
        };
        let weighs = || entries.iter().map(weight).sum::<usize>();
        if entries.len() >= MOST_ANSWERS || weighs() > MOST_WEIGHT {
            entries.clear();
        }
        let entry = Entry { asked: now, answer: Arc::default() };
        entries.insert(query.into(), entry.clone());
        entry
    }
}
