//! Checks configurations of prometheus-adapter.

use super::Remark;
use super::report::Severity;
use podscale_api::document::{Document, Place};
use podscale_metrics::rules::document::{Node, Tree};
use podscale_metrics::rules::{RuleError, RuleSet};
use serde_json::Value;

/// The keys of a configuration.
const KEYS: [&str; 3] = ["rules", "externalRules", "resourceRules"];
/// The key of a ConfigMap that holds a configuration.
const DATA_KEY: &str = "config.yaml";

/// What is to be said about a document; nothing if it is no configuration and holds none.
pub(super) fn check(value: &Value, document: &Document<'_>) -> Option<Vec<Remark>> {
    let before = document.lines_before;
    if KEYS.iter().any(|key| value.get(key).is_some()) && value.get("kind").is_none() {
        return Some(remarks(document.text, before, ""));
    }
    if value["kind"] != "ConfigMap" || value["data"].get(DATA_KEY).is_none() {
        return None;
    }
    // It has been read once, so it reads.
    let node = Node::read(document.text).ok()?;
    Some(match held(&node) {
        Some(Node { tree: Tree::Text(held), line }) => {
            let start = block_start(document.text, *line).checked_add(before);
            remarks(held, start.unwrap_or(u32::MAX), "data.config.yaml")
        }
        _ => vec![Remark {
            place: Place { line: before.saturating_add(node.line), column: 0 },
            severity: Severity::Error,
            field: "data.config.yaml".to_owned(),
            problem: "must be text".to_owned(),
        }],
    })
}

fn held(document: &Node) -> Option<&Node> {
    document.get("data")?.get(DATA_KEY)
}

/// How many lines are before the first one of a block of text whose value begins at a line; nothing can be
/// said of text in quotes, whose lines may be anywhere.
fn block_start(text: &str, line: u32) -> u32 {
    let at = |line: u32| {
        let place = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
        text.lines().nth(place).unwrap_or_default()
    };
    let opens = |line: u32| {
        let end = at(line).rsplit(": ").next().unwrap_or_default().trim();
        end.starts_with(['|', '>']) && end.len() <= 3
    };
    if opens(line) {
        line
    } else if line > 0 && opens(line - 1) {
        line - 1
    } else {
        u32::MAX
    }
}

fn remarks(text: &str, lines_before: u32, within: &str) -> Vec<Remark> {
    let remark = |severity: Severity, error: &RuleError| {
        let dot = if within.is_empty() || error.rule.is_empty() { "" } else { ": " };
        let known = error.line > 0 && lines_before < u32::MAX;
        Remark {
            place: Place {
                line: if known { error.line.saturating_add(lines_before) } else { 0 },
                column: 0,
            },
            severity,
            field: format!("{within}{dot}{}", error.rule),
            problem: error.problem.to_string(),
        }
    };
    match RuleSet::parse(text) {
        Ok(rules) => rules.warnings().iter().map(|w| remark(Severity::Warning, w)).collect(),
        Err(errors) => errors.iter().map(|error| remark(Severity::Error, error)).collect(),
    }
}
