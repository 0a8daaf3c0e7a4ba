//! The two forms of objects against Kubernetes' own codecs, and what clients may send besides.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::types::decode::{compact, decode as canonical};
use crate::types::{self, Type, kubernetes};

/// What `e2e/controlplane/cmd/codec` wrote: objects in protobuf, in JSON, and in protobuf again.
const CODEC: &str = include_str!("../../../../../e2e/golden/codec.jsonl");

fn lines() -> impl Iterator<Item = Value> {
    CODEC.lines().map(|line| serde_json::from_str(line).unwrap())
}

fn text<'a>(line: &'a Value, field: &str) -> &'a str {
    line[field].as_str().unwrap_or_default()
}

fn type_of(line: &Value) -> Option<Type> {
    let version = text(line, "apiVersion");
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let kind = text(line, "kind");
    let group = if matches!(kind, "Status" | "DeleteOptions") { "meta" } else { group };
    kubernetes().find(&types::name_of(group, version, kind))
}

/// The JSON that a server answers with that got these bytes.
fn read(ty: &Type, bytes: &[u8]) -> Result<Value, String> {
    let types = kubernetes();
    let envelope = open(bytes).map_err(|error| error.to_string())?;
    let mut value = decode(types, ty, envelope.raw).map_err(|error| error.to_string())?;
    value["kind"] = json!(envelope.kind);
    value["apiVersion"] = json!(envelope.api_version);
    let mut value = canonical(types, ty, value)?.value;
    compact(types, ty, &mut value);
    Ok(value)
}

#[test]
fn every_served_kind_is_in_the_recording() {
    for info in crate::resource::builtin() {
        let recorded = lines().any(|line| {
            text(&line, "apiVersion") == info.api_version() && text(&line, "kind") == info.kind
        });
        assert!(recorded, "{} {}", info.api_version(), info.kind);
        let name = types::name_of(&info.group, &info.version, &info.kind);
        assert!(kubernetes().find(&name).is_some(), "{name} is served, but not in the table");
    }
}

#[test]
fn protobuf_is_read_as_by_kubernetes() {
    let mut differing = Vec::new();
    for line in lines() {
        // Kinds that are not served need not be known.
        let Some(ty) = type_of(&line) else { continue };
        let bytes = STANDARD.decode(text(&line, "protobuf")).unwrap();
        let got = read(&ty, &bytes);
        if got.as_ref() != Ok(&line["json"]) {
            let name = [text(&line, "kind"), text(&line, "case")].join(", ");
            let expected = serde_json::to_string_pretty(&line["json"]).unwrap();
            let got = got.map_or_else(|error| error, |got| format!("{got:#}"));
            differing.push(format!("{name}:\n{}", first_difference(&expected, &got)));
        }
    }
    assert!(differing.is_empty(), "{} differ\n{}", differing.len(), differing.join("\n"));
}

#[test]
fn protobuf_is_written_as_by_kubernetes() {
    let mut differing = Vec::new();
    for line in lines() {
        let Some(ty) = type_of(&line) else { continue };
        let expected = match text(&line, "fromJSON") {
            "" => text(&line, "protobuf"),
            given => given,
        };
        let (version, kind) = (text(&line, "apiVersion"), text(&line, "kind"));
        let got =
            encode(kubernetes(), &ty, &line["json"]).map(|body| enclose(version, kind, &body));
        if got.as_ref().map(|bytes| STANDARD.encode(bytes)) != Ok(expected.to_owned()) {
            // What the bytes say differs at most places, where it differs at all.
            let shown = |bytes: &[u8]| {
                read(&ty, bytes).map_or_else(|error| error, |got| format!("{got:#}"))
            };
            let what = match &got {
                Ok(bytes) => {
                    first_difference(&shown(&STANDARD.decode(expected).unwrap()), &shown(bytes))
                }
                Err(error) => error.to_string(),
            };
            differing.push(format!("{kind}, {}:\n{what}", text(&line, "case")));
        }
    }
    assert!(differing.is_empty(), "{} differ\n{}", differing.len(), differing.join("\n"));
}

