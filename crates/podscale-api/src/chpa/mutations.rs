//! A thousand broken CHPAs, as a definition without any schema lets them in.

use super::Chpa;
use super::translate::autoscaler;
use serde_json::{Value, json};

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed >> 33) as usize) % end.max(1)
    }
}

fn whole() -> Value {
    json!({
        "apiVersion": super::API_VERSION, "kind": super::KIND,
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "7",
            "generation": 3},
        "spec": {
            "downscaleForbiddenWindowSeconds": 10, "upscaleForbiddenWindowSeconds": 20,
            "scaleUpLimitFactor": 3.5, "scaleUpLimitMinimum": 5, "tolerance": 0.2,
            "minReplicas": 2, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 80}},
                {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
                {"type": "Pods", "pods": {"metricName": "hits", "targetAverageValue": "100"}},
                {"type": "Object", "object": {"metricName": "hits", "targetValue": "5k",
                    "target": {"kind": "Service", "name": "front"}}},
                {"type": "External", "external": {"metricName": "queue", "targetAverageValue": "30",
                    "metricSelector": {"matchLabels": {"queue": "orders"}}}}
            ]
        },
        "status": {
            "lastScaleTime": "2026-01-01T00:00:00Z", "currentReplicas": 2, "desiredReplicas": 3,
            "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
                "currentAverageUtilization": 90, "currentAverageValue": "90m"}}],
            "conditions": [{"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale",
                "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        }
    })
}

fn odd(numbers: &mut Numbers) -> Value {
    let values = [
        Value::Null,
        json!(0),
        json!(-1),
        json!(1),
        json!(2.5),
        json!(i64::MAX),
        json!(1e308),
        json!(""),
        json!("x"),
        json!("-5"),
        json!("10E"),
        json!(true),
        json!([]),
        json!({}),
        json!([null]),
        json!({"kind": 5}),
        json!("Pods"),
        json!("StatefulSet"),
        json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
    ];
    values[numbers.below(values.len())].clone()
}

/// Changes something at a random place: another value, nothing, or something more.
fn mutate(value: &mut Value, numbers: &mut Numbers) {
    let descends = numbers.below(5) > 0;
    match value {
        Value::Object(fields) if descends && !fields.is_empty() => {
            let place = numbers.below(fields.len());
            let key = fields.keys().nth(place).cloned().unwrap_or_default();
            match numbers.below(12) {
                0 => drop(fields.remove(&key)),
                1 => drop(fields.insert(format!("{key}x"), odd(numbers))),
                _ => mutate(&mut fields[&key], numbers),
            }
        }
        Value::Array(items) if descends && !items.is_empty() => {
            let place = numbers.below(items.len());
            match numbers.below(12) {
                0 => drop(items.remove(place)),
                1 => items.push(odd(numbers)),
                _ => mutate(&mut items[place], numbers),
            }
        }
        other => *other = odd(numbers),
    }
}

/// Whether a message says which field is wrong; the original's texts call the fields by their Go names.
fn names_a_field(message: &str) -> bool {
    ["spec", "metric.", "incorrect metric.Type", "configurable chpa doesn't support"]
        .iter()
        .any(|start| message.starts_with(start))
}

#[test]
fn a_thousand_mutations_are_read_and_either_mean_something_or_are_reported_by_field() {
    let mut numbers = Numbers(13);
    let (mut sound, mut wrong) = (0, 0);
    for number in 0..1000 {
        let mut object = whole();
        for _ in 0..=numbers.below(3) {
            let part = if numbers.below(6) == 0 { "status" } else { "spec" };
            mutate(&mut object[part], &mut numbers);
        }
        let chpa: Chpa = serde_json::from_value(object.clone()).expect("any spec can be read");
        assert_eq!(chpa.stored_spec, object["spec"], "it is written back as it came");
        chpa.to_body(super::StatusStored::WithObject).expect("JSON");
        let model = autoscaler(&chpa);
        match chpa.checked() {
            Ok(_) => {
                sound += 1;
                assert!(model.min_replicas >= 1 && model.min_replicas <= model.max_replicas);
            }
            Err(message) => {
                wrong += 1;
                assert!(names_a_field(&message), "{number}: {message}: {object}");
            }
        }
    }
    assert!(sound > 100 && wrong > 300, "{sound} sound, {wrong} wrong");
}
