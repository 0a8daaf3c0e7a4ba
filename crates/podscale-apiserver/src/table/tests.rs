//! Every row of `testdata/tables.jsonl` was printed by Kubernetes 1.37. Times in it are relative to
//! the moment of printing: `@-300` stands for five minutes before.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-03-04T05:06:07.5Z";

fn place_times(value: &mut Value, now: Timestamp) {
    match value {
        Value::String(text) => {
            if let Some(offset) = text.strip_prefix('@') {
                let seconds: i64 = offset.trim_end_matches('u').parse().unwrap();
                let whole = Timestamp::from_second(now.as_second()).unwrap();
                *text = whole.checked_add(SignedDuration::from_secs(seconds)).unwrap().to_string();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| place_times(item, now)),
        Value::Object(fields) => fields.values_mut().for_each(|field| place_times(field, now)),
        _ => {}
    }
}

fn printer(case: &Value, object: &Value) -> Printer {
    let resource = case["resource"].as_str().unwrap();
    if resource == "custom" {
        let columns = CustomColumns::parse(case["columns"].as_array().unwrap()).unwrap();
        return Printer::custom(columns);
    }
    let api_version = object["apiVersion"].as_str().unwrap();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Printer::built_in(group, resource)
}

#[test]
fn rows_are_those_of_kubernetes() {
    let now: Timestamp = NOW.parse().unwrap();
    let cases = include_str!("../../testdata/tables.jsonl");
    let mut failures = Vec::new();
    for (index, line) in cases.lines().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let mut object = case["object"].clone();
        place_times(&mut object, now);
        let printer = printer(&case, &object);
        let columns: Vec<String> = printer
            .columns()
            .iter()
            .map(|column| {
                format!("{}|{}|{}|{}", column.name, column.kind, column.format, column.priority)
            })
            .collect();
        let row = printer.row(&object, now);
        let mut got = json!({"columns": columns, "cells": row.cells});
        if let Some(conditions) = row.conditions {
            got["conditions"] = conditions;
        }
        if !same(&got, &case["expect"]) {
            failures.push(format!(
                "line {}: {}\n  expected {}\n  got      {got}",
                index + 1,
                case["resource"],
                case["expect"]
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
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

/// The same against whole tables that a real server answered with; it left out the ages.
#[test]
fn tables_are_those_of_a_real_server() {
    let now: Timestamp = NOW.parse().unwrap();
    let cases = include_str!("../../../../e2e/golden/tables.jsonl");
    let mut failures = Vec::new();
    for line in cases.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let path = case["path"].as_str().unwrap();
        // Autoscalers are printed as they are stored; version 1 has lost the order of metrics.
        if path.starts_with("/apis/autoscaling/v1/") {
            continue;
        }
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let group = if parts[0] == "apis" { parts[1] } else { "" };
        let printer = Printer::built_in(group, parts.last().unwrap());
        let items: Vec<Value> = case["objects"]["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| {
                let mut item = item.clone();
                item["apiVersion"] = case["objects"]["apiVersion"].clone();
                item["kind"] =
                    case["objects"]["kind"].as_str().unwrap().trim_end_matches("List").into();
                item
            })
            .collect();
        let table = printer.table(&items, json!({}), IncludeObject::None, true, now);
        let expected = &case["table"];
        let columns = |table: &Value| -> Vec<Vec<Value>> {
            let columns = table["columnDefinitions"].as_array().into_iter().flatten();
            let shown = ["name", "type", "format", "priority"];
            columns.map(|it| shown.iter().map(|name| it[name].clone()).collect()).collect()
        };
        if columns(&table) != columns(expected) {
            failures.push(format!("{path}: {:?}", columns(expected)));
        }
        let rows = |table: &Value| table["rows"].as_array().cloned().unwrap_or_default();
        for (got, expected) in rows(&table).iter().zip(&rows(expected)) {
            let cells = got["cells"].as_array().unwrap().iter();
            let same_cells = cells
                .zip(expected["cells"].as_array().unwrap())
                .all(|(got, expected)| same_but_for_age(got, expected));
            if !same_cells || got.get("conditions") != expected.get("conditions") {
                failures.push(format!("{path}\n  expected {expected}\n  got      {got}"));
            }
        }
        assert_eq!(rows(&table).len(), rows(expected).len(), "{path}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// `<age>` stands for any age, also within a text.
fn same_but_for_age(got: &Value, expected: &Value) -> bool {
    match (got.as_str(), expected.as_str().and_then(|text| text.split_once("<age>"))) {
        (Some(got), Some((before, after))) => got.starts_with(before) && got.ends_with(after),
        _ => got == expected,
    }
}

#[test]
fn a_table_carries_what_was_asked_for() {
    let now: Timestamp = NOW.parse().unwrap();
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"b": "c"}},
        "data": {"x": "y"},
    });
    let printer = Printer::built_in("", "configmaps");
    let table = |include, headers| {
        printer.table([&object], json!({"resourceVersion": "7"}), include, headers, now)
    };
    let with_metadata = table(IncludeObject::Metadata, true);
    assert_eq!(with_metadata["kind"], "Table");
    assert_eq!(with_metadata["metadata"]["resourceVersion"], "7");
    assert_eq!(with_metadata["columnDefinitions"][1]["name"], "Data");
    assert_eq!(with_metadata["rows"][0]["cells"], json!(["a", 1, "<unknown>"]));
    assert_eq!(
        with_metadata["rows"][0]["object"],
        json!({
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "a", "labels": {"b": "c"}},
        })
    );
    assert_eq!(table(IncludeObject::Object, true)["rows"][0]["object"], object);
    let bare = table(IncludeObject::None, false);
    assert_eq!(bare["rows"][0]["object"], Value::Null);
    assert_eq!(bare["columnDefinitions"], Value::Null);
}

#[test]
fn include_object_is_read_from_the_query() {
    assert_eq!(IncludeObject::parse(""), Ok(IncludeObject::Metadata));
    assert_eq!(IncludeObject::parse("Object"), Ok(IncludeObject::Object));
    assert_eq!(
        IncludeObject::parse("All"),
        Err("unrecognized includeObject value: \"All\"".to_owned())
    );
}
