//! What is counted and measured of the kubelets that are scraped.

use super::instruments::{Counter, Family, Gauge, Histogram};
use super::registry::Registry;
use super::{Labels, Metrics, REQUEST_SECONDS};
use std::time::Duration;

/// What is counted and measured of kubelets.
pub(super) struct KubeletMetrics {
    scrapes: Family<Labels<1>, Counter>,
    malformed: Counter,
    seconds: Histogram,
    nodes: Gauge,
    oldest: Gauge,
}

impl KubeletMetrics {
    pub(super) fn register(registry: &mut Registry) -> KubeletMetrics {
        KubeletMetrics {
            scrapes: registry.family(
                "podscale_kubelet_scrapes",
                "Scrapes of kubelets: with new samples, unchanged or failed",
                Counter::default,
            ),
            malformed: registry.metric(
                "podscale_kubelet_malformed_scrapes",
                "Scrapes of kubelets in which something could not be read; the rest of them is used",
                Counter::default(),
            ),
            seconds: registry.metric(
                "podscale_kubelet_scrape_duration_seconds",
                "How long the scrape of one kubelet took, in seconds",
                Histogram::new(&REQUEST_SECONDS),
            ),
            nodes: registry.metric(
                "podscale_kubelet_nodes",
                "Nodes whose kubelets there are samples of",
                Gauge::default(),
            ),
            oldest: registry.metric(
                "podscale_kubelet_oldest_sample_age_seconds",
                "How long ago the kubelet that is furthest behind had new samples, in seconds",
                Gauge::default(),
            ),
        }
    }
}

impl Metrics {
    /// A kubelet was scraped: with `new` samples, `unchanged`, or it `failed`.
    pub(crate) fn scraped(&self, outcome: &'static str, took: Duration) {
        let kubelets = &self.0.kubelets;
        kubelets.scrapes.with(&[("outcome", outcome)]).increment();
        kubelets.seconds.observe(took);
    }

    /// Something in the scrape of a kubelet could not be read.
    pub(crate) fn scraped_malformed(&self) {
        self.0.kubelets.malformed.increment();
    }

    /// Shows how many nodes there are samples of and how old the oldest is, in seconds; both are
    /// asked for when metrics are read.
    pub(crate) fn show_kubelets(
        &self,
        nodes: impl Fn() -> usize + Send + Sync + 'static,
        oldest: impl Fn() -> usize + Send + Sync + 'static,
    ) {
        self.show(self.0.kubelets.nodes.clone(), nodes);
        self.show(self.0.kubelets.oldest.clone(), oldest);
    }
}
