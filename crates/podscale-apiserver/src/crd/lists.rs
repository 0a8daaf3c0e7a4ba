//! Lists that are sets or maps: no item, or no key of an item, may occur twice.

use std::collections::HashMap;

use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Map, Value};

use super::schema::Schema;
use super::validate::bad_value;

pub(super) fn check(value: &Value, schema: &Schema, path: &FieldPath) -> Vec<FieldError> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match schema.properties.get(name) {
                Some(property) => check(value, property, &path.child(name)),
                None => schema
                    .field(name)
                    .map(|schema| check(value, schema, &path.key(name)))
                    .unwrap_or_default(),
            })
            .collect(),
        Value::Array(items) => {
            let mut errors = match schema.list_type.as_deref() {
                Some("set") => duplicates(items, path),
                Some("map") => check_map(items, &schema.list_map_keys, path),
                _ => Vec::new(),
            };
            if let Some(schema) = &schema.items {
                errors.extend(
                    items
                        .iter()
                        .enumerate()
                        .flat_map(|(index, item)| check(item, schema, &path.index(index))),
                );
            }
            errors
        }
        _ => Vec::new(),
    }
}

/// Each value that occurs again is reported once, where it occurs the second time.
fn duplicates(items: &[Value], path: &FieldPath) -> Vec<FieldError> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut errors = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let times = seen.entry(item.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(&path.index(index), bad_value(item)));
        }
    }
    errors
}

fn check_map(items: &[Value], keys: &[String], path: &FieldPath) -> Vec<FieldError> {
    let misfit = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = misfit {
        let detail = "must be an object for an array of list-type map";
        return vec![FieldError::invalid(&path.index(index), bad_value(&items[index]), detail)];
    }
    let key_of = |item: &Value| -> Value {
        let fields = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(fields.collect::<Map<_, _>>())
    };
    duplicates(&items.iter().map(key_of).collect::<Vec<_>>(), path)
}
