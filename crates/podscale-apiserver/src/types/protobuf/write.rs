//! Writes JSON as messages, to the byte as Kubernetes does: fields in order of their numbers,
//! whatever cannot be absent always, entries of maps in order of their keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::scalars::write_special;
use super::{MAGIC, MAX_DEPTH, ProtobufError};
use crate::types::{Part, Type, Types};

/// Bytes of one message and of those within it.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    /// A field that is a number.
    pub(crate) fn varint(&mut self, number: u32, value: u64) {
        self.raw_varint(u64::from(number) << 3);
        self.raw_varint(value);
    }

    /// A field that is a number with a fraction.
    pub(crate) fn fixed64(&mut self, number: u32, value: f64) {
        self.raw_varint(u64::from(number) << 3 | 1);
        self.0.extend_from_slice(&value.to_bits().to_le_bytes());
    }

    /// A field that is a text, or a message that is encoded already.
    pub(crate) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.raw_varint(u64::from(number) << 3 | 2);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A field that is a message, with what `write` puts into it.
    pub(crate) fn message<E>(
        &mut self,
        number: u32,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut below = Self::default();
        write(&mut below)?;
        self.bytes(number, &below.0);
        Ok(())
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// An encoded object with the envelope around it.
pub fn enclose(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let mut out = Writer(Vec::with_capacity(object.len() + 64));
    out.0.extend_from_slice(MAGIC);
    let mut meta = Writer::default();
    meta.bytes(1, api_version.as_bytes());
    meta.bytes(2, kind.as_bytes());
    out.bytes(1, &meta.0);
    out.bytes(2, object);
    out.bytes(3, b"");
    out.bytes(4, b"");
    out.finish()
}

/// Writes JSON of a type as a message.
pub fn encode(types: &Types, ty: &Type, value: &Value) -> Result<Vec<u8>, ProtobufError> {
    let mut out = Writer::default();
    message(types, ty, value, &mut out, 0)?;
    Ok(out.finish())
}

fn message(
    types: &Types,
    ty: &Type,
    value: &Value,
    out: &mut Writer,
    depth: usize,
) -> Result<(), ProtobufError> {
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Depth);
    }
    let (Type::Struct(id) | Type::Opaque(id)) = ty else { return write_special(ty, value, out) };
    let Some(structure) = types.structure(*id) else { return Ok(()) };
    if !value.is_object() && !value.is_null() && !structure.union {
        return Err(ProtobufError::Value { value: value.to_string(), ty: structure.name });
    }
    for (number, part) in structure.parts() {
        match part {
            Part::Inlined(ty) => {
                out.message(*number, |out| message(types, ty, value, out, depth + 1))?;
            }
            Part::Field(at) => {
                let Some(field) = structure.fields().get(*at) else { continue };
                let below = if structure.union {
                    union_part(&field.ty, value)
                } else {
                    value.get(field.name).filter(|value| !value.is_null())
                };
                put(types, *number, &field.ty, below, out, depth)?;
            }
        }
    }
    Ok(())
}

/// What a field of a union holds when JSON shows this value.
fn union_part<'a>(ty: &Type, value: &'a Value) -> Option<&'a Value> {
    match (ty, value) {
        (Type::Bool(_), Value::Bool(_))
        | (Type::Optional(_), Value::Object(_))
        | (Type::List(_), Value::Array(_)) => Some(value),
        // A schema for what else there may be says that something may be.
        (Type::Bool(_), Value::Object(_)) => Some(&Value::Bool(true)),
        _ => None,
    }
}

/// Writes a field, as often as it has values.
fn put(
    types: &Types,
    number: u32,
    ty: &Type,
    value: Option<&Value>,
    out: &mut Writer,
    depth: usize,
) -> Result<(), ProtobufError> {
    match (ty, value) {
        (Type::Optional(_) | Type::List(_) | Type::Map(_) | Type::Bytes, None) => Ok(()),
        (Type::Optional(inner), Some(value)) => one(types, number, inner, value, out, depth),
        (Type::List(inner), Some(Value::Array(items))) => {
            items.iter().try_for_each(|item| one(types, number, inner, item, out, depth))
        }
        (Type::Map(inner), Some(Value::Object(entries))) => {
            let mut sorted: Vec<(&String, &Value)> = entries.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for (key, value) in sorted {
                out.message(number, |out| {
                    out.bytes(1, key.as_bytes());
                    match &**inner {
                        // Maps of lists have a message around each list.
                        Type::List(_) => {
                            out.message(2, |out| put(types, 1, inner, Some(value), out, depth + 1))
                        }
                        _ => one(types, 2, inner, value, out, depth + 1),
                    }
                })?;
            }
            Ok(())
        }
        (ty, value) => one(types, number, ty, value.unwrap_or(&Value::Null), out, depth),
    }
}

/// Writes one value; null stands for the zero value of its type.
fn one(
    types: &Types,
    number: u32,
    ty: &Type,
    value: &Value,
    out: &mut Writer,
    depth: usize,
) -> Result<(), ProtobufError> {
    let refuse = |ty| ProtobufError::Value { value: value.to_string(), ty };
    match (ty, value) {
        (Type::Text(_), Value::String(text)) => out.bytes(number, text.as_bytes()),
        (Type::Text(_) | Type::Bytes, Value::Null) => out.bytes(number, b""),
        (Type::Text(go), _) => return Err(refuse(go)),
        (Type::Bool(_), Value::Bool(_) | Value::Null) => {
            out.varint(number, u64::from(value == &Value::Bool(true)));
        }
        (Type::Bool(go), _) => return Err(refuse(go)),
        (Type::Integer { .. }, Value::Null) => out.varint(number, 0),
        (Type::Integer { go, .. }, _) => {
            let value = value.as_i64().ok_or_else(|| refuse(go))?;
            // Negative numbers are sign-extended to 64 bits.
            out.varint(number, value.cast_unsigned());
        }
        (Type::Float(go), _) => {
            let known = if value.is_null() { Some(0.0) } else { value.as_f64() };
            out.fixed64(number, known.ok_or_else(|| refuse(go))?);
        }
        (Type::Bytes, Value::String(text)) => {
            out.bytes(number, &STANDARD.decode(text).map_err(|_| refuse("[]byte"))?);
        }
        (Type::Bytes | Type::Optional(_) | Type::List(_) | Type::Map(_), _) => {
            return Err(refuse("single value"));
        }
        _ => out.message(number, |out| message(types, ty, value, out, depth + 1))?,
    }
    Ok(())
}
