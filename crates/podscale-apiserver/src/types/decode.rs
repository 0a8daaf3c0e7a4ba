//! Reads JSON as a typed value, as the API server's decoder does, and writes it back the way the
//! server stores it: empty fields left out, quantities and times in canonical form.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::DateTime;
use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use podscale_api::Quantity;
use serde_json::{Map, Number, Value};

use super::{Field, Structure, Type, Types};

/// Objects nested deeper than this are refused.
const MAX_DEPTH: usize = 200;

/// A typed value, and what was ignored while reading it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The value in canonical form.
    pub value: Value,
    /// Paths of fields that the type does not have.
    pub unknown: Vec<String>,
}

/// Reads `value` as `ty`; the error is the decoder's message.
pub fn decode(types: &Types, ty: &Type, value: Value) -> Result<Decoded, String> {
    decode_at(types, ty, value).map_err(|mismatch| mismatch.message)
}

/// A value that is not of its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Where it is, such as `spec.metrics[0].type`.
    pub path: String,
    /// The decoder's message.
    pub message: String,
}

/// Reads `value` as `ty`; the error says where it is, too.
pub fn decode_at(types: &Types, ty: &Type, value: Value) -> Result<Decoded, Mismatch> {
    let mut decoder = Decoder { types, unknown: Vec::new(), path: String::new(), depth: 0 };
    match decoder.value(ty, value, "") {
        Ok(value) => {
            let value = value.unwrap_or_else(|| zero(types, ty));
            Ok(Decoded { value, unknown: decoder.unknown })
        }
        // The path is as it was at the error.
        Err(message) => Err(Mismatch { path: decoder.path, message }),
    }
}

/// What the server writes for a value that was never set.
pub fn zero(types: &Types, ty: &Type) -> Value {
    match ty {
        Type::Text(_) => Value::String(String::new()),
        Type::Bool(_) => Value::Bool(false),
        Type::Integer { .. } | Type::Float(_) | Type::IntOrString => Value::from(0),
        Type::Quantity => Value::from("0"),
        Type::Duration => Value::from("0s"),
        Type::Struct(id) => {
            let fields = types.structure(*id).map_or(&[][..], Structure::fields);
            let kept = fields.iter().filter(|field| field.keep);
            Value::Object(
                kept.map(|field| (field.name.to_owned(), zero(types, &field.ty))).collect(),
            )
        }
        Type::Bytes
        | Type::Time
        | Type::MicroTime
        | Type::Raw
        | Type::Opaque(_)
        | Type::Optional(_)
        | Type::List(_)
        | Type::Map(_) => Value::Null,
    }
}

struct Decoder<'a> {
    types: &'a Types,
    unknown: Vec<String>,
    path: String,
    depth: usize,
}

