//! Checks configurations of prometheus-adapter.

use super::Remark;
use super::report::Severity;
use podscale_api::document::{Document, Place};
use podscale_metrics::rules::document::{Node, Tree};
use podscale_metrics::rules::{RuleError, RuleSet};
use serde_json::Value;

/// The keys of a configuration.
const KEYS: [&str; 3] = ["rules", "externalRules", "resourceRules"];
/// Fields that only such a configuration has.
const QUERIES: [&str; 3] = ["seriesQuery", "metricsQuery", "containerQuery"];
/// The key of a ConfigMap that usually holds a configuration.
const DATA_KEY: &str = "config.yaml";

/// What is to be said about a document; nothing if it is no configuration and holds none.
pub(super) fn check(value: &Value, document: &Document<'_>) -> Option<Vec<Remark>> {
    let before = document.lines_before;
    if KEYS.iter().any(|key| value.get(key).is_some()) && value.get("kind").is_none() {
        return Some(remarks(document.text, before, ""));
    }
    if value["kind"] != "ConfigMap" {
        return None;
    }
    // It has been read once, so it reads.
    let node = Node::read(document.text).ok()?;
    let Tree::Map(entries) = &node.get("data")?.tree else { return None };
    let held: Vec<_> = entries.iter().filter(|(key, node)| is_held(&key.name, node)).collect();
    let remarks = held.iter().flat_map(|(key, held)| {
        let within = format!("data.{}", key.name);
        match held {
            Node { tree: Tree::Text(text), line } => {
                let start = block_start(document.text, *line).checked_add(before);
                remarks(text, start.unwrap_or(u32::MAX), &within)
            }
            _ => vec![Remark {
                place: Place { line: before.saturating_add(node.line), column: 0 },
                severity: Severity::Error,
                field: within,
                problem: "must be text".to_owned(),
            }],
        }
    });
    (!held.is_empty()).then(|| remarks.collect())
}

/// Whether a key of a ConfigMap holds a configuration: other programs have a `config.yaml` too, and their
/// files may have rules of another kind.
fn is_held(key: &str, node: &Node) -> bool {
    let usual = key == DATA_KEY;
    let text = match &node.tree {
        Tree::Text(text) => text,
        Tree::Null => return false,
        _ => return usual,
    };
    let named = match Node::read(text) {
        Ok(document) => KEYS.iter().any(|key| document.get(key).is_some()),
        // It may be meant to be one.
        Err(_) => {
            let begins = |line: &str| KEYS.iter().any(|key| line.starts_with(&format!("{key}:")));
            text.lines().any(begins)
        }
    };
    named && (usual || QUERIES.iter().any(|query| text.contains(query)))
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
