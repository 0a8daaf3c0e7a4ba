//! What is wrong with a file of rules.

use std::fmt;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The rule and the field, such as `rules[3].metricsQuery`; empty for the file as a whole.
    pub rule: Box<str>,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// What is wrong and what to do about it.
    pub problem: Box<str>,
}

impl RuleError {
    /// Something about the file as a whole.
    pub(super) fn whole(problem: impl fmt::Display) -> RuleError {
        RuleError { rule: Box::default(), line: 0, problem: problem.to_string().into() }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.rule.is_empty() {
            write!(f, "{}: ", self.rule)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for RuleError {}
