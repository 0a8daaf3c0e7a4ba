//! The shapes of Kubernetes' own types, read from a table: what fields there are, of which type,
//! how lists merge. Decoding, patching and field ownership all stand on it.

pub mod decode;
pub mod protobuf;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::OnceLock;

use serde_json::Value;

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A text; holds the name of its Go type.
    Text(&'static str),
    /// True or false.
    Bool(&'static str),
    /// A whole number within the bounds.
    Integer {
        /// Name of its Go type.
        go: &'static str,
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A number.
    Float(&'static str),
    /// Bytes, written in base64.
    Bytes,
    /// A time in whole seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    /// A Go duration.
    Duration,
    /// A quantity such as `100m`.
    Quantity,
    /// A whole number or a text such as `25%`.
    IntOrString,
    /// Any JSON.
    Raw,
    /// Any JSON too, but protobuf has a message for it: the structure of this number.
    Opaque(usize),
    /// Something that may be absent, where absent differs from empty.
    Optional(Box<Type>),
    /// A list.
    List(Box<Type>),
    /// A map from texts.
    Map(Box<Type>),
    /// A structure; the number finds it with [`Types::structure`].
    Struct(usize),
}

/// How several writers share a list or a map.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Merge {
    /// Nothing is said: lists are replaced as a whole, maps are shared by key.
    #[default]
    Plain,
    /// Replaced as a whole.
    Atomic,
    /// Each scalar in a list is an item of its own.
    Set,
    /// Items of a list are told apart by these fields.
    Keys(Vec<&'static str>),
}

/// What a strategic merge patch does to the field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strategy {
    /// Lists are merged, not replaced.
    pub merge: bool,
    /// Structures are replaced, not merged.
    pub replace: bool,
    /// Keys that the patch does not list are dropped on request.
    pub retain_keys: bool,
    /// Tells the items of a merged list apart.
    pub key: Option<&'static str>,
}

/// One field of a structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Name in JSON.
    pub name: &'static str,
    /// What it holds.
    pub ty: Type,
    /// Whether it is written even when empty.
    pub keep: bool,
    /// How appliers share it.
    pub merge: Merge,
    /// How strategic merge patches treat it.
    pub strategy: Strategy,
    /// Stands in for an absent key of a list's item.
    pub default: Option<Value>,
    /// Number in protobuf; 0 for fields of an inlined message.
    pub number: u32,
}

/// A structure.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// Name with its package, such as `core/v1.PodSpec`.
    pub name: &'static str,
    /// Whether appliers own it only as a whole.
    pub atomic: bool,
    fields: Vec<Field>,
    by_name: HashMap<&'static str, usize>,
    /// Whether JSON shows only the part that is set, and not the structure around it.
    pub(crate) union: bool,
    /// What its protobuf message consists of, in order of the numbers.
    parts: Vec<(u32, Part)>,
}

/// One part of a structure's protobuf message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    /// The field at this position.
    Field(usize),
    /// A message whose fields JSON has among the structure's own.
    Inlined(Type),
}

impl Structure {
    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.by_name.get(name).and_then(|at| self.fields.get(*at))
    }

    /// All fields in the order of the Go type.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The parts of its protobuf message, in order of their numbers.
    pub(crate) fn parts(&self) -> &[(u32, Part)] {
        &self.parts
    }

    /// The part of its protobuf message that has this number.
    pub(crate) fn part(&self, number: u32) -> Option<&Part> {
        let at = self.parts.binary_search_by_key(&number, |(own, _)| *own).ok()?;
        self.parts.get(at).map(|(_, part)| part)
    }

    fn add_part(&mut self, number: u32, part: Part) {
        if number > 0 {
            let at = self.parts.partition_point(|(own, _)| *own < number);
            self.parts.insert(at, (number, part));
        }
    }

    /// The name without its package.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

/// All known structures.
#[derive(Debug, Default)]
pub struct Types {
    structures: Vec<Structure>,
    by_name: HashMap<&'static str, usize>,
}

const TABLE: &str = concat!(
    include_str!("types/kubernetes.txt"),
    include_str!("types/autoscaling.txt"),
    include_str!("types/wire.txt")
);

/// The table of Kubernetes' types.
pub fn kubernetes() -> &'static Types {
    static TYPES: OnceLock<Types> = OnceLock::new();
    TYPES.get_or_init(|| Types::parse(TABLE))
}

impl Types {
    /// The structure of that number.
    pub fn structure(&self, id: usize) -> Option<&Structure> {
        self.structures.get(id)
    }

    /// The type of that name, such as `apps/v1.Deployment`.
    pub fn find(&self, name: &str) -> Option<Type> {
        self.by_name.get(name).map(|id| Type::Struct(*id))
    }

