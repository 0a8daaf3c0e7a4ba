//! What the server changes in a custom object before it validates it: fields that are not specified
//! go, nulls that mean nothing go, and defaults come.

use serde_json::{Map, Value};

use super::schema::{Additional, Schema};

const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes every field that the schema does not specify and returns which they were, sorted.
pub(super) fn prune(object: &mut Value, schema: &Schema) -> Vec<String> {
    let mut pruner = Pruner { removed: Vec::new(), path: Vec::new() };
    // The object itself is a Kubernetes object, even though its schema does not say so.
    pruner.prune(object, Some(schema), At::Root);
    pruner.removed.sort_unstable();
    pruner.removed
}

/// The same for a part of an object.
pub(super) fn prune_value(value: &mut Value, schema: &Schema) -> Vec<String> {
    let mut pruner = Pruner { removed: Vec::new(), path: Vec::new() };
    pruner.prune(value, Some(schema), At::Below);
    pruner.removed
}

/// Where the pruner is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Root,
    Below,
    /// In a list whose unspecified content is kept; so are the unspecified fields of its items.
    ItemOfKept,
}

struct Pruner {
    removed: Vec<String>,
    path: Vec<String>,
}

impl Pruner {
    fn prune(&mut self, value: &mut Value, schema: Option<&Schema>, at: At) {
        let keep =
            at == At::ItemOfKept || schema.is_some_and(|schema| schema.preserve_unknown_fields);
        match value {
            Value::Object(fields) => self.prune_fields(fields, schema, keep, at == At::Root),
            Value::Array(items) => {
                let below = schema.and_then(|schema| schema.items.as_deref());
                let at = if keep { At::ItemOfKept } else { At::Below };
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("[{index}]"));
                    self.prune(item, below, at);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn prune_fields(
        &mut self,
        fields: &mut Map<String, Value>,
        schema: Option<&Schema>,
        keep: bool,
        root: bool,
    ) {
        let embedded = root || schema.is_some_and(|schema| schema.embedded_resource);
        fields.retain(|name, value| {
            if schema.is_some() && embedded && META_FIELDS.contains(&name.as_str()) {
                return true;
            }
            let property = schema.and_then(|schema| schema.properties.get(name));
            let additional = schema.and_then(|schema| schema.additional_properties.as_ref());
            match (property, additional) {
                (Some(property), _) => self.descend(name, value, Some(property)),
                (None, Some(additional)) => self.descend(name, value, additional.schema()),
                (None, None) if keep => {}
                (None, None) => {
                    self.removed.push(self.name_of(name));
                    return false;
                }
            }
            true
        });
    }

    fn descend(&mut self, name: &str, value: &mut Value, schema: Option<&Schema>) {
        self.path.push(name.to_owned());
        self.prune(value, schema, At::Below);
        self.path.pop();
    }

    fn name_of(&self, field: &str) -> String {
        let mut name = String::new();
        for part in self.path.iter().map(String::as_str).chain([field]) {
            if !name.is_empty() && !part.starts_with('[') {
                name.push('.');
            }
            name.push_str(part);
        }
        name
    }
}

/// Removes nulls where null is neither a value nor stands for a default.
pub(super) fn drop_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let schema = schema.and_then(|schema| schema.field(name));
            let meaningless = value.is_null()
                && schema.is_some_and(|schema| !schema.nullable && !has_default(schema));
            if !meaningless {
                drop_nulls(value, schema);
            }
            !meaningless
        }),
        Value::Array(items) => {
            let schema = schema.and_then(|schema| schema.items.as_deref());
            items.iter_mut().for_each(|item| drop_nulls(item, schema));
        }
        _ => {}
    }
}

fn has_default(schema: &Schema) -> bool {
    schema.default.as_ref().is_some_and(|default| !default.is_null())
}

/// Fills in the defaults of fields that are missing, or null where null is no value.
pub(super) fn fill_defaults(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let missing = match fields.get(name) {
                    None => true,
                    Some(value) => value.is_null() && !property.nullable,
                };
                if let Some(default) =
                    property.default.as_ref().filter(|default| !default.is_null())
                    && missing
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                match (schema.properties.get(name), &schema.additional_properties) {
                    (Some(property), _) => fill_defaults(value, property),
                    (None, Some(Additional::Schema(schema))) => fill_item(value, schema),
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| fill_item(item, schema));
            }
        }
        _ => {}
    }
}

fn fill_item(item: &mut Value, schema: &Schema) {
    if item.is_null() && !schema.nullable {
        *item = schema.default.clone().unwrap_or(Value::Null);
    }
    fill_defaults(item, schema);
}
