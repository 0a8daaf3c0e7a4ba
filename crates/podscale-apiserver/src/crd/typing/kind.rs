//! The kinds of values that expressions deal with, and what operators and functions make of them.

use std::fmt;

use cel::common::ast::operators as op;

use crate::crd::expression::escaped;
use crate::crd::schema::{Additional, Schema};

/// What is known of a value before it is there.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind<'a> {
    /// Anything.
    Any,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Kind<'a>>),
    Map(Box<Kind<'a>>, Box<Kind<'a>>),
    /// Named fields, as a schema says.
    Object(Object<'a>),
    /// The part of an object's metadata that rules may use.
    Metadata,
}

/// An object of a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct Object<'a> {
    schema: &'a Schema,
    /// Whether it is a whole Kubernetes object.
    whole: bool,
}

impl PartialEq for Object<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.schema, other.schema)
    }
}

/// What a field of a value is.
pub(super) enum Field<'a> {
    Of(Kind<'a>),
    /// The value has fields, but not this one.
    Undefined,
    /// Such values have no fields.
    None,
}

impl<'a> Kind<'a> {
    /// The kind of a schema's values; none if rules cannot see them.
    pub(super) fn of(schema: &'a Schema, whole: bool) -> Option<Self> {
        if schema.int_or_string {
            return Some(Self::Any);
        }
        let whole = whole || schema.embedded_resource;
        match schema.kind.as_str() {
            "array" => Some(Self::List(Box::new(Self::of(schema.items.as_deref()?, false)?))),
            "object" if !whole && let Some(values) = additional(schema) => {
                Some(Self::Map(Box::new(Self::String), Box::new(Self::of(values, false)?)))
            }
            "object" => Some(Self::Object(Object { schema, whole })),
            "string" => Some(match schema.format.as_str() {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Timestamp,
                _ => Self::String,
            }),
            "boolean" => Some(Self::Bool),
            "number" => Some(Self::Double),
            "integer" => Some(Self::Int),
            _ => None,
        }
    }

    /// The field of this name, as written in expressions.
    pub(super) fn field(&self, name: &str) -> Field<'a> {
        match self {
            Self::Any => Field::Of(Self::Any),
            Self::Map(_, value) => Field::Of((**value).clone()),
            Self::Metadata if matches!(name, "name" | "generateName") => Field::Of(Self::String),
            Self::Metadata => Field::Undefined,
            Self::Object(object) => object.field(name).map_or(Field::Undefined, Field::Of),
            _ => Field::None,
        }
    }

    /// Whether nothing can be said yet.
    pub(super) fn is_open(&self) -> bool {
        *self == Self::Any
    }

    /// Whether a value of this kind can stand where the other is wanted.
    pub(super) fn fits(&self, wanted: &Kind<'a>) -> bool {
        match (self, wanted) {
            (Self::Any, _) | (_, Kind::Any) => true,
            (Self::List(item), Kind::List(other)) => item.fits(other),
            (Self::Map(key, value), Kind::Map(other_key, other_value)) => {
                key.fits(other_key) && value.fits(other_value)
            }
            // Null is the value of what is not there.
            (Self::Null, other) | (other, Self::Null) => other.may_be_null(),
            (Self::Object(object), Kind::Object(other)) => {
                std::ptr::eq(object.schema, other.schema)
            }
            (this, other) => std::mem::discriminant(this) == std::mem::discriminant(other),
        }
    }

    fn may_be_null(&self) -> bool {
        matches!(
            self,
            Self::Null | Self::Object(_) | Self::Metadata | Self::Timestamp | Self::Duration
        )
    }

    fn is_number(&self) -> bool {
        matches!(self, Self::Any | Self::Int | Self::Uint | Self::Double)
    }

    fn is_ordered(&self) -> bool {
        self.is_number()
            || matches!(
                self,
                Self::Bool | Self::String | Self::Bytes | Self::Timestamp | Self::Duration
            )
    }
}

impl<'a> Object<'a> {
    fn field(&self, name: &str) -> Option<Kind<'a>> {
        let specified = self.schema.properties.iter().find(|(field, _)| escaped(field) == name);
        match name {
            "apiVersion" | "kind" if self.whole => Some(Kind::String),
            "metadata" if self.whole => Some(Kind::Metadata),
            _ => specified.and_then(|(_, schema)| Kind::of(schema, false)),
        }
    }
}

fn additional(schema: &Schema) -> Option<&Schema> {
    schema.additional_properties.as_ref().and_then(Additional::schema)
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::Object(_) | Self::Metadata => "object",
            Self::List(item) => return write!(f, "list({item})"),
            Self::Map(key, value) => return write!(f, "map({key}, {value})"),
        })
    }
}

/// The kind that all of these have, or anything if they differ.
pub(super) fn joined<'a>(kinds: Vec<Kind<'a>>) -> Kind<'a> {
    let mut kinds = kinds.into_iter();
    let Some(first) = kinds.next() else { return Kind::Any };
    if kinds.all(|kind| kind == first) { first } else { Kind::Any }
}

