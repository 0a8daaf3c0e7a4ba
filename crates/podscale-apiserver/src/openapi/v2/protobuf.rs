//! Version 2 of the document in protobuf, which client-go asks for. The messages are gnostic's:
//! texts, numbers and flags that are not set are absent, maps are lists of named values, and what
//! a message has no field for (`x-…`) is a list of named YAML texts.

use serde_json::{Map, Value};

use crate::types::protobuf::Writer;

/// What a field of JSON is in a message.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Bool,
    Integer,
    Float,
    /// Several texts.
    Texts,
    /// Any value, as YAML.
    Any,
    /// Several such values.
    Anys,
    /// A message with one list of texts, from a text or a list of them.
    TypeItem,
    One(&'static [Field]),
    /// Several schemas.
    Schemas,
    /// A message with schemas by name.
    NamedSchemas,
    /// A message with messages by name, in a list of this number.
    Named(u32, &'static [Field]),
    /// A message that holds another one, or a flag.
    SchemaOrBool,
    /// A message around one schema or several.
    Items,
    /// A message with a schema as its first alternative.
    SchemaItem,
    /// Answers by code, each an alternative.
    Responses,
    /// Parameters, each an alternative of alternatives.
    Parameters,
}

/// Number, name in JSON, kind.
type Field = (u32, &'static str, Kind);

/// Stands for whatever begins like this, in these tables.
const EXTENSIONS: &str = "x-";

const DOCUMENT: &[Field] = &[
    (1, "swagger", Kind::Text),
    (2, "info", Kind::One(INFO)),
    (8, "paths", Kind::Named(2, PATH_ITEM)),
    (9, "definitions", Kind::Named(1, SCHEMA)),
];

const INFO: &[Field] = &[(1, "title", Kind::Text), (2, "version", Kind::Text)];

const PATH_ITEM: &[Field] = &[
    (2, "get", Kind::One(OPERATION)),
    (3, "put", Kind::One(OPERATION)),
    (4, "post", Kind::One(OPERATION)),
    (5, "delete", Kind::One(OPERATION)),
    (6, "options", Kind::One(OPERATION)),
    (7, "head", Kind::One(OPERATION)),
    (8, "patch", Kind::One(OPERATION)),
    (9, "parameters", Kind::Parameters),
];

const OPERATION: &[Field] = &[
    (1, "tags", Kind::Texts),
    (2, "summary", Kind::Text),
    (3, "description", Kind::Text),
    (5, "operationId", Kind::Text),
    (6, "produces", Kind::Texts),
    (7, "consumes", Kind::Texts),
    (8, "parameters", Kind::Parameters),
    (9, "responses", Kind::Responses),
    (10, "schemes", Kind::Texts),
    (11, "deprecated", Kind::Bool),
    (13, EXTENSIONS, Kind::Any),
];

const RESPONSE: &[Field] =
    &[(1, "description", Kind::Text), (2, "schema", Kind::SchemaItem), (5, EXTENSIONS, Kind::Any)];

const BODY_PARAMETER: &[Field] = &[
    (1, "description", Kind::Text),
    (2, "name", Kind::Text),
    (3, "in", Kind::Text),
    (4, "required", Kind::Bool),
    (5, "schema", Kind::One(SCHEMA)),
];

const QUERY_PARAMETER: &[Field] = &[
    (1, "required", Kind::Bool),
    (2, "in", Kind::Text),
    (3, "description", Kind::Text),
    (4, "name", Kind::Text),
    (6, "type", Kind::Text),
    (7, "format", Kind::Text),
    (20, "uniqueItems", Kind::Bool),
];

const PATH_PARAMETER: &[Field] = &[
    (1, "required", Kind::Bool),
    (2, "in", Kind::Text),
    (3, "description", Kind::Text),
    (4, "name", Kind::Text),
    (5, "type", Kind::Text),
    (6, "format", Kind::Text),
    (19, "uniqueItems", Kind::Bool),
];

const SCHEMA: &[Field] = &[
    (1, "$ref", Kind::Text),
    (2, "format", Kind::Text),
    (3, "title", Kind::Text),
    (4, "description", Kind::Text),
    (5, "default", Kind::Any),
    (6, "multipleOf", Kind::Float),
    (7, "maximum", Kind::Float),
    (8, "exclusiveMaximum", Kind::Bool),
    (9, "minimum", Kind::Float),
    (10, "exclusiveMinimum", Kind::Bool),
    (11, "maxLength", Kind::Integer),
    (12, "minLength", Kind::Integer),
    (13, "pattern", Kind::Text),
    (14, "maxItems", Kind::Integer),
    (15, "minItems", Kind::Integer),
    (16, "uniqueItems", Kind::Bool),
    (17, "maxProperties", Kind::Integer),
    (18, "minProperties", Kind::Integer),
    (19, "required", Kind::Texts),
    (20, "enum", Kind::Anys),
    (21, "additionalProperties", Kind::SchemaOrBool),
    (22, "type", Kind::TypeItem),
    (23, "items", Kind::Items),
    (24, "allOf", Kind::Schemas),
    (25, "properties", Kind::NamedSchemas),
    (26, "discriminator", Kind::Text),
    (27, "readOnly", Kind::Bool),
    (30, "example", Kind::Any),
    (31, EXTENSIONS, Kind::Any),
];

/// The document in protobuf.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let mut out = Writer::default();
    message(DOCUMENT, document, &mut out);
    out.finish()
}

fn message(fields: &[Field], value: &Value, out: &mut Writer) {
    let Some(object) = value.as_object() else { return };
    for (number, name, kind) in fields {
        if *name == EXTENSIONS {
            let extensions = object.iter().filter(|(name, _)| name.starts_with(EXTENSIONS));
            for (name, value) in extensions {
                below(out, *number, |out| {
                    out.bytes(1, name.as_bytes());
                    below(out, 2, |out| any(value, out));
                });
            }
        } else if let Some(value) = object.get(*name).filter(|value| !value.is_null()) {
            field(*number, *kind, value, out);
        }
    }
}

fn field(number: u32, kind: Kind, value: &Value, out: &mut Writer) {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let text = value.as_str().unwrap_or_default();
    match kind {
        Kind::Text if !text.is_empty() => out.bytes(number, text.as_bytes()),
        Kind::Bool if value == &Value::Bool(true) => out.varint(number, 1),
        Kind::Integer => {
            if let Some(value) = value.as_i64().filter(|value| *value != 0) {
                out.varint(number, value.cast_unsigned());
            }
        }
        Kind::Float => {
            if let Some(value) = value.as_f64().filter(|value| *value != 0.0) {
                out.fixed64(number, value);
            }
        }
        Kind::Text | Kind::Bool => {}
        Kind::Texts => texts(number, items, out),
        Kind::Any => below(out, number, |out| any(value, out)),
        Kind::Anys => items.iter().for_each(|item| below(out, number, |out| any(item, out))),
        Kind::TypeItem => below(out, number, |out| {
            if items.is_empty() {
                out.bytes(1, text.as_bytes());
            }
            texts(1, items, out);
        }),
        Kind::One(fields) => below(out, number, |out| message(fields, value, out)),
        Kind::Schemas => {
            items.iter().for_each(|item| below(out, number, |out| message(SCHEMA, item, out)));
        }
        Kind::NamedSchemas => field(number, Kind::Named(1, SCHEMA), value, out),
        Kind::Named(list, fields) => below(out, number, |out| {
            entries(value).for_each(|(name, value)| {
                named(out, list, name, |out| message(fields, value, out));
            });
        }),
        Kind::SchemaOrBool => below(out, number, |out| match value {
            Value::Bool(flag) => out.varint(2, u64::from(*flag)),
            schema => below(out, 1, |out| message(SCHEMA, schema, out)),
        }),
        Kind::Items => below(out, number, |out| match value {
            Value::Array(_) => field(1, Kind::Schemas, value, out),
            schema => below(out, 1, |out| message(SCHEMA, schema, out)),
        }),
        Kind::SchemaItem => {
            below(out, number, |out| below(out, 1, |out| message(SCHEMA, value, out)));
        }
        Kind::Responses => below(out, number, |out| {
            entries(value).for_each(|(code, response)| {
                named(out, 1, code, |out| below(out, 1, |out| message(RESPONSE, response, out)));
            });
        }),
        Kind::Parameters => items.iter().for_each(|item| {
            below(out, number, |out| below(out, 1, |out| parameter(item, out)));
        }),
    }
}

fn parameter(value: &Value, out: &mut Writer) {
    match value.get("in").and_then(Value::as_str) {
        Some("body") => below(out, 1, |out| message(BODY_PARAMETER, value, out)),
        Some("path") => {
            below(out, 2, |out| below(out, 4, |out| message(PATH_PARAMETER, value, out)))
        }
        _ => below(out, 2, |out| below(out, 3, |out| message(QUERY_PARAMETER, value, out))),
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn named(out: &mut Writer, number: u32, name: &str, write: impl FnOnce(&mut Writer)) {
    below(out, number, |out| {
        out.bytes(1, name.as_bytes());
        below(out, 2, write);
    });
}

fn texts(number: u32, items: &[Value], out: &mut Writer) {
    let items = items.iter().filter_map(Value::as_str);
    items.for_each(|item| out.bytes(number, item.as_bytes()));
}

/// Any value: its YAML, which JSON is too.
fn any(value: &Value, out: &mut Writer) {
    out.bytes(2, format!("{value}\n").as_bytes());
}

fn below(out: &mut Writer, number: u32, write: impl FnOnce(&mut Writer)) {
    // Nothing in these messages can fail.
    let written: Result<(), std::convert::Infallible> = out.message(number, |out| {
        write(out);
        Ok(())
    });
    match written {
        Ok(()) => {}
        Err(never) => match never {},
    }
}
