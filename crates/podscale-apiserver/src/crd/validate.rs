//! Checks a custom object against its schema, with the API server's messages.
//!
//! An update is checked more mildly: what was there before and did not change may stay as it is.

use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use serde_json::Value;

use super::format;
use super::numbers::{self, go_number};
use super::schema::{Additional, Schema};

/// What a check found, and how many of its parts were fine (which picks the best of alternatives).
#[derive(Default)]
pub(super) struct Findings {
    pub(super) errors: Vec<FieldError>,
    pub(super) passed: usize,
}

impl Findings {
    fn merge(&mut self, other: Findings) {
        self.errors.extend(other.errors);
        self.passed += other.passed;
    }

    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// A mistake that the server reports without a place.
    pub(super) fn unplaced(&mut self, message: String) {
        self.errors.push(FieldError::invalid(&FieldPath::default(), "", message));
    }
}

/// Where a value is, in the words of messages: `spec.replicas`.
fn below(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

/// Checks a whole object; `old` is the object that it replaces.
pub(super) fn check(value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    check_at("", value, old, schema).errors
}

fn check_at(path: &str, value: &Value, old: Option<&Value>, schema: &Schema) -> Findings {
    let mut findings = Findings::default();
    if old == Some(value) {
        return findings;
    }
    check_type(path, value, schema, &mut findings);
    if !value.is_null() {
        check_combinations(path, value, old, schema, &mut findings);
        match value {
            Value::String(text) => check_text(path, text, schema, &mut findings),
            Value::Number(number) => numbers::check(path, number, schema, &mut findings),
            Value::Array(items) => check_items(path, items, old, schema, &mut findings),
            _ => {}
        }
    }
    check_allowed(path, value, schema, &mut findings);
    if let Value::Object(fields) = value {
        check_fields(path, fields, old, schema, &mut findings);
    }
    findings.passed += 1;
    findings
}

fn type_error(path: &str, wanted: &str, found: &str) -> FieldError {
    let message = format!("{path} in body must be of type {wanted}: \"{found}\"");
    FieldError::type_invalid(&FieldPath::new(path), found, message)
}

/// Name of the type that a value has.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_type(path: &str, value: &Value, schema: &Schema, findings: &mut Findings) {
    let types = schema.types();
    let found = type_name(value);
    if types.is_empty() || (value.is_null() && schema.nullable) {
        return;
    }
    let whole = value.as_f64().is_some_and(numbers::is_whole);
    let fits = types.contains(&found)
        || (found == "integer" && types.contains(&"number"))
        || (found == "number" && types.contains(&"integer") && whole);
    if fits {
        findings.passed += 1;
        return;
    }
    let format = format::supported(schema);
    findings.errors.push(match (format, found) {
        // Numbers and texts of a format are measured by that.
        (Some(format), "number") => type_error(path, format, "float64"),
        (Some(format), "integer") => type_error(path, format, "int64"),
        (Some(format), "boolean" | "object") => type_error(path, format, ""),
        _ => type_error(path, &types.join(","), found),
    });
}

fn check_text(path: &str, text: &str, schema: &Schema, findings: &mut Findings) {
    let field = FieldPath::new(path);
    let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let problem = if let Some(limit) = schema.max_length.filter(|limit| length > *limit) {
        Some(FieldError::too_long(&field, usize::try_from(limit).unwrap_or_default()))
    } else if let Some(limit) = schema.min_length.filter(|limit| length < *limit) {
        let message = format!("{path} in body should be at least {limit} chars long");
        Some(FieldError::invalid(&field, text, message))
    } else {
        let pattern = schema.pattern.as_ref();
        pattern
            .filter(|pattern| !pattern.regex.as_ref().is_ok_and(|regex| regex.is_match(text)))
            .map(|pattern| {
                let message = format!("{path} in body should match '{}'", pattern.text);
                FieldError::invalid(&field, text, message)
            })
    };
    findings.errors.extend(problem);
    if let Some(format) = format::supported(schema)
        && !format::fits(format, text)
    {
        let message = format!("{path} in body must be of type {format}: {}", quoted(text));
        findings.errors.push(FieldError::type_invalid(&field, text, message));
    }
    findings.passed += 1;
}

fn quoted(text: &str) -> String {
    podscale_api::quote::quote(text)
}

fn check_allowed(path: &str, value: &Value, schema: &Schema, findings: &mut Findings) {
    if schema.allowed.is_empty() {
        return;
    }
    // A null among the allowed values allows nothing, as in Kubernetes.
    let allowed = |wanted: &Value| match (value, wanted) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (one, other) => one == other,
    };
    if schema.allowed.iter().any(allowed) {
        findings.passed += 1;
        return;
    }
    let names: Vec<String> = schema
        .allowed
        .iter()
        .map(|value| match value {
            Value::String(text) => text.clone(),
            other => podscale_api::field_error::go_json(other),
        })
        .collect();
    let field = FieldPath::new(path);
    findings.errors.push(FieldError::not_supported(&field, bad_value(value), &names));
}

/// A value as messages show it.
pub(super) fn bad_value(value: &Value) -> BadValue {
    match value {
        Value::String(text) => BadValue::text(text),
        Value::Number(number) => BadValue::verbatim(go_number(number)),
        other => BadValue::json(other),
    }
}

