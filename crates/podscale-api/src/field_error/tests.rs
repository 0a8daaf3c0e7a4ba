use serde_json::json;

use super::metadata::{check_create, check_update};
use super::*;

#[test]
fn messages_are_those_of_the_api_server() {
    let path = FieldPath::new("spec").child("metrics").index(0).child("type");
    for (error, expected) in [
        (FieldError::required(&path, ""), "spec.metrics[0].type: Required value"),
        (FieldError::required(&path, "say it"), "spec.metrics[0].type: Required value: say it"),
        (
            FieldError::invalid(&path, "a\"b", "no quotes"),
            r#"spec.metrics[0].type: Invalid value: "a\"b": no quotes"#,
        ),
        (FieldError::invalid(&path, 3, "no"), "spec.metrics[0].type: Invalid value: 3: no"),
        (
            FieldError::not_supported(&path, BadValue::json(&"<x>"), &["A", "B"]),
            r#"spec.metrics[0].type: Unsupported value: "\u003cx\u003e": supported values: "A", "B""#,
        ),
        (FieldError::forbidden(&path, "not now"), "spec.metrics[0].type: Forbidden: not now"),
        (FieldError::duplicate(&path, "x"), r#"spec.metrics[0].type: Duplicate value: "x""#),
        (
            FieldError::too_long(&path, 1),
            "spec.metrics[0].type: Too long: may not be more than 1 byte",
        ),
        (
            FieldError::too_many(&path, 3, 2),
            "spec.metrics[0].type: Too many: 3: must have at most 2 items",
        ),
        (
            FieldError::invalid(&FieldPath::default(), "", "whole"),
            "<nil>: Invalid value: \"\": whole",
        ),
        (FieldError::required(&FieldPath::new("a").key("b/c"), ""), "a[b/c]: Required value"),
    ] {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_summary_names_each_mistake_once() {
    let name = FieldError::required(&FieldPath::new("name"), "");
    let kind = FieldError::required(&FieldPath::new("kind"), "");
    assert_eq!(summary(std::slice::from_ref(&name)), "name: Required value");
    assert_eq!(
        invalid_message("Thing.example.com", "x", &[name.clone(), kind, name]),
        "Thing.example.com \"x\" is invalid: [name: Required value, kind: Required value]"
    );
    assert_eq!(invalid_message("Thing", "x", &[]), "Thing \"x\" is invalid");
}

#[test]
fn oversized_annotations_are_refused() {
    let metadata = json!({"name": "a", "annotations": {"a": "x".repeat(262_144)}});
    let errors = check_create(&metadata, false, names::dns_subdomain);
    assert_eq!(
        summary(&errors),
        "metadata.annotations: Too long: may not be more than 262144 bytes"
    );
}

#[test]
fn cluster_objects_have_no_namespace() {
    let metadata = json!({"name": "a", "namespace": "b"});
    assert_eq!(
        summary(&check_create(&metadata, false, names::path_segment)),
        "metadata.namespace: Forbidden: not allowed on this type"
    );
}

#[test]
fn identity_does_not_change() {
    let old = json!({"name": "a", "uid": "1", "resourceVersion": "5"});
    let new = json!({"name": "b", "uid": "2"});
    assert_eq!(
        summary(&check_update(&new, &old)),
        "[metadata.resourceVersion: Invalid value: \"\": must be specified for an update, \
         metadata.name: Invalid value: \"b\": field is immutable, \
         metadata.uid: Invalid value: \"2\": field is immutable]"
    );
    assert_eq!(check_update(&old, &old), []);
}
