//! Checks configurations of prometheus-adapter.

use super::{Checker, Remark, Severity};
use podscale_metrics::rules::document::{Node, Tree};
use podscale_metrics::rules::{RuleError, RuleSet};

/// The keys of a configuration.
const KEYS: [&str; 3] = ["rules", "externalRules", "resourceRules"];
/// The key of a ConfigMap that holds a configuration.
const DATA_KEY: &str = "config.yaml";

/// A configuration by itself.
pub(super) const CONFIGURATION: Checker = Checker {
    kind: "a configuration of prometheus-adapter",
    recognises: |document| KEYS.iter().any(|key| document.get(key).is_some()),
    check: |_, text| remarks(text, 0, ""),
};

/// A ConfigMap that holds one.
pub(super) const CONFIG_MAP: Checker = Checker {
    kind: "a ConfigMap with one under config.yaml",
    recognises: |document| {
        let kind = document.get("kind").and_then(Node::text);
        kind.as_deref() == Some("ConfigMap") && held(document).is_some()
    },
    check: |document, text| match held(document) {
        Some(Node { tree: Tree::Text(held), line }) => {
            remarks(held, block_start(text, *line), "data.config.yaml")
        }
        _ => vec![Remark {
            line: document.line,
            severity: Severity::Error,
            field: "data.config.yaml".to_owned(),
            problem: "must be text".to_owned(),
        }],
    },
};

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
            line: if known { error.line.saturating_add(lines_before) } else { 0 },
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
