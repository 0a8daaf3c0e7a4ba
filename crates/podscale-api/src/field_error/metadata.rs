//! The checks that the metadata of every kind of object goes through.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names::{self, group_version};
use super::{BadValue, FieldError, FieldPath};
use crate::names::{label_key_errors, label_value_errors};
use crate::quote::quote;

/// All annotations of an object together may not be larger.
const ANNOTATIONS_LIMIT_BYTES: usize = 256 * 1024;
/// Longest name of a field manager.
const MANAGER_LIMIT_BYTES: usize = 128;
/// Longest name of a subresource in managed fields.
const SUBRESOURCE_LIMIT_BYTES: usize = 256;

/// Judges a name; an empty list means that it is fine.
pub type NameRule = fn(&str) -> Vec<String>;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OwnerReference {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_owner_deletion: Option<bool>,
}

fn text<'a>(metadata: &'a Value, field: &str) -> &'a str {
    metadata.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(metadata: &'a Value, field: &str) -> Vec<&'a str> {
    let items = metadata.get(field).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Checks the metadata of an object that is to be created; `name` judges its name.
pub fn check_create(metadata: &Value, namespaced: bool, name: NameRule) -> Vec<FieldError> {
    let path = FieldPath::new("metadata");
    let mut errors = Vec::new();
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        let field = path.child("generateName");
        let problems = name(&names::mask_trailing_dash(prefix));
        errors.extend(
            problems.into_iter().map(|problem| FieldError::invalid(&field, prefix, problem)),
        );
    }
    let field = path.child("name");
    match text(metadata, "name") {
        "" => errors.push(FieldError::required(&field, "name or generateName is required")),
        given => errors.extend(
            name(given).into_iter().map(|problem| FieldError::invalid(&field, given, problem)),
        ),
    }
    let field = path.child("namespace");
    match (namespaced, text(metadata, "namespace")) {
        (true, "") => errors.push(FieldError::required(&field, "")),
        (true, given) => errors.extend(
            names::dns_label(given)
                .into_iter()
                .map(|problem| FieldError::invalid(&field, given, problem)),
        ),
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(&field, "not allowed on this type")),
    }
    errors.extend(check_generation(metadata));
    errors.extend(check_labels(metadata.get("labels"), &path.child("labels")));
    errors.extend(check_annotations(metadata.get("annotations"), &path.child("annotations")));
    errors.extend(check_owner_references(metadata, &path.child("ownerReferences")));
    errors.extend(check_finalizers(metadata, &path.child("finalizers")));
    errors.extend(check_managed_fields(metadata, &path.child("managedFields")));
    errors
}

/// Checks the metadata of an object that is to replace another.
pub fn check_update(metadata: &Value, old: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("metadata");
    let mut errors = Vec::new();
    if old.get("deletionTimestamp").is_some_and(|time| !time.is_null()) {
        errors.extend(check_no_new_finalizers(metadata, old, &path.child("finalizers")));
    }
    if text(metadata, "resourceVersion").is_empty() {
        let field = path.child("resourceVersion");
        errors.push(FieldError::invalid(&field, "", "must be specified for an update"));
    }
    for field in ["name", "namespace"] {
        errors.extend(check_immutable(metadata.get(field), old.get(field), &path.child(field)));
    }
    // What the server sets it also keeps: leaving it out, or sending what it ignores, is fine.
    for (field, kept) in
        [("uid", false), ("deletionTimestamp", true), ("deletionGracePeriodSeconds", false)]
    {
        let (new, old) = (set(metadata.get(field)), set(old.get(field)));
        if new.is_some() && !(kept && old.is_some()) {
            errors.extend(check_immutable(new, old, &path.child(field)));
        }
    }
    errors.extend(check_labels(metadata.get("labels"), &path.child("labels")));
    errors.extend(check_annotations(metadata.get("annotations"), &path.child("annotations")));
    errors.extend(check_owner_references(metadata, &path.child("ownerReferences")));
    errors.extend(check_managed_fields(metadata, &path.child("managedFields")));
    errors
}

fn set(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null() && value.as_str() != Some(""))
}

/// Refuses a change of a field; absent, null and empty count as the same.
pub fn check_immutable(
    new: Option<&Value>,
    old: Option<&Value>,
    field: &FieldPath,
) -> Option<FieldError> {
    if set(new) == set(old) {
        return None;
    }
    let value = match (set(new), set(old)) {
        (None, Some(Value::String(_))) => BadValue::text(""),
        (new, _) => BadValue::json(&new),
    };
    Some(FieldError::invalid(field, value, "field is immutable"))
}

fn check_generation(metadata: &Value) -> Option<FieldError> {
    let generation =
        metadata.get("generation").and_then(Value::as_i64).filter(|value| *value < 0)?;
    let field = FieldPath::new("metadata").child("generation");
    Some(FieldError::invalid(&field, generation, "must be greater than or equal to 0"))
}

/// Checks keys and values of labels.
pub fn check_labels(labels: Option<&Value>, field: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let key_problems = label_key_errors(key).into_iter().map(|problem| (key.as_str(), problem));
        let value_problems = label_value_errors(value).into_iter().map(|problem| (value, problem));
        errors.extend(
            key_problems
                .chain(value_problems)
                .map(|(bad, problem)| FieldError::invalid(field, bad, problem)),
        );
    }
    errors
}

