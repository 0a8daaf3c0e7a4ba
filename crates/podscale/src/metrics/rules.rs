//! What is counted of Prometheus and of the rules by which it is asked.

use super::instruments::{Counter, Family, Gauge};
use super::registry::Registry;
use super::{Labels, Metrics};

pub(super) struct RuleMetrics {
    loads: Family<Labels<1>, Counter>,
    errors: Gauge,
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
                "What is wrong with the rules for metrics as they are now; while it is not 0 the last \
                 good ones are used",
                Gauge::default(),
            ),
            warnings: registry.metric(
                "podscale_prometheus_warnings",
                "Warnings that came with answers of Prometheus; values may be missing or wrong then",
                Counter::default(),
            ),
        }
    }
}

impl Metrics {
    /// An answer of Prometheus came with a warning.
    pub(crate) fn prometheus_warned(&self) {
        self.0.rules.warnings.increment();
    }

    /// Rules for metrics were read, with so many errors; without any they are used.
    pub fn rules_loaded(&self, errors: usize) {
        let outcome = if errors == 0 { "ok" } else { "error" };
        self.0.rules.loads.with(&[("outcome", outcome)]).increment();
        self.0.rules.errors.set_count(errors);
    }
}
