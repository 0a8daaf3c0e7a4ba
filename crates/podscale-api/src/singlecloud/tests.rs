use super::*;
use crate::hpa::v2::HorizontalPodAutoscaler;
use serde_json::{Value, json};

/// The example of its design document, with that document's spelling of a field.
fn example() -> Value {
    json!({
        "name": "hpa-vg1-vanguard", "scaleTargetKind": "deployment", "scaleTargetName": "vg1-vanguard",
        "minReplicas": 1, "maxReplicas": 5,
        "customMetrics": [{"metricName": "zdns_vanguard_qps_by_view",
            "labels": {"module": "server", "view": "default"}, "averageValue": "2000"}],
        "resourceMetrics": [
            {"ResourceName": "cpu", "targetType": "Utilization", "averageUtilization": 50},
            {"ResourceName": "memory", "targetType": "AverageValue", "averageValue": "256Mi"}],
    })
}

fn with(path: &str, value: Value) -> Value {
    let mut body = example();
    *body.pointer_mut(path).expect("a place") = value;
    body
}

fn hpa_of(body: &Value) -> Result<HorizontalPodAutoscaler, Invalid> {
    to_hpa(&read(body)?.autoscaler, "default")
}

#[test]
fn the_example_becomes_a_native_autoscaler() {
    let hpa = hpa_of(&example()).expect("an autoscaler");
    let alias = "zdns_vanguard_qps_by_view_820193bd2d60_default_hpa-vg1-vanguard";
    let expected = json!({
        "kind": "HorizontalPodAutoscaler", "apiVersion": "autoscaling/v2",
        "metadata": {"name": "hpa-vg1-vanguard", "namespace": "default",
            "labels": {"deployment": "vg1-vanguard"}},
        "spec": {
            "scaleTargetRef": {"kind": "deployment", "name": "vg1-vanguard", "apiVersion": "apps/v1"},
            "minReplicas": 1, "maxReplicas": 5,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Resource", "resource": {"name": "memory",
                    "target": {"type": "AverageValue", "averageValue": "256Mi"}}},
                {"type": "Pods", "pods": {"metric": {"name": alias,
                    "selector": {"matchLabels": {"module": "server", "view": "default"}}},
                    "target": {"type": "AverageValue", "averageValue": "2k"}}}]},
    });
    assert_eq!(serde_json::to_value(&hpa).expect("JSON"), expected);
    let found = aliases(&hpa);
    assert_eq!(found.iter().map(Alias::name).collect::<Vec<_>>(), [alias]);
}

#[test]
fn what_is_wrong_is_said_in_singleclouds_words_with_its_field() {
    let long = "a".repeat(254);
    let cases = [
        ("", json!([]), "", "the body must be an object"),
        ("/name", Value::Null, "name", "field name is missing"),
        ("/scaleTargetName", Value::Null, "scaleTargetName", "field scaleTargetName is missing"),
        ("/maxReplicas", Value::Null, "maxReplicas", "field maxReplicas is missing"),
        ("/name", json!(long), "name", "exceed max domain name len limitation(253)"),
        (
            "/scaleTargetName",
            json!("Web"),
            "scaleTargetName",
            "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
             and end with an alphanumeric character",
        ),
        (
            "/scaleTargetKind",
            json!("daemonset"),
            "scaleTargetKind",
            "daemonset isn't included in options [deployment statefulset]",
        ),
        ("/maxReplicas", json!(1.5), "maxReplicas", "field maxReplicas must be an integer"),
        (
            "/minReplicas",
            json!(1_i64 << 40),
            "minReplicas",
            "field minReplicas must be an integer of 32 bits",
        ),
        (
            "/resourceMetrics/0",
            json!({"resourceName": "disk"}),
            "resourceMetrics[0].resourceName",
            "disk isn't included in options [cpu memory]",
        ),
        (
            "/resourceMetrics/0/ResourceName",
            json!("disk"),
            "resourceMetrics[0].resourceName",
            "resoucename disk isn`t supported",
        ),
        (
            "/resourceMetrics/1/targetType",
            json!("Value"),
            "resourceMetrics[1].targetType",
            "Value isn't included in options [Utilization AverageValue]",
        ),
        (
            "/resourceMetrics/1/targetType",
            Value::Null,
            "resourceMetrics[1].targetType",
            "metric target type  is unsupported",
        ),
        (
            "/resourceMetrics/0/averageUtilization",
            json!(0),
            "resourceMetrics[0].averageUtilization",
            "averageUtilization must not be empty when type is Utilization",
        ),
        (
            "/resourceMetrics/1/averageValue",
            json!(""),
            "resourceMetrics[1].averageValue",
            "averageValue must not be empty when type is AverageValue",
        ),
        (
            "/resourceMetrics/1/averageValue",
            json!("much"),
            "resourceMetrics[1].averageValue",
            "parse metric averageValue failed: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            "/customMetrics/0/metricName",
            json!("a b"),
            "customMetrics[0].metricName",
            "\"a b\" cannot be the name of a series in Prometheus",
        ),
        (
            "/customMetrics/0/labels/view",
            json!(7),
            "customMetrics[0].labels.view",
            "field customMetrics[0].labels.view must be a string",
        ),
        ("/customMetrics", json!({}), "customMetrics", "field customMetrics must be a list"),
    ];
    for (path, value, field, message) in cases {
        let error = hpa_of(&with(path, value)).expect_err(message);
        assert_eq!((error.field.as_str(), error.message.as_str()), (field, message));
    }
    let mut twice = example();
    twice["customMetrics"] = json!([twice["customMetrics"][0], twice["customMetrics"][0]]);
    let error = hpa_of(&twice).expect_err("the same metric twice");
    assert_eq!(error.field, "customMetrics[1]");
    assert!(error.message.starts_with("duplicate hpa custom metric alias name zdns_"), "{error}");
    for (labels, field) in
        [(json!({"a.b": "c"}), "a.b"), (json!({"view": "/a b"}), "view"), (json!({"_": "a"}), "_")]
    {
        let error = hpa_of(&with("/customMetrics/0/labels", labels)).expect_err(field);
        assert_eq!(error.field, format!("customMetrics[0].labels.{field}"));
    }
}

