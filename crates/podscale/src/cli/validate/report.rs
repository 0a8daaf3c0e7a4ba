//! What was found, and how it is shown.

use super::{Remark, sarif};
use clap::ValueEnum;
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;

/// How findings are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Readable lines.
    Text,
    /// One JSON object with all findings.
    Json,
    /// SARIF 2.1.0, which code review tools read.
    Sarif,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Severity {
    /// It is refused, or does not work.
    Error,
    /// It is allowed, and hardly meant.
    Warning,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) file: Arc<str>,
    /// The line in the file; 0 if it is not known.
    pub(super) line: u32,
    /// The character of the line; 0 if it is not known.
    pub(super) column: u32,
    pub(super) severity: Severity,
    /// The lint, or what kind of check found it.
    pub(super) rule: &'static str,
    /// The part of the document, such as `spec.maxReplicas` or a rule and its field.
    pub(super) field: String,
    pub(super) problem: String,
}

impl Finding {
    /// A remark about a file.
    pub(super) fn of(file: &Arc<str>, rule: &'static str, remark: Remark) -> Finding {
        let Remark { place, severity, field, problem } = remark;
        let file = Arc::clone(file);
        Finding { file, line: place.line, column: place.column, severity, rule, field, problem }
    }
}

/// Everything that was found.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// How many documents there were.
    pub(super) documents: usize,
    /// How many of them are of kinds that are not checked.
    pub(super) unchecked: usize,
    pub(super) errors: usize,
    pub(super) warnings: usize,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    pub(super) fn add(&mut self, finding: Finding) {
        match finding.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        self.findings.push(finding);
    }

    /// Puts what was found about each file together; what stood first in a line stays first.
    pub(super) fn sort(&mut self) {
        let mut files: Vec<Arc<str>> = Vec::new();
        for finding in &self.findings {
            if !files.contains(&finding.file) {
                files.push(Arc::clone(&finding.file));
            }
        }
        let file = |finding: &Finding| files.iter().position(|file| *file == finding.file);
        self.findings.sort_by_cached_key(|finding| {
            (file(finding), finding.severity == Severity::Warning, finding.line)
        });
    }

    pub(super) fn render(&self, output: OutputFormat) -> String {
        match output {
            OutputFormat::Text => self.text(),
            OutputFormat::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
            OutputFormat::Sarif => sarif::render(&self.findings) + "\n",
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for finding in &self.findings {
            let Finding { file, line, column, severity, rule, field, problem } = finding;
            let place: String =
                [line, column].iter().filter(|at| ***at > 0).map(|at| format!(":{at}")).collect();
            let field = if field.is_empty() { String::new() } else { format!("{field}: ") };
            // Writing into memory does not fail.
            let _ = match severity {
                Severity::Error => writeln!(out, "{file}{place}: {field}{problem}"),
                Severity::Warning => {
                    writeln!(out, "{file}{place}: warning: {field}{problem} [{rule}]")
                }
            };
        }
        let Report { documents, unchecked, errors, warnings, .. } = self;
        let count = |number: usize, word: &str| {
            format!("{number} {word}{}", if number == 1 { "" } else { "s" })
        };
        let passed = match unchecked {
            0 => String::new(),
            number => format!(" ({number} of other kinds)"),
        };
        let _ = writeln!(
            out,
            "{}{passed}, {}, {}",
            count(*documents, "document"),
            count(*errors, "error"),
            count(*warnings, "warning")
        );
        out
    }
}
