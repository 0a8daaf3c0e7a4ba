//! Who owns what after which writes.

use serde_json::{Value, json};

use super::*;
use crate::types;

fn writer(manager: &str) -> Writer<'_> {
    Writer { manager, api_version: "apps/v1", subresource: "", time: "t", reset: &[] }
}

/// One apply by one manager on a Deployment.
fn apply(live: &Value, manager: &str, config: Value, force: bool) -> Result<Value, String> {
    let ty = types::kubernetes().find("apps/v1.Deployment").expect("known");
    let request = ApplyRequest {
        shape: Shape::of(&ty),
        live,
        config: &config,
        writer: writer(manager),
        force,
    };
    track_apply(&request).map_err(|error| error.message)
}

fn update(live: &Value, manager: &str, mut new: Value) -> Value {
    let ty = types::kubernetes().find("apps/v1.Deployment").expect("known");
    track_update(&UpdateRequest { shape: Shape::of(&ty), live, writer: writer(manager) }, &mut new);
    new
}

/// The owners as `manager: fields` lines.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let show = |entry: &Value| {
        let set = FieldSet::from_value(&entry["fieldsV1"]);
        format!("{}: {}", entry["manager"].as_str().unwrap_or_default(), set.paths().join(" "))
    };
    entries.iter().map(show).collect()
}

fn spec(spec: Value) -> Value {
    json!({ "metadata": {}, "spec": spec })
}

fn containers(items: Value) -> Value {
    spec(json!({ "template": { "spec": { "containers": items } } }))
}

const NEW: fn() -> Value = || json!({ "metadata": {} });

#[test]
fn appliers_share_an_object() {
    let one = apply(&NEW(), "alice", spec(json!({ "replicas": 3 })), false).expect("applies");
    let two = apply(&one, "bob", spec(json!({ "paused": true })), false).expect("applies");
    assert_eq!(two["spec"], json!({ "replicas": 3, "paused": true }));
    assert_eq!(owners(&two), ["alice: .spec.replicas", "bob: .spec.paused"]);
    let same = apply(&two, "bob", spec(json!({ "paused": true, "replicas": 3 })), false);
    assert_eq!(
        owners(&same.expect("the same value is shared")),
        ["alice: .spec.replicas", "bob: .spec.paused .spec.replicas"]
    );
}

#[test]
fn conflicts_are_refused_or_forced() {
    let one = apply(&NEW(), "alice", spec(json!({ "replicas": 3, "paused": true })), false)
        .expect("applies");
    let config = spec(json!({ "replicas": 4 }));
    assert_eq!(
        apply(&one, "bob", config.clone(), false),
        Err("Apply failed with 1 conflict: conflict with \"alice\": .spec.replicas".to_owned())
    );
    let forced = apply(&one, "bob", config, true).expect("forced");
    assert_eq!(forced["spec"]["replicas"], 4);
    assert_eq!(owners(&forced), ["alice: .spec.paused", "bob: .spec.replicas"]);
    let both = spec(json!({ "replicas": 5, "paused": false }));
    assert_eq!(
        apply(&one, "bob", both, false),
        Err("Apply failed with 2 conflicts: conflicts with \"alice\":\n- .spec.paused\n\
             - .spec.replicas"
            .to_owned())
    );
}

#[test]
fn what_an_applier_drops_goes_unless_others_want_it() {
    let one = apply(&NEW(), "alice", spec(json!({ "replicas": 3, "paused": true })), false)
        .expect("applies");
    let two = apply(&one, "bob", spec(json!({ "paused": true })), false).expect("applies");
    let dropped = apply(&two, "alice", spec(json!({})), false).expect("applies");
    assert_eq!(dropped["spec"], json!({ "paused": true }));
    let gone = apply(&dropped, "bob", spec(json!({})), false).expect("applies");
    assert_eq!(gone.pointer("/spec/paused"), None);
}

