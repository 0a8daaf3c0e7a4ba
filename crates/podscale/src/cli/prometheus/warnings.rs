//! What Prometheus warns of: counted, and logged without filling the log.

use parking_lot::Mutex;
use podscale_controller::metrics::Metrics;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the same warning is logged; wall-clock.
const EVERY: Duration = Duration::from_secs(300);
/// How many different warnings are told apart; beyond that they are counted only.
const MOST_WARNINGS: usize = 64;

/// Hears of warnings.
pub(super) struct Warnings {
    metrics: Metrics,
    logged: Mutex<HashMap<Arc<str>, Logged>>,
}

/// When a warning was logged, and how often it was not since.
struct Logged {
    at: Instant,
    left_out: u64,
}

impl Warnings {
    /// Nothing was warned of yet.
    pub(super) fn new(metrics: Metrics) -> Warnings {
        Warnings { metrics, logged: Mutex::default() }
    }

    /// An answer came with warnings.
    pub(super) fn hear(&self, query: &str, warnings: &[Arc<str>]) {
        for warning in warnings {
            self.metrics.prometheus_warned();
            if let Some(left_out) = self.is_worth_logging(warning, Instant::now()) {
                tracing::warn!(query, %warning, left_out, "Prometheus warns: values may be missing or wrong");
            }
        }
    }

    /// Whether a warning is to be logged now, and how often it was not since the last time.
    fn is_worth_logging(&self, warning: &Arc<str>, now: Instant) -> Option<u64> {
        let mut logged = self.logged.lock();
        if let Some(known) = logged.get_mut(warning) {
            if now.duration_since(known.at) < EVERY {
                known.left_out += 1;
                return None;
            }
            known.at = now;
            return Some(std::mem::take(&mut known.left_out));
        }
        if logged.len() >= MOST_WARNINGS {
            logged.retain(|_, known| now.duration_since(known.at) < EVERY);
            if logged.len() >= MOST_WARNINGS {
                return None;
            }
        }
        logged.insert(Arc::clone(warning), Logged { at: now, left_out: 0 });
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_warning_is_logged_now_and_then_and_counted_always() {
        let metrics = Metrics::new();
        let warnings = Warnings::new(metrics.clone());
        let (one, other): (Arc<str>, Arc<str>) = ("results may be incomplete".into(), "b".into());
        let start = Instant::now();
        for (after, warning, expected) in [
            (0, &one, Some(0)),
            (1, &one, None),
            (2, &other, Some(0)),
            (299, &one, None),
            (300, &one, Some(2)),
            (301, &one, None),
            (302, &other, Some(0)),
        ] {
            let now = start + Duration::from_secs(after);
            assert_eq!(warnings.is_worth_logging(warning, now), expected, "{after} {warning}");
        }
        let many = (0..1000).filter(|number| {
            warnings.is_worth_logging(&number.to_string().into(), start).is_some()
        });
        assert_eq!(many.count(), MOST_WARNINGS - 2);
        warnings.hear("up", &[one, other]);
        let text = metrics.text();
        assert!(text.contains("podscale_prometheus_warnings_total 2\n"), "{text}");
    }
}
