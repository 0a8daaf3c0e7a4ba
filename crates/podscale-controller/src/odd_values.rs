//! Values that fit hardly anywhere, for tests that spoil objects.

use serde_json::{Value, json};

/// One of them, as a number below a limit picks it.
pub(crate) fn odd(mut below: impl FnMut(usize) -> usize) -> Value {
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
        json!("1e999"),
        json!("90s"),
        json!("2026-02-30T00:00:00Z"),
        json!(true),
        json!([]),
        json!({}),
        json!([null]),
        json!({"kind": 5}),
        json!({"replicas": -1}),
        json!("Pods"),
        json!("Value"),
        json!("StatefulSet"),
        json!({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
    ];
    values[below(values.len())].clone()
}