#[test]
fn unknown_fields_are_named_and_read_only_ones_passed_over() {
    let mut body = example();
    for (name, value) in [
        ("id", json!("x")),
        ("Links", json!({})),
        ("status", json!(7)),
        ("customMetric", json!([])),
    ] {
        body[name] = value;
    }
    body["resourceMetrics"][0]["unit"] = json!("m");
    let read = read(&body).expect("an autoscaler");
    assert_eq!(read.unknown, ["resourceMetrics[0].unit", "customMetric"]);
    assert!(read.autoscaler.id.is_empty());
}

#[test]
fn what_is_read_can_be_sent_back_without_a_change() {
    let mut body = example();
    body["resourceMetrics"][0] =
        json!({"resourceName": "cpu", "targetType": "AverageValue", "averageValue": "500m"});
    for (given, shown) in [("2000", "2000"), ("2k", "2000"), ("1500m", "1500m"), ("0.1", "100m")] {
        body["customMetrics"][0]["averageValue"] = json!(given);
        let stored = hpa_of(&body).expect("an autoscaler");
        let seen = serde_json::to_value(from_hpa(&stored)).expect("JSON");
        assert_eq!(seen["resourceMetrics"][0]["averageValue"], "500m");
        assert_eq!(seen["resourceMetrics"][1]["averageValue"], "256Mi");
        assert_eq!(seen["customMetrics"][0]["averageValue"], shown);
        assert_eq!(seen["customMetrics"][0]["metricName"], "zdns_vanguard_qps_by_view");
        let again = read(&seen).expect("an autoscaler");
        assert_eq!(again.unknown, Vec::<String>::new());
        assert_eq!(update_hpa(&stored, &again.autoscaler).expect("an update"), stored);
    }
}

