//! Where two decisions differ, field by field.

use crate::hpa::v2::{HorizontalPodAutoscalerStatus, MetricStatus};
use crate::quantity::Quantity;
use crate::recording::RecordedDecision;
use serde::Serialize;
use serde_json::Value;

/// One field that is not as it should be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its path, such as `status.conditions[0].reason`.
    pub field: String,
    /// What was recorded; `null` if nothing was.
    pub expected: Value,
    /// What was decided; `null` if nothing was.
    pub got: Value,
}

impl Difference {
    /// The field at the top, which summaries count.
    #[must_use]
    pub fn top(&self) -> &str {
        self.field.split(['.', '[']).next().unwrap_or(&self.field)
    }
}

/// All fields in which the decisions differ. Equal ones are recognised without making any text.
#[must_use]
pub fn differences(expected: &RecordedDecision, got: &RecordedDecision) -> Vec<Difference> {
    if expected == got && written_alike(&expected.status, &got.status) {
        return Vec::new();
    }
    by_field(expected, got)
}

/// All fields in which two values of one type differ, as they are written.
#[must_use]
pub fn by_field<T: Serialize>(expected: &T, got: &T) -> Vec<Difference> {
    let value = |decision| serde_json::to_value(decision).unwrap_or_default();
    let mut found = Vec::new();
    walk(String::new(), &value(expected), &value(got), &mut found);
    found
}

/// Equal quantities may still be written differently, `1000` and `1k` for instance.
fn written_alike(a: &HorizontalPodAutoscalerStatus, b: &HorizontalPodAutoscalerStatus) -> bool {
    let metrics = a.current_metrics.iter().flatten().zip(b.current_metrics.iter().flatten());
    let mut pairs = metrics.flat_map(|(a, b)| quantities(a).zip(quantities(b)));
    pairs.all(|(a, b)| a.to_string() == b.to_string())
}

fn quantities(metric: &MetricStatus) -> impl Iterator<Item = &Quantity> {
    let current = [
        metric.resource.as_ref().map(|m| &m.current),
        metric.container_resource.as_ref().map(|m| &m.current),
        metric.pods.as_ref().map(|m| &m.current),
        metric.object.as_ref().map(|m| &m.current),
        metric.external.as_ref().map(|m| &m.current),
    ];
    current.into_iter().flatten().flat_map(|c| c.value.iter().chain(&c.average_value))
}

fn walk(path: String, expected: &Value, got: &Value, found: &mut Vec<Difference>) {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            let only_got = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(only_got) {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let null = &Value::Null;
                walk(path, a.get(key).unwrap_or(null), b.get(key).unwrap_or(null), found);
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for place in 0..a.len().max(b.len()) {
                let null = &Value::Null;
                let (a, b) = (a.get(place).unwrap_or(null), b.get(place).unwrap_or(null));
                walk(format!("{path}[{place}]"), a, b, found);
            }
        }
        (a, b) if a != b => {
            found.push(Difference { field: path, expected: a.clone(), got: b.clone() });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(expected: Value, got: Value, differences: &[(&str, Value, Value)]) {
        let mut found = Vec::new();
        walk(String::new(), &expected, &got, &mut found);
        let found: Vec<_> =
            found.iter().map(|d| (&*d.field, d.expected.clone(), d.got.clone())).collect();
        assert_eq!(found, differences);
    }

    #[test]
    fn each_field_is_named() {
        check(
            json!({"replicas": 3, "status": {"conditions": [{"reason": "A"}, {"reason": "B"}]}}),
            json!({"replicas": 4, "status": {"conditions": [{"reason": "A"}]}, "error": "boom"}),
            &[
                ("replicas", json!(3), json!(4)),
                ("status.conditions[1]", json!({"reason": "B"}), Value::Null),
                ("error", Value::Null, json!("boom")),
            ],
        );
        check(json!({"a": null}), json!({}), &[]);
    }

    #[test]
    fn quantities_must_be_written_alike() {
        let decision = |quantity: &str| -> RecordedDecision {
            serde_json::from_value(json!({"replicas": 1, "rescaled": false, "statusWritten": true,
                "status": {"currentMetrics": [{"type": "Resource", "resource":
                    {"name": "memory", "current": {"averageValue": quantity}}}]}}))
            .expect("a decision")
        };
        assert_eq!(differences(&decision("1000"), &decision("1k")), []);
        let found = differences(&decision("1Ki"), &decision("1024"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].field, "status.currentMetrics[0].resource.current.averageValue");
        assert_eq!(found[0].top(), "status");
    }
}
