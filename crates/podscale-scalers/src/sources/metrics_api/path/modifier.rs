//! Modifiers of GJSON: what they make of a value, before the path goes on.

use serde_json::Value;
use std::borrow::Cow;

/// What is made of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    /// The value itself.
    This,
    /// The names of an object's members.
    Keys,
    /// The members of an object.
    Values,
    /// A list from its end.
    Reverse,
    /// A list in which lists are replaced by what they hold.
    Flatten,
}

const KNOWN: [(&str, Modifier); 5] = [
    ("this", Modifier::This),
    ("keys", Modifier::Keys),
    ("values", Modifier::Values),
    ("reverse", Modifier::Reverse),
    ("flatten", Modifier::Flatten),
];

impl Modifier {
    /// The one at the beginning of a text, after its `@`, and what follows it.
    ///
    /// # Errors
    /// It is not known here, or has arguments.
    pub(super) fn parse(text: &str) -> Result<(Modifier, &str), String> {
        let (name, rest) = text.split_at(text.find(['.', '|', ':']).unwrap_or(text.len()));
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        match known {
            Some(_) if rest.starts_with(':') => {
                Err(format!("arguments of @{name} are not supported"))
            }
            Some((_, modifier)) => Ok((*modifier, rest)),
            None => {
                let known: Vec<String> = KNOWN.iter().map(|(name, _)| format!("@{name}")).collect();
                Err(format!("@{name} is not supported; known are {}", known.join(", ")))
            }
        }
    }

    /// Whether the order of what it makes is not that of the document: members of objects are not kept in theirs.
    pub(super) fn loses_order(self) -> bool {
        matches!(self, Modifier::Keys | Modifier::Values)
    }

    /// What it makes of a value; nothing is an empty list of members.
    pub(super) fn apply<'a>(self, value: &'a Value) -> Cow<'a, Value> {
        let list = |values: Vec<Value>| Cow::Owned(Value::Array(values));
        match (self, value) {
            (Modifier::Keys, Value::Object(members)) => {
                list(members.keys().map(|name| Value::from(name.as_str())).collect())
            }
            (Modifier::Values, Value::Object(members)) => list(members.values().cloned().collect()),
            (Modifier::Keys | Modifier::Values, Value::Null) => list(Vec::new()),
            (Modifier::Keys, Value::Array(values)) => list(vec![Value::Null; values.len()]),
            (Modifier::Keys, _) => list(vec![Value::Null]),
            (Modifier::Values, Value::Array(_)) => Cow::Borrowed(value),
            (Modifier::Values, other) => list(vec![other.clone()]),
            (Modifier::Reverse, Value::Array(values)) => {
                list(values.iter().rev().cloned().collect())
            }
            (Modifier::Flatten, Value::Array(values)) => {
                let flat = values.iter().flat_map(|value| match value {
                    Value::Array(inner) => inner.iter(),
                    other => std::slice::from_ref(other).iter(),
                });
                list(flat.cloned().collect())
            }
            (Modifier::This | Modifier::Reverse | Modifier::Flatten, _) => Cow::Borrowed(value),
        }
    }
}
