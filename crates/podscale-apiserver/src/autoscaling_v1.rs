//! Autoscalers of version 1, which are stored as version 2.

use serde_json::{Value, json};

/// A stored autoscaler as version 1.
pub(crate) fn from_v2(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!("autoscaling/v1"));
    }
    object
}

/// An autoscaler of version 1 as it is stored.
pub(crate) fn to_v2(mut object: Value) -> Result<Value, String> {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!("autoscaling/v2"));
    }
    Ok(object)
}

/// Fills in an autoscaler of version 1.
pub(crate) fn default(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        crate::value::default(spec, "minReplicas", 1);
    }
}
