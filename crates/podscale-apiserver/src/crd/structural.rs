//! Which schemas are structural: every value has a type, and validation adds no fields of its own.

use podscale_api::field_error::{BadValue, FieldError, FieldPath};

use super::prune;
use super::schema::{Additional, Schema};
use super::validate;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Everything that keeps a schema from being structural, sorted by text.
pub fn check_structural(schema: &Schema, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_level(schema, Level::Root, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn check_level(schema: &Schema, level: Level, path: &FieldPath, errors: &mut Vec<FieldError>) {
    match &schema.items {
        Some(items) => check_level(items, Level::Item, &path.child("items"), errors),
        None if schema.kind == "array" => {
            errors.push(FieldError::required(&path.child("items"), "must be specified"));
        }
        None => {}
    }
    for (name, property) in &schema.properties {
        check_level(property, Level::Field, &path.child("properties").key(name), errors);
    }
    let additional_path = path.child("additionalProperties");
    if let Some(additional) = &schema.additional_properties {
        if level == Level::Root {
            errors.push(FieldError::forbidden(&additional_path, "must not be used at the root"));
        }
        if schema.embedded_resource {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(&additional_path, detail));
        }
        if let Additional::Schema(schema) = additional {
            check_level(schema, Level::Field, &additional_path, errors);
        }
    }
    check_extensions(schema, path, errors);
    check_alternatives(schema, path, errors);
    check_kind(schema, level, path, errors);
    let object_like = level == Level::Root || schema.embedded_resource;
    check_object_fields(schema, level, object_like, path, errors);
}

fn check_extensions(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if !schema.int_or_string {
        return;
    }
    for (name, set) in [
        ("x-kubernetes-preserve-unknown-fields", schema.preserve_unknown_fields),
        ("x-kubernetes-embedded-resource", schema.embedded_resource),
    ] {
        if set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&path.child(name), BadValue::verbatim("true"), detail));
        }
    }
}

fn check_kind(schema: &Schema, level: Level, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let field = path.child("type");
    let kind = schema.kind.as_str();
    if schema.embedded_resource && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(&field, detail),
            kind => FieldError::invalid(&field, kind, detail),
        });
    } else if kind.is_empty() && !schema.int_or_string && !schema.preserve_unknown_fields {
        let place = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        errors.push(FieldError::required(&field, format!("must not be empty {place}")));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&field, kind, "must be object at the root"));
    }
}

/// Kind, version and metadata of an object are what they are everywhere.
fn check_object_fields(
    schema: &Schema,
    level: Level,
    object_like: bool,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    let properties = path.child("properties");
    if object_like {
        for (name, kind) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
            if let Some(property) = schema.properties.get(name).filter(|it| it.kind != kind) {
                errors.push(FieldError::invalid(
                    &properties.key(name).child("type"),
                    property.kind.as_str(),
                    format!("must be {kind}"),
                ));
            }
        }
    }
    if level == Level::Root
        && let Some(metadata) = schema.properties.get("metadata")
        && !says_only_names(metadata)
    {
        errors.push(FieldError::forbidden(
            &properties.key("metadata"),
            "must not specify anything other than name and generateName, but metadata is \
             implicitly specified",
        ));
    }
    if schema.embedded_resource && !schema.preserve_unknown_fields && schema.properties.is_empty() {
        errors.push(FieldError::required(
            &properties,
            "must not be empty if x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields",
        ));
    }
}

fn says_only_names(metadata: &Schema) -> bool {
    let names_only =
        metadata.properties.keys().all(|name| matches!(name.as_str(), "name" | "generateName"));
    names_only
        && metadata.additional_properties.is_none()
        && metadata.required.is_empty()
        && metadata.description.is_empty()
        && metadata.title.is_empty()
        && !metadata.nullable
        && !metadata.preserve_unknown_fields
        && !metadata.embedded_resource
        && metadata.rules.is_empty()
        && metadata.min_properties.is_none()
        && metadata.max_properties.is_none()
        && metadata.any_of.is_empty()
        && metadata.all_of.is_empty()
        && metadata.one_of.is_empty()
        && metadata.not.is_none()
}

