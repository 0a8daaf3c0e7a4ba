//! Which keywords a schema may use, and how.

use std::collections::BTreeSet;

use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use serde::Serialize;
use serde_json::Value;

use super::expression::Expression;
use super::schema::{Additional, Rule, Schema};
use super::typing::{self, Purpose, Standing, Subject};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
const UNSUPPORTED: [&str; 5] =
    ["additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];

/// Everything that is wrong with the keywords of a schema; `raw` is its JSON, which also holds the
/// keywords that are not supported.
pub(super) fn check(schema: &Schema, raw: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut found = Found::default();
    let place = Place { path: path.clone(), standing: Standing::Root, unrelated: None };
    check_level(schema, raw, &place, &mut found);
    found.schema.append(&mut found.rules);
    found.schema
}

/// What was found: rules are reported after everything else.
#[derive(Default)]
struct Found {
    schema: Vec<FieldError>,
    rules: Vec<FieldError>,
}

/// Where a level of the schema is.
struct Place {
    path: FieldPath,
    standing: Standing,
    /// The nearest level above whose parts cannot be told apart from one version of an object to
    /// the next, so that rules about changes make no sense.
    unrelated: Option<FieldPath>,
}

impl Place {
    fn below(&self, path: FieldPath, related: bool) -> Self {
        let unrelated = self.unrelated.clone();
        let unrelated = unrelated.or_else(|| (!related).then(|| self.path.clone()));
        Self { path, standing: Standing::Below, unrelated }
    }
}

fn check_level(schema: &Schema, raw: &Value, place: &Place, found: &mut Found) {
    let (path, before) = (&place.path, found.schema.len());
    check_types(schema, raw, path, &mut found.schema);
    check_children(schema, raw, place, found);
    let errors = &mut found.schema;
    if raw.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = path.child("x-kubernetes-preserve-unknown-fields");
        let value = BadValue::verbatim("false");
        errors.push(FieldError::invalid(&field, value, "must be true or undefined"));
    }
    check_map_type(schema, path, errors);
    check_list_type(schema, path, errors);
    let rules = path.child("x-kubernetes-validations");
    for (index, rule) in schema.rules.iter().enumerate() {
        errors.extend(check_rule(rule, schema, &rules.index(index)));
    }
    // What rules may use is only clear once the rest is right.
    if errors.len() == before {
        for (index, rule) in schema.rules.iter().enumerate() {
            found.rules.extend(check_expressions(rule, schema, place, &rules.index(index)));
        }
    }
}

fn check_types(schema: &Schema, raw: &Value, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let type_field = path.child("type");
    let kind = schema.kind.as_str();
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&type_field, kind, &TYPES));
    }
    for name in UNSUPPORTED.into_iter().filter(|name| raw.get(name).is_some_and(|it| !it.is_null()))
    {
        errors.push(FieldError::forbidden(&path.child(name), format!("{name} is not supported")));
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&type_field, detail));
    }
    if schema.unique_items {
        errors.push(FieldError::forbidden(
            &path.child("uniqueItems"),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ));
    }
    // One that forbids everything else has nothing to say next to named fields.
    let exclusive =
        !matches!(schema.additional_properties, None | Some(Additional::Allowed(false)));
    if exclusive && !schema.properties.is_empty() {
        errors.push(FieldError::forbidden(
            &path.child("additionalProperties"),
            "additionalProperties and properties are mutual exclusive",
        ));
    }
}

