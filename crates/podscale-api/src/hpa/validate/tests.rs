//! Every line of `testdata/hpa-validation.jsonl` was answered by Kubernetes 1.37: an operation, the
//! object (and the old one) as sent, and the refusal.

use serde_json::{Value, json};

use super::*;
use crate::field_error::{causes, invalid_message};
use crate::hpa::convert;

/// Reads an object and adds what the server gives to every one before it validates.
fn read(object: &Value) -> HorizontalPodAutoscaler {
    let mut hpa = convert::read(object).unwrap();
    hpa.metadata.namespace = "default".into();
    hpa.metadata.generation = 1;
    hpa.metadata.resource_version = "1".into();
    hpa
}

fn stored(object: &Value) -> HorizontalPodAutoscaler {
    let mut hpa = read(object);
    hpa.metadata.uid = "u".into();
    hpa
}

#[test]
fn refusals_are_those_of_kubernetes() {
    let cases = include_str!("../../../testdata/hpa-validation.jsonl");
    let mut failures = Vec::new();
    for (index, line) in cases.lines().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let operation = case["op"].as_str().unwrap();
        let hpa = read(&case["object"]);
        let errors = match operation {
            "create" => check_create(&hpa),
            "update" => check_update(&hpa, &stored(&case["old"])),
            "status" => check_status_update(&hpa, &stored(&case["old"])),
            other => panic!("unknown operation {other}"),
        };
        let got = if errors.is_empty() {
            json!({})
        } else {
            json!({
                "code": 422,
                "reason": "Invalid",
                "message": invalid_message(QUALIFIED_KIND, &hpa.metadata.name, &errors),
                "causes": causes(&errors),
            })
        };
        if got != case["expect"] {
            failures.push(format!(
                "line {} ({operation})\n  expected {}\n  got      {got}",
                index + 1,
                case["expect"],
            ));
        }
    }
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}
