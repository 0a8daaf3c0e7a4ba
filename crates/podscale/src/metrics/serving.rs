//! What the server of metrics APIs counts.

use super::instruments::{Counter, Family, Histogram, LabelSet};
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
}
