//! Reading and writing parts of JSON objects by path.

use serde_json::{Map, Value};

/// The text at a JSON pointer, or the empty text.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The integer at a JSON pointer.
pub(crate) fn integer(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// The list at a JSON pointer, or an empty one.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The fields of an object below a key, made if need be.
pub(crate) fn section<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    fields(entry(object, key))
}

/// The value below a key, made if need be.
pub(crate) fn entry<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    fields(object).entry(key).or_insert(Value::Null)
}

/// The value as a map; anything else is replaced by an empty one.
pub(crate) fn fields(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        // The line above made it an object.
        _ => unreachable!("not an object"),
    }
}

/// The object's metadata, made if need be.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    section(object, "metadata")
}

/// Sets a field that is absent or null.
pub(crate) fn default(fields: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if fields.get(name).is_none_or(Value::is_null) {
        fields.insert(name.to_owned(), value.into());
    }
}

/// Sets a text that is absent or empty.
pub(crate) fn default_text(fields: &mut Map<String, Value>, name: &str, value: &str) {
    let given = fields.get(name).and_then(Value::as_str).unwrap_or_default();
    if given.is_empty() {
        fields.insert(name.to_owned(), Value::from(value));
    }
}

/// Copies a field from another object, or removes it where the other has none.
pub(crate) fn copy(to: &mut Value, from: &Value, name: &str) {
    let to = fields(to);
    match from.get(name) {
        Some(value) => {
            to.insert(name.to_owned(), value.clone());
        }
        None => {
            to.remove(name);
        }
    }
}

/// Whether a value is there and not null.
pub(crate) fn is_set(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}
