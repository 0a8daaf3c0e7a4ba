//! Reads Kubernetes' protobuf form, which typed clients send by default, as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Number, Value, json};

use super::decode::{micro_time_text, time_text};
use super::{Type, Types};

/// What every object in protobuf starts with.
const MAGIC: &[u8] = b"k8s\0";
/// Messages nested deeper than this are refused.
const MAX_DEPTH: usize = 100;

/// Why bytes are no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// They do not start as objects do.
    #[error(
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
    )]
    Magic,
    /// They end too early.
    #[error("unexpected EOF")]
    End,
    /// A field has a form that its type cannot have.
    #[error("proto: wrong wireType = {wire} for field {field}")]
    Wire {
        /// Kind of encoding.
        wire: u8,
        /// Name or number of the field.
        field: String,
    },
    /// Messages are nested without end.
    #[error("proto: too deeply nested")]
    Depth,
    /// A text is not UTF-8.
    #[error("proto: invalid UTF-8")]
    Text,
}

/// The envelope around an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// The object itself.
    pub raw: &'a [u8],
}

/// Opens the envelope around an object.
pub fn open(bytes: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    let mut reader = Reader(bytes.strip_prefix(MAGIC).ok_or(ProtobufError::Magic)?);
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
            _ => {}
        }
    }
    Ok(envelope)
}

/// Reads a message of a type as JSON.
pub fn decode(types: &Types, ty: &Type, bytes: &[u8]) -> Result<Value, ProtobufError> {
    message(types, ty, bytes, 0)
}

fn message(types: &Types, ty: &Type, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
    let Type::Struct(id) = ty else { return special(ty, bytes) };
    let mut object = Map::new();
    let Some(structure) = types.structure(*id) else { return Ok(Value::Object(object)) };
    if depth > MAX_DEPTH {
        return Err(ProtobufError::Depth);
    }
    let mut reader = Reader(bytes);
    while let Some((number, part)) = reader.next()? {
        if let Some((_, ty)) = structure.inlined.iter().find(|(own, _)| *own == number) {
            let Part::Bytes(bytes) = part else { return Err(part.unexpected()) };
            if let Value::Object(below) = message(types, ty, bytes, depth + 1)? {
                object.extend(below);
            }
            continue;
        }
        let field = structure.fields().iter().find(|field| field.number == number && number > 0);
        let Some(field) = field else { continue };
        put(types, &field.ty, part, object.entry(field.name).or_insert(Value::Null), depth)
            .map_err(|error| named(error, field.name))?;
    }
    Ok(Value::Object(object))
}

fn named(error: ProtobufError, name: &str) -> ProtobufError {
    match error {
        ProtobufError::Wire { wire, field } if field.is_empty() => {
            ProtobufError::Wire { wire, field: name.to_owned() }
        }
        other => other,
    }
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
            let mut item = Value::Null;
            put(types, inner, part, &mut item, depth)?;
            if let Some(items) = place.as_array_mut() {
                items.push(item);
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
            (2, part) => put(types, inner, part, &mut value, depth)?,
            _ => {}
        }
    }
    if value.is_null() {
        value = super::decode::zero(types, inner);
    }
    Ok((key, value))
}

fn scalar(types: &Types, ty: &Type, part: Part<'_>, depth: usize) -> Result<Value, ProtobufError> {
    Ok(match (ty, part) {
        (Type::Text(_), Part::Bytes(text)) => Value::String(utf8(text)?),
        (Type::Bool(_), Part::Varint(number)) => Value::Bool(number != 0),
        // Negative numbers are sign-extended to 64 bits.
        (Type::Integer { .. }, Part::Varint(number)) => Value::from(number.cast_signed()),
        (Type::Float(_), Part::Fixed64(bits)) => {
            Number::from_f64(f64::from_bits(bits)).map_or(Value::Null, Value::Number)
        }
        (Type::Bytes, Part::Bytes(bytes)) => Value::String(STANDARD.encode(bytes)),
        (_, Part::Bytes(bytes)) => message(types, ty, bytes, depth + 1)?,
        (_, part) => return Err(part.unexpected()),
    })
}

/// Types that JSON writes as scalars and protobuf as messages.
fn special(ty: &Type, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut numbers = [0_i64; 4];
    let mut texts: [&[u8]; 4] = [&[]; 4];
    let mut reader = Reader(bytes);
    while let Some((number, part)) = reader.next()? {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        match part {
            Part::Varint(value) => {
                if let Some(slot) = numbers.get_mut(at) {
                    *slot = value.cast_signed();
                }
            }
            Part::Bytes(value) => {
                if let Some(slot) = texts.get_mut(at) {
                    *slot = value;
                }
            }
            Part::Fixed64(_) | Part::Fixed32 => {}
        }
    }
    let [_, first, second, _] = numbers;
    let [_, first_text, _, third_text] = texts;
    let time = || {
        let nanos = i32::try_from(second).unwrap_or_default();
        Timestamp::new(first, nanos).unwrap_or(Timestamp::UNIX_EPOCH)
    };
    Ok(match ty {
        Type::Time => Value::from(time_text(time())),
        Type::MicroTime => Value::from(micro_time_text(time())),
        Type::Quantity => match utf8(first_text)?.as_str() {
            "" => Value::from("0"),
            text => Value::from(text),
        },
        Type::IntOrString if first == 1 => Value::from(utf8(third_text)?),
        Type::IntOrString => Value::from(second),
        Type::Duration => Value::from(podscale_api::time::GoDuration(first).to_string()),
        Type::Raw => serde_json::from_slice(first_text).unwrap_or_default(),
        _ => Value::Null,
    })
}

fn utf8(bytes: &[u8]) -> Result<String, ProtobufError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Text)
}

#[derive(Debug, Clone, Copy)]
enum Part<'a> {
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
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(u32, Part<'a>)>, ProtobufError> {
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
            wire => {
                let wire = u8::try_from(wire).unwrap_or_default();
                return Err(ProtobufError::Wire { wire, field: number.to_string() });
            }
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
        Err(ProtobufError::End)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError::End)?;
        self.0 = rest;
        Ok(taken)
    }
}