impl Decoder<'_> {
    /// `None` stands for a value that is not set.
    fn value(&mut self, ty: &Type, value: Value, owner: &str) -> Result<Option<Value>, String> {
        if value.is_null() && !matches!(ty, Type::Raw) {
            return Ok(None);
        }
        Ok(Some(match (ty, value) {
            (Type::Optional(inner), value) => {
                return match self.value(inner, value, owner)? {
                    Some(value) => Ok(Some(value)),
                    None => Ok(None),
                };
            }
            (Type::Raw, Value::Null) => return Ok(None),
            (Type::Raw | Type::Opaque(_), value) => value,
            (Type::Text(_), value @ Value::String(_)) => value,
            (Type::Bool(_), value @ Value::Bool(_)) => value,
            (Type::Integer { go, min, max }, Value::Number(number)) => {
                match number.as_i64().filter(|value| (min..=max).contains(&value)) {
                    Some(value) => Value::from(value),
                    None => return Err(self.mismatch(&format!("number {number}"), owner, go)),
                }
            }
            (Type::Float(_), value @ Value::Number(_)) => value,
            (Type::Bytes, Value::String(text)) => bytes(text)?,
            (Type::Time, Value::String(text)) => time(&text)?,
            (Type::MicroTime, Value::String(text)) => micro_time(&text)?,
            (Type::Duration, value @ Value::String(_)) => value,
            (Type::Quantity, value) => quantity(&value)?,
            (Type::IntOrString, value @ Value::String(_)) => value,
            (Type::IntOrString, Value::Number(number)) => int_or_string(&number)?,
            (Type::List(inner), Value::Array(items)) => self.list(inner, items, owner)?,
            (Type::Map(inner), Value::Object(entries)) => self.map(inner, entries, owner)?,
            (Type::Struct(id), Value::Object(fields)) => self.structure(*id, fields)?,
            (ty, value) => {
                let what = describe(&value);
                let go = self.go_name(ty);
                return Err(self.mismatch(&what, owner, &go));
            }
        }))
    }

    fn list(&mut self, inner: &Type, items: Vec<Value>, owner: &str) -> Result<Value, String> {
        let mut decoded = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let length = self.path.len();
            self.path.push_str(&format!("[{index}]"));
            let item = self.value(inner, item, owner)?;
            decoded.push(item.unwrap_or_else(|| zero(self.types, inner)));
            self.path.truncate(length);
        }
        Ok(Value::Array(decoded))
    }

    fn map(
        &mut self,
        inner: &Type,
        entries: Map<String, Value>,
        owner: &str,
    ) -> Result<Value, String> {
        let mut decoded = Map::new();
        for (key, entry) in entries {
            let length = self.enter(&key);
            let entry = self.value(inner, entry, owner)?;
            decoded.insert(key, entry.unwrap_or_else(|| zero(self.types, inner)));
            self.path.truncate(length);
        }
        Ok(Value::Object(decoded))
    }

    fn structure(&mut self, id: usize, mut given: Map<String, Value>) -> Result<Value, String> {
        let types = self.types;
        let Some(structure) = types.structure(id) else {
            return Ok(Value::Object(given));
        };
        if self.depth >= MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        self.depth += 1;
        let mut decoded = Map::new();
        for field in structure.fields() {
            let value = match given.remove(field.name) {
                Some(value) => {
                    let length = self.enter(field.name);
                    let value = self.value(&field.ty, value, structure.short_name())?;
                    self.path.truncate(length);
                    value
                }
                None => None,
            };
            if let Some(value) = written(types, field, value) {
                decoded.insert(field.name.to_owned(), value);
            }
        }
        for name in given.keys() {
            let length = self.enter(name);
            self.unknown.push(self.path.clone());
            self.path.truncate(length);
        }
        self.depth -= 1;
        Ok(Value::Object(decoded))
    }

    fn enter(&mut self, name: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        length
    }

    fn mismatch(&self, what: &str, owner: &str, go: &str) -> String {
        if owner.is_empty() {
            return format!("json: cannot unmarshal {what} into Go value of type {go}");
        }
        // Go leaves the positions in lists out of the path.
        let mut path = String::new();
        let mut inside = false;
        for character in self.path.chars() {
            match character {
                '[' => inside = true,
                ']' => inside = false,
                other if !inside => path.push(other),
                _ => {}
            }
        }
        format!("json: cannot unmarshal {what} into Go struct field {owner}.{path} of type {go}")
    }

    fn go_name(&self, ty: &Type) -> String {
        match ty {
            Type::Text(go) | Type::Bool(go) | Type::Float(go) | Type::Integer { go, .. } => {
                (*go).to_owned()
            }
            Type::Bytes => "[]uint8".to_owned(),
            Type::Time => "v1.Time".to_owned(),
            Type::MicroTime => "v1.MicroTime".to_owned(),
            Type::Duration => "string".to_owned(),
            Type::Quantity => "resource.Quantity".to_owned(),
            Type::IntOrString => "intstr.IntOrString".to_owned(),
            Type::Raw | Type::Opaque(_) => "interface {}".to_owned(),
            Type::Optional(inner) => self.go_name(inner),
            Type::List(inner) => format!("[]{}", self.go_name(inner)),
            Type::Map(inner) => format!("map[string]{}", self.go_name(inner)),
            Type::Struct(id) => {
                let name = self.types.structure(*id).map_or("struct", |structure| structure.name);
                let package = name.rsplit('/').next().unwrap_or(name);
                package.to_owned()
            }
        }
    }
}

