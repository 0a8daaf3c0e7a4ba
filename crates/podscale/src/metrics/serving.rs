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
    rule_loads: Family<Labels<1>, Counter>,
    rule_errors: Gauge,
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
            rule_loads: registry.family(
                "podscale_metric_rules_loads",
                "Versions of the rules for metrics that were read, and whether they are used",
                Counter::default,
            ),
            rule_errors: registry.metric(
                "podscale_metric_rules_errors",
                "What is wrong with the rules for metrics as they are now; while it is not 0 the last \
                 good ones are used",
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

    /// Rules for metrics were read, with so many errors; without any they are used.
    pub fn rules_loaded(&self, errors: usize) {
        let outcome = if errors == 0 { "ok" } else { "error" };
        self.0.serving.rule_loads.with(&[("outcome", outcome)]).increment();
        self.0.serving.rule_errors.set_count(errors);
    }
}
