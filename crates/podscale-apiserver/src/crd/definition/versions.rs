//! Checks of a definition's versions. What all versions have in common, Kubernetes reports as if
//! it were said once, at the top.

use podscale_api::field_error::names::dns_1035_label;
use podscale_api::field_error::{BadValue, FieldError, FieldPath};
use podscale_api::quote::quote;
use serde_json::{Value, json};

use super::{flag, list, text};
use crate::crd::keywords;
use crate::crd::schema::Schema;
use crate::crd::structural::{check_defaults, check_structural};

const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// What a schema may say at its root when the status is split off, and how messages call it.
const ROOT_KEYWORDS: [(&str, &str); 22] = [
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// Whether every version says the same under this name, and what.
fn shared<'a>(spec: &'a Value, name: &str) -> Option<&'a Value> {
    let versions = list(spec, "/versions");
    let first = versions.first()?.get(name);
    versions.iter().all(|version| version.get(name) == first).then_some(first).flatten()
}

/// Everything that is wrong with single versions, and with the list of them.
pub(super) fn check(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let versions = list(spec, "/versions");
    let field = path.child("versions");
    let mut errors = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        if version.pointer("/schema/openAPIV3Schema").is_none_or(Value::is_null) {
            let field = field.index(index).child("schema").child("openAPIV3Schema");
            errors.push(FieldError::required(&field, ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let field = field.index(index);
        let name = text(version, "/name");
        let problems = dns_1035_label(name);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(&field.child("name"), name, problems.join(",")));
        }
        errors.extend(check_deprecation(version, &field.child("deprecationWarning")));
        for name in ["schema", "subresources", "additionalPrinterColumns"] {
            if shared(spec, name).is_none() {
                errors.extend(check_part(name, version, version.get(name), &field));
            }
        }
    }
    let names: Vec<&str> = versions.iter().map(|version| text(version, "/name")).collect();
    if (1..names.len()).any(|index| names[..index].contains(&names[index])) {
        let detail = "must contain unique version names";
        errors.push(FieldError::invalid(&field, shown(spec), detail));
    }
    if versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid(&field, shown(spec), detail));
    }
    if let Some(first) = names.first() {
        let problems = dns_1035_label(first);
        if !problems.is_empty() {
            errors.push(FieldError::invalid(&path.child("version"), *first, problems.join(",")));
        }
    }
    errors
}

/// Everything that is wrong with what the versions have in common.
pub(super) fn check_shared(spec: &Value, path: &FieldPath) -> Vec<FieldError> {
    let first = list(spec, "/versions").first().unwrap_or(&Value::Null);
    ["schema", "subresources", "additionalPrinterColumns"]
        .into_iter()
        .flat_map(|name| check_part(name, first, shared(spec, name), path))
        .collect()
}

fn check_part(
    name: &str,
    version: &Value,
    part: Option<&Value>,
    path: &FieldPath,
) -> Vec<FieldError> {
    let Some(part) = part.filter(|part| !part.is_null()) else { return Vec::new() };
    match name {
        "schema" => {
            // The shared schema goes by another name.
            let top = path.to_string() == "spec";
            let field = path.child(if top { "validation" } else { "schema" });
            let status = version.pointer("/subresources/status").is_some_and(Value::is_object);
            check_schema(part.get("openAPIV3Schema"), status, &field.child("openAPIV3Schema"))
        }
        "subresources" => check_subresources(part, &path.child("subresources")),
        _ => {
            let columns = part.as_array().map(Vec::as_slice).unwrap_or_default();
            let field = path.child("additionalPrinterColumns");
            columns
                .iter()
                .enumerate()
                .flat_map(|(index, column)| check_column(column, &field.index(index)))
                .collect()
        }
    }
}

/// The versions as Kubernetes shows them: in its inner form, without what they share.
fn shown(spec: &Value) -> BadValue {
    let versions = list(spec, "/versions").iter().map(|version| {
        let own = |name: &str| match shared(spec, name) {
            Some(_) => Value::Null,
            None => version.get(name).cloned().unwrap_or(Value::Null),
        };
        [
            ("Name", version.get("name").cloned().unwrap_or(json!(""))),
            ("Served", flag(version, "served").into()),
            ("Storage", flag(version, "storage").into()),
            ("Deprecated", flag(version, "deprecated").into()),
            ("DeprecationWarning", version.get("deprecationWarning").cloned().unwrap_or_default()),
            ("Schema", own("schema")),
            ("Subresources", own("subresources")),
            ("AdditionalPrinterColumns", own("additionalPrinterColumns")),
            ("SelectableFields", own("selectableFields")),
        ]
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .join(",")
    });
    let versions: Vec<String> = versions.map(|fields| format!("{{{fields}}}")).collect();
    BadValue::verbatim(format!("[{}]", versions.join(",")))
}

