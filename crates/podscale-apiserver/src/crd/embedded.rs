//! Kubernetes objects inside of custom objects.

use podscale_api::field_error::metadata::check_create;
use podscale_api::field_error::names::{dns_1035_label, group_version, path_segment};
use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Value, json};

use super::schema::Schema;
use super::validate::bad_value;

const METADATA_FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Removes unknown fields from the metadata of embedded objects and returns which they were; fails
/// where an object's type or metadata is not even readable.
pub fn clean_embedded_metadata(
    object: &mut Value,
    schema: &Schema,
) -> Result<Vec<String>, FieldError> {
    let mut removed = Vec::new();
    clean(object, schema, &FieldPath::default(), &mut removed)?;
    Ok(removed)
}

fn clean(
    value: &mut Value,
    schema: &Schema,
    path: &FieldPath,
    removed: &mut Vec<String>,
) -> Result<(), FieldError> {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                for name in ["apiVersion", "kind"] {
                    if let Some(value) = fields.get(name).filter(|value| !value.is_string()) {
                        let field = path.child(name);
                        return Err(FieldError::invalid(
                            &field,
                            bad_value(value),
                            "must be a string",
                        ));
                    }
                }
                if let Some(metadata) = fields.get_mut("metadata") {
                    let field = path.child("metadata");
                    clean_metadata(metadata, &field, removed)?;
                }
            }
            for (name, value) in fields.iter_mut() {
                let below = match schema.properties.get(name) {
                    Some(property) => Some((property, path.child(name))),
                    None => schema.field(name).map(|schema| (schema, path.key(name))),
                };
                if let Some((schema, path)) = below {
                    clean(value, schema, &path, removed)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter_mut().enumerate() {
                    clean(item, schema, &path.index(index), removed)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

fn clean_metadata(
    metadata: &mut Value,
    path: &FieldPath,
    removed: &mut Vec<String>,
) -> Result<(), FieldError> {
    let shown = bad_value(metadata);
    let Value::Object(fields) = metadata else {
        return Err(FieldError::invalid(path, shown, "must be an object"));
    };
    fields.retain(|name, _| {
        let known = METADATA_FIELDS.contains(&name.as_str());
        if !known {
            removed.push(path.child(name).to_string());
        }
        known
    });
    Ok(())
}

/// Checks type and metadata of every embedded object.
pub(super) fn check(object: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_at(object, schema, &FieldPath::default(), &mut errors);
    errors
}

fn check_at(value: &Value, schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if schema.embedded_resource {
                check_object(value, path, errors);
            }
            for (name, value) in fields {
                match schema.properties.get(name) {
                    Some(property) => check_at(value, property, &path.child(name), errors),
                    None => {
                        if let Some(schema) = schema.field(name) {
                            check_at(value, schema, &path.key(name), errors);
                        }
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check_at(item, schema, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_object(object: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let field = path.child(name);
        let problem = match object.get(name) {
            None => {
                errors.push(FieldError::required(&field, ""));
                continue;
            }
            Some(Value::String(text)) if text.is_empty() => Some("must not be empty".to_owned()),
            Some(Value::String(text)) if name == "apiVersion" => group_version(text).err(),
            Some(Value::String(text)) => {
                let problems = dns_1035_label(&text.to_lowercase());
                (!problems.is_empty()).then(|| {
                    let problems = problems.join(",");
                    format!("may have mixed case, but should otherwise match: {problems}")
                })
            }
            Some(_) => Some("must be a string".to_owned()),
        };
        let value = object.get(name).unwrap_or(&Value::Null);
        errors
            .extend(problem.map(|problem| FieldError::invalid(&field, bad_value(value), problem)));
    }
    if let Some(metadata) = object.get("metadata").filter(|metadata| metadata.is_object()) {
        let mut metadata = metadata.clone();
        // A name is not asked for inside of another object.
        if metadata.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
            metadata["name"] = json!("unnamed");
        }
        let namespaced =
            !metadata.get("namespace").and_then(Value::as_str).unwrap_or_default().is_empty();
        errors.extend(check_create(&metadata, namespaced, path_segment).into_iter().map(
            |mut error| {
                error.field = path.child(&error.field).to_string();
                error
            },
        ));
    }
}
