//! `podscale validate`: says what is wrong with files before anybody uses them.

mod adapter;

use super::{print, print_error};
use clap::{Args, ValueEnum};
use podscale_metrics::rules::document::Node;
use serde::Serialize;
use std::fmt::Write;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The largest file.
const MOST_BYTES: u64 = 16 << 20;

/// Check files offline.
///
/// Understands the configuration of prometheus-adapter (rules, externalRules, resourceRules), as a file and in
/// the ConfigMaps that hold one under config.yaml. Every problem is printed with its file, line, rule and
/// reason. Warnings are about what is allowed and hardly meant.
///
/// Exit codes: 0 if nothing is wrong, 1 if something is, 2 if a file cannot be read or for a usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Files with YAML or JSON, also several documents in one; `-` is standard input.
    #[arg(short, long = "filename", required = true, value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,

    /// For people, or one JSON object for programs.
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Readable lines.
    Text,
    /// One JSON object with all findings.
    Json,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Error,
    Warning,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    file: String,
    /// The line in the file; 0 if it is not known.
    line: u32,
    severity: Severity,
    /// The part of the document, such as a rule and its field.
    field: String,
    problem: String,
}

/// Everything that was found.
#[derive(Debug, Default, Serialize)]
struct Report {
    documents: usize,
    errors: usize,
    warnings: usize,
    findings: Vec<Finding>,
}

/// What a checker says: where in the document, how bad, and what.
struct Remark {
    line: u32,
    severity: Severity,
    field: String,
    problem: String,
}

/// Checks one kind of document.
struct Checker {
    /// What it checks, in words.
    kind: &'static str,
    /// Whether a document is of this kind.
    recognises: fn(&Node) -> bool,
    /// What is to be said about a document, given its text.
    check: fn(&Node, &str) -> Vec<Remark>,
}

/// All kinds of documents that can be checked.
const CHECKERS: [Checker; 2] = [adapter::CONFIGURATION, adapter::CONFIG_MAP];

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let mut report = Report::default();
    let mut unreadable = false;
    for path in &arguments.files {
        match read(path) {
            Ok(text) => report.check_file(&path.display().to_string(), &text),
            Err(error) => {
                print_error(format_args!("{}: {error}", path.display()));
                unreadable = true;
            }
        }
    }
    print(&report.render(arguments.output));
    match (unreadable, report.errors) {
        (true, _) => ExitCode::from(2),
        (false, 0) => ExitCode::SUCCESS,
        (false, _) => ExitCode::FAILURE,
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MOST_BYTES).read_to_string(&mut text)
    } else {
        std::fs::File::open(path)?.take(MOST_BYTES).read_to_string(&mut text)
    };
    match read? {
        size if size as u64 == MOST_BYTES => Err(io::Error::other("too large")),
        _ => Ok(text),
    }
}

impl Report {
    fn check_file(&mut self, file: &str, text: &str) {
        for (first_line, document) in documents(text) {
            self.documents += 1;
            for remark in check(&document) {
                let Remark { line, severity, field, problem } = remark;
                let line = if line > 0 { line.saturating_add(first_line) } else { 0 };
                match severity {
                    Severity::Error => self.errors += 1,
                    Severity::Warning => self.warnings += 1,
                }
                self.findings.push(Finding {
                    file: file.to_owned(),
                    line,
                    severity,
                    field,
                    problem,
                });
            }
        }
    }

    fn render(&self, output: OutputFormat) -> String {
        if output == OutputFormat::Json {
            return serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        }
        let mut out = String::new();
        for Finding { file, line, severity, field, problem } in &self.findings {
            let line = if *line > 0 { format!(":{line}") } else { String::new() };
            let field = if field.is_empty() { String::new() } else { format!("{field}: ") };
            let mark = if *severity == Severity::Warning { "warning: " } else { "" };
            // Writing into memory does not fail.
            let _ = writeln!(out, "{file}{line}: {mark}{field}{problem}");
        }
        let Report { documents, errors, warnings, .. } = self;
        let _ = writeln!(out, "{documents} documents, {errors} errors, {warnings} warnings");
        out
    }
}

/// The documents of a file, each with how many lines are before it; empty ones are left out.
fn documents(text: &str) -> Vec<(u32, String)> {
    let mut found = vec![(0, String::new())];
    for (number, line) in (1_u32..).zip(text.lines()) {
        if line == "---" || line.starts_with("--- ") {
            found.push((number, String::new()));
        } else if let Some((_, document)) = found.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let has_content = |text: &str| {
        text.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    found.retain(|(_, document)| has_content(document));
    found
}

fn check(text: &str) -> Vec<Remark> {
    let error = |line, problem: String| {
        vec![Remark { line, severity: Severity::Error, field: String::new(), problem }]
    };
    let document = match Node::read(text) {
        Ok(document) => document,
        Err(wrong) => return error(wrong.line, wrong.problem.into()),
    };
    match CHECKERS.iter().find(|checker| (checker.recognises)(&document)) {
        Some(checker) => (checker.check)(&document, text),
        None => {
            let kinds: Vec<&str> = CHECKERS.iter().map(|checker| checker.kind).collect();
            error(
                document.line,
                format!("not a document that can be checked: {}", kinds.join(", ")),
            )
        }
    }
}

#[cfg(test)]
mod tests;
