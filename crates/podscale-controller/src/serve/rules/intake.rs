//! Takes in one version of the rules after the other, whichever way they come. A version that is wrong is reported,
//! and the last good one stays in use; so it does while there is none.

use crate::serve::rule_reports::RuleReports;
use podscale_metrics::rules::RuleError;
use podscale_metrics::rules::reload::{Reloaded, Reloader};
use std::sync::Arc;

/// How many warnings of one version are logged.
const LOGGED_WARNINGS: usize = 20;

/// What is found where the rules are.
pub(super) enum Found<'a> {
    /// A version of them.
    Text(&'a str),
    /// Something else, and what is wrong with it.
    Wrong(String),
    /// Nothing, and why.
    Missing(String),
}

/// Gives an engine the rules of one place, and says what becomes of them.
pub(super) struct Intake {
    /// Where the rules are, as logs name it.
    place: String,
    reloader: Reloader,
    reports: Arc<RuleReports>,
    /// Why there was no text the last time; each reason is reported once.
    trouble: Option<String>,
    /// How many errors the last text has.
    errors: usize,
    /// Whether rules of this place are in use.
    in_use: bool,
}

impl Intake {
    /// Nothing has been found yet.
    pub(super) fn new(place: String, reloader: Reloader, reports: Arc<RuleReports>) -> Intake {
        Intake { place, reloader, reports, trouble: None, errors: 0, in_use: false }
    }

    /// Takes in the version with which everything begins.
    ///
    /// # Errors
    /// It is wrong, so there is nothing to begin with.
    pub(super) fn begin(&mut self, text: &str) -> Result<(), Vec<RuleError>> {
        match self.reloader.load(text) {
            Reloaded::Unchanged => Ok(()),
            Reloaded::Replaced { rules, warnings } => {
                self.replaced(rules, &warnings);
                Ok(())
            }
            Reloaded::Kept(errors) => Err(errors),
        }
    }

    /// Takes in what is found now.
    pub(super) fn take(&mut self, found: Found<'_>) {
        let text = match found {
            Found::Text(text) => text,
            Found::Wrong(problem) => {
                if self.is_new(&problem) {
                    self.reports.refused(&self.place, &[problem]);
                }
                return;
            }
            Found::Missing(problem) => {
                if self.is_new(&problem) {
                    self.missing(&problem);
                }
                return;
            }
        };
        let again = self.trouble.take().is_some();
        match self.reloader.load(text) {
            Reloaded::Unchanged if again => self.reports.loaded(self.errors),
            Reloaded::Unchanged => {}
            Reloaded::Replaced { rules, warnings } => self.replaced(rules, &warnings),
            Reloaded::Kept(errors) => {
                self.errors = errors.len();
                let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                self.reports.refused(&self.place, &errors);
            }
        }
    }

    fn is_new(&mut self, problem: &str) -> bool {
        let known = self.trouble.as_deref() == Some(problem);
        self.trouble = Some(problem.to_owned());
        !known
    }

    fn missing(&self, problem: &str) {
        self.reports.loaded(1);
        let place = &self.place;
        if self.in_use {
            tracing::warn!(
                place,
                problem,
                "the rules for metrics cannot be read; the last ones stay in use"
            );
        } else {
            tracing::warn!(
                place,
                problem,
                "the rules for metrics cannot be read, so there are none yet"
            );
        }
    }

    fn replaced(&mut self, rules: usize, warnings: &[RuleError]) {
        (self.errors, self.in_use) = (0, true);
        self.reports.loaded(0);
        let place = &self.place;
        tracing::info!(place, rules, "the rules for metrics are in use");
        for warning in warnings.iter().take(LOGGED_WARNINGS) {
            tracing::warn!(place, %warning, "a rule for metrics is doubtful");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use podscale_metrics::prometheus::{Client, Config};
    use podscale_metrics::rules::engine::{Engine, Timings};
    use podscale_metrics::rules::{KnownResources, RuleSet};

    const GOOD: &str = "externalRules: [{seriesQuery: a, metricsQuery: a}]";

    #[test]
    fn each_version_and_each_trouble_counts_once_wherever_it_comes_from() {
        let client = Client::new(Config::new("http://127.0.0.1:9")).expect("a client");
        let known = Arc::new(KnownResources::everyday());
        let engine = Engine::new(Arc::new(client), RuleSet::default(), known, Timings::default());
        let (engine, metrics) = (Arc::new(engine), Metrics::new());
        let reports = Arc::new(RuleReports::new(metrics.clone(), None));
        let reloader = Reloader::new(Arc::clone(&engine));
        let mut intake = Intake::new("a place".to_owned(), reloader, reports);
        let shown = |name: &str| {
            let text = metrics.text();
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.map_or(0, |number| number.parse().expect("a number"))
        };
        type Find = fn() -> Found<'static>;
        let (good, bad): (Find, Find) = (|| Found::Text(GOOD), || Found::Text("rules: ["));
        let missing: Find = || Found::Missing("there is none".to_owned());
        let keyless: Find = || Found::Wrong("there is no key".to_owned());
        let (empty, none): (Find, Find) = (|| Found::Text(""), || Found::Text("rules: []"));
        for (what, find, in_use, errors, failed) in [
            ("not there yet", missing, 0, 1, 1),
            ("empty", empty, 0, 1, 2),
            ("the first good one", good, 1, 0, 2),
            ("wrong", bad, 1, 1, 3),
            ("gone", missing, 1, 1, 4),
            ("another thing", keyless, 1, 1, 5),
            ("wrong as before", bad, 1, 1, 6),
            ("good again", good, 1, 0, 6),
            ("gone again", missing, 1, 1, 7),
            ("good as before", good, 1, 0, 7),
            ("no rules", none, 0, 0, 7),
        ] {
            for _ in 0..2 {
                intake.take(find());
            }
            assert_eq!(engine.rules().external().len(), in_use, "{what}");
            assert_eq!(shown("podscale_metric_rules_errors"), errors, "{what}");
            let loads = r#"podscale_metric_rules_loads_total{outcome="error"}"#;
            assert_eq!(shown(loads), failed, "{what}");
        }
    }
}