fn check_annotations(annotations: Option<&Value>, field: &FieldPath) -> Vec<FieldError> {
    let entries = || annotations.and_then(Value::as_object).into_iter().flatten();
    let mut errors: Vec<FieldError> = entries()
        .flat_map(|(key, _)| {
            label_key_errors(&key.to_lowercase())
                .into_iter()
                .map(move |problem| FieldError::invalid(field, key.as_str(), problem))
        })
        .collect();
    let size: usize =
        entries().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > ANNOTATIONS_LIMIT_BYTES {
        errors.push(FieldError::too_long(field, ANNOTATIONS_LIMIT_BYTES));
    }
    errors
}

fn check_owner_references(metadata: &Value, field: &FieldPath) -> Vec<FieldError> {
    let owners: Vec<OwnerReference> = metadata
        .get("ownerReferences")
        .and_then(|owners| Deserialize::deserialize(owners).ok())
        .unwrap_or_default();
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    for (index, owner) in owners.iter().enumerate() {
        errors.extend(check_owner(owner, &field.index(index)));
        if owner.controller == Some(true) {
            let name = format!("{}/{}", owner.kind, owner.name);
            match &controller {
                None => controller = Some(name),
                Some(first) => errors.push(FieldError::invalid(
                    field,
                    BadValue::json(&owners),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in \
                         references for {first} and {name}"
                    ),
                )),
            }
        }
    }
    errors
}

fn check_owner(owner: &OwnerReference, field: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let missing = |name: &str| FieldError::required(&field.child(name), "must not be empty");
    let parsed = group_version(&owner.api_version);
    if owner.api_version.is_empty() {
        errors.push(missing("apiVersion"));
    } else if !parsed.as_ref().is_ok_and(|(_, version)| !version.is_empty()) {
        errors.push(FieldError::invalid(
            &field.child("apiVersion"),
            owner.api_version.as_str(),
            "must be <group>/<version> or <version>",
        ));
    }
    for (name, value) in [("kind", &owner.kind), ("name", &owner.name), ("uid", &owner.uid)] {
        if value.is_empty() {
            errors.push(missing(name));
        }
    }
    if parsed == Ok(("", "v1")) && owner.kind == "Event" {
        errors.push(FieldError::invalid(
            field,
            BadValue::json(owner),
            "/v1, Kind=Event is disallowed from being an owner",
        ));
    }
    errors
}

fn check_finalizers(metadata: &Value, field: &FieldPath) -> Vec<FieldError> {
    let finalizers = texts(metadata, "finalizers");
    let mut errors: Vec<FieldError> = finalizers
        .iter()
        .flat_map(|finalizer| {
            label_key_errors(finalizer)
                .into_iter()
                .map(|problem| FieldError::invalid(field, *finalizer, problem))
        })
        .collect();
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        errors.push(FieldError::invalid(
            field,
            BadValue::json(&finalizers),
            "finalizer orphan and foregroundDeletion cannot be both set",
        ));
    }
    errors
}

/// Asks finalizers of built-in kinds to be standard ones or to name their domain.
pub fn check_finalizer_names(metadata: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("metadata").child("finalizers");
    texts(metadata, "finalizers")
        .into_iter()
        .enumerate()
        .filter(|(_, name)| {
            !name.contains('/') && !matches!(*name, "orphan" | "foregroundDeletion" | "kubernetes")
        })
        .map(|(index, name)| {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            FieldError::invalid(&path.index(index), name, detail)
        })
        .collect()
}

fn check_no_new_finalizers(metadata: &Value, old: &Value, field: &FieldPath) -> Option<FieldError> {
    let old: BTreeSet<&str> = texts(old, "finalizers").into_iter().collect();
    let new: BTreeSet<&str> = texts(metadata, "finalizers").into_iter().collect();
    let added: Vec<String> = new.difference(&old).map(|finalizer| quote(finalizer)).collect();
    (!added.is_empty()).then(|| {
        FieldError::forbidden(
            field,
            format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{}}}",
                added.join(", ")
            ),
        )
    })
}

fn check_managed_fields(metadata: &Value, field: &FieldPath) -> Vec<FieldError> {
    let entries = metadata.get("managedFields").and_then(Value::as_array);
    let mut errors = Vec::new();
    for (index, entry) in entries.into_iter().flatten().enumerate() {
        let field = field.index(index);
        let operation = text(entry, "operation");
        match operation {
            "Apply" | "Update" => {}
            "" => {
                errors.push(FieldError::required(&field.child("operation"), "must not be empty"));
            }
            other => errors.push(FieldError::not_supported(
                &field.child("operation"),
                BadValue::json(&other),
                &["Apply", "Update"],
            )),
        }
        let kind = text(entry, "fieldsType");
        if !matches!(kind, "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&field.child("fieldsType"), kind, detail));
        }
        errors.extend(check_field_manager(text(entry, "manager"), &field.child("manager")));
        if text(entry, "subresource").len() > SUBRESOURCE_LIMIT_BYTES {
            let field = field.child("subresource");
            errors.push(FieldError::too_long(&field, SUBRESOURCE_LIMIT_BYTES));
        }
    }
    errors
}

/// Checks the name of a field manager.
pub fn check_field_manager(manager: &str, field: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if manager.len() > MANAGER_LIMIT_BYTES {
        errors.push(FieldError::too_long(field, MANAGER_LIMIT_BYTES));
    }
    for (at, character) in manager.char_indices().filter(|(_, one)| !prints(*one)) {
        let code = u32::from(character);
        let detail = format!("invalid character U+{code:04X} (at position {at})");
        errors.push(FieldError::invalid(field, manager, detail));
    }
    errors
}

fn prints(character: char) -> bool {
    let mut text = [0; 4];
    // What prints stands for itself between the quotes.
    let text: &str = character.encode_utf8(&mut text);
    quote(text).trim_matches('"') == text || matches!(character, '"' | '\\')
}
