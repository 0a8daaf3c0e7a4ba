//! Which of the series that a query finds belong to a rule.

use regex::{Regex, RegexBuilder};

/// How much memory an expression may take.
const SIZE_LIMIT_BYTES: usize = 1 << 20;

/// Accepts the names of series that match an expression, or those that do not.
#[derive(Clone, Debug)]
pub struct SeriesFilter {
    expression: Regex,
    /// Whether names that match are accepted.
    positive: bool,
}

impl SeriesFilter {
    /// A filter by an expression.
    pub(super) fn new(expression: Regex, positive: bool) -> SeriesFilter {
        SeriesFilter { expression, positive }
    }

    /// Whether a series of this name is accepted.
    #[must_use]
    pub fn accepts(&self, series: &str) -> bool {
        self.expression.is_match(series) == self.positive
    }
}

/// Reads a regular expression.
///
/// # Errors
/// Says in one line what is wrong.
pub(super) fn expression(text: &str) -> Result<Regex, String> {
    let built = RegexBuilder::new(text).size_limit(SIZE_LIMIT_BYTES).build();
    built.map_err(|error| {
        let text = error.to_string();
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        format!("not a regular expression: {}", last.trim_start_matches("error: "))
    })
}