/// Leaves out lists and maps that are empty and need not be written. Decoding keeps them, because
/// defaults tell an empty list from an absent one.
pub fn compact(types: &Types, ty: &Type, value: &mut Value) {
    match (ty, value) {
        (Type::Optional(inner), value) => compact(types, inner, value),
        (Type::List(inner), Value::Array(items)) => {
            items.iter_mut().for_each(|item| compact(types, inner, item));
        }
        (Type::Map(inner), Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| compact(types, inner, entry));
        }
        (Type::Struct(id), Value::Object(given)) => {
            let Some(structure) = types.structure(*id) else { return };
            given.retain(|name, value| {
                let Some(field) = structure.field(name) else { return true };
                compact(types, &field.ty, value);
                let empty = match value {
                    Value::Array(items) => items.is_empty(),
                    Value::Object(entries) => {
                        entries.is_empty() && matches!(field.ty, Type::Map(_))
                    }
                    _ => false,
                };
                field.keep || !empty
            });
        }
        _ => {}
    }
}

/// What is written for a field, if anything.
fn written(types: &Types, field: &Field, value: Option<Value>) -> Option<Value> {
    let Some(value) = value else {
        return field.keep.then(|| zero(types, &field.ty));
    };
    if field.keep || matches!(field.ty, Type::Optional(_) | Type::Struct(_)) {
        return Some(value);
    }
    let empty = match &value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(value) => {
            value.as_f64() == Some(0.0) && !matches!(field.ty, Type::IntOrString)
        }
        Value::String(value) => value.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    };
    (!empty).then_some(value)
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    }
}

fn bytes(text: String) -> Result<Value, String> {
    match STANDARD.decode(&text) {
        Ok(_) => Ok(Value::String(text)),
        Err(_) => {
            let at = text
                .bytes()
                .position(|byte| !(byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(&byte)))
                .unwrap_or(text.len() / 4 * 4);
            Err(format!("illegal base64 data at input byte {at}"))
        }
    }
}

fn time(text: &str) -> Result<Value, String> {
    let time = parse_time(text).ok_or_else(|| bad_time(text))?;
    // Go's zero time stands for no time, and is written as null.
    Ok(if time == ZERO_TIME { Value::Null } else { Value::String(seconds_text(time)) })
}

fn micro_time(text: &str) -> Result<Value, String> {
    let time = parse_time(text).ok_or_else(|| bad_time(text))?;
    Ok(if time == ZERO_TIME { Value::Null } else { Value::String(micros_text(time)) })
}

/// The first moment of the year 1, which Go's types hold while no time is set.
const ZERO_TIME: DateTime = DateTime::constant(1, 1, 1, 0, 0, 0, 0);

/// The time that a text tells, in UTC: of any year that has four digits, up to the last second.
pub(super) fn parse_time(text: &str) -> Option<DateTime> {
    let pieces = Pieces::parse(text).ok()?;
    let local = pieces.date().to_datetime(pieces.time()?);
    let offset = match pieces.offset()? {
        PiecesOffset::Numeric(numeric) => numeric.offset(),
        _ => Offset::UTC,
    };
    let utc = local.checked_sub(SignedDuration::from_secs(offset.seconds().into())).ok()?;
    (utc.year() >= 0).then_some(utc)
}

pub(super) fn seconds_text(time: DateTime) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn micros_text(time: DateTime) -> String {
    let micros = time.subsec_nanosecond() / 1_000;
    format!("{}.{micros:06}Z", time.strftime("%Y-%m-%dT%H:%M:%S"))
}

/// A time as `metav1.Time` is written: whole seconds.
pub fn time_text(time: Timestamp) -> String {
    seconds_text(Offset::UTC.to_datetime(time))
}

fn bad_time(text: &str) -> String {
    format!(
        "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
    )
}

fn quantity(value: &Value) -> Result<Value, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let quantity = Quantity::parse(text.trim()).map_err(|error| error.to_string())?;
    Ok(Value::String(quantity.to_string()))
}

fn int_or_string(number: &Number) -> Result<Value, String> {
    match number.as_i64().and_then(|value| i32::try_from(value).ok()) {
        Some(value) => Ok(Value::from(value)),
        None => Err(format!("json: cannot unmarshal number {number} into Go value of type int32")),
    }
}
