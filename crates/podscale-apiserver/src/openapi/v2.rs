//! Version 2 of the document, made from version 3.

pub(super) mod protobuf;

use serde_json::{Map, Value, json};

/// The same document in the older form.
pub(super) fn document(version_3: &Value) -> Value {
    let schemas = version_3.pointer("/components/schemas").cloned().unwrap_or_else(|| json!({}));
    let paths: Map<String, Value> = version_3
        .get("paths")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(path, operations)| (path.clone(), older_operations(operations)))
        .collect();
    json!({
        "swagger": "2.0",
        "info": version_3["info"],
        "paths": paths,
        "definitions": older_schema(schemas),
    })
}

fn older_operations(operations: &Value) -> Value {
    let older = |operation: &Value| {
        let mut older = operation.as_object().cloned().unwrap_or_default();
        let mut parameters: Vec<Value> = older
            .remove("parameters")
            .and_then(|parameters| parameters.as_array().cloned())
            .unwrap_or_default()
            .into_iter()
            .map(flat_parameter)
            .collect();
        if let Some(body) = older.remove("requestBody") {
            let kinds: Vec<String> = body
                .get("content")
                .and_then(Value::as_object)
                .map(|content| content.keys().cloned().collect())
                .unwrap_or_default();
            older.insert("consumes".to_owned(), json!(kinds));
            parameters.push(json!({
                "name": "body",
                "in": "body",
                "required": true,
                "schema": {"type": "object"},
            }));
        }
        older.insert("parameters".to_owned(), Value::Array(parameters));
        older.insert("produces".to_owned(), json!(["application/json"]));
        let schema = operation.pointer("/responses/200/content/application~1json/schema").cloned();
        let schema = older_schema(schema.unwrap_or_else(|| json!({"type": "object"})));
        let responses = json!({"200": {"description": "OK", "schema": schema}});
        older.insert("responses".to_owned(), responses);
        Value::Object(older)
    };
    operations
        .as_object()
        .into_iter()
        .flatten()
        .map(|(verb, operation)| (verb.clone(), older(operation)))
        .collect::<Map<_, _>>()
        .into()
}

fn flat_parameter(mut parameter: Value) -> Value {
    if let Value::Object(fields) = &mut parameter
        && let Some(kind) = fields.remove("schema").and_then(|schema| schema.get("type").cloned())
    {
        fields.insert("type".to_owned(), kind);
    }
    parameter
}

/// References lead elsewhere, may stand next to a description, and alternatives are not known.
fn older_schema(schema: Value) -> Value {
    match schema {
        Value::Object(mut fields) => {
            if let Some(Value::Array(all)) = fields.get("allOf")
                && let [Value::Object(only)] = all.as_slice()
                && let Some(reference) = only.get("$ref").cloned()
            {
                fields.remove("allOf");
                fields.insert("$ref".to_owned(), reference);
            }
            fields
                .into_iter()
                .map(|(name, value)| match value {
                    Value::String(text) if name == "$ref" => {
                        (name, text.replace(super::SCHEMAS, "#/definitions/").into())
                    }
                    value => (name, older_schema(value)),
                })
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.into_iter().map(older_schema).collect(),
        other => other,
    }
}