/// An autoscaler that somebody made with kubectl.
fn native() -> HorizontalPodAutoscaler {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "shop", "labels": {"team": "a", "deployment": "web"},
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"},
            "maxReplicas": 5,
            "behavior": {"scaleDown": {"selectPolicy": "Disabled"}},
            "metrics": [
                {"type": "External", "external": {"metric": {"name": "depth"},
                    "target": {"type": "Value", "value": "30"}}},
                {"type": "Pods", "pods": {"metric": {"name": "packets-per-second"},
                    "target": {"type": "AverageValue", "averageValue": "1k"}}},
                {"type": "Pods", "pods": {"metric": {"name": "x", "selector":
                    {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
                    "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 70}}}]},
        "status": {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": [
            {"type": ""},
            {"type": "Pods", "pods": {"metric": {"name": "packets-per-second"},
                "current": {"averageValue": "1500m"}}},
            {"type": "Resource", "resource": {"name": "cpu",
                "current": {"averageUtilization": 90, "averageValue": "90m"}}}]},
    }))
    .expect("an autoscaler")
}

#[test]
fn a_native_autoscaler_is_shown_as_far_as_there_are_fields() {
    let shown = serde_json::to_value(from_hpa(&native())).expect("JSON");
    let expected = json!({
        "id": "web", "type": "horizontalpodautoscaler",
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": null,
        "name": "web", "scaleTargetKind": "deployment", "scaleTargetName": "web",
        "minReplicas": 1, "maxReplicas": 5,
        "resourceMetrics": [
            {"resourceName": "cpu", "targetType": "Utilization", "averageUtilization": 70}],
        "customMetrics": [{"metricName": "packets-per-second", "averageValue": "1000"}],
        "status": {"currentReplicas": 2, "desiredReplicas": 3, "currentMetrics": {
            "resourceMetrics": [
                {"resourceName": "cpu", "averageValue": "90m", "averageUtilization": 90}],
            "customMetrics": [{"metricName": "packets-per-second", "averageValue": "1500m"}]}},
    });
    assert_eq!(shown, expected);
    let missing = ["spec.metrics[0] (External)", "spec.metrics[2] (Pods)", "spec.behavior"];
    assert_eq!(left_out(&native()), missing);
}

#[test]
fn an_update_keeps_what_cannot_be_shown() {
    let stored = native();
    let mut autoscaler = from_hpa(&stored);
    autoscaler.max_replicas = 9;
    let updated = update_hpa(&stored, &autoscaler).expect("an update");
    let names = |hpa: &HorizontalPodAutoscaler| {
        let mut types: Vec<String> = hpa.spec.metrics.iter().map(|m| m.r#type.clone()).collect();
        types.sort_unstable();
        types
    };
    assert_eq!(names(&updated), names(&stored));
    assert_eq!(updated.spec.behavior, stored.spec.behavior);
    assert_eq!(updated.spec.scale_target_ref, stored.spec.scale_target_ref);
    assert_eq!(updated.spec.max_replicas, 9);
    assert!(aliases(&updated).is_empty(), "what was served before still is");
    autoscaler.scale_target_kind = "statefulset".to_owned();
    autoscaler.custom_metrics[0].metric_name = "packets".to_owned();
    let moved = update_hpa(&stored, &autoscaler).expect("an update");
    let labels = serde_json::to_value(&moved.metadata.labels).expect("JSON");
    assert_eq!(labels, json!({"team": "a", "statefulset": "web"}));
    assert_eq!(moved.spec.scale_target_ref.kind, "statefulset");
    assert_eq!(aliases(&moved).len(), 1);
}

/// A small generator of numbers, the same ones every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit.max(1)
    }
}

/// The paths of all values in a document.
fn places(value: &Value, path: &str, found: &mut Vec<String>) {
    found.push(path.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| places(value, &format!("{path}/{key}"), found));
        }
        Value::Array(list) => list
            .iter()
            .enumerate()
            .for_each(|(at, value)| places(value, &format!("{path}/{at}"), found)),
        _ => {}
    }
}

#[test]
fn a_thousand_mutations_are_taken_or_refused_with_the_field() {
    let odd = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(0),
        json!(1e300),
        json!(i64::MAX),
        json!(""),
        json!("🙂"),
        json!("9".repeat(400)),
        json!("-5"),
        json!("1e9999"),
        json!([]),
        json!({}),
        json!([[]]),
        json!({"a": {"b": []}}),
        json!("Utilization"),
        json!("cpu"),
        json!("a\"b\\\n"),
    ];
    let (mut chance, mut refused) = (Chance(7), 0);
    for round in 0..1_000 {
        let mut body = example();
        for _ in 0..=chance.below(3) {
            let mut found = Vec::new();
            places(&body, "", &mut found);
            let place = found.swap_remove(chance.below(found.len()));
            let value = odd[chance.below(odd.len())].clone();
            if let Some(there) = body.pointer_mut(&place) {
                *there = value;
            }
        }
        match hpa_of(&body) {
            Ok(hpa) => {
                // What is taken means the same when it is read and sent back.
                let again = update_hpa(&hpa, &from_hpa(&hpa)).map(|again| again.spec.max_replicas);
                assert_eq!(again, Ok(hpa.spec.max_replicas), "{round}: {body}");
            }
            Err(error) => {
                refused += 1;
                let named = !error.field.is_empty() || !body.is_object();
                assert!(named && !error.message.is_empty(), "{round}: {body}: {error:?}");
            }
        }
    }
    assert!((500..1_000).contains(&refused), "{refused} of 1,000");
}
