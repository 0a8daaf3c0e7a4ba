//! Every line of `testdata/custom-objects.jsonl` and `testdata/definitions.jsonl` was answered by
//! Kubernetes 1.37.

use podscale_api::field_error::{causes, summary};
use serde_json::{Value, json};

use super::*;

fn cases(text: &str) -> impl Iterator<Item = (usize, Value)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, serde_json::from_str(line).unwrap()))
}

/// Causes in any order: Kubernetes walks through maps at random.
fn sorted(causes: &Value) -> Vec<String> {
    let mut texts: Vec<String> =
        causes.as_array().into_iter().flatten().map(ToString::to_string).collect();
    texts.sort_unstable();
    texts
}

fn report(failures: &[String]) {
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn objects_are_judged_as_by_kubernetes() {
    let mut failures = Vec::new();
    for (line, case) in cases(include_str!("../../testdata/custom-objects.jsonl")) {
        let expected = &case["expect"];
        let schema = Schema::parse(&case["schema"]).unwrap();
        let structural = check_structural(&schema, &FieldPath::default());
        if !structural.is_empty() || !expected["structural"].is_null() {
            let got = summary(&structural);
            // The reason why a pattern cannot be compiled is told by another library.
            let same = expected["structural"]
                .as_str()
                .is_some_and(|text| text == got || text.contains("error parsing regexp"));
            if !same {
                failures.push(format!("line {line}\n  expected {expected}\n  got      {got}"));
            }
            continue;
        }
        let mut object = case["object"].clone();
        let removed = match prune(&mut object, &schema) {
            Ok(removed) => removed,
            Err(error) => {
                if expected["coerce"] != error.to_string() {
                    failures
                        .push(format!("line {line}\n  expected {expected}\n  got      {error}"));
                }
                continue;
            }
        };
        fill_defaults(&mut object, &schema);
        let errors = check(&object, case.get("old"), &schema);
        let got = json!({
            "pruned": removed,
            "result": object,
            "causes": sorted(&json!(causes(&errors))),
        });
        let wanted = json!({
            "pruned": if expected["pruned"].is_null() { json!([]) } else { expected["pruned"].clone() },
            "result": expected["result"],
            "causes": sorted(&expected["causes"]),
        });
        if !same(&got, &wanted) {
            failures.push(format!(
                "line {line}: {} {}\n  expected {wanted}\n  got      {got}",
                case["schema"]["properties"]["spec"], case["object"]["spec"]
            ));
        }
    }
    report(&failures);
}

/// Numbers are compared by value: Go writes a float without a fraction as an integer.
fn same(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Array(got), Value::Array(expected)) => {
            got.len() == expected.len() && got.iter().zip(expected).all(|(a, b)| same(a, b))
        }
        (Value::Object(got), Value::Object(expected)) => {
            got.len() == expected.len()
                && got.iter().all(|(key, value)| {
                    expected.get(key).is_some_and(|expected| same(value, expected))
                })
        }
        (Value::Number(got), Value::Number(expected)) => got.as_f64() == expected.as_f64(),
        _ => got == expected,
    }
}

#[test]
fn definitions_are_judged_as_by_kubernetes() {
    let mut failures = Vec::new();
    for (line, case) in cases(include_str!("../../testdata/definitions.jsonl")) {
        let prepared = |object: &Value| {
            let mut object = object.clone();
            definition::fill_defaults(&mut object);
            object["metadata"]["resourceVersion"] = json!("1");
            object
        };
        let object = prepared(&case["object"]);
        let errors = match case.get("old") {
            Some(old) => definition::check_update(&object, &prepared(old)),
            None => definition::check_create(&object),
        };
        let (got, wanted) = (sorted(&json!(causes(&errors))), sorted(&case["expect"]["causes"]));
        if got != wanted {
            failures.push(format!("line {line}\n  expected {wanted:?}\n  got      {got:?}"));
        }
    }
    report(&failures);
}

