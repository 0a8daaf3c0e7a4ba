//! Replays what a real API server was asked, and compares every answer with its own.
//! `e2e/golden/README.md` describes the files.

#[path = "golden/normalise.rs"]
mod normalise;
#[path = "golden/replay.rs"]
mod replay;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use normalise::{differences, normalise};
use replay::{Client, lines};

const REQUESTS: &str = include_str!("../../../e2e/golden/requests.jsonl");
const TABLES: &str = include_str!("../../../e2e/golden/tables.jsonl");
const DEPARTURES: &str = include_str!("golden/departures.txt");
const OPEN: &str = include_str!("golden/open.txt");

/// The requests that are answered differently: on purpose, or still. Neither list may grow stale.
fn expected_to_differ() -> BTreeSet<&'static str> {
    [DEPARTURES, OPEN]
        .iter()
        .flat_map(|list| list.lines())
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" -- ").map_or(line, |(name, _reason)| name))
        .collect()
}

#[tokio::test]
async fn requests_are_answered_as_by_kubernetes() {
    let mut client = Client::new();
    let mut differing = expected_to_differ();
    let mut report = Vec::new();
    let (mut agreed, mut total) = (0, 0);
    for line in lines(REQUESTS) {
        let name = line["name"].as_str().unwrap();
        let got = client.send(&line).await;
        let differences = differences(&line["expect"], &got);
        total += 1;
        agreed += u32::from(differences.is_empty());
        match (differences.is_empty(), differing.remove(name)) {
            (true, true) => report.push(format!("{name}: agrees now, take it off the list")),
            (false, false) => report.push(format!("{name}:\n{}", differences.join("\n"))),
            _ => {}
        }
    }
    differing.retain(|name| !name.starts_with('/'));
    report.extend(differing.iter().map(|name| format!("{name}: listed, but no such request")));
    assert!(report.is_empty(), "{}\n\n{agreed} of {total} answers agree", report.join("\n\n"));
}

#[tokio::test]
async fn tables_are_printed_as_by_kubernetes() {
    let mut client = Client::new();
    client
        .create(
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "printed"}}),
        )
        .await;
    let cases: Vec<Value> = lines(TABLES).collect();
    for case in &cases {
        let path = case["path"].as_str().unwrap();
        // Two more views of objects that are loaded through another path.
        if path.starts_with("/apis/autoscaling/v1/") || path.starts_with("/apis/events.k8s.io/") {
            continue;
        }
        for object in objects(&case["objects"]) {
            client.load(path, object).await;
        }
    }
    let mut differing = expected_to_differ();
    let mut report = Vec::new();
    for case in &cases {
        let path = case["path"].as_str().unwrap();
        for (form, query, accept) in [
            ("objects", "", "application/json"),
            ("table", "?includeObject=None", "application/json;as=Table;v=v1;g=meta.k8s.io"),
        ] {
            let got = client.get(&format!("{path}{query}"), accept).await;
            let differences = differences(&without_managers(&case[form]), &without_managers(&got));
            let name = format!("{path} as {form}");
            match (differences.is_empty(), differing.remove(name.as_str())) {
                (true, true) => report.push(format!("{name}: agrees now, take it off the list")),
                (false, false) => report.push(format!("{name}:\n{}", differences.join("\n"))),
                _ => {}
            }
        }
    }
    assert!(report.is_empty(), "{}", report.join("\n\n"));
}

/// The objects of a list, each with the type that only the list names.
fn objects(list: &Value) -> Vec<Value> {
    let kind = list["kind"].as_str().unwrap().trim_end_matches("List");
    let typed = |item: &Value| {
        let mut item = item.clone();
        item["apiVersion"] = list["apiVersion"].clone();
        item["kind"] = json!(kind);
        item
    };
    list["items"].as_array().unwrap().iter().map(typed).collect()
}

/// Lists are recorded without managedFields and with one creation time for all.
fn without_managers(value: &Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(fields) => {
                fields.remove("managedFields");
                if let Some(time) = fields.get_mut("creationTimestamp") {
                    *time = json!("<time>");
                }
                fields.values_mut().for_each(strip);
            }
            _ => {}
        }
    }
    let mut value = normalise(value.clone());
    strip(&mut value);
    value
}