fn check_alternatives(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    if let Some(pattern) = &schema.pattern
        && let Err(reason) = &pattern.regex
    {
        let detail = format!(
            "must be a valid regular expression, but isn't: error parsing regexp: {reason}"
        );
        errors.push(FieldError::invalid(&path.child("pattern"), pattern.text.as_str(), detail));
    }
    if !is_int_or_string_pair(&schema.any_of) {
        check_all(&schema.any_of, "anyOf", path, errors);
    }
    for (index, nested) in schema.all_of.iter().enumerate() {
        let field = path.child("allOf").index(index);
        if index == 0 && is_int_or_string_pair(&nested.any_of) {
            let mut rest = nested.clone();
            rest.any_of.clear();
            check_nested(&rest, &field, errors);
        } else {
            check_nested(nested, &field, errors);
        }
    }
    check_all(&schema.one_of, "oneOf", path, errors);
    if let Some(not) = &schema.not {
        check_nested(not, &path.child("not"), errors);
    }
}

fn check_all(schemas: &[Schema], name: &str, path: &FieldPath, errors: &mut Vec<FieldError>) {
    for (index, schema) in schemas.iter().enumerate() {
        check_nested(schema, &path.child(name).index(index), errors);
    }
}

/// `anyOf: [{type: integer}, {type: string}]`, which is the way to say it.
fn is_int_or_string_pair(schemas: &[Schema]) -> bool {
    matches!(schemas, [first, second] if first.kind == "integer" && second.kind == "string")
}

/// Inside of alternatives only values are judged; structure is reported outside.
fn check_nested(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    check_alternatives(schema, path, errors);
    if let Some(items) = &schema.items {
        check_nested(items, &path.child("items"), errors);
    }
    let properties = path.child("properties");
    for (name, property) in &schema.properties {
        check_nested(property, &properties.key(name), errors);
    }
    for (name, set, detail) in [
        ("type", !schema.kind.is_empty(), "must be empty to be structural"),
        (
            "additionalProperties",
            schema.additional_properties.is_some(),
            "must be undefined to be structural",
        ),
        ("default", schema.default.is_some(), "must be undefined to be structural"),
        ("title", !schema.title.is_empty(), "must be empty to be structural"),
        ("description", !schema.description.is_empty(), "must be empty to be structural"),
        ("nullable", schema.nullable, "must be false to be structural"),
        (
            "x-kubernetes-preserve-unknown-fields",
            schema.preserve_unknown_fields,
            "must be false to be structural",
        ),
        (
            "x-kubernetes-embedded-resource",
            schema.embedded_resource,
            "must be false to be structural",
        ),
        ("x-kubernetes-int-or-string", schema.int_or_string, "must be false to be structural"),
        (
            "x-kubernetes-list-map-keys",
            !schema.list_map_keys.is_empty(),
            "must be empty to be structural",
        ),
        (
            "x-kubernetes-list-type",
            schema.list_type.is_some(),
            "must be undefined to be structural",
        ),
        ("x-kubernetes-map-type", schema.map_type.is_some(), "must be undefined to be structural"),
        ("x-kubernetes-validations", !schema.rules.is_empty(), "must be empty to be structural"),
    ] {
        if set {
            errors.push(FieldError::forbidden(&path.child(name), detail));
        }
    }
    if schema.properties.contains_key("metadata") {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(&properties.key("metadata"), detail));
    }
}

/// Defaults must be values that the schema accepts as they are.
pub(super) fn check_defaults(schema: &Schema, path: &FieldPath, root: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = path.child("default");
    if let Some(default) = schema.default.as_ref().filter(|default| !default.is_null()) {
        let mut pruned = default.clone();
        if prune::prune_value(&mut pruned, schema).is_empty() {
            errors.extend(validate::check(default, None, schema).into_iter().map(|mut error| {
                error.field = match error.field.as_str() {
                    "<nil>" => field.to_string(),
                    below => field.child(below).to_string(),
                };
                error
            }));
        } else {
            let detail = "must not have unknown fields";
            errors.push(FieldError::invalid(&field, BadValue::json(default), detail));
        }
    }
    for (name, property) in &schema.properties {
        let path = path.child("properties").key(name);
        if root && name == "metadata" {
            if property.default.is_some() {
                let detail = "must not be set in top-level metadata";
                errors.push(FieldError::forbidden(&path.child("default"), detail));
            }
            continue;
        }
        errors.extend(check_defaults(property, &path, false));
    }
    if let Some(items) = &schema.items {
        errors.extend(check_defaults(items, &path.child("items"), false));
    }
    if let Some(Additional::Schema(schema)) = &schema.additional_properties {
        errors.extend(check_defaults(schema, &path.child("additionalProperties"), false));
    }
    errors
}
