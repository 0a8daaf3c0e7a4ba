//! A document as a tree of values with their places, and the tree as JSON and a table of places.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{Location, Spanned};

use super::{Content, DocumentError, Place, Places, problem};

enum Tree {
    Scalar(Value),
    List(Vec<Spanned<Tree>>),
    Map(Vec<(Spanned<String>, Spanned<Tree>)>),
}

/// Reads one document that begins after so many lines.
pub(super) fn read(text: &str, lines_before: u32) -> Result<Content, DocumentError> {
    let options = serde_saphyr::options! { with_snippet: false };
    match serde_saphyr::from_str_with_options::<Option<Spanned<Tree>>>(text, options) {
        Ok(Some(root)) => {
            let mut places = BTreeMap::new();
            places.insert(String::new(), place(root.referenced, lines_before));
            let mut path = String::new();
            let value = open(root.value, &mut path, lines_before, &mut places);
            Ok(Content { value, places: Places(places) })
        }
        Ok(None) => Ok(Content::default()),
        Err(error) => Err(DocumentError {
            place: error.location().map(|at| place(at, lines_before)).unwrap_or_default(),
            problem: format!("not YAML that can be read: {}", problem::words(&error)),
        }),
    }
}

fn place(location: Location, lines_before: u32) -> Place {
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let line = number(location.line());
    Place {
        line: if line > 0 { line.saturating_add(lines_before) } else { 0 },
        column: number(location.column()),
    }
}

fn open(
    tree: Tree,
    path: &mut String,
    lines_before: u32,
    places: &mut BTreeMap<String, Place>,
) -> Value {
    let length = path.len();
    match tree {
        Tree::Scalar(value) => value,
        Tree::List(items) => {
            let mut list = Vec::with_capacity(items.len());
            for (index, item) in items.into_iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                places.insert(path.clone(), place(item.referenced, lines_before));
                list.push(open(item.value, path, lines_before, places));
                path.truncate(length);
            }
            Value::Array(list)
        }
        Tree::Map(entries) => {
            let mut map = Map::new();
            for (key, value) in entries {
                let at = place(key.referenced, lines_before);
                // Errors name keys of maps in brackets.
                places.insert(format!("{path}[{}]", key.value), at);
                if length > 0 {
                    path.push('.');
                }
                path.push_str(&key.value);
                places.insert(path.clone(), at);
                map.insert(key.value, open(value.value, path, lines_before, places));
                path.truncate(length);
            }
            Value::Object(map)
        }
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
        f.write_str("YAML or JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tree, D::Error> {
        Tree::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
        // JSON has no word for what is not a number.
        let number = Number::from_f64(value).map(Value::Number);
        Ok(Tree::Scalar(number.unwrap_or_else(|| value.to_string().into())))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tree, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Tree::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key()? {
            entries.push((key, map.next_value()?));
        }
        Ok(Tree::Map(entries))
    }
}
