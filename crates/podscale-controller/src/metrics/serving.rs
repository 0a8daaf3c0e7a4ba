//! What the server of metrics APIs counts.

use super::instruments::{Counter, Family, Gauge, Histogram, LabelSet};
use super::registry::{Label, Registry};
use super::{Labels, Metrics, REQUEST_SECONDS};
use std::time::Duration;

/// What tells answers apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AnswerLabels {
    group: &'static str,
    verb: &'static str,
    code: u16,
}

impl LabelSet for AnswerLabels {
    fn read(&self, visit: &mut dyn FnMut(&[Label<'_>])) {
        let code = self.code.to_string();
        visit(&[("group", self.group), ("verb", self.verb), ("code", &code)]);
    }
}

pub(super) struct Serving {
    answers: Family<AnswerLabels, Counter>,
    seconds: Family<Labels<1>, Histogram>,
    route_loads: Family<Labels<1>, Counter>,
    route_errors: Gauge,
}

impl Serving {
    pub(super) fn register(registry: &mut Registry) -> Serving {
        Serving {
            answers: registry.family(
                "podscale_serve_requests",
                "Requests to the metrics APIs that were answered; group \"\" is all that is none of theirs",
                Counter::default,
            ),
            seconds: registry.family(
                "podscale_serve_request_duration_seconds",
                "How long an answer of the metrics APIs took, in seconds",
                || Histogram::new(&REQUEST_SECONDS),
            ),
            route_loads: registry.family(
                "podscale_external_routes_loads",
                "Versions of the file of routes that were read, and whether they are used",
                Counter::default,
            ),
            route_errors: registry.metric(
                "podscale_external_routes_errors",
                "Whether the file of routes is wrong as it is now: 1 or 0; then the last good one is used",
                Gauge::default(),
            ),
        }
    }
}

impl Metrics {
    /// A request to the metrics APIs was answered.
    pub fn served(&self, group: &'static str, verb: &'static str, code: u16, took: Duration) {
        let serving = &self.0.serving;
        serving.answers.with(&AnswerLabels { group, verb, code }).increment();
        serving.seconds.with(&[("group", group)]).observe(took);
    }
    /// The file of routes was read: it is used, or it is wrong.
    pub fn routes_loaded(&self, used: bool) {
        let serving = &self.0.serving;
        let outcome = if used { "ok" } else { "error" };
        serving.route_loads.with(&[("outcome", outcome)]).increment();
        serving.route_errors.set(i64::from(!used));
    }
}