#[test]
fn list_items_have_owners_of_their_own() {
    let one = apply(&NEW(), "alice", containers(json!([{ "name": "a", "image": "1" }])), false)
        .expect("applies");
    let two = apply(&one, "bob", containers(json!([{ "name": "b", "image": "1" }])), false)
        .expect("applies");
    let names = |object: &Value| -> Vec<String> {
        let items = object["spec"]["template"]["spec"]["containers"].as_array().cloned();
        items.unwrap_or_default().iter().map(|item| item["name"].to_string()).collect()
    };
    assert_eq!(names(&two), ["\"a\"", "\"b\""]);
    assert_eq!(
        owners(&two)[1],
        "bob: .spec.template.spec.containers[name=\"b\"] \
         .spec.template.spec.containers[name=\"b\"].image \
         .spec.template.spec.containers[name=\"b\"].name"
    );
    let less = apply(&two, "alice", containers(json!([])), false).expect("applies");
    assert_eq!(names(&less), ["\"b\""]);
    let order = containers(json!([{ "name": "z" }, { "name": "b", "image": "1" }]));
    assert_eq!(names(&apply(&less, "bob", order, false).expect("applies")), ["\"z\"", "\"b\""]);
}

#[test]
fn updates_take_what_they_change_and_lose_what_they_remove() {
    let one = apply(&NEW(), "alice", spec(json!({ "replicas": 3, "paused": true })), false)
        .expect("applies");
    let mut changed = one.clone();
    changed["spec"] = json!({ "replicas": 5, "minReadySeconds": 2 });
    let two = update(&one, "kubectl", changed);
    assert_eq!(owners(&two), ["kubectl: .spec.minReadySeconds .spec.replicas"]);
    let conflict = apply(&two, "alice", spec(json!({ "replicas": 3 })), false);
    assert_eq!(
        conflict,
        Err("Apply failed with 1 conflict: conflict with \"kubectl\" using apps/v1: \
             .spec.replicas"
            .to_owned())
    );
}

#[test]
fn the_record_can_be_wiped_and_does_not_grow_without_end() {
    let mut object = spec(json!({ "replicas": 1 }));
    for step in 0..15 {
        let mut next = object.clone();
        next["metadata"]["annotations"][format!("a{step}")] = json!("x");
        object = update(&object, &format!("manager-{step:02}"), next);
    }
    let all = owners(&object);
    assert!(all.len() <= 10, "{all:?}");
    assert!(all.iter().any(|line| line.starts_with("ancient-changes: ")), "{all:?}");
    let mut wiped = object.clone();
    wiped["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(update(&object, "x", wiped).pointer("/metadata/managedFields"), None);
}

#[test]
fn field_sets_read_what_they_write() {
    let text = json!({
        "f:metadata": { "f:labels": { ".": {}, "f:app": {} }, "f:finalizers": { "v:\"x\"": {} } },
        "f:spec": { "k:{\"name\":\"a\"}": { ".": {}, "f:image": {} } },
    });
    let set = FieldSet::from_value(&text);
    assert_eq!(set.to_value(), text);
    assert_eq!(set.difference(&set), FieldSet::default());
    assert_eq!(set.intersection(&set), set);
    assert_eq!(FieldSet::default().union(&set), set);
    assert!(set.paths().contains(&".metadata.finalizers[=\"x\"]".to_owned()));
}

#[test]
fn custom_objects_follow_their_schema() {
    let schema = json!({ "properties": { "spec": { "type": "object", "properties": {
        "ports": { "type": "array", "x-kubernetes-list-type": "map",
                   "x-kubernetes-list-map-keys": ["name"],
                   "items": { "type": "object", "properties": { "name": {}, "number": {} } } },
        "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": {} },
        "plain": { "type": "array", "items": {} },
    } } } });
    let apply = |live: &Value, manager: &str, config: Value| {
        let shape = Shape::Custom(Some(&schema));
        let request =
            ApplyRequest { shape, live, config: &config, writer: writer(manager), force: false };
        track_apply(&request).expect("applies")
    };
    let config =
        spec(json!({ "ports": [{ "name": "a", "number": 1 }], "tags": ["x"], "plain": [1] }));
    let one = apply(&NEW(), "alice", config);
    let two = apply(&one, "bob", spec(json!({ "ports": [{ "name": "b" }], "tags": ["y"] })));
    assert_eq!(
        two["spec"],
        json!({
            "ports": [{ "name": "a", "number": 1 }, { "name": "b" }],
            "tags": ["x", "y"],
            "plain": [1],
        })
    );
    assert_eq!(
        owners(&two)[1],
        "bob: .spec.ports[name=\"b\"] .spec.ports[name=\"b\"].name .spec.tags[=\"y\"]"
    );
}
