//! What becomes of scrapes: counted, logged when an outage begins and ends, and told to who listens.

use crate::metrics::Metrics;
use parking_lot::RwLock;
use podscale_metrics::scraper::{Failed, Observer, Scraped};
use podscale_metrics::store::PodKey;
use std::sync::Arc;

/// Hears of pods that have new samples.
pub(super) type Listener = Box<dyn Fn(&[PodKey]) + Send + Sync>;

/// Hears of every scrape.
pub struct Reports {
    metrics: Metrics,
    listeners: RwLock<Vec<Listener>>,
}

impl Reports {
    /// Nobody listens yet.
    #[must_use]
    pub fn new(metrics: Metrics) -> Reports {
        Reports { metrics, listeners: RwLock::default() }
    }

    pub(super) fn listen(&self, listener: Listener) {
        self.listeners.write().push(listener);
    }
}

impl Observer for Reports {
    fn scraped(&self, node: &Arc<str>, scraped: &Scraped<'_>) {
        let outcome = if scraped.applied.news { "new" } else { "unchanged" };
        self.metrics.scraped(outcome, scraped.took);
        if let Some(malformed) = scraped.scrape.malformed() {
            self.metrics.scraped_malformed();
            tracing::debug!(%node, %malformed, "metrics of the node's kubelet are incomplete");
        }
        if let Some(outage) = scraped.outage {
            tracing::info!(%node, ?outage, "the node's kubelet is scraped again");
        }
        if !scraped.applied.pods.is_empty() {
            self.listeners.read().iter().for_each(|listener| listener(&scraped.applied.pods));
        }
    }

    fn failed(&self, node: &Arc<str>, failed: &Failed<'_>) {
        let Failed { target: address, error, .. } = failed;
        self.metrics.scraped("failed", failed.took);
        if failed.first {
            tracing::warn!(
                %node, %address, %error,
                "the node's kubelet cannot be scraped; its last samples are used until they are too old"
            );
        } else {
            tracing::debug!(%node, %address, %error, "the node's kubelet still cannot be scraped");
        }
    }
}
