//! Findings as SARIF 2.1.0 (OASIS), the form that code review tools read.

use super::report::{Finding, Severity};
use podscale_api::lint;
use podscale_client::call::segment;
use serde_json::{Value, json};

/// What finds something besides lints: name and meaning.
const CHECKS: [(&str, &str); 7] = [
    ("adapter-rule", "A rule of prometheus-adapter that is wrong or doubtful."),
    ("ignored-field", "A field that means nothing to singlecloud, which ignores it."),
    ("invalid-spec", "What an API server lets in, and the controller reports in a condition."),
    ("metric-unavailable", "A metric that the cluster does not answer for."),
    ("refused", "What an API server refuses, or singlecloud's API."),
    ("target-not-found", "A target that the cluster does not have."),
    ("unreadable", "A document that is neither YAML nor JSON."),
];

/// All findings as one log.
pub(super) fn render(findings: &[Finding]) -> String {
    let rule =
        |name: &str, meaning: &str| json!({"id": name, "shortDescription": {"text": meaning}});
    let checks = CHECKS.iter().map(|(name, meaning)| rule(name, meaning));
    let lints = lint::lints().into_iter().map(|lint| rule(lint.name, lint.reason));
    let rules: Vec<Value> = checks.chain(lints).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "podscale", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": findings.iter().map(result).collect::<Vec<Value>>(),
        }],
    });
    serde_json::to_string_pretty(&log).unwrap_or_default()
}

/// A file as a URI: relative to wherever the tool runs, unless its name begins at the root.
fn uri(file: &str) -> String {
    let path: Vec<String> =
        // What comes before a colon would be a scheme.
        file.split('/').map(|part| segment(part).replace(':', "%3A")).collect();
    let path = path.join("/");
    if path.starts_with('/') { format!("file://{path}") } else { path }
}

fn result(finding: &Finding) -> Value {
    let Finding { file, line, column, severity, rule, field, problem } = finding;
    let text = if field.is_empty() { problem.clone() } else { format!("{field}: {problem}") };
    let mut place = json!({"artifactLocation": {"uri": uri(file)}});
    if *line > 0 {
        place["region"] = json!({"startLine": line});
        if *column > 0 {
            place["region"]["startColumn"] = (*column).into();
        }
    }
    let level = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    json!({"ruleId": rule, "level": level, "message": {"text": text},
        "locations": [{"physicalLocation": place}]})
}
