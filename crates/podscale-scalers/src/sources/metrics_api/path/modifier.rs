//! Modifiers of GJSON: what they make of a value, before the path goes on.

use super::{MOST_MADE, Path};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What is made of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Modifier {
    /// The value itself, which has neither an order of members nor spaces here.
    Same,
    /// The names of an object's members.
    Keys,
    /// The members of an object.
    Values,
    /// A list from its end.
    Reverse,
    /// A list in which lists are replaced by what they hold, and so on if it is deep.
    Flatten { deep: bool },
    /// One object of the members of several.
    Join,
    /// A value as a text.
    ToText,
    /// The value that a text has in it.
    FromText,
    /// An object of lists as a list of objects.
    Group,
    /// What a path finds anywhere in the value.
    Dig(Box<Path>),
}

/// How many bytes the names in groups have at most.
const MOST_NAME_BYTES: usize = 8 << 20;

const KNOWN: [&str; 13] = [
    "this", "keys", "values", "reverse", "flatten", "join", "tostr", "fromstr", "group", "valid",
    "ugly", "pretty", "dig",
];

impl Modifier {
    /// The one at the beginning of a text, after its `@`, and what follows it.
    ///
    /// # Errors
    /// It is not known here, or has arguments that are not.
    pub(super) fn parse(text: &str, nested: usize) -> Result<(Modifier, &str), String> {
        let (name, rest) = text.split_at(text.find(['.', '|', ':']).unwrap_or(text.len()));
        let (argument, rest) = match rest.strip_prefix(':') {
            Some(rest) => argument(rest),
            None => ("", rest),
        };
        // Others have none, and GJSON passes over what they are given.
        let option = |option: &str| {
            let given = serde_json::from_str::<Value>(argument).unwrap_or_default();
            given.get(option).is_some_and(is_true)
        };
        let modifier = match name {
            "this" | "valid" | "ugly" | "pretty" => Modifier::Same,
            "keys" => Modifier::Keys,
            "values" => Modifier::Values,
            "reverse" => Modifier::Reverse,
            "flatten" => Modifier::Flatten { deep: option("deep") },
            "join" if option("preserve") => {
                return Err("the argument preserve of @join is not supported".to_owned());
            }
            "join" => Modifier::Join,
            "tostr" => Modifier::ToText,
            "fromstr" => Modifier::FromText,
            "group" => Modifier::Group,
            "dig" if argument.is_empty() => {
                return Err("@dig needs a path: write @dig:name".to_owned());
            }
            "dig" if argument.contains("@dig") => {
                return Err("@dig in @dig is not supported".to_owned());
            }
            "dig" => {
                let path = Path::parse_within(argument, super::inside(nested)?)?;
                Modifier::Dig(Box::new(path))
            }
            _ => {
                let known = KNOWN.map(|name| format!("@{name}")).join(", ");
                return Err(format!("@{name} is not supported; known are {known}"));
            }
        };
        Ok((modifier, rest))
    }

    /// Whether the order of what it makes is not that of the document: members of objects are not kept in theirs.
    pub(super) fn loses_order(&self) -> bool {
        matches!(self, Modifier::Keys | Modifier::Values | Modifier::Dig(_))
    }

    /// How many times as much as it is given it may make.
    pub(super) fn copies(&self) -> usize {
        match self {
            // Quotes in quotes.
            Modifier::ToText => 2,
            Modifier::Dig(path) => path.copies(),
            _ => 1,
        }
    }

