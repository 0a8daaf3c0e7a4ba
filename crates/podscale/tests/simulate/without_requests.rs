//! Runs without how long single requests take.

use super::{SPIKE, simulate};
use serde_json::Value;

#[test]
fn without_requests_there_are_no_latencies() {
    let run = |more: &[&str]| {
        let all: Vec<&str> = ["--load", SPIKE, "--policy", "none", "-o", "json"]
            .iter()
            .chain(more)
            .copied()
            .collect();
        let found: Value = serde_json::from_str(&simulate(&all)).expect("JSON");
        found
    };
    let (whole, quick) = (run(&[]).to_string(), run(&["--without-requests"]).to_string());
    assert!(quick.contains(r#""p95Seconds":null"#), "{quick}");
    assert!(!whole.contains(r#""p95Seconds":null"#), "{whole}");
    let hours = |text: &str| {
        let (_, rest) = text.split_once(r#""podHours":"#).expect("pod-hours");
        rest.split_once(',').expect("more").0.to_owned()
    };
    assert_eq!(hours(&quick), hours(&whole), "sizes do not depend on it");
    let lines = simulate(&["--load", SPIKE, "--policy", "none", "--without-requests", "-o", "csv"]);
    assert!(lines.contains(",,,") && !lines.contains("NaN"), "{lines}");
    let table = simulate(&["--load", SPIKE, "--policy", "none", "--without-requests"]);
    assert!(table.contains(" - "), "{table}");
}