fn check_children(schema: &Schema, raw: &Value, place: &Place, found: &mut Found) {
    let path = &place.path;
    let granular = schema.map_type.as_deref().is_none_or(|it| it == "granular");
    let keyed = schema.list_type.as_deref() == Some("map");
    let raw_of = |pointer: &str| raw.pointer(pointer).unwrap_or(&Value::Null);
    let properties = raw_of("/properties");
    for (name, property) in &schema.properties {
        let raw = properties.get(name).unwrap_or(&Value::Null);
        let below = place.below(path.child("properties").key(name), granular);
        check_level(property, raw, &below, found);
    }
    if let Some(Additional::Schema(schema)) = &schema.additional_properties {
        let raw = raw_of("/additionalProperties");
        let below = place.below(path.child("additionalProperties"), granular);
        check_level(schema, raw, &below, found);
    }
    if let Some(items) = &schema.items {
        check_level(items, raw_of("/items"), &place.below(path.child("items"), keyed), found);
    }
}

fn type_must_be(
    wanted: &str,
    because: &str,
    schema: &Schema,
    path: &FieldPath,
) -> Option<FieldError> {
    let field = path.child("type");
    let detail = format!("must be {wanted} if {because} is specified");
    match schema.kind.as_str() {
        "" => Some(FieldError::required(&field, detail)),
        kind if kind != wanted => Some(FieldError::invalid(&field, kind, detail)),
        _ => None,
    }
}

fn check_map_type(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let Some(map_type) = schema.map_type.as_deref() else { return };
    errors.extend(type_must_be("object", "x-kubernetes-map-type", schema, path));
    if !matches!(map_type, "atomic" | "granular") {
        let field = path.child("x-kubernetes-map-type");
        errors.push(FieldError::not_supported(&field, map_type, &["atomic", "granular"]));
    }
}

fn check_list_type(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let list_type = schema.list_type.as_deref();
    let field = path.child("x-kubernetes-list-type");
    if list_type.is_some() {
        errors.extend(type_must_be("array", "x-kubernetes-list-type", schema, path));
    }
    if list_type == Some("set")
        && schema.kind == "array"
        && let Some(items) = &schema.items
    {
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let items_path = path.child("items");
        let value = BadValue::json(&items.list_type);
        if items.kind == "array" && items.list_type.as_deref().is_some_and(|it| it != "atomic") {
            let field = items_path.child("x-kubernetes-list-type");
            errors.push(FieldError::invalid(&field, value, detail));
        } else if items.kind == "object" && items.map_type.as_deref() != Some("atomic") {
            let field = items_path.child("x-kubernetes-map-type");
            errors.push(FieldError::invalid(&field, value, detail));
        }
    }
    if let Some(other) = list_type.filter(|it| !matches!(*it, "atomic" | "set" | "map")) {
        errors.push(FieldError::not_supported(&field, other, &["atomic", "set", "map"]));
    }
    if !schema.list_map_keys.is_empty() {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => errors.push(FieldError::required(&field, detail)),
            Some("map") => {}
            Some(other) => errors.push(FieldError::invalid(&field, other, detail)),
        }
    }
    if list_type == Some("map") {
        check_map_keys(schema, path, errors);
    }
}

fn check_map_keys(schema: &Schema, path: &FieldPath, errors: &mut Vec<FieldError>) {
    let keys = &schema.list_map_keys;
    let field = path.child("x-kubernetes-list-map-keys");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&field, detail));
    }
    let items_path = path.child("items");
    let Some(items) = &schema.items else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(&items_path, detail));
        return;
    };
    if items.kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(&items_path.child("type"), items.kind.as_str(), detail));
        return;
    }
    let mut seen = BTreeSet::new();
    for key in keys {
        match items.properties.get(key) {
            Some(property) if matches!(property.kind.as_str(), "array" | "object") => {
                errors.push(FieldError::invalid(
                    &items_path.child("properties").key(key).child("type"),
                    items.kind.as_str(),
                    "must be a scalar type if parent array's x-kubernetes-list-type is map",
                ));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&field, BadValue::json(keys), detail));
            }
        }
        if !seen.insert(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&field, BadValue::json(keys), detail));
        }
    }
    for key in keys {
        let unset = items.properties.get(key).is_some_and(|property| property.default.is_none());
        if unset && !items.required.contains(key) {
            errors.push(FieldError::required(
                &items_path.child("properties").key(key).child("default"),
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be \
                 a required property",
            ));
        }
    }
}

