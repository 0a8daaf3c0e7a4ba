//! Answers in protobuf: objects, lists and events of watches, found by what they say they are.

use bytes::{BufMut, BytesMut};
use serde_json::Value;

use crate::types::protobuf::{ProtobufError, Writer, enclose, encode};
use crate::types::{self, Type};
use crate::value::text;

/// An object, a list or a Status, with its envelope.
pub(crate) fn object(value: &Value) -> Result<Vec<u8>, ProtobufError> {
    let (version, kind) = (text(value, "/apiVersion"), text(value, "/kind"));
    if let Some(ty) = type_of(version, kind) {
        return Ok(enclose(version, kind, &encode(types::kubernetes(), &ty, value)?));
    }
    let one = kind.strip_suffix("List").ok_or_else(|| no_form(version, kind))?;
    let items = value.get("items").and_then(Value::as_array).into_iter().flatten();
    let items: Result<Vec<_>, _> = items.map(|value| item(version, one, value)).collect();
    list(version, kind, value.get("metadata").unwrap_or(&Value::Null), &items?)
}

/// The message of a list's item, whose kind the list tells.
pub(crate) fn item(version: &str, kind: &str, value: &Value) -> Result<Vec<u8>, ProtobufError> {
    let ty = type_of(version, kind).ok_or_else(|| no_form(version, kind))?;
    encode(types::kubernetes(), &ty, value)
}

/// A list of items that are encoded already, with its envelope.
pub(crate) fn list(
    version: &str,
    kind: &str,
    metadata: &Value,
    items: &[Vec<u8>],
) -> Result<Vec<u8>, ProtobufError> {
    let known = types::kubernetes();
    let meta = known.find("meta/v1.ListMeta").ok_or_else(|| no_form("meta/v1", "ListMeta"))?;
    let mut out = Writer::default();
    out.bytes(1, &encode(known, &meta, metadata)?);
    items.iter().for_each(|item| out.bytes(2, item));
    Ok(enclose(version, kind, &out.finish()))
}

/// An event of a watch around an enclosed object, preceded by its length.
pub(crate) fn put_event(chunk: &mut BytesMut, kind: &str, object: &[u8]) {
    let mut raw = Writer::default();
    raw.bytes(1, object);
    let mut event = Writer::default();
    event.bytes(1, kind.as_bytes());
    event.bytes(2, &raw.finish());
    let event = event.finish();
    chunk.reserve(event.len() + 4);
    // Objects are bounded by the size of requests, far below this number's range.
    chunk.put_u32(u32::try_from(event.len()).unwrap_or(u32::MAX));
    chunk.put_slice(&event);
}

fn type_of(version: &str, kind: &str) -> Option<Type> {
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    // A Status is of no group.
    let group = if group.is_empty() && kind == "Status" { "meta" } else { group };
    types::kubernetes().find(&types::name_of(group, version, kind))
}

fn no_form(version: &str, kind: &str) -> ProtobufError {
    let version = version.rsplit('/').next().unwrap_or(version);
    ProtobufError::NoForm(format!("{version}.{kind}"))
}
