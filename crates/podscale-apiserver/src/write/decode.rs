//! From the bytes of a request to an object of the served version.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::registry::Served;
use crate::status::{ApiError, ApiResult};
use crate::types;
use crate::types::decode::decode;
use crate::value::{fields, text};

/// What to do about fields that are unknown or given twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// An object, and what there is to warn about.
#[derive(Debug)]
pub(crate) struct Decoded {
    pub object: Value,
    pub problems: Vec<String>,
}

/// Parses JSON and notes keys that occur twice.
pub(crate) fn parse(body: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut path = String::new();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let seed = Tracked { path: &mut path, duplicates: &mut duplicates };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, duplicates))
}

/// Parses JSON or YAML.
pub(crate) fn parse_any(body: &[u8], yaml: bool) -> ApiResult<(Value, Vec<String>)> {
    match parse(body) {
        Ok(parsed) => Ok(parsed),
        Err(_) if yaml => {
            let text = std::str::from_utf8(body)
                .map_err(|error| ApiError::bad_request(error.to_string()))?;
            serde_saphyr::from_str(text)
                .map(|value| (value, Vec::new()))
                .map_err(|error| ApiError::bad_request(format!("error decoding patch: {error}")))
        }
        Err(error) => Err(ApiError::bad_request(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))),
    }
}

/// Reads a body as an object of the served version.
pub(crate) fn object(
    served: &Served,
    body: &[u8],
    yaml: bool,
    validation: FieldValidation,
) -> ApiResult<Decoded> {
    let (value, duplicates) = parse_any(body, yaml).map_err(|error| {
        let summary: String = String::from_utf8_lossy(body).chars().take(40).collect();
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {} ({summary:?})",
            served.info.kind, error.message
        ))
    })?;
    let duplicates = duplicates.into_iter().map(|path| format!("duplicate field {path:?}"));
    typed(served, value, duplicates.collect(), validation)
}

/// Reads a value as an object of the served version.
pub(crate) fn typed(
    served: &Served,
    value: Value,
    problems: Vec<String>,
    validation: FieldValidation,
) -> ApiResult<Decoded> {
    let info = &served.info;
    check_kind(served, &value)?;
    plain(served, value, problems, validation).map_err(|message| {
        ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {message}",
            info.kind, info.version, info.kind
        ))
    })
}

/// Refuses objects that say that they are something else.
pub(crate) fn check_kind(served: &Served, value: &Value) -> ApiResult<()> {
    let info = &served.info;
    let expected = info.api_version();
    let (given, kind) = (text(value, "/apiVersion"), text(value, "/kind"));
    if !value.is_object() {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; \
             json parse error: json: cannot unmarshal {} into Go value of type struct",
            info.kind,
            if value.is_array() { "array" } else { "value" },
        )));
    }
    if !kind.is_empty() && kind != info.kind {
        let version = given.rsplit('/').next().unwrap_or_default();
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: no kind {kind:?} is \
             registered for version {given:?}",
            info.kind
        )));
    }
    if !given.is_empty() && given != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version \
             ({expected})"
        )));
    }
    Ok(())
}

/// Reads a value as an object of the served version; the error is the decoder's.
pub(crate) fn plain(
    served: &Served,
    mut value: Value,
    mut problems: Vec<String>,
    validation: FieldValidation,
) -> Result<Decoded, String> {
    let object = fields(&mut value);
    object.insert("apiVersion".to_owned(), Value::from(served.info.api_version()));
    object.insert("kind".to_owned(), Value::from(served.info.kind.as_str()));
    let (object, unknown) = shaped(served, value)?;
    problems.extend(unknown.into_iter().map(|path| format!("unknown field {path:?}")));
    if validation == FieldValidation::Strict && !problems.is_empty() {
        return Err(format!("strict decoding error: {}", problems.join(", ")));
    }
    if validation == FieldValidation::Ignore {
        problems.clear();
    }
    Ok(Decoded { object, problems })
}

fn shaped(served: &Served, mut value: Value) -> Result<(Value, Vec<String>), String> {
    let known = types::kubernetes();
    if let Some(ty) = &served.ty {
        let decoded = decode(known, ty, value)?;
        return Ok((decoded.value, decoded.unknown));
    }
    let mut unknown = Vec::new();
    if let Some(metadata_type) = known.find("meta/v1.ObjectMeta") {
        let metadata = fields(&mut value).remove("metadata").unwrap_or_default();
        let decoded = decode(known, &metadata_type, metadata)?;
        unknown.extend(decoded.unknown.into_iter().map(|path| format!("metadata.{path}")));
        fields(&mut value).insert("metadata".to_owned(), decoded.value);
    }
    if let Some(custom) = &served.custom {
        unknown.extend(custom.prune(&mut value).map_err(|error| error.to_string())?);
    }
    Ok((value, unknown))
}

struct Tracked<'a> {
    path: &'a mut String,
    duplicates: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Tracked<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tracked<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let length = self.path.len();
        loop {
            self.path.push_str(&format!("[{}]", list.len()));
            let seed = Tracked { path: &mut *self.path, duplicates: &mut *self.duplicates };
            let item = items.next_element_seed(seed)?;
            self.path.truncate(length);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let length = self.path.len();
        while let Some(key) = entries.next_key::<String>()? {
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if map.contains_key(&key) {
                self.duplicates.push(self.path.clone());
            }
            let seed = Tracked { path: &mut *self.path, duplicates: &mut *self.duplicates };
            let value = entries.next_value_seed(seed)?;
            self.path.truncate(length);
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
