//! Sets of fields, in memory and as `FieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Field sets nested deeper than this are cut off.
const MAX_DEPTH: usize = 200;

/// A set of paths into an object, as a tree. Steps are written as in `FieldsV1`: `f:name` for a
/// field, `k:{…}` for a list's item by its keys, `v:…` for an item of a set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Whether the path that leads here belongs to the set itself.
    pub member: bool,
    /// What lies below.
    pub children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(Self::is_empty)
    }

    /// The node below a step, made if need be.
    pub fn child(&mut self, step: &str) -> &mut Self {
        if !self.children.contains_key(step) {
            self.children.insert(step.to_owned(), Self::default());
        }
        self.children.entry(step.to_owned()).or_default()
    }

    /// Everything in either set.
    pub fn union(mut self, other: &Self) -> Self {
        self.add(other);
        self
    }

    /// Adds everything of another set.
    pub fn add(&mut self, other: &Self) {
        self.member |= other.member;
        for (step, child) in &other.children {
            self.child(step).add(child);
        }
    }

    /// What is here but not there.
    pub fn difference(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(step, child)| {
            let left = match other.children.get(step) {
                Some(other) => child.difference(other),
                None => child.clone(),
            };
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        Self { member: self.member && !other.member, children: children.collect() }
    }

    /// What is in both.
    pub fn intersection(&self, other: &Self) -> Self {
        let children = self.children.iter().filter_map(|(step, child)| {
            let both = child.intersection(other.children.get(step)?);
            (!both.is_empty()).then(|| (step.clone(), both))
        });
        Self { member: self.member && other.member, children: children.collect() }
    }

    /// Drops a field and all below it.
    pub fn remove(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else { return };
        if rest.is_empty() {
            self.children.remove(*first);
        } else if let Some(child) = self.children.get_mut(*first) {
            child.remove(rest);
            if child.is_empty() {
                self.children.remove(*first);
            }
        }
    }

    /// The paths of all members as people read them, such as `.spec.containers[name="a"].image`.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect("", &mut paths);
        paths
    }

    fn collect(&self, prefix: &str, paths: &mut Vec<String>) {
        if self.member {
            paths.push(prefix.to_owned());
        }
        for (step, child) in &self.children {
            child.collect(&format!("{prefix}{}", readable(step)), paths);
        }
    }

    /// The set as `FieldsV1`.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        if self.member && !self.children.is_empty() {
            object.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (step, child) in self.children.iter().filter(|(_, child)| !child.is_empty()) {
            object.insert(step.clone(), child.to_value());
        }
        Value::Object(object)
    }

    /// Reads `FieldsV1`.
    pub fn from_value(value: &Value) -> Self {
        let mut set = Self::read(value, 0);
        // The root is the object itself, which nobody owns.
        set.member = false;
        set
    }

    fn read(value: &Value, depth: usize) -> Self {
        let mut set = Self::default();
        let Some(object) = value.as_object() else { return set };
        set.member = object.is_empty() || object.contains_key(".");
        if depth < MAX_DEPTH {
            for (step, child) in object.iter().filter(|(step, _)| *step != ".") {
                set.children.insert(step.clone(), Self::read(child, depth + 1));
            }
        }
        set
    }
}

fn readable(step: &str) -> String {
    let (kind, rest) = step.split_at_checked(2).unwrap_or(("", step));
    match kind {
        "f:" => format!(".{rest}"),
        "k:" => match serde_json::from_str::<Map<String, Value>>(rest) {
            Ok(keys) => {
                let keys: Vec<String> =
                    keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
                format!("[{}]", keys.join(","))
            }
            Err(_) => format!("[{rest}]"),
        },
        "v:" => format!("[={rest}]"),
        _ => format!("[{rest}]"),
    }
}
