//! Recorded JSON as protobuf and answers in protobuf as JSON. The codec itself is held against
//! Kubernetes' own, byte by byte, in `src/types/protobuf/tests.rs`.

use podscale_apiserver::types::decode::{compact, decode as canonical};
use podscale_apiserver::types::protobuf::{decode, enclose, encode, open};
use podscale_apiserver::types::{Type, kubernetes, name_of};
use serde_json::{Value, json};

fn type_of(version: &str, kind: &str) -> Option<Type> {
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let meta = group.is_empty() && matches!(kind, "Status" | "DeleteOptions");
    kubernetes().find(&name_of(if meta { "meta" } else { group }, version, kind))
}

/// What protobuf says of a JSON body; none if that would not be the same.
pub fn body(text: &str) -> Option<Vec<u8>> {
    let given: Value = serde_json::from_str(text).ok()?;
    let (version, kind) = (given["apiVersion"].as_str()?, given["kind"].as_str()?);
    let ty = type_of(version, kind)?;
    // Fields that are unknown, wrong or given twice are about JSON.
    let read = canonical(kubernetes(), &ty, given.clone()).ok()?;
    if !read.unknown.is_empty() || given.to_string().len() != text.len() {
        return None;
    }
    let bytes = enclose(version, kind, &encode(kubernetes(), &ty, &read.value).ok()?);
    // Empty lists and maps are absent in protobuf, and defaults tell them apart.
    (object(&ty, &bytes) == read.value).then_some(bytes)
}

fn object(ty: &Type, bytes: &[u8]) -> Value {
    let envelope = open(bytes).unwrap();
    let mut value = message(ty, envelope.raw);
    value["kind"] = json!(envelope.kind);
    value["apiVersion"] = json!(envelope.api_version);
    value
}

fn message(ty: &Type, bytes: &[u8]) -> Value {
    let decoded = decode(kubernetes(), ty, bytes).unwrap();
    let mut value = canonical(kubernetes(), ty, decoded).unwrap().value;
    compact(kubernetes(), ty, &mut value);
    value
}

/// An answer as JSON.
pub fn answer(bytes: &[u8], stream: bool) -> Value {
    if stream {
        return Value::Array(frames(bytes).into_iter().map(event).collect());
    }
    let envelope = open(bytes).unwrap();
    if let Some(ty) = type_of(&envelope.api_version, &envelope.kind) {
        return object(&ty, bytes);
    }
    let item = type_of(&envelope.api_version, envelope.kind.strip_suffix("List").unwrap()).unwrap();
    let meta = kubernetes().find("meta/v1.ListMeta").unwrap();
    let mut list = json!({"kind": envelope.kind, "apiVersion": envelope.api_version, "items": []});
    for (number, part) in parts(envelope.raw) {
        match number {
            1 => list["metadata"] = message(&meta, part),
            _ => list["items"].as_array_mut().unwrap().push(message(&item, part)),
        }
    }
    list
}

/// The events of a watch, each after its length.
fn frames(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        frames.push(frame);
        bytes = rest;
    }
    frames
}

fn event(bytes: &[u8]) -> Value {
    let mut event = json!({});
    for (number, part) in parts(bytes) {
        match number {
            1 => event["type"] = json!(String::from_utf8(part.to_vec()).unwrap()),
            _ => event["object"] = answer(parts(part)[0].1, false),
        }
    }
    event
}

/// The fields of a message that has only texts and messages.
fn parts(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let length = usize::try_from(varint(&mut bytes)).unwrap();
        let (part, rest) = bytes.split_at(length);
        found.push((tag >> 3, part));
        bytes = rest;
    }
    found
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}
