//! Values that JSON writes as scalars and protobuf as small messages, and numbers.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use podscale_api::Quantity;
use podscale_api::time::GoDuration;
use serde_json::{Number, Value};

use super::ProtobufError;
use super::read::{Part, Reader, utf8};
use super::write::Writer;
use crate::types::Type;
use crate::types::decode::{micros_text, parse_time, seconds_text};

const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
/// How the zero value of Go's times is written; decoding makes null of it.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// A whole number. Like Go, takes the low 32 bits where there is no room for more.
pub(super) fn integer(encoded: u64, min: i64, max: i64) -> Value {
    let low = u32::try_from(encoded & u64::from(u32::MAX)).unwrap_or_default();
    if max > i64::from(u32::MAX) {
        Value::from(encoded.cast_signed())
    } else if min < 0 {
        Value::from(low.cast_signed())
    } else {
        Value::from(low)
    }
}

/// A number as Go writes it: without a fraction if it has none.
#[allow(clippy::cast_possible_truncation, reason = "whole numbers of this size are exact")]
pub(super) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// Reads the message of a type that JSON writes as a scalar.
pub(super) fn special(ty: &Type, bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut numbers = [0_u64; 4];
    let mut texts: [Option<&[u8]>; 4] = [None; 4];
    let mut reader = Reader(bytes);
    while let Some((number, part)) = reader.next()? {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        match part {
            Part::Varint(value) => {
                if let Some(slot) = numbers.get_mut(at) {
                    *slot = value;
                }
            }
            Part::Bytes(value) => {
                if let Some(slot) = texts.get_mut(at) {
                    *slot = Some(value);
                }
            }
            Part::Fixed64(_) | Part::Fixed32 => {}
        }
    }
    let [_, first, second, _] = numbers;
    let [_, first_text, _, third_text] = texts;
    let int = |encoded: u64| integer(encoded, i32::MIN.into(), i32::MAX.into());
    Ok(match ty {
        // No fields at all mean no time; the epoch has its two zeros written out.
        Type::Time | Type::MicroTime if bytes.is_empty() => Value::from(NO_TIME),
        Type::Time => Value::from(seconds_text(time(first, 0)?)),
        Type::MicroTime => {
            let nanos = int(second).as_i64().unwrap_or_default();
            // Towards zero, as Go truncates.
            Value::from(micros_text(time(first, nanos / 1_000 * 1_000)?))
        }
        Type::Quantity => match first_text {
            None => Value::from("0"),
            Some(text) => {
                let parsed = Quantity::parse(&utf8(text)?);
                let refuse = |error| ProtobufError::Quantity(ToString::to_string(&error));
                Value::from(parsed.map_err(refuse)?.to_string())
            }
        },
        Type::IntOrString if int(first) == 1 => Value::from(utf8(third_text.unwrap_or_default())?),
        Type::IntOrString => int(second),
        Type::Duration => Value::from(GoDuration(first.cast_signed()).to_string()),
        Type::Raw => match first_text {
            None | Some([]) => Value::Null,
            Some(json) => serde_json::from_slice(json)
                .map_err(|error| ProtobufError::Json(error.to_string()))?,
        },
        _ => Value::Null,
    })
}

fn time(seconds: u64, nanos: i64) -> Result<DateTime, ProtobufError> {
    let since = SignedDuration::from_secs(seconds.cast_signed())
        .checked_add(SignedDuration::from_nanos(nanos))
        .ok_or(ProtobufError::Year)?;
    let time = EPOCH.checked_add(since).map_err(|_| ProtobufError::Year)?;
    // JSON has room for four digits.
    if time.year() < 0 { Err(ProtobufError::Year) } else { Ok(time) }
}

/// Writes the fields of such a message.
pub(super) fn write_special(
    ty: &Type,
    value: &Value,
    out: &mut Writer,
) -> Result<(), ProtobufError> {
    let refuse = |ty| ProtobufError::Value { value: value.to_string(), ty };
    match (ty, value) {
        (Type::Time | Type::MicroTime | Type::Raw, Value::Null) => {}
        (Type::Time | Type::MicroTime, Value::String(text)) => {
            let time = parse_time(text).ok_or_else(|| refuse("time"))?;
            // The fraction counts forward, before the epoch as well.
            let nanos = i64::from(time.subsec_nanosecond());
            let since =
                EPOCH.duration_until(time).saturating_sub(SignedDuration::from_nanos(nanos));
            let micros = if *ty == Type::Time { 0 } else { nanos / 1_000 * 1_000 };
            out.varint(1, since.as_secs().cast_unsigned());
            out.varint(2, micros.cast_unsigned());
        }
        (Type::Quantity, Value::String(text)) => out.bytes(1, text.as_bytes()),
        (Type::Quantity, Value::Null) => out.bytes(1, b"0"),
        (Type::IntOrString, Value::String(text)) => {
            out.varint(1, 1);
            out.varint(2, 0);
            out.bytes(3, text.as_bytes());
        }
        (Type::IntOrString, Value::Number(_) | Value::Null) => {
            out.varint(1, 0);
            out.varint(2, value.as_i64().unwrap_or_default().cast_unsigned());
            out.bytes(3, b"");
        }
        (Type::Duration, Value::String(text)) => {
            let GoDuration(nanos) = text.parse().map_err(|_| refuse("duration"))?;
            out.varint(1, nanos.cast_unsigned());
        }
        (Type::Duration, Value::Null) => out.varint(1, 0),
        (Type::Raw, value) => out.bytes(1, value.to_string().as_bytes()),
        _ => return Err(refuse("scalar")),
    }
    Ok(())
}
