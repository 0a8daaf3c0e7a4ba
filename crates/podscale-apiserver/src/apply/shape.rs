//! How the parts of an object are shared: the same questions asked of built-in types, of custom
//! resources' schemas, and of parts that nobody described.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::types::{self, Field, Merge, Type};

/// The shape of one value.
#[derive(Debug, Clone, Copy)]
pub enum Shape<'a> {
    /// A value of a built-in type.
    Typed(&'a Type, &'a Merge),
    /// A custom object: metadata is built in, the rest is described by the schema.
    Custom(Option<&'a Value>),
    /// A part of a custom object.
    Schema(&'a Value),
    /// Nothing is known: maps are shared by key, the rest is owned as a whole.
    Unknown,
}

/// How a value is divided among its owners.
#[derive(Debug, Clone, PartialEq)]
pub enum Division {
    /// Not at all.
    Whole,
    /// By key.
    Map,
    /// By item, told apart by these fields.
    Items(Vec<String>),
    /// By item, each a scalar.
    Set,
}

static PLAIN: Merge = Merge::Plain;

impl<'a> Shape<'a> {
    /// The shape of a whole object of a built-in type.
    pub fn of(ty: &'a Type) -> Self {
        Self::Typed(ty, &PLAIN)
    }

    /// How a value of this shape is divided.
    pub fn division(&self, value: &Value) -> Division {
        match self {
            Self::Typed(ty, merge) => typed_division(ty, merge),
            Self::Custom(_) => Division::Map,
            Self::Schema(schema) => schema_division(schema, value),
            Self::Unknown if value.is_object() => Division::Map,
            Self::Unknown => Division::Whole,
        }
    }

    /// The shape below a field or key.
    pub fn field(&self, name: &str) -> Self {
        match self {
            Self::Typed(ty, _) => match plain(ty) {
                Type::Struct(id) => typed_field(*id, name)
                    .map_or(Self::Unknown, |field| Self::Typed(&field.ty, &field.merge)),
                Type::Map(inner) => Self::Typed(inner, &PLAIN),
                _ => Self::Unknown,
            },
            Self::Custom(_) if name == "metadata" => metadata_shape(),
            Self::Custom(schema) => {
                schema.map_or(Self::Unknown, |schema| schema_field(schema, name))
            }
            Self::Schema(schema) => schema_field(schema, name),
            Self::Unknown => Self::Unknown,
        }
    }

    /// The shape of a list's items.
    pub fn item(&self) -> Self {
        match self {
            Self::Typed(ty, _) => match plain(ty) {
                Type::List(inner) => Self::Typed(inner, &PLAIN),
                _ => Self::Unknown,
            },
            Self::Schema(schema) => schema.get("items").map_or(Self::Unknown, Self::Schema),
            Self::Custom(_) | Self::Unknown => Self::Unknown,
        }
    }

    /// What stands in for an absent key of a list's item.
    fn key_default(&self, key: &str) -> Option<Cow<'a, Value>> {
        match self {
            Self::Typed(ty, _) => match plain(ty) {
                Type::Struct(id) => typed_field(*id, key)?.default.as_ref().map(Cow::Borrowed),
                _ => None,
            },
            Self::Schema(schema) => {
                schema.get("properties")?.get(key)?.get("default").map(Cow::Borrowed)
            }
            _ => None,
        }
    }
}

/// The step to a list's item, as in `FieldsV1`.
pub(super) fn item_step(
    item_shape: &Shape<'_>,
    division: &Division,
    item: &Value,
) -> Option<String> {
    match division {
        Division::Set => Some(format!("v:{item}")),
        Division::Items(keys) => {
            let mut sorted: Vec<&String> = keys.iter().collect();
            sorted.sort();
            let mut found = Map::new();
            let mut parts = Vec::new();
            for key in sorted {
                let value = item
                    .get(key)
                    .filter(|value| !value.is_null())
                    .cloned()
                    .or_else(|| item_shape.key_default(key).map(Cow::into_owned));
                if let Some(value) = value {
                    parts.push(format!("{}:{value}", Value::from(key.as_str())));
                    found.insert(key.clone(), value);
                }
            }
            (!found.is_empty()).then(|| format!("k:{{{}}}", parts.join(",")))
        }
        Division::Whole | Division::Map => None,
    }
}

fn plain(ty: &Type) -> &Type {
    match ty {
        Type::Optional(inner) => inner,
        other => other,
    }
}

fn typed_field(id: usize, name: &str) -> Option<&'static Field> {
    types::kubernetes().structure(id)?.field(name)
}

fn metadata_shape<'a>() -> Shape<'a> {
    static METADATA: std::sync::OnceLock<Option<Type>> = std::sync::OnceLock::new();
    METADATA
        .get_or_init(|| types::kubernetes().find("meta/v1.ObjectMeta"))
        .as_ref()
        .map_or(Shape::Unknown, Shape::of)
}

fn typed_division(ty: &Type, merge: &Merge) -> Division {
    match (plain(ty), merge) {
        (_, Merge::Atomic) => Division::Whole,
        (Type::Struct(id), _) => {
            let atomic = types::kubernetes().structure(*id).is_some_and(|known| known.atomic);
            if atomic { Division::Whole } else { Division::Map }
        }
        (Type::Map(_), _) => Division::Map,
        (Type::List(_), Merge::Set) => Division::Set,
        (Type::List(_), Merge::Keys(keys)) => {
            Division::Items(keys.iter().map(|key| (*key).to_owned()).collect())
        }
        _ => Division::Whole,
    }
}

fn schema_field<'a>(schema: &'a Value, name: &str) -> Shape<'a> {
    let known = schema.get("properties").and_then(|properties| properties.get(name));
    let other = || schema.get("additionalProperties").filter(|other| other.is_object());
    known.or_else(other).map_or(Shape::Unknown, Shape::Schema)
}

fn schema_division(schema: &Value, value: &Value) -> Division {
    let word = |name: &str| schema.get(name).and_then(Value::as_str).unwrap_or_default();
    match value {
        Value::Object(_) if word("x-kubernetes-map-type") == "atomic" => Division::Whole,
        Value::Object(_) => Division::Map,
        Value::Array(_) => match word("x-kubernetes-list-type") {
            "set" => Division::Set,
            "map" => {
                let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
                let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                Division::Items(keys.map(str::to_owned).collect())
            }
            _ => Division::Whole,
        },
        _ => Division::Whole,
    }
}
