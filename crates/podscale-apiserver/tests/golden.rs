//! Replays what a real API server was asked, and compares every answer with its own.
//! `e2e/golden/README.md` describes the files.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

#[path = "golden/normalise.rs"]
mod normalise;
#[path = "golden/replay.rs"]
mod replay;
#[path = "golden/transcode.rs"]
mod transcode;

use serde_json::{Value, json};

use normalise::{differences, normalise};
use replay::{Client, lines};

const REQUESTS: &str = include_str!("../../../e2e/golden/requests.jsonl");
const KINDS: &str = include_str!("../../../e2e/golden/kinds.jsonl");
const TABLES: &str = include_str!("../../../e2e/golden/tables.jsonl");

#[tokio::test]
async fn requests_are_answered_as_by_kubernetes() {
    replay(Client::new(), REQUESTS).await;
}

/// Whatever a client says and hears in protobuf is what others say and hear in JSON.
#[tokio::test]
async fn requests_in_protobuf_are_answered_as_in_json() {
    replay(Client::in_protobuf(), REQUESTS).await;
    replay(Client::in_protobuf(), KINDS).await;
}

#[tokio::test]
async fn jobs_budgets_quotas_claims_and_ingresses_are_answered_as_by_kubernetes() {
    replay(Client::new(), KINDS).await;
}

async fn replay(mut client: Client, requests: &str) {
    let mut differing = Vec::new();
    for line in lines(requests) {
        let got = client.send(&line).await;
        let name = line["name"].as_str().unwrap();
        differing.extend(report(name, &differences(&line["expect"], &got)));
    }
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

/// What differs in one answer, if anything does.
fn report(name: &str, differences: &[String]) -> Option<String> {
    (!differences.is_empty()).then(|| format!("{name}:\n{}", differences.join("\n")))
}

#[tokio::test]
async fn tables_are_printed_as_by_kubernetes() {
    let client = Client::new();
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
    let mut differing = Vec::new();
    for case in &cases {
        let path = case["path"].as_str().unwrap();
        for (form, query, accept) in [
            ("objects", "", "application/json"),
            ("table", "?includeObject=None", "application/json;as=Table;v=v1;g=meta.k8s.io"),
        ] {
            let got = client.get(&format!("{path}{query}"), accept).await;
            let differences = differences(&without_managers(&case[form]), &without_managers(&got));
            differing.extend(report(&format!("{path} as {form}"), &differences));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n\n"));
}

/// The objects of a list, each with the type that only the list names.
fn objects(list: &Value) -> Vec<Value> {
    let kind = list["kind"].as_str().unwrap().trim_end_matches("List");
    let typed = |item: &Value| {
        let mut item = item.clone();
        item["apiVersion"] = list["apiVersion"].clone();
        item["kind"] = json!(kind);
        if kind == "Job" && item["spec"]["manualSelector"] == false {
            forget_uid(&mut item);
        }
        item
    };
    list["items"].as_array().unwrap().iter().map(typed).collect()
}

/// Drops what a Job's uid was generated into.
fn forget_uid(job: &mut Value) {
    job["spec"]["selector"] = Value::Null;
    for labels in ["/metadata/labels", "/spec/template/metadata/labels"] {
        if let Some(Value::Object(labels)) = job.pointer_mut(labels) {
            labels.retain(|key, _| !key.ends_with("controller-uid") && !key.ends_with("job-name"));
        }
    }
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
