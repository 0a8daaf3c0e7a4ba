//! YAML as a tree that knows its lines, so that everything wrong in a file can be named at once, with its
//! place, and what is not understood can be written again as it was.

use super::error::RuleError;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_saphyr::Spanned;
use std::fmt;

/// The largest file: a ConfigMap holds less.
const MOST_BYTES: usize = 4 << 20;

/// A value of a document and the line it begins at.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub tree: Tree,
    /// The line, from 1; 0 if it has none.
    pub line: u32,
}

/// A value of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// Nothing.
    Null,
    /// A truth.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Float(f64),
    /// Text.
    Text(String),
    /// Several values.
    List(Vec<Node>),
    /// Values by name, in the order of the document.
    Map(Vec<(Key, Node)>),
}

/// The name of a value and its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The name.
    pub name: String,
    /// The line, from 1; 0 if it has none.
    pub line: u32,
}

impl Node {
    /// Reads one document; an empty one is nothing.
    ///
    /// # Errors
    /// It is not YAML, has a key twice, or is too large.
    pub fn read(text: &str) -> Result<Node, RuleError> {
        if text.len() > MOST_BYTES {
            return Err(RuleError::whole(format!("larger than {MOST_BYTES} bytes")));
        }
        let options = serde_saphyr::options! { with_snippet: false };
        let read = serde_saphyr::from_str_with_options::<Option<Spanned<Tree>>>(text, options);
        match read {
            Ok(Some(node)) => Ok(node.into()),
            Ok(None) => Ok(Node { tree: Tree::Null, line: 0 }),
            Err(error) => Err(RuleError {
                rule: Box::default(),
                line: error.location().map_or(0, |place| line(place.line())),
                problem: format!("not YAML that can be read: {}", first_line(&error)).into(),
            }),
        }
    }

    /// The value of a key, if it is a map that has it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Node> {
        let Tree::Map(entries) = &self.tree else { return None };
        entries.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// The text of a scalar; numbers and truths are text as well where text is wanted.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match &self.tree {
            Tree::Text(text) => Some(text.clone()),
            Tree::Bool(value) => Some(value.to_string()),
            Tree::Whole(value) => Some(value.to_string()),
            Tree::Float(value) => Some(value.to_string()),
            Tree::Null | Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// Text without a place.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> Node {
        Node { tree: Tree::Text(text.into()), line: 0 }
    }

    /// Values by name without places.
    pub fn of_map<'a>(entries: impl IntoIterator<Item = (&'a str, Node)>) -> Node {
        let key = |name: &str| Key { name: name.to_owned(), line: 0 };
        let entries = entries.into_iter().map(|(name, node)| (key(name), node));
        Node { tree: Tree::Map(entries.collect()), line: 0 }
    }

    /// What it is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match &self.tree {
            Tree::Null => "nothing",
            Tree::Bool(_) => "true or false",
            Tree::Whole(_) | Tree::Float(_) => "a number",
            Tree::Text(_) => "text",
            Tree::List(_) => "a list",
            Tree::Map(_) => "a map",
        }
    }
}

fn line(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn first_line(error: &dyn fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

impl From<Spanned<Tree>> for Node {
    fn from(spanned: Spanned<Tree>) -> Node {
        Node { line: line(spanned.referenced.line()), tree: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tree, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Whole(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(i64::try_from(value).map_or_else(|_| Tree::Text(value.to_string()), Tree::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element::<Spanned<Tree>>()? {
            nodes.push(node.into());
        }
        Ok(Tree::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let node = map.next_value::<Spanned<Tree>>()?.into();
            entries.push((Key { line: line(key.referenced.line()), name: key.value }, node));
        }
        Ok(Tree::Map(entries))
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.tree {
            Tree::Null => serializer.serialize_unit(),
            Tree::Bool(value) => serializer.serialize_bool(*value),
            Tree::Whole(value) => serializer.serialize_i64(*value),
            Tree::Float(value) => serializer.serialize_f64(*value),
            Tree::Text(text) => serializer.serialize_str(text),
            Tree::List(nodes) => serializer.collect_seq(nodes),
            Tree::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, node) in entries {
                    map.serialize_entry(&key.name, node)?;
                }
                map.end()
            }
        }
    }
}
