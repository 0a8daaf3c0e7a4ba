//! What templates compute with.

use super::TemplateError;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// A value in a template. Clones share their contents.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing at all: the value of a key that a map does not have.
    Missing,
    /// A truth.
    Bool(bool),
    /// A whole number.
    Number(i64),
    /// Text.
    Text(Rc<str>),
    /// Several texts.
    List(Rc<[Rc<str>]>),
    /// Texts by name.
    Map(Rc<BTreeMap<Rc<str>, Rc<str>>>),
    /// Fields, of which there are no others.
    Record(Rc<[(&'static str, Value)]>),
}

impl Value {
    /// Text.
    #[must_use]
    pub fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// Several texts.
    pub fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Value {
        Value::List(texts.into_iter().map(Rc::from).collect())
    }

    /// Texts by name; of several with one name the last one counts.
    pub fn map<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Value {
        let texts = texts.into_iter().map(|(name, text)| (Rc::from(name), Rc::from(text)));
        Value::Map(Rc::new(texts.collect()))
    }

    /// Fields with these names.
    pub fn record(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
        Value::Record(fields.into_iter().collect())
    }

    /// Whether it counts as true: neither zero nor empty.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Missing => false,
            Value::Bool(value) => *value,
            Value::Number(value) => *value != 0,
            Value::Text(text) => !text.is_empty(),
            Value::List(list) => !list.is_empty(),
            Value::Map(map) => !map.is_empty(),
            Value::Record(_) => true,
        }
    }

    /// The field or key of that name.
    pub(super) fn field(&self, name: &str) -> Result<Value, TemplateError> {
        match self {
            Value::Map(map) => Ok(map.get(name).cloned().map_or(Value::Missing, Value::Text)),
            Value::Record(fields) => {
                let found = fields.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.clone()).ok_or_else(|| {
                    let known: Vec<String> = fields.iter().map(|f| format!(".{}", f.0)).collect();
                    TemplateError::of(format!(
                        "there is no field .{name}; there are {}",
                        known.join(", ")
                    ))
                })
            }
            other => Err(TemplateError::of(format!("{} has no field .{name}", other.kind()))),
        }
    }

    /// What it is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Missing => "nothing",
            Value::Bool(_) => "a truth",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
            Value::Record(_) => "the dot",
        }
    }
}

/// As Go prints it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Missing => f.write_str("<no value>"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Text(text) => f.write_str(text),
            Value::List(list) => write!(f, "[{}]", list.join(" ")),
            Value::Map(map) => {
                f.write_str("map[")?;
                for (place, (name, text)) in map.iter().enumerate() {
                    let space = if place > 0 { " " } else { "" };
                    write!(f, "{space}{name}:{text}")?;
                }
                f.write_str("]")
            }
            Value::Record(fields) => {
                f.write_str("{")?;
                for (place, (_, value)) in fields.iter().enumerate() {
                    let space = if place > 0 { " " } else { "" };
                    write!(f, "{space}{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}