fn check_items(
    path: &str,
    items: &[Value],
    old: Option<&Value>,
    schema: &Schema,
    findings: &mut Findings,
) {
    let field = FieldPath::new(path);
    if let Some(item_schema) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let old = old.and_then(|old| counterpart(item, old, schema));
            findings.merge(check_at(&format!("{path}[{index}]"), item, old, item_schema));
        }
    }
    let count = items.len();
    if let Some(limit) = schema.min_items.filter(|limit| below_limit(count, *limit)) {
        let message = format!("{path} in body should have at least {limit} items");
        findings.errors.push(FieldError::invalid(&field, count_value(count), message));
    }
    if let Some(limit) = schema.max_items.filter(|limit| above_limit(count, *limit)) {
        let limit = usize::try_from(limit).unwrap_or_default();
        findings.errors.push(FieldError::too_many(&field, count, limit));
    }
    if schema.unique_items && (1..count).any(|index| items[..index].contains(&items[index])) {
        let message = format!("{path} in body shouldn't contain duplicates");
        findings.errors.push(FieldError::invalid(&field, "", message));
    }
    findings.passed += 1;
}

/// The old item with the same keys; only lists of type `map` say which item is which.
pub(super) fn counterpart<'a>(item: &Value, old: &'a Value, schema: &Schema) -> Option<&'a Value> {
    if schema.list_type.as_deref() != Some("map") {
        return None;
    }
    let keys = &schema.list_map_keys;
    old.as_array()?.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}

fn count_value(count: usize) -> BadValue {
    BadValue::verbatim(count.to_string())
}

fn below_limit(count: usize, limit: i64) -> bool {
    i64::try_from(count).is_ok_and(|count| count < limit)
}

fn above_limit(count: usize, limit: i64) -> bool {
    i64::try_from(count).is_ok_and(|count| count > limit)
}

fn check_fields(
    path: &str,
    fields: &serde_json::Map<String, Value>,
    old: Option<&Value>,
    schema: &Schema,
    findings: &mut Findings,
) {
    let field = FieldPath::new(path);
    let count = fields.len();
    if let Some(limit) = schema.min_properties.filter(|limit| below_limit(count, *limit)) {
        let message = format!("{path} in body should have at least {limit} properties");
        findings.errors.push(FieldError::invalid(&field, count_value(count), message));
    }
    if let Some(limit) = schema.max_properties.filter(|limit| above_limit(count, *limit)) {
        let limit = usize::try_from(limit).unwrap_or_default();
        findings.errors.push(FieldError::too_many(&field, count, limit));
    }
    let unspecified = || fields.iter().filter(|(name, _)| !schema.properties.contains_key(*name));
    match &schema.additional_properties {
        Some(Additional::Allowed(false)) => {
            for (name, _) in unspecified() {
                let message = format!("{path}.{name} in body is a forbidden property");
                findings.errors.push(FieldError::invalid(&field, name.as_str(), message));
            }
        }
        Some(Additional::Schema(schema)) => {
            for (name, value) in unspecified() {
                let old = old.and_then(|old| old.get(name));
                findings.merge(check_at(&below(path, name), value, old, schema));
            }
        }
        Some(Additional::Allowed(true)) | None => {}
    }
    for (name, property) in &schema.properties {
        if let Some(value) = fields.get(name) {
            let old = old.and_then(|old| old.get(name));
            findings.merge(check_at(&below(path, name), value, old, property));
        }
    }
    for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
        findings.errors.push(FieldError::required(&FieldPath::new(&below(path, name)), ""));
    }
    findings.passed += 1;
}

fn check_combinations(
    path: &str,
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    findings: &mut Findings,
) {
    let name = quoted(path);
    let all = |schemas: &[Schema]| -> Vec<Findings> {
        schemas.iter().map(|schema| check_at(path, value, old, schema)).collect()
    };
    if !schema.any_of.is_empty() {
        let (valid, failed) =
            all(&schema.any_of).into_iter().partition::<Vec<_>, _>(Findings::is_valid);
        if valid.is_empty() {
            findings.unplaced(format!("{name} must validate at least one schema (anyOf)"));
            findings.merge(best(failed));
        }
    }
    if !schema.one_of.is_empty() {
        let (valid, failed) =
            all(&schema.one_of).into_iter().partition::<Vec<_>, _>(Findings::is_valid);
        let detail = match valid.len() {
            0 => Some("Found none valid".to_owned()),
            1 => None,
            count => Some(format!("Found {count} valid alternatives")),
        };
        if let Some(detail) = detail {
            findings.unplaced(format!(
                "{name} must validate one and only one schema (oneOf). {detail}"
            ));
            if valid.is_empty() {
                findings.merge(best(failed));
            }
        }
    }
    if !schema.all_of.is_empty() {
        let results = all(&schema.all_of);
        let valid = results.iter().filter(|result| result.is_valid()).count();
        let count = results.len();
        results.into_iter().for_each(|result| findings.merge(result));
        if valid != count {
            let detail = if valid == 0 { ". None validated" } else { "" };
            findings.unplaced(format!("{name} must validate all the schemas (allOf){detail}"));
        }
    }
    if let Some(not) = &schema.not
        && check_at(path, value, None, not).is_valid()
    {
        findings.unplaced(format!("{name} must not validate the schema (not)"));
    }
    findings.passed += 1;
}

/// The first of the alternatives that came closest.
fn best(failed: Vec<Findings>) -> Findings {
    failed
        .into_iter()
        .reduce(|best, next| if next.passed > best.passed { next } else { best })
        .unwrap_or_default()
}