/// A rule as Kubernetes shows it in messages.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ShownRule<'a> {
    rule: &'a str,
    message: &'a str,
    message_expression: &'a str,
    reason: Option<&'a str>,
    field_path: &'a str,
    optional_old_self: Option<bool>,
}

fn check_rule(rule: &Rule, schema: &Schema, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (text, message) = (rule.rule.trim(), rule.message.trim());
    let message_field = path.child("message");
    if text.is_empty() {
        errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
    } else if !rule.message.is_empty() && message.is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(&message_field, rule.message.as_str(), detail));
    } else if message.contains('\n') {
        let detail = "must not contain line breaks";
        errors.push(FieldError::invalid(&message_field, rule.message.as_str(), detail));
    } else if text.contains('\n') && message.is_empty() {
        let detail = "message must be specified if rule contains line breaks";
        errors.push(FieldError::required(&message_field, detail));
    }
    if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
        errors.push(FieldError::required(
            &path.child("messageExpression"),
            "messageExpression must be non-empty if specified",
        ));
    }
    if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
        let field = path.child("reason");
        errors.push(FieldError::not_supported(&field, BadValue::json(&reason), &REASONS));
    }
    if !rule.field_path.is_empty() && !leads_somewhere(&rule.field_path, schema) {
        let field = path.child("fieldPath");
        errors.push(FieldError::invalid(&field, rule.field_path.as_str(), "must be a valid path"));
    }
    errors
}

/// Whether a rule and its message can be computed from what the schema describes.
fn check_expressions(
    rule: &Rule,
    schema: &Schema,
    place: &Place,
    path: &FieldPath,
) -> Vec<FieldError> {
    let shown = || {
        BadValue::json(&ShownRule {
            rule: &rule.rule,
            message: &rule.message,
            message_expression: &rule.message_expression,
            reason: rule.reason.as_deref(),
            field_path: &rule.field_path,
            optional_old_self: rule.optional_old_self,
        })
    };
    let optional_old = rule.optional_old_self();
    let subject = Subject { schema, standing: place.standing, optional_old };
    let refused = |compiled: &Result<Expression, String>, purpose| match compiled {
        Ok(expression) => expression.check(subject, purpose).err(),
        Err(reason) => Some(typing::failed(purpose, reason)),
    };
    let field = path.child("rule");
    if let Some(detail) = refused(&rule.compiled, Purpose::Rule) {
        return vec![FieldError::invalid(&field, shown(), detail)];
    }
    let mut errors = Vec::new();
    let message = rule.compiled_message.as_ref();
    if let Some(detail) = message.and_then(|compiled| refused(compiled, Purpose::Message)) {
        errors.push(FieldError::invalid(&path.child("messageExpression"), shown(), detail));
    }
    let uses_old = rule.compiled.as_ref().is_ok_and(Expression::uses_old);
    if let (false, Some(given)) = (uses_old, rule.optional_old_self) {
        let detail = "may not be set if oldSelf is not used in rule";
        let field = path.child("optionalOldSelf");
        errors.push(FieldError::invalid(&field, BadValue::json(&given), detail));
    }
    if let (Some(unrelated), true) = (&place.unrelated, uses_old) {
        let detail = format!(
            "oldSelf cannot be used on the uncorrelatable portion of the schema within {unrelated}"
        );
        errors.push(FieldError::invalid(&field, rule.rule.as_str(), detail));
    }
    errors
}

fn leads_somewhere(path: &str, schema: &Schema) -> bool {
    path.split(['.', '[', ']'])
        .map(|part| part.trim_matches('\''))
        .filter(|part| !part.is_empty())
        .try_fold(schema, |schema, name| schema.field(name))
        .is_some()
        && path.starts_with(['.', '['])
}
