//! Makes answers of different runs and servers comparable, as `e2e/golden/README.md` says.

#![allow(unreachable_pub, reason = "a test and an example include it")]

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

static TEXTS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "<time>"),
        (r#"(resourceVersion\\*":\\*")\d+"#, "${1}<rv>"),
        (r#"Invalid value: "\{\\"apiVersion.*\}": "#, r#"Invalid value: "<object>": "#),
        (r"(current: |in record \(|too old resource version: \d+ \()\d+", "${1}<rv>"),
        (r"(?s)\n(@@|<difference>).*", "\n<difference>"),
        (r"127\.0\.0\.1(:\d+)?", "<address>"),
        (r#"in scheme "[^"]*""#, r#"in scheme "<scheme>""#),
        (r"\([^()]+ ago\)", "(<age> ago)"),
    ]
    .into_iter()
    .map(|(pattern, with)| (Regex::new(pattern).unwrap(), with))
    .collect()
});

/// Replaces what differs from run to run.
pub fn normalise(mut value: Value) -> Value {
    visit(&mut value);
    value
}

fn visit(value: &mut Value) {
    match value {
        Value::String(text) => *text = normalise_text(text),
        Value::Array(items) => items.iter_mut().for_each(visit),
        Value::Object(_) => visit_object(value),
        _ => {}
    }
}

fn normalise_text(text: &str) -> String {
    TEXTS.iter().fold(text.to_owned(), |text, (pattern, with)| {
        pattern.replace_all(&text, *with).into_owned()
    })
}

fn visit_object(object: &mut Value) {
    hide_ages(object);
    if let Some(prefix) = object["generateName"].as_str().map(str::to_owned)
        && object["name"].is_string()
    {
        hide_generated(&prefix, &mut object["name"]);
    }
    let Value::Object(fields) = object else { return };
    for (key, value) in fields {
        let text = value.as_str().unwrap_or_default();
        match key.as_str() {
            "resourceVersion" if !text.is_empty() && text != "0" => *value = json!("<rv>"),
            "continue" if !text.is_empty() => *value = json!("<continue>"),
            "clusterIP" if text.starts_with("10.") => *value = json!("<ip>"),
            "clusterIPs" => *value = json!(["<ip>"]),
            "managedFields" => {
                visit(value);
                sort_managers(value);
            }
            _ => visit(value),
        }
    }
}

/// Blanks ages and descriptions of columns in a Table.
fn hide_ages(table: &mut Value) {
    let Some(columns) = table.get_mut("columnDefinitions").and_then(Value::as_array_mut) else {
        return;
    };
    let mut ages = Vec::new();
    for (index, column) in columns.iter_mut().enumerate() {
        column["description"] = json!("<description>");
        if matches!(
            column["name"].as_str(),
            Some("Age" | "Created At" | "Last Seen" | "First Seen")
        ) {
            ages.push(index);
        }
    }
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        for index in &ages {
            if let Some(cell) = row["cells"].get_mut(index) {
                *cell = json!("<age>");
            }
        }
    }
}

/// Hides what the server put after a generateName, wherever it shows.
pub fn hide_generated(prefix: &str, value: &mut Value) {
    if prefix.is_empty() {
        return;
    }
    let pattern = format!(r"{}[bcdfghjklmnpqrstvwxz2456789]{{5}}\b", regex::escape(prefix));
    let generated = Regex::new(&pattern).unwrap();
    each_text(value, &|text: &str| {
        generated.replace_all(text, format!("{prefix}<suffix>")).into_owned()
    });
}

fn each_text(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        _ => {}
    }
}

/// The order must not depend on the second in which each request arrived.
fn sort_managers(entries: &mut Value) {
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    if let Some(entries) = entries.as_array_mut() {
        entries.sort_by_key(|entry| {
            ["manager", "operation", "subresource", "apiVersion"].map(|key| text(entry, key))
        });
    }
}

/// Where two values differ once normalised, one line for each place.
pub fn differences(expected: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", &normalise(expected.clone()), &normalise(got.clone()), &mut found);
    found
}

fn compare(path: &str, expected: &Value, got: &Value, found: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(left), Value::Object(right)) => {
            for (key, value) in left {
                match right.get(key) {
                    Some(other) => compare(&format!("{path}/{key}"), value, other, found),
                    None => found.push(format!("  {path}/{key}: missing, expected {value}")),
                }
            }
            for (key, value) in right.iter().filter(|(key, _)| !left.contains_key(*key)) {
                found.push(format!("  {path}/{key}: not expected, got {value}"));
            }
        }
        (Value::Array(left), Value::Array(right)) => {
            if left.len() != right.len() {
                found.push(format!(
                    "  {path}: expected {} elements, got {}",
                    left.len(),
                    right.len()
                ));
            }
            for (index, (value, other)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}/{index}"), value, other, found);
            }
        }
        _ if expected == got => {}
        _ => found.push(format!("  {path}:\n    expected {expected}\n         got {got}")),
    }
}
