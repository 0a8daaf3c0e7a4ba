//! ConfigMaps and Secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use podscale_api::field_error::metadata::check_immutable;
use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::{Map, Value};

use crate::store::Fields;
use crate::value::{default_text, fields, text};

/// All data of one object together.
const SIZE_LIMIT_BYTES: usize = 1024 * 1024;
const KEY_LIMIT_BYTES: usize = 253;
const FROZEN: &str = "field is immutable when `immutable` is set";

fn entries<'a>(object: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.get(name).and_then(Value::as_object).into_iter().flatten()
}

fn key_problems(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > KEY_LIMIT_BYTES {
        problems.push(format!("must be no more than {KEY_LIMIT_BYTES} bytes"));
    }
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty() || !key.chars().all(fine) {
        problems.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
             'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
             '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." => problems.push("must not be '.'".to_owned()),
        ".." => problems.push("must not be '..'".to_owned()),
        key if key.starts_with("..") => problems.push("must not start with '..'".to_owned()),
        _ => {}
    }
    problems
}

fn check_keys(object: &Value, name: &str) -> Vec<FieldError> {
    let path = FieldPath::new(name);
    entries(object, name)
        .flat_map(|(key, _)| {
            let path = path.key(key);
            key_problems(key)
                .into_iter()
                .map(move |detail| FieldError::invalid(&path, key.as_str(), detail))
        })
        .collect()
}

fn size(object: &Value, name: &str) -> usize {
    entries(object, name).map(|(_, value)| value.as_str().map_or(0, str::len)).sum()
}

/// Checks a ConfigMap.
pub(crate) fn check_config_map(map: &Value) -> Vec<FieldError> {
    let mut errors = check_keys(map, "data");
    for (key, _) in entries(map, "data") {
        if entries(map, "binaryData").any(|(other, _)| other == key) {
            let path = FieldPath::new("data").key(key);
            let detail = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(&path, key.as_str(), detail));
        }
    }
    errors.extend(check_keys(map, "binaryData"));
    if size(map, "data") + size(map, "binaryData") * 3 / 4 > SIZE_LIMIT_BYTES {
        errors.push(FieldError::too_long(&FieldPath::new("[]"), SIZE_LIMIT_BYTES));
    }
    errors
}

fn check_frozen(new: &Value, old: &Value, names: &[&str]) -> Vec<FieldError> {
    let frozen = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if !frozen(old) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if !frozen(new) {
        errors.push(FieldError::forbidden(&FieldPath::new("immutable"), FROZEN));
    }
    for name in names.iter().filter(|name| new.get(**name) != old.get(**name)) {
        errors.push(FieldError::forbidden(&FieldPath::new(name), FROZEN));
    }
    errors
}

/// Checks a ConfigMap that replaces another.
pub(crate) fn check_config_map_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = check_frozen(new, old, &["data", "binaryData"]);
    errors.extend(check_config_map(new));
    errors
}

/// Fills in a Secret; plain text becomes data.
pub(crate) fn default_secret(secret: &mut Value) {
    let plain = fields(secret).remove("stringData");
    if let Some(Value::Object(plain)) = plain {
        let data = fields(secret).entry("data").or_insert_with(|| Value::Object(Map::new()));
        for (key, value) in plain {
            let encoded = STANDARD.encode(value.as_str().unwrap_or_default());
            fields(data).insert(key, Value::from(encoded));
        }
    }
    default_text(fields(secret), "type", "Opaque");
}

/// Checks a Secret.
pub(crate) fn check_secret(secret: &Value) -> Vec<FieldError> {
    let mut errors = check_keys(secret, "data");
    let path = FieldPath::new("data");
    if size(secret, "data") * 3 / 4 > SIZE_LIMIT_BYTES {
        errors.push(FieldError::too_long(&path, SIZE_LIMIT_BYTES));
    }
    let has = |key: &str| entries(secret, "data").any(|(given, _)| given == key);
    let required: &[&str] = match text(secret, "/type") {
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            &["username", "password"]
        }
        _ => &[],
    };
    let missing = required.iter().filter(|key| !has(key));
    errors.extend(missing.map(|key| FieldError::required(&path.key(key), "")));
    errors
}

/// Checks a Secret that replaces another.
pub(crate) fn check_secret_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("type");
    let mut errors: Vec<FieldError> =
        check_immutable(new.get("type"), old.get("type"), &path).into_iter().collect();
    errors.extend(check_frozen(new, old, &["data"]));
    errors.extend(check_secret(new));
    errors
}

/// The values that a Secret can be selected by.
pub(crate) fn secret_fields(secret: &Value) -> Fields {
    vec![("type", text(secret, "/type").into())]
}