fn check_deprecation(version: &Value, field: &FieldPath) -> Vec<FieldError> {
    let Some(warning) = version.get("deprecationWarning").and_then(Value::as_str) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if !flag(version, "deprecated") {
        problems.push("can only be set for deprecated versions".to_owned());
    } else {
        if warning.len() > 256 {
            problems.push("must be <= 256 characters long".to_owned());
        }
        if warning.is_empty() {
            problems.push("must not be an empty string".to_owned());
        }
        let hidden = |character: char| {
            let text = character.to_string();
            quote(&text).trim_matches('"') != text && !matches!(character, '"' | '\\')
        };
        if let Some((at, _)) = warning.char_indices().find(|(_, character)| hidden(*character)) {
            problems.push(format!(
                "must only contain printable UTF-8 characters; non-printable character found at \
                 index {at}"
            ));
        }
    }
    problems.into_iter().map(|problem| FieldError::invalid(field, warning, problem)).collect()
}

fn check_schema(raw: Option<&Value>, status: bool, field: &FieldPath) -> Vec<FieldError> {
    let Some(raw) = raw.filter(|raw| !raw.is_null()) else { return Vec::new() };
    let schema = match Schema::parse(raw) {
        Ok(schema) => schema,
        Err(error) => return vec![FieldError::invalid(field, "", error.to_string())],
    };
    let mut errors = Vec::new();
    if status && schema.kind != "object" && !schema.kind.is_empty() {
        errors.push(FieldError::invalid(
            &field.child("type"),
            schema.kind.as_str(),
            "only \"object\" is allowed as the type at the root of the schema if the status \
             subresource is enabled",
        ));
    }
    if status
        && let Some(names) = raw.as_object()
        && names.keys().any(|name| !ROOT_KEYWORDS.iter().any(|(allowed, _)| allowed == name))
    {
        let allowed: Vec<&str> = ROOT_KEYWORDS.iter().map(|(_, shown)| *shown).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is \
             enabled",
            allowed.join(" ")
        );
        errors.push(FieldError::invalid(field, BadValue::json(raw), detail));
    }
    if schema.nullable {
        let detail = "nullable cannot be true at the root";
        errors.push(FieldError::forbidden(&field.child("nullable"), detail));
    }
    let structural = check_structural(&schema, field);
    if structural.is_empty() {
        errors.extend(check_defaults(&schema, field, true));
    }
    errors.extend(structural);
    errors.extend(keywords::check(&schema, raw, field));
    errors
}

fn check_json_path(path: &str, field: &FieldPath) -> Option<FieldError> {
    (!path.starts_with('.'))
        .then(|| FieldError::invalid(field, path, "must be a simple json path starting with ."))
}

fn check_subresources(subresources: &Value, path: &FieldPath) -> Vec<FieldError> {
    let Some(scale) = subresources.get("scale").filter(|scale| scale.is_object()) else {
        return Vec::new();
    };
    let path = path.child("scale");
    let mut errors = Vec::new();
    for (name, root) in [("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")] {
        let field = path.child(name);
        let given = scale.get(name).and_then(Value::as_str).unwrap_or_default();
        if given.is_empty() {
            errors.push(FieldError::required(&field, ""));
        } else if let Some(error) = check_json_path(given, &field) {
            errors.push(error);
        } else if !given.starts_with(root) {
            let detail = format!("should be a json path under {}", root.trim_end_matches('.'));
            errors.push(FieldError::invalid(&field, given, detail));
        }
    }
    let selector = text(scale, "/labelSelectorPath");
    let field = path.child("labelSelectorPath");
    if !selector.is_empty() {
        let placed = selector.starts_with(".spec.") || selector.starts_with(".status.");
        errors.extend(check_json_path(selector, &field).or_else(|| {
            let detail = "should be a json path under either .spec or .status";
            (!placed).then(|| FieldError::invalid(&field, selector, detail))
        }));
    }
    errors
}

fn check_column(column: &Value, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(column, "/name").is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    let one_of = |choices: &[&str]| format!("must be one of {}", choices.join(","));
    match text(column, "/type") {
        "" => errors.push(FieldError::required(&path.child("type"), one_of(&COLUMN_TYPES))),
        kind if !COLUMN_TYPES.contains(&kind) => {
            errors.push(FieldError::invalid(&path.child("type"), kind, one_of(&COLUMN_TYPES)));
        }
        _ => {}
    }
    let format = text(column, "/format");
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        errors.push(FieldError::invalid(&path.child("format"), format, one_of(&COLUMN_FORMATS)));
    }
    let field = path.child("JSONPath");
    match text(column, "/jsonPath") {
        "" => errors.push(FieldError::required(&field, "")),
        given => errors.extend(check_json_path(given, &field)),
    }
    errors
}
