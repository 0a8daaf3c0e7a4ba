//! From the bytes of a request to an object of the served version.

use std::fmt;

use podscale_api::quote::quote;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::registry::Served;
use crate::status::{ApiError, ApiResult};
use crate::types::decode::decode;
use crate::types::{self, protobuf};
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

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    Protobuf,
}

/// Parses a body and notes keys that occur twice; `ty` names the type of protobuf bodies. The error
/// is in the words of Go's decoder.
pub(crate) fn parse(
    body: &[u8],
    format: Format,
    ty: Option<&str>,
) -> Result<(Value, Vec<String>), String> {
    match format {
        Format::Protobuf => {
            let known = types::kubernetes();
            let name = ty.ok_or("unknown type")?;
            let ty = known.find(name).ok_or("unknown type")?;
            let envelope = protobuf::open(body).map_err(|error| error.to_string())?;
            let of_this_kind =
                envelope.kind.is_empty() || name.rsplit('.').next() == Some(&envelope.kind);
            // Whoever asked refuses an object of another kind by its name.
            let mut value = if of_this_kind {
                protobuf::decode(known, &ty, envelope.raw).map_err(|error| error.to_string())?
            } else {
                Value::Null
            };
            let object = fields(&mut value);
            object.insert("apiVersion".to_owned(), Value::from(envelope.api_version));
            object.insert("kind".to_owned(), Value::from(envelope.kind));
            Ok((value, Vec::new()))
        }
        Format::Json => parse_json(body).map_err(|error| go_error(&error, body)),
        // JSON is YAML, and most clients send it.
        Format::Yaml => match parse_json(body) {
            Ok(parsed) => Ok(parsed),
            Err(_) => {
                let text = std::str::from_utf8(body).map_err(|error| error.to_string())?;
                serde_saphyr::from_str(text)
                    .map(|value| (value, Vec::new()))
                    .map_err(|error| yaml_error(&error.to_string(), text))
            }
        },
    }
}

fn parse_json(body: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut path = String::new();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let seed = Tracked { path: &mut path, duplicates: &mut duplicates };
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, duplicates))
}

fn go_error(error: &serde_json::Error, body: &[u8]) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let at = body
        .split_inclusive(|byte| *byte == b'\n')
        .nth(error.line().saturating_sub(1))
        .and_then(|line| line.get(error.column().saturating_sub(1)));
    match at {
        Some(byte) => {
            let quoted = quote(&char::from(*byte).to_string());
            let shown = match byte {
                b'\'' => "\\'",
                b'"' => "\"",
                _ => quoted.trim_matches('"'),
            };
            format!("invalid character '{shown}' looking for beginning of value")
        }
        None => error.to_string(),
    }
}

/// A YAML parser's error in the words of Go's, which counts lines from the second on and tells
/// of what is missing at the end of the text.
fn yaml_error(told: &str, text: &str) -> String {
    let first = told.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let (place, problem) = first.split_once(": ").unwrap_or(("", first));
    let line: usize =
        place.split(' ').nth(1).and_then(|line| line.parse().ok()).unwrap_or_default();
    let end = text.matches('\n').count();
    let (line, problem) = match problem {
        "unclosed bracket '{'" => (end + 1, "did not find expected ',' or '}'"),
        "unclosed bracket '['" => (end + 1, "did not find expected ',' or ']'"),
        "unclosed quote" if end > 0 => (end + 1, "found unexpected end of stream"),
        "unclosed quote" => (0, "found unexpected end of stream"),
        tabs if tabs.starts_with("tabs disallowed") => {
            (line, "found character that cannot start any token")
        }
        other => (if line > 1 { line } else { 0 }, other),
    };
    if line == 0 { problem.to_owned() } else { format!("line {line}: {problem}") }
}

/// The start of a body, for messages.
fn summary(body: &[u8]) -> String {
    const LIMIT: usize = 10 * 1024;
    match body {
        [] => "<empty>".to_owned(),
        [b'{', ..] if body.len() > LIMIT => {
            format!("{} ...", String::from_utf8_lossy(body.get(..LIMIT).unwrap_or(body)))
        }
        [b'{', ..] => String::from_utf8_lossy(body).into_owned(),
        other => other.iter().take(LIMIT).map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Reads a body as an object of the served version.
pub(crate) fn object(
    served: &Served,
    body: &[u8],
    format: Format,
    validation: FieldValidation,
) -> ApiResult<Decoded> {
    if format == Format::Protobuf {
        return typed(served, from_protobuf(served, body)?, Vec::new(), validation);
    }
    let refuse = |problem: &str| {
        let problem = format!("couldn't get version/kind; json parse error: {problem}");
        unrecognized(served, &problem, body)
    };
    let (value, duplicates) = parse(body, format, None).map_err(|problem| refuse(&problem))?;
    if !value.is_object() {
        let what = if value.is_array() { "array" } else { "value" };
        return Err(refuse(&format!(
            "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \
             \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    }
    let duplicates = duplicates.into_iter().map(|path| format!("duplicate field {path:?}"));
    typed(served, value, duplicates.collect(), validation)
}

/// The error for a body that is no object at all.
fn unrecognized(served: &Served, problem: &str, body: &[u8]) -> ApiError {
    let kind = &served.info.kind;
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {problem} ({})",
        summary(body)
    ))
}

/// An object from its protobuf form; of an object of another kind no more than that is told.
fn from_protobuf(served: &Served, body: &[u8]) -> ApiResult<Value> {
    let envelope =
        protobuf::open(body).map_err(|problem| unrecognized(served, &problem.to_string(), body))?;
    let info = &served.info;
    let of_this_kind = envelope.kind.is_empty() || envelope.kind == info.kind;
    let mut value = match &served.ty {
        Some(ty) if of_this_kind => protobuf::decode(types::kubernetes(), ty, envelope.raw)
            .map_err(|problem| {
                ApiError::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {problem}",
                    info.kind, info.version, info.kind
                ))
            })?,
        _ => Value::Null,
    };
    let object = fields(&mut value);
    object.insert("apiVersion".to_owned(), Value::from(envelope.api_version));
    object.insert("kind".to_owned(), Value::from(envelope.kind));
    Ok(value)
}

/// The paths of fields that the served type does not have.
pub(crate) fn unknown_fields(served: &Served, value: Value) -> Vec<String> {
    shaped(served, value).map(|(_, unknown)| unknown).unwrap_or_default()
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
    let version = given.rsplit('/').next().unwrap_or_default();
    let group = given.rsplit_once('/').map_or("", |(group, _)| group);
    if !info.custom && !kind.is_empty() && kind != info.kind {
        let known = types::kubernetes().find(&types::name_of(group, version, kind)).is_some();
        let why = if known {
            let package = match info.group.split('.').next() {
                None | Some("") => "core",
                Some(package) => package,
            };
            format!(
                "converting ({version}.{kind}) to ({package}.{}): unknown conversion",
                info.kind
            )
        } else {
            format!(
                "no kind {kind:?} is registered for version {given:?} in scheme \
                 \"pkg/api/legacyscheme/scheme.go:30\""
            )
        };
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: {why}",
            info.kind
        )));
    }
    if !given.is_empty() && given != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({given}) does not match the expected API version \
             ({expected})"
        )));
    }
    if !kind.is_empty() && kind != info.kind {
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {}: no kind {kind:?} is \
             registered for version {given:?}",
            info.kind
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