/// The kinds that a function was called with, as messages show them.
pub(super) fn signature(kinds: &[Kind<'_>], method: bool) -> String {
    let shown: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    match shown.split_first() {
        Some((target, arguments)) if method => format!("{target}.({})", arguments.join(", ")),
        _ => format!("({})", shown.join(", ")),
    }
}

/// What a call makes of values of these kinds; none if it cannot be called with them.
pub(super) fn of_call<'a>(name: &str, method: bool, kinds: &[Kind<'a>]) -> Option<Kind<'a>> {
    match (name, kinds) {
        (op::LOGICAL_NOT, [value]) => value.fits(&Kind::Bool).then_some(Kind::Bool),
        (op::NEGATE, [value]) => {
            matches!(value, Kind::Any | Kind::Int | Kind::Double).then(|| value.clone())
        }
        (op::CONDITIONAL, [condition, yes, no]) => {
            let fits = condition.fits(&Kind::Bool) && yes.fits(no);
            fits.then(|| joined(vec![yes.clone(), no.clone()]))
        }
        (op::EQUALS | op::NOT_EQUALS, [left, right]) => left.fits(right).then_some(Kind::Bool),
        (op::LESS | op::LESS_EQUALS | op::GREATER | op::GREATER_EQUALS, [left, right]) => {
            let numbers = left.is_number() && right.is_number();
            let alike = left.is_ordered() && right.is_ordered() && left.fits(right);
            (numbers || alike).then_some(Kind::Bool)
        }
        (op::ADD, [left, right]) => added(left, right),
        (op::SUBSTRACT, [left, right]) => subtracted(left, right),
        (op::MULTIPLY | op::DIVIDE, [left, right]) => {
            let fits = left.is_number() && right.is_number() && left.fits(right);
            fits.then(|| known(left, right))
        }
        (op::MODULO, [left, right]) => {
            let whole = |kind: &Kind<'_>| kind.is_number() && *kind != Kind::Double;
            (whole(left) && whole(right) && left.fits(right)).then(|| known(left, right))
        }
        (op::IN, [item, Kind::List(items)]) => item.fits(items).then_some(Kind::Bool),
        (op::IN, [key, Kind::Map(keys, _)]) => key.fits(keys).then_some(Kind::Bool),
        (op::IN, [_, range]) => range.is_open().then_some(Kind::Bool),
        (op::INDEX, [Kind::List(item), index]) => index.fits(&Kind::Int).then(|| (**item).clone()),
        (op::INDEX, [Kind::Map(key, value), index]) => index.fits(key).then(|| (**value).clone()),
        (op::INDEX, [value, _]) => value.is_open().then_some(Kind::Any),
        ("size", [value]) => {
            let sized = matches!(
                value,
                Kind::Any | Kind::String | Kind::Bytes | Kind::List(_) | Kind::Map(..)
            );
            sized.then_some(Kind::Int)
        }
        ("contains" | "startsWith" | "endsWith", [text, part]) if method => {
            (text.fits(&Kind::String) && part.fits(&Kind::String)).then_some(Kind::Bool)
        }
        ("matches", [text, pattern]) => {
            (text.fits(&Kind::String) && pattern.fits(&Kind::String)).then_some(Kind::Bool)
        }
        ("lowerAscii" | "trim", [text]) => text.fits(&Kind::String).then_some(Kind::String),
        ("int", [_]) => Some(Kind::Int),
        ("uint", [_]) => Some(Kind::Uint),
        ("double", [_]) => Some(Kind::Double),
        ("string", [_]) => Some(Kind::String),
        ("bytes", [_]) => Some(Kind::Bytes),
        ("timestamp", [_]) => Some(Kind::Timestamp),
        ("duration", [_]) => Some(Kind::Duration),
        (op::NOT_STRICTLY_FALSE, _) => Some(Kind::Bool),
        _ => Some(Kind::Any),
    }
}

/// Whichever of the two says more.
fn known<'a>(left: &Kind<'a>, right: &Kind<'a>) -> Kind<'a> {
    if left.is_open() { right.clone() } else { left.clone() }
}

fn added<'a>(left: &Kind<'a>, right: &Kind<'a>) -> Option<Kind<'a>> {
    match (left, right) {
        (Kind::Timestamp, Kind::Duration) | (Kind::Duration, Kind::Timestamp) => {
            Some(Kind::Timestamp)
        }
        (Kind::Any, _) | (_, Kind::Any) => Some(Kind::Any),
        (Kind::List(item), Kind::List(other)) if item.fits(other) => {
            Some(Kind::List(Box::new(known(item, other))))
        }
        (
            Kind::Int | Kind::Uint | Kind::Double | Kind::String | Kind::Bytes | Kind::Duration,
            _,
        ) if left == right => Some(left.clone()),
        _ => None,
    }
}

fn subtracted<'a>(left: &Kind<'a>, right: &Kind<'a>) -> Option<Kind<'a>> {
    match (left, right) {
        (Kind::Timestamp, Kind::Duration) => Some(Kind::Timestamp),
        (Kind::Timestamp, Kind::Timestamp) => Some(Kind::Duration),
        (Kind::Any, _) | (_, Kind::Any) => Some(Kind::Any),
        (Kind::Int | Kind::Uint | Kind::Double | Kind::Duration, _) if left == right => {
            Some(left.clone())
        }
        _ => None,
    }
}