#[test]
fn the_value_that_is_out_of_bounds_is_shown() {
    for (limit, value, expected) in [
        (
            json!({"minimum": 0}),
            -3,
            "Invalid value: -3: x in body should be greater than or equal to 0",
        ),
        (json!({"maximum": 0}), 3, "Invalid value: 3: x in body should be less than or equal to 0"),
        (
            json!({"minimum": 5}),
            -3,
            "Invalid value: -3: x in body should be greater than or equal to 5",
        ),
    ] {
        let mut number = limit.clone();
        number["type"] = json!("integer");
        let schema =
            Schema::parse(&json!({"type": "object", "properties": {"x": number}})).unwrap();
        let found = summary(&check(&json!({"x": value}), None, &schema));
        assert_eq!(found, format!("x: {expected}"), "{limit}");
    }
}

#[test]
fn names_are_accepted_unless_taken() {
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let definition = |name: &str, kind: &str| {
        json!({
            "metadata": {"name": format!("{name}.example.com")},
            "spec": {
                "group": "example.com",
                "names": {"plural": name, "singular": "thing", "kind": kind, "listKind": "L"},
                "versions": [{"name": "v1", "served": true, "storage": true}],
            },
        })
    };
    let mut first = definition("things", "Thing");
    first["status"] = definition::established_status(&first, &[], now);
    assert_eq!(first["status"]["conditions"][1]["status"], "True");
    assert_eq!(first["status"]["acceptedNames"]["plural"], "things");
    assert_eq!(first["status"]["storedVersions"], json!(["v1"]));
    let second = definition("others", "Thing");
    let status = definition::established_status(&second, &[&first], now);
    assert_eq!(status["conditions"][0]["status"], "False");
    assert_eq!(status["conditions"][1]["reason"], "NotAccepted");
}

#[test]
fn scale_counts_are_small_natural_numbers() {
    let paths = crate::resource::ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        selector: Some(".status.selector".to_owned()),
    };
    let object = json!({"spec": {"replicas": -1}, "status": {"replicas": 3_000_000_000_i64}});
    assert_eq!(
        summary(&check_scale(&object, &paths, true)),
        "[.spec.replicas: Invalid value: -1: should be a non-negative integer, \
         .status.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647]"
    );
    assert_eq!(check_scale(&json!({}), &paths, true), []);
}

/// The error about a rule in a schema with an integer `n`.
fn rule_error(rule: &str) -> String {
    let mut definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object",
                    "properties": {"n": {"type": "integer"}},
                    "x-kubernetes-validations": [{"rule": rule}],
                }}},
            }}],
        },
    });
    definition::fill_defaults(&mut definition);
    let errors = definition::check_create(&definition);
    errors.first().map(|error| error.detail.clone()).unwrap_or_default()
}

#[test]
fn rules_that_cannot_be_compiled_are_refused() {
    for (rule, expected) in [
        ("self.n > 1", ""),
        ("self.n > ", "compilation failed: ERROR: <input>:1:10: Syntax error: mismatched input"),
        ("foo(self.n)", "compilation failed: the function 'foo' is not supported"),
        ("type(self.n) == int", "compilation failed: the function 'type' is not supported"),
        ("other > 1", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'other'"),
        ("[1, 2].all(x, x > self.n)", ""),
    ] {
        let got = rule_error(rule);
        assert!(
            if expected.is_empty() { got.is_empty() } else { got.starts_with(expected) },
            "{rule}: {got}"
        );
    }
}

#[test]
fn a_split_off_status_limits_the_root() {
    let mut definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "minProperties": 1}}}],
        },
    });
    definition::fill_defaults(&mut definition);
    let text = summary(&definition::check_create(&definition));
    assert!(text.contains("fields are allowed at the root of the schema"), "{text}");
}

#[test]
fn an_old_value_may_be_optional() {
    let schema = Schema::parse(&json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "x-kubernetes-validations": [{
            "rule": "oldSelf.hasValue() ? self > oldSelf.value() : self == 1",
            "optionalOldSelf": true,
        }]}},
    }))
    .unwrap();
    for (object, old, fine) in [
        (json!({"n": 1}), None, true),
        (json!({"n": 2}), None, false),
        (json!({"n": 2}), Some(json!({"n": 1})), true),
        (json!({"n": 1}), Some(json!({"n": 2})), false),
    ] {
        let errors = check(&object, old.as_ref(), &schema);
        assert_eq!(errors.is_empty(), fine, "{object} after {old:?}: {}", summary(&errors));
    }
}