    fn parse(text: &'static str) -> Self {
        let mut types = Self::default();
        let lines = || text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        for name in lines().filter_map(|line| line.strip_prefix("= ")) {
            let name = name.split(' ').next().unwrap_or(name);
            types.by_name.insert(name, types.by_name.len());
        }
        for line in lines() {
            if let Some(head) = line.strip_prefix("= ") {
                let mut parts = head.split(' ');
                let name = parts.next().unwrap_or(head);
                types.structures.push(Structure {
                    name,
                    atomic: parts.clone().any(|part| part == "map=atomic"),
                    fields: Vec::new(),
                    by_name: HashMap::new(),
                    union: parts.any(|part| part == "union"),
                    parts: Vec::new(),
                });
            } else if let Some(inlined) = line.strip_prefix('~') {
                if let Some((number, ty)) = inlined.split_once(' ')
                    && let (Ok(number), Some(ty)) = (number.parse(), types.parse_type(ty))
                    && let Some(structure) = types.structures.last_mut()
                {
                    structure.add_part(number, Part::Inlined(ty));
                }
            } else if let Some(field) = types.parse_field(line)
                && let Some(structure) = types.structures.last_mut()
            {
                let at = structure.fields.len();
                structure.by_name.insert(field.name, at);
                structure.add_part(field.number, Part::Field(at));
                structure.fields.push(field);
            }
        }
        types
    }

    fn parse_field(&self, line: &'static str) -> Option<Field> {
        let mut parts = line.split(' ');
        let name = parts.next()?;
        let ty = self.parse_type(parts.next()?)?;
        let mut field = Field {
            name,
            ty,
            keep: false,
            merge: Merge::Plain,
            strategy: Strategy::default(),
            default: None,
            number: 0,
        };
        for part in parts {
            let (word, value) = part.split_once('=').unwrap_or((part, ""));
            match word {
                "keep" => field.keep = true,
                "list" | "map" => field.merge = parse_merge(value),
                "patch" => {
                    field.strategy.merge = value.split(',').any(|word| word == "merge");
                    field.strategy.replace = value.split(',').any(|word| word == "replace");
                    field.strategy.retain_keys = value.split(',').any(|word| word == "retainKeys");
                }
                "key" => field.strategy.key = Some(value),
                "default" => field.default = serde_json::from_str(value).ok(),
                _ if word.starts_with('#') => {
                    field.number = word.trim_start_matches('#').parse().unwrap_or_default();
                }
                _ => {}
            }
        }
        Some(field)
    }

    fn parse_type(&self, text: &'static str) -> Option<Type> {
        if let Some(inner) = text.strip_prefix('*') {
            return Some(Type::Optional(Box::new(self.parse_type(inner)?)));
        }
        if let Some(inner) = text.strip_prefix("[]") {
            return Some(Type::List(Box::new(self.parse_type(inner)?)));
        }
        if let Some(inner) = text.strip_prefix("{}") {
            return Some(Type::Map(Box::new(self.parse_type(inner)?)));
        }
        let (word, go) = text.split_once(':').unwrap_or((text, ""));
        let named = |plain: &'static str| if go.is_empty() { plain } else { go };
        let integer = |plain, min, max| Type::Integer { go: named(plain), min, max };
        Some(match word {
            "s" => Type::Text(named("string")),
            "b" => Type::Bool(named("bool")),
            "i32" => integer("int32", i32::MIN.into(), i32::MAX.into()),
            "i64" => integer("int64", i64::MIN, i64::MAX),
            "u32" => integer("uint32", 0, u32::MAX.into()),
            "f64" => Type::Float(named("float64")),
            "bytes" => Type::Bytes,
            "time" => Type::Time,
            "microtime" => Type::MicroTime,
            "duration" => Type::Duration,
            "quantity" => Type::Quantity,
            "intstr" => Type::IntOrString,
            "raw" if go.is_empty() => Type::Raw,
            "raw" => Type::Opaque(*self.by_name.get(go)?),
            name => Type::Struct(*self.by_name.get(name)?),
        })
    }
}

fn parse_merge(value: &'static str) -> Merge {
    match value.split_once(':') {
        Some(("map", keys)) => Merge::Keys(keys.split(',').collect()),
        _ => match value {
            "atomic" => Merge::Atomic,
            "set" => Merge::Set,
            _ => Merge::Plain,
        },
    }
}

/// The name in the table of a served kind.
pub fn name_of(group: &str, version: &str, kind: &str) -> String {
    let package = match group {
        "" => "core",
        "apiextensions.k8s.io" => "apiextensions",
        "apiregistration.k8s.io" => "apiregistration",
        other => other.split('.').next().unwrap_or(other),
    };
    format!("{package}/{version}.{kind}")
}