fn first_difference(expected: &str, got: &str) -> String {
    let pairs = expected.lines().zip(got.lines());
    let at = pairs.clone().position(|(left, right)| left != right).unwrap_or(pairs.count());
    let part = |text: &str| {
        text.lines().skip(at.saturating_sub(6)).take(10).collect::<Vec<_>>().join("\n")
    };
    format!("expected\n{}\ngot\n{}", part(expected), part(got))
}

#[test]
fn an_empty_time_is_no_time() {
    let ty = kubernetes().find("core/v1.Event").unwrap();
    let event = |time: &[u8]| {
        let mut out = Writer::default();
        out.bytes(10, time);
        read(&ty, &enclose("v1", "Event", &out.finish())).unwrap()
    };
    assert_eq!(event(b"")["eventTime"], Value::Null);
    // The epoch is a time like any other.
    assert_eq!(event(b"\x08\0\x10\0")["eventTime"], "1970-01-01T00:00:00.000000Z");
    assert_eq!(event(b"\x08\0")["eventTime"], "1970-01-01T00:00:00.000000Z");
    // The zero time of Go is none either, however it comes.
    let zero =
        json!({"eventTime": "0001-01-01T00:00:00Z", "firstTimestamp": "0001-01-01T00:00:00Z"});
    let event = canonical(kubernetes(), &ty, zero).unwrap().value;
    assert_eq!((&event["eventTime"], &event["firstTimestamp"]), (&Value::Null, &Value::Null));
}

#[test]
fn what_other_writers_of_protobuf_send() {
    let security = kubernetes().find("core/v1.PodSecurityContext").unwrap();
    let packed = decode(kubernetes(), &security, b"\x22\x03\x01\xac\x02").unwrap();
    assert_eq!(packed, json!({"supplementalGroups": [1, 300]}), "numbers in one piece");
    let port = kubernetes().find("core/v1.ContainerPort").unwrap();
    let wide = decode(kubernetes(), &port, b"\x18\x81\x80\x80\x80\x10").unwrap();
    assert_eq!(wide, json!({"containerPort": 1}), "numbers that are too wide lose what is above");
    let secret = kubernetes().find("core/v1.Secret").unwrap();
    let bare = decode(kubernetes(), &secret, b"\x12\x03\x0a\x01k").unwrap();
    assert_eq!(bare, json!({"data": {"k": ""}}), "an entry without a value has an empty one");
}

#[test]
fn mistakes_are_told() {
    let ty = kubernetes().find("core/v1.Pod").unwrap();
    let deployment = kubernetes().find("apps/v1.DeploymentSpec").unwrap();
    let resources = kubernetes().find("core/v1.ResourceRequirements").unwrap();
    let revision = kubernetes().find("apps/v1.ControllerRevision").unwrap();
    let condition = kubernetes().find("core/v1.PodCondition").unwrap();
    for (ty, bytes, expected) in [
        (&ty, b"\x08\x01".as_slice(), "proto: wrong wireType = 0 for field ObjectMeta"),
        (&deployment, b"\x0a\x01\x01", "proto: wrong wireType = 2 for field Replicas"),
        (&ty, b"\x0a\x05\x0a", "unexpected EOF"),
        (&ty, b"\x0a\x03\x0a\x01\xff", "proto: invalid UTF-8"),
        (&ty, b"\x0b", "proto: illegal wireType 3"),
        (&ty, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow"),
        (
            &resources,
            b"\x0a\x09\x0a\x03cpu\x12\x02\x0a\x00",
            "quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            &revision,
            b"\x12\x03\x0a\x01{",
            "embedded JSON cannot be read: EOF while parsing an object at line 1 column 1",
        ),
        (&condition, b"\x22\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10", "unexpected EOF"),
        (
            &condition,
            b"\x22\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            "Time.MarshalJSON: year outside of range [0,9999]",
        ),
    ] {
        let error = decode(kubernetes(), ty, bytes).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
    for (bytes, expected) in [
        (b"".as_slice(), "empty data"),
        (b"k8s\0", "empty body"),
        (
            b"{}",
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
        ),
    ] {
        assert_eq!(open(bytes).expect_err(expected).to_string(), expected);
    }
}