    /// What it makes of a value, or of nothing.
    pub(super) fn apply<'a>(&self, value: Option<&'a Value>) -> Option<Cow<'a, Value>> {
        let list = |values: Vec<Value>| Some(Cow::Owned(Value::Array(values)));
        let Some(value) = value else {
            return match self {
                Modifier::Keys | Modifier::Values | Modifier::Dig(_) => list(Vec::new()),
                Modifier::ToText => Some(Cow::Owned(Value::from(""))),
                _ => None,
            };
        };
        match (self, value) {
            (Modifier::Keys, Value::Object(members)) => {
                list(members.keys().map(|name| Value::from(name.as_str())).collect())
            }
            (Modifier::Values, Value::Object(members)) => list(members.values().cloned().collect()),
            (Modifier::Keys, Value::Array(values)) => list(vec![Value::Null; values.len()]),
            (Modifier::Keys, _) => list(vec![Value::Null]),
            (Modifier::Values, Value::Array(_)) => Some(Cow::Borrowed(value)),
            (Modifier::Values, other) => list(vec![other.clone()]),
            (Modifier::Reverse, Value::Array(values)) => {
                list(values.iter().rev().cloned().collect())
            }
            (Modifier::Flatten { deep }, Value::Array(values)) => {
                let mut flat = Vec::new();
                flatten(values, *deep, true, &mut flat);
                list(flat)
            }
            (Modifier::Join, Value::Array(values)) => {
                let objects = values.iter().filter_map(Value::as_object).flatten();
                // The last one of a name counts.
                let joined: Map<String, Value> =
                    objects.map(|(name, value)| (name.clone(), value.clone())).collect();
                Some(Cow::Owned(Value::Object(joined)))
            }
            (Modifier::ToText, value) => Some(Cow::Owned(Value::from(value.to_string()))),
            (Modifier::FromText, Value::String(text)) => {
                serde_json::from_str(text).ok().map(Cow::Owned)
            }
            (Modifier::Group, Value::Object(members)) => group(members).map(Cow::Owned),
            (Modifier::Group, _) => None,
            (Modifier::Dig(path), value) => {
                let mut found = Vec::new();
                dig(path, value, &mut found);
                list(found)
            }
            (
                Modifier::Same
                | Modifier::Reverse
                | Modifier::Flatten { .. }
                | Modifier::Join
                | Modifier::FromText,
                value,
            ) => Some(Cow::Borrowed(value)),
        }
    }
}

/// An argument, and what follows it: JSON, or all up to the next pipe.
fn argument(text: &str) -> (&str, &str) {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    if text.starts_with(['{', '[', '"']) && matches!(values.next(), Some(Ok(_))) {
        return text.split_at_checked(values.byte_offset()).unwrap_or((text, ""));
    }
    text.split_at(text.find('|').unwrap_or(text.len()))
}

/// What counts as that an option is set.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => matches!(text.to_lowercase().as_str(), "1" | "t" | "true"),
        _ => false,
    }
}

/// No deeper than a document can be, which its reader limits.
fn flatten(values: &[Value], deep: bool, outermost: bool, flat: &mut Vec<Value>) {
    for value in values {
        match value {
            Value::Array(inner) if deep || outermost => flatten(inner, deep, false, flat),
            other => flat.push(other.clone()),
        }
    }
}

/// Nothing if it were too much: names are repeated as often as their lists are long.
fn group(members: &Map<String, Value>) -> Option<Value> {
    let lists = || members.iter().filter_map(|(name, value)| Some((name, value.as_array()?)));
    let bytes = |(name, values): (&String, &Vec<Value>)| name.len().saturating_mul(values.len());
    let elements: usize = lists().map(|(_, values)| values.len()).sum();
    if elements > MOST_MADE || lists().map(bytes).fold(0, usize::saturating_add) > MOST_NAME_BYTES {
        return None;
    }
    let mut groups: Vec<Map<String, Value>> = Vec::new();
    for (name, values) in lists() {
        groups.resize_with(groups.len().max(values.len()), Map::new);
        for (group, value) in groups.iter_mut().zip(values) {
            group.insert(name.clone(), value.clone());
        }
    }
    Some(groups.into_iter().map(Value::Object).collect())
}

/// No deeper than a document can be, which its reader limits.
fn dig(path: &Path, value: &Value, found: &mut Vec<Value>) {
    found.extend(path.find(Some(value)).map(Cow::into_owned));
    match value {
        Value::Array(values) => values.iter().for_each(|value| dig(path, value, found)),
        Value::Object(members) => members.values().for_each(|value| dig(path, value, found)),
        _ => {}
    }
}
