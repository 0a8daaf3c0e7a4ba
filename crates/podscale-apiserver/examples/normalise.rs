//! Blanks what differs from run to run in recorded answers: `e2e/golden/record` pipes them through
//! this, and `tests/golden.rs` does the same to the answers that it compares with them.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[allow(dead_code, reason = "comparing is for tests")]
#[allow(clippy::unwrap_used, reason = "the expressions are fixed")]
#[path = "../tests/golden/normalise.rs"]
mod normalise;

/// One recorded request; the order of fields is that of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    name: String,
    method: String,
    path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    content_type: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    accept: String,
    #[serde(default, skip_serializing_if = "is_false")]
    stream: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    retry: bool,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    body: Value,
    expect: Answer,
}

#[derive(Serialize, Deserialize)]
struct Answer {
    code: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    body: Value,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it like this")]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let mut line: Line = serde_json::from_str(&line?)?;
        let mut answer = normalise::normalise(line.expect.body);
        let prefix = line.body.pointer("/metadata/generateName").and_then(Value::as_str);
        normalise::hide_generated(prefix.unwrap_or_default(), &mut answer);
        line.expect.body = answer;
        writeln!(out, "{}", serde_json::to_string(&line)?)?;
    }
    Ok(())
}
