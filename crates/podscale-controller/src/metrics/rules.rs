//! What is counted of Prometheus and of the rules by which it is asked.

use super::instruments::{Counter, Family, Gauge};
use super::registry::Registry;
use super::{Labels, Metrics};
use parking_lot::Mutex;

pub(super) struct RuleMetrics {
    loads: Family<Labels<1>, Counter>,
    errors: Gauge,
    /// What is wrong with a version that is not used, and with the rules in use.
    counts: Mutex<(usize, usize)>,
    warnings: Counter,
}

impl RuleMetrics {
    pub(super) fn register(registry: &mut Registry) -> RuleMetrics {
        RuleMetrics {
            loads: registry.family(
                "podscale_metric_rules_loads",
                "Versions of the rules for metrics that were read, and whether they are used",
                Counter::default,
            ),
            errors: registry.metric(
                "podscale_metric_rules_errors",
                "What is wrong with the rules for metrics as they are now: errors of a version that is \
                 not used, selectors that Prometheus refuses, resources that the cluster does not have",
                Gauge::default(),
            ),
            counts: Mutex::default(),
            warnings: registry.metric(
                "podscale_prometheus_warnings",
                "Warnings that came with answers of Prometheus; values may be missing or wrong then",
                Counter::default(),
            ),
        }
    }
}

impl RuleMetrics {
    fn count(&self, change: impl FnOnce(&mut (usize, usize))) {
        let mut counts = self.counts.lock();
        change(&mut counts);
        self.errors.set_count(counts.0.saturating_add(counts.1));
    }
}

impl Metrics {
    /// An answer of Prometheus came with a warning.
    pub fn prometheus_warned(&self) {
        self.0.rules.warnings.increment();
    }

    /// Rules for metrics were read, with so many errors; without any they are used.
    pub fn rules_loaded(&self, errors: usize) {
        let outcome = if errors == 0 { "ok" } else { "error" };
        self.0.rules.loads.with(&[("outcome", outcome)]).increment();
        self.0.rules.count(|(unused, _)| *unused = errors);
    }

    /// So much is wrong with the rules in use.
    pub(crate) fn rules_in_use_are_wrong(&self, problems: usize) {
        self.0.rules.count(|(_, in_use)| *in_use = problems);
    }
}
