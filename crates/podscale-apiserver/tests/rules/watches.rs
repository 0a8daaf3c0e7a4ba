//! Lists in pages, and watches.

use super::support::send;
use super::{run, server, step};
use podscale_apiserver::ApiServer;
use serde_json::{Value, json};

#[tokio::test]
async fn pages_show_one_moment() {
    let server = server();
    let maps = "/api/v1/namespaces/default/configmaps";
    for name in ["a", "b", "c"] {
        let body = json!({ "metadata": { "name": name } }).to_string();
        assert_eq!(send(&server, "POST", maps, "", "", body).await.code, 201);
    }
    let first = send(&server, "GET", &format!("{maps}?limit=1"), "", "", String::new()).await.body;
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let token = first["metadata"]["continue"].as_str().expect("more").to_owned();
    send(&server, "DELETE", &format!("{maps}/b"), "", "", String::new()).await;
    let rest = format!("{maps}?limit=5&continue={token}");
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .filter_map(|item| Some(item["metadata"]["name"].as_str()?.to_owned()))
            .collect()
    };
    let second = send(&server, "GET", &rest, "", "", String::new()).await.body;
    assert_eq!(names(&second), ["b", "c"], "b was there when the list began");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);

    server.store().compact();
    let expired = send(&server, "GET", &rest, "", "", String::new()).await;
    assert_eq!((expired.code, expired.body["reason"].as_str()), (410, Some("Expired")));
    let token = expired.body["metadata"]["continue"].as_str().expect("a way on").to_owned();
    let path = format!("{maps}?limit=5&continue={token}");
    assert_eq!(names(&send(&server, "GET", &path, "", "", String::new()).await.body), ["c"]);
}

/// The types and names of a watch's events.
async fn watch(server: &ApiServer, path: &str) -> Vec<String> {
    let answer = send(server, "GET", path, "", "", String::new()).await;
    let text = match &answer.body {
        Value::String(text) => text.clone(),
        one => one.to_string(),
    };
    let read = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("an event");
        let kind = event["type"].as_str().unwrap_or_default();
        let name = event["object"]["metadata"]["name"].as_str();
        let name = name.or(event["object"]["reason"].as_str()).unwrap_or("-");
        let end = event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end");
        format!("{kind} {name}{}", if end.is_some() { " end" } else { "" })
    };
    text.lines().filter(|line| !line.is_empty()).map(read).collect()
}

#[tokio::test(start_paused = true)]
async fn watches_report_what_matters_to_their_selection() {
    let server = server();
    let maps = "/api/v1/namespaces/default/configmaps";
    let start = server.store().revision();
    let label = |value: &str| json!({ "metadata": { "labels": { "on": value } } });
    run(
        &server,
        vec![
            step(
                "a",
                "POST /api/v1/namespaces/default/configmaps",
                json!({ "metadata": { "name": "a" } }),
                201,
                vec![],
            ),
            step("in", "MERGE /api/v1/namespaces/default/configmaps/a", label("1"), 200, vec![]),
            step(
                "change",
                "MERGE /api/v1/namespaces/default/configmaps/a",
                json!({ "data": { "x": "y" } }),
                200,
                vec![],
            ),
            step("out", "MERGE /api/v1/namespaces/default/configmaps/a", label("0"), 200, vec![]),
            step(
                "gone",
                "DELETE /api/v1/namespaces/default/configmaps/a",
                Value::Null,
                200,
                vec![],
            ),
        ],
    )
    .await;
    let from = format!("{maps}?watch=1&timeoutSeconds=1&resourceVersion={start}");
    assert_eq!(
        watch(&server, &from).await,
        ["ADDED a", "MODIFIED a", "MODIFIED a", "MODIFIED a", "DELETED a"]
    );
    assert_eq!(
        watch(&server, &format!("{from}&labelSelector=on%3D1")).await,
        ["ADDED a", "MODIFIED a", "DELETED a"]
    );
    assert_eq!(watch(&server, &format!("{from}&fieldSelector=metadata.name%3Db")).await, [""; 0]);
    server.store().compact();
    assert_eq!(watch(&server, &from).await, ["ERROR Expired"]);
    let all = "/api/v1/namespaces?watch=1&timeoutSeconds=90&sendInitialEvents=true\
               &resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    assert_eq!(
        watch(&server, all).await,
        [
            "ADDED default",
            "ADDED kube-node-lease",
            "ADDED kube-public",
            "ADDED kube-system",
            "BOOKMARK - end",
            "BOOKMARK -",
        ]
    );
}
