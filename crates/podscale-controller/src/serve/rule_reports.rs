//! What turns out to be wrong with rules for metrics while they are in use: said in the log, in a metric and,
//! if they are in a ConfigMap, in an event of it.

use crate::metrics::Metrics;
use k8s_openapi::api::core::v1::ObjectReference;
use parking_lot::Mutex;
use podscale_client::events::{Recorder, Severity};
use std::collections::{BTreeMap, BTreeSet};

/// How many problems one event names.
const EVENT_PROBLEMS: usize = 3;
/// How many problems are logged at once.
const LOGGED_PROBLEMS: usize = 20;
/// The reason of events.
const REASON: &str = "InvalidMetricRules";

/// What a problem is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Selectors of series.
    Series,
    /// Resources that labels name.
    Resources,
}

/// Says what is wrong with rules.
pub struct RuleReports {
    metrics: Metrics,
    recorder: Option<Recorder>,
    /// The ConfigMap that the rules are in, once it has been read.
    about: Mutex<Option<ObjectReference>>,
    found: Mutex<BTreeMap<Subject, BTreeSet<String>>>,
}

impl RuleReports {
    /// Nothing is wrong yet. Without a recorder there are no events.
    #[must_use]
    pub fn new(metrics: Metrics, recorder: Option<Recorder>) -> RuleReports {
        RuleReports { metrics, recorder, about: Mutex::default(), found: Mutex::default() }
    }

    /// This ConfigMap holds the rules.
    pub fn concern(&self, config_map: ObjectReference) {
        *self.about.lock() = Some(config_map);
    }

    /// A version of the rules was looked at, and has so many errors.
    pub fn loaded(&self, errors: usize) {
        self.metrics.rules_loaded(errors);
    }

    /// A version of the rules cannot be used; the last good ones stay.
    pub fn refused(&self, place: &str, problems: &[String]) {
        self.loaded(problems.len());
        for error in problems.iter().take(LOGGED_PROBLEMS) {
            tracing::error!(
                place,
                error,
                "the rules for metrics are wrong; the last good ones stay in use"
            );
        }
        let all: Vec<&str> = problems.iter().map(String::as_str).collect();
        self.event("The last good rules stay in use, since these are wrong", &all);
    }

    /// Everything that is wrong now with the rules in use; what was not before is said.
    pub fn found(&self, subject: Subject, problems: BTreeSet<String>) {
        let mut found = self.found.lock();
        let before = found.insert(subject, problems.clone()).unwrap_or_default();
        self.metrics.rules_in_use_are_wrong(found.values().map(BTreeSet::len).sum());
        drop(found);
        let new: Vec<&str> = problems.difference(&before).map(String::as_str).collect();
        for problem in new.iter().take(LOGGED_PROBLEMS) {
            tracing::warn!(problem, "a rule for metrics gives nothing");
        }
        self.event("These rules give nothing", &new);
    }

    fn event(&self, what: &str, problems: &[&str]) {
        let (Some(recorder), Some(about)) = (&self.recorder, self.about.lock().clone()) else {
            return;
        };
        let Some(text) = listed(problems) else { return };
        recorder.record(about, Severity::Warning, REASON, format!("{what}: {text}"));
    }
}

/// The first problems in one line; nothing if there are none.
fn listed(problems: &[&str]) -> Option<String> {
    let (first, rest) = problems.split_at_checked(EVENT_PROBLEMS).unwrap_or((problems, &[]));
    let more = if rest.is_empty() { String::new() } else { format!("; and {} more", rest.len()) };
    (!first.is_empty()).then(|| format!("{}{more}", first.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_client::events;

    #[test]
    fn an_event_names_the_first_problems() {
        for (problems, expected) in [
            (&[][..], None),
            (&["a", "b"][..], Some("a; b")),
            (&["a", "b", "c", "d", "e"][..], Some("a; b; c; and 2 more")),
        ] {
            assert_eq!(listed(problems).as_deref(), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_counted_until_it_is_not() {
        let metrics = Metrics::new();
        let (recorder, _pending) = events::channel("test");
        let reports = RuleReports::new(metrics.clone(), Some(recorder));
        let wrong = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let shown = || {
            let text = metrics.text();
            let line = text.lines().find(|line| line.starts_with("podscale_metric_rules_errors "));
            line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
        };
        reports.found(Subject::Series, wrong(&["a", "b"]));
        reports.found(Subject::Resources, wrong(&["c"]));
        assert_eq!(shown().as_deref(), Some("3"));
        reports.refused("a file", &["x".to_owned()]);
        assert_eq!(shown().as_deref(), Some("4"), "with those of a version that is not used");
        reports.found(Subject::Series, wrong(&[]));
        metrics.rules_loaded(0);
        assert_eq!(shown().as_deref(), Some("1"));
    }
}
