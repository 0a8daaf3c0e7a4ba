//! Reads messages as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::scalars::{integer, number, special};
use super::{Envelope, MAGIC, MAX_DEPTH, ProtobufError};
use crate::types::decode::{compact, decode as canonical, zero};
use crate::types::{self, Structure, Type, Types};

/// Opens the envelope around an object.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    if bytes.is_empty() {
        return Err(ProtobufError::Empty);
    }
    let body = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?;
    if body.is_empty() {
        return Err(ProtobufError::EmptyBody);
    }
    let mut reader = Reader(body);
    let mut envelope = Envelope::default();
    while let Some((number, part)) = reader.next()? {
        match (number, part) {
            (1, Part::Bytes(meta)) => {
                let mut meta = Reader(meta);
                while let Some((number, part)) = meta.next()? {
                    match (number, part) {
                        (1, Part::Bytes(text)) => envelope.api_version = utf8(text)?,
                        (2, Part::Bytes(text)) => envelope.kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Part::Bytes(raw)) => envelope.raw = raw,
            // Content type and encoding are not looked at by Kubernetes either.
            _ => {}
        }
    }
    Ok(envelope)
}

/// Reads a message of a type as JSON. Fields that are not set but always encoded come as their
/// zero values; [`crate::types::decode::decode`] drops them.
pub fn decode(types: &Types, ty: &Type, bytes: &[u8]) -> Result<Value, ProtobufError> {
    message(types, ty, bytes, 0)
}

fn message(types: &Types, ty: &Type, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Depth);
    }
    let (id, opaque) = match ty {
        Type::Struct(id) => (*id, false),
        Type::Opaque(id) => (*id, true),
        other => return special(other, bytes),
    };
    let Some(structure) = types.structure(id) else { return Ok(json!({})) };
    let object = fields(types, structure, bytes, depth)?;
    if structure.union {
        return Ok(chosen(object));
    }
    let object = Value::Object(object);
    // Whatever is kept as given in JSON is not cleaned of empty fields later on.
    Ok(if opaque { cleaned(types, id, object) } else { object })
}

fn fields(
    types: &Types,
    structure: &Structure,
    bytes: &[u8],
    depth: usize,
) -> Result<Map<String, Value>, ProtobufError> {
    let mut object = Map::new();
    let mut reader = Reader(bytes);
    while let Some((number, part)) = reader.next()? {
        match structure.part(number) {
            Some(types::Part::Inlined(ty)) => {
                let Part::Bytes(bytes) = part else { return Err(part.unexpected()) };
                if let Value::Object(below) = message(types, ty, bytes, depth + 1)? {
                    object.extend(below);
                }
            }
            Some(types::Part::Field(at)) => {
                let Some(field) = structure.fields().get(*at) else { continue };
                let place = object.entry(field.name).or_insert(Value::Null);
                put(types, &field.ty, part, place, depth)
                    .map_err(|error| named(error, field.name))?;
            }
            None => {}
        }
    }
    Ok(object)
}

/// The part of a union that JSON shows: a schema before a list before a flag.
fn chosen(mut object: Map<String, Value>) -> Value {
    let mut take = |wanted: fn(&Value) -> bool| {
        let name = object.iter().find(|(_, value)| wanted(value)).map(|(name, _)| name.clone());
        name.and_then(|name| object.remove(&name))
    };
    take(Value::is_object)
        .or_else(|| take(Value::is_array))
        .or_else(|| take(Value::is_boolean))
        .unwrap_or_default()
}

fn cleaned(types: &Types, id: usize, object: Value) -> Value {
    let ty = Type::Struct(id);
    let Ok(decoded) = canonical(types, &ty, object.clone()) else { return object };
    let mut value = decoded.value;
    compact(types, &ty, &mut value);
    value
}

fn named(error: ProtobufError, name: &str) -> ProtobufError {
    match error {
        ProtobufError::Wire { wire, field } if field.is_empty() => {
            ProtobufError::Wire { wire, field: go_name(name) }
        }
        other => other,
    }
}

