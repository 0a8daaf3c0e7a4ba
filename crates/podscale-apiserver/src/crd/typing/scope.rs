//! The names that an expression can use.

use super::kind::Kind;
use super::{Standing, Subject};

/// Names of types, which are values too.
const TYPES: [&str; 12] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "uint",
];

/// The names that are known at one place, innermost last.
pub(super) struct Scope<'a>(Vec<(String, Kind<'a>)>);

impl<'a> Scope<'a> {
    pub(super) fn new(subject: Subject<'a>) -> Self {
        let Subject { schema, standing, optional_old } = subject;
        let own = Kind::of(schema, standing == Standing::Root).unwrap_or(Kind::Any);
        let old = if optional_old { Kind::Any } else { own.clone() };
        Self(vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)])
    }

    /// What a name stands for.
    pub(super) fn find(&self, name: &str) -> Option<Kind<'a>> {
        let declared = self.0.iter().rev().find(|(known, _)| known == name);
        declared
            .map(|(_, kind)| kind.clone())
            .or_else(|| TYPES.contains(&name).then_some(Kind::Any))
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Adds names; the result is what [`Scope::leave`] needs to forget them.
    pub(super) fn enter(&mut self, names: impl IntoIterator<Item = (String, Kind<'a>)>) -> usize {
        let outside = self.0.len();
        self.0.extend(names);
        outside
    }

    pub(super) fn leave(&mut self, outside: usize) {
        self.0.truncate(outside);
    }

    /// Gives the innermost of a name another kind.
    pub(super) fn rename(&mut self, name: &str, kind: Kind<'a>) {
        if let Some((_, known)) = self.0.iter_mut().rev().find(|(known, _)| known == name) {
            *known = kind;
        }
    }
}
