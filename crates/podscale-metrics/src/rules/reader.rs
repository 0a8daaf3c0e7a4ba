//! Walks a document and collects everything that is wrong with it on the way.

use super::document::{Node, Tree};
use super::error::RuleError;

/// More errors than this are not collected; the first ones say enough.
const MOST_ERRORS: usize = 100;

/// Collects what is wrong, and what may be.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) errors: Vec<RuleError>,
    pub(super) warnings: Vec<RuleError>,
}

impl Report {
    pub(super) fn error(&mut self, place: &Place<'_>, problem: impl Into<Box<str>>) {
        if self.errors.len() < MOST_ERRORS {
            self.errors.push(place.error(problem));
        }
    }

    pub(super) fn warn(&mut self, place: &Place<'_>, problem: impl Into<Box<str>>) {
        if self.warnings.len() < MOST_ERRORS {
            self.warnings.push(place.error(problem));
        }
    }
}

/// A value of the document with the path that leads to it. What is absent has the place of what should
/// have it.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) path: String,
    node: Option<&'a Node>,
    line: u32,
}

impl<'a> Place<'a> {
    /// The whole document.
    pub(super) fn root(node: &'a Node) -> Place<'a> {
        Place { path: String::new(), node: Some(node), line: node.line }
    }

    fn error(&self, problem: impl Into<Box<str>>) -> RuleError {
        RuleError { rule: self.path.as_str().into(), line: self.line, problem: problem.into() }
    }

    /// Whether it is not there, or null, which is the same.
    pub(super) fn is_absent(&self) -> bool {
        self.node.is_none_or(|node| node.tree == Tree::Null)
    }

    fn present(&self) -> Option<&'a Node> {
        self.node.filter(|node| node.tree != Tree::Null)
    }

    /// The value of a key.
    pub(super) fn field(&self, name: &str) -> Place<'a> {
        let node = self.node.and_then(|node| node.get(name));
        let path = match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let line = node.map_or(self.line, |node| node.line);
        Place { path, node, line }
    }

    /// The keys must be among these; another one is an error that names the nearest.
    pub(super) fn check_keys(&self, known: &[&str], report: &mut Report) {
        let Some(node) = self.present() else { return };
        let Tree::Map(entries) = &node.tree else {
            report.error(self, format!("must be a map, not {}", node.kind()));
            return;
        };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            let place = Place { line: key.line, ..self.field(&key.name) };
            report.error(&place, unknown(&key.name, known));
        }
    }

    /// The elements of a list.
    pub(super) fn elements(&self, report: &mut Report) -> Vec<Place<'a>> {
        let Some(node) = self.present() else { return Vec::new() };
        let Tree::List(nodes) = &node.tree else {
            report.error(self, format!("must be a list, not {}", node.kind()));
            return Vec::new();
        };
        let place = |(at, node): (usize, &'a Node)| Place {
            path: format!("{}[{at}]", self.path),
            node: Some(node),
            line: node.line,
        };
        nodes.iter().enumerate().map(place).collect()
    }

    /// The names and values of a map.
    pub(super) fn entries(&self, report: &mut Report) -> Vec<(&'a str, Place<'a>)> {
        let Some(node) = self.present() else { return Vec::new() };
        let Tree::Map(entries) = &node.tree else {
            report.error(self, format!("must be a map, not {}", node.kind()));
            return Vec::new();
        };
        entries.iter().map(|(key, _)| (key.name.as_str(), self.field(&key.name))).collect()
    }

    /// Text; empty if it is absent, as in Go.
    pub(super) fn text(&self, report: &mut Report) -> String {
        let Some(node) = self.present() else { return String::new() };
        node.text().unwrap_or_else(|| {
            report.error(self, format!("must be text, not {}", node.kind()));
            String::new()
        })
    }

    /// A truth, if it is there.
    pub(super) fn truth(&self, report: &mut Report) -> Option<bool> {
        let node = self.present()?;
        match &node.tree {
            Tree::Bool(value) => Some(*value),
            _ => {
                report.error(self, format!("must be true or false, not {}", node.kind()));
                None
            }
        }
    }
}

fn unknown(name: &str, known: &[&str]) -> String {
    let distance =
        |known: &&&str| strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase());
    let near = known.iter().min_by_key(distance).filter(|known| distance(known) <= 3);
    match near {
        Some(near) => format!("there is no such field; did you mean {near}?"),
        None => format!("there is no such field; there are {}", known.join(", ")),
    }
}