/// The name of a field in Go.
fn go_name(name: &str) -> String {
    if name == "metadata" {
        return "ObjectMeta".to_owned();
    }
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Adds one encoded value to a field, which may have several.
fn put(
    types: &Types,
    ty: &Type,
    part: Part<'_>,
    place: &mut Value,
    depth: usize,
) -> Result<(), ProtobufError> {
    match ty {
        Type::Optional(inner) => put(types, inner, part, place, depth)?,
        Type::List(inner) => {
            if !place.is_array() {
                *place = json!([]);
            }
            let Some(items) = place.as_array_mut() else { return Ok(()) };
            match (&**inner, part) {
                // Numbers may also come packed into one piece.
                (Type::Integer { .. } | Type::Bool(_), Part::Bytes(packed)) => {
                    let mut reader = Reader(packed);
                    while !reader.0.is_empty() {
                        let number = Part::Varint(reader.varint()?);
                        items.push(scalar(types, inner, number, depth)?);
                    }
                }
                _ => {
                    let mut item = Value::Null;
                    put(types, inner, part, &mut item, depth)?;
                    items.push(item);
                }
            }
        }
        Type::Map(inner) => {
            if !place.is_object() {
                *place = json!({});
            }
            let Part::Bytes(entry) = part else { return Err(part.unexpected()) };
            let (key, value) = map_entry(types, inner, entry, depth)?;
            if let Some(entries) = place.as_object_mut() {
                entries.insert(key, value);
            }
        }
        _ => *place = scalar(types, ty, part, depth)?,
    }
    Ok(())
}

fn map_entry(
    types: &Types,
    inner: &Type,
    entry: &[u8],
    depth: usize,
) -> Result<(String, Value), ProtobufError> {
    let (mut key, mut value) = (String::new(), Value::Null);
    let mut reader = Reader(entry);
    while let Some((number, part)) = reader.next()? {
        match (number, part) {
            (1, Part::Bytes(text)) => key = utf8(text)?,
            // Maps of lists have a message around each list.
            (2, Part::Bytes(list)) if matches!(inner, Type::List(_)) => {
                let mut list = Reader(list);
                while let Some((number, part)) = list.next()? {
                    if number == 1 {
                        put(types, inner, part, &mut value, depth)?;
                    }
                }
            }
            (2, part) => put(types, inner, part, &mut value, depth)?,
            (1, part) => return Err(part.unexpected()),
            _ => {}
        }
    }
    if value.is_null() {
        value = match inner {
            // An entry that is there has a value, if only an empty one.
            Type::Bytes => json!(""),
            _ => zero(types, inner),
        };
    }
    Ok((key, value))
}

fn scalar(types: &Types, ty: &Type, part: Part<'_>, depth: usize) -> Result<Value, ProtobufError> {
    Ok(match (ty, part) {
        (Type::Text(_), Part::Bytes(text)) => Value::String(utf8(text)?),
        (Type::Bool(_), Part::Varint(number)) => Value::Bool(number != 0),
        (Type::Integer { min, max, .. }, Part::Varint(number)) => integer(number, *min, *max),
        (Type::Float(_), Part::Fixed64(bits)) => number(f64::from_bits(bits)),
        (Type::Bytes, Part::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        (Type::Text(_) | Type::Bool(_) | Type::Integer { .. } | Type::Float(_), part) => {
            return Err(part.unexpected());
        }
        (_, Part::Bytes(bytes)) => message(types, ty, bytes, depth + 1)?,
        (_, part) => return Err(part.unexpected()),
    })
}

pub(super) fn utf8(bytes: &[u8]) -> Result<String, ProtobufError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Text)
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
}

impl Part<'_> {
    fn unexpected(self) -> ProtobufError {
        let wire = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32 => 5,
        };
        ProtobufError::Wire { wire, field: String::new() }
    }
}

/// Reads the fields of one message.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn next(&mut self) -> Result<Option<(u32, Part<'a>)>, ProtobufError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).unwrap_or_default();
        let part = match tag & 7 {
            0 => Part::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                Part::Fixed64(bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::End)?;
                Part::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Part::Fixed32
            }
            wire => return Err(ProtobufError::IllegalWire(u8::try_from(wire).unwrap_or_default())),
        };
        Ok(Some((number, part)))
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(ProtobufError::End)?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Overflow)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError::End)?;
        self.0 = rest;
        Ok(taken)
    }
}
