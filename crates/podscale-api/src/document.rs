//! Files with objects in them: one or several documents of YAML or JSON, each of which knows where in the file
//! its fields are, and keeps its text so that it can be passed on as it was.

mod json;
mod problem;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

/// The largest document: an API server takes less.
const MOST_BYTES: usize = 16 << 20;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML, which documents are separated in by lines of three dashes.
    Yaml,
    /// JSON, one value after another.
    Json,
}

/// One document of a file: its text, together with all of these, is that of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Its text, with the line that separates it from the one before.
    pub text: &'a str,
    /// How many lines of the file are before it.
    pub lines_before: u32,
    /// How it is written.
    pub format: Format,
}

/// Where something is in a file, counted from 1; 0 stands for unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The character of that line.
    pub column: u32,
}

/// Where each field is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places(BTreeMap<String, Place>);

/// What a document says, and where.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Content {
    /// What it says.
    pub value: Value,
    /// Where.
    pub places: Places,
}

/// Why a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct DocumentError {
    /// Where in the file.
    pub place: Place,
    /// What is wrong.
    pub problem: String,
}

/// The documents of a file. Those that say nothing are among them.
pub fn split(text: &str) -> Vec<Document<'_>> {
    if text.trim_start().starts_with(['{', '['])
        && let Some(documents) = split_json(text)
    {
        return documents;
    }
    split_yaml(text)
}

/// The values of a file of JSON; nothing if it is not that, but YAML that begins like it.
fn split_json(text: &str) -> Option<Vec<Document<'_>>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let mut ends = Vec::new();
    while let Some(value) = values.next() {
        value.ok()?;
        ends.push(values.byte_offset());
    }
    // What follows the last value belongs to it.
    *ends.last_mut()? = text.len();
    let mut begin = 0;
    let mut lines_before = 0;
    let mut documents = Vec::with_capacity(ends.len());
    for end in ends {
        let part = text.get(begin..end)?;
        documents.push(Document { text: part, lines_before, format: Format::Json });
        lines_before = lines_before.saturating_add(line_ends(part));
        begin = end;
    }
    Some(documents)
}

fn split_yaml(text: &str) -> Vec<Document<'_>> {
    let mut documents = Vec::new();
    let (mut begin, mut at) = (0, 0);
    let mut lines_before = 0;
    for line in text.split_inclusive('\n') {
        let dashes = line.strip_prefix("---");
        let separates =
            dashes.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if separates && at > begin {
            let part = &text[begin..at];
            documents.push(Document { text: part, lines_before, format: Format::Yaml });
            lines_before = lines_before.saturating_add(line_ends(part));
            begin = at;
        }
        at += line.len();
    }
    documents.push(Document { text: &text[begin..], lines_before, format: Format::Yaml });
    documents
}

fn line_ends(text: &str) -> u32 {
    let count = text.bytes().filter(|byte| *byte == b'\n').count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Document<'_> {
    /// Whether there is more in it than comments.
    pub fn has_content(&self) -> bool {
        self.head().len() < self.text.len()
    }

    /// The lines before the first one that says something: the separator, comments, empty lines.
    pub fn head(&self) -> &str {
        let mut length = 0;
        for line in self.text.split_inclusive('\n') {
            let said = line.trim();
            let after_dashes = line.strip_prefix("---").map(str::trim_start);
            let opens = after_dashes.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'));
            // The mark of an end, of a directive and of the order of bytes say nothing either.
            let silent = said.is_empty()
                || said == "..."
                || said == "\u{feff}"
                || line.starts_with('%')
                || said.starts_with('#');
            if !(silent || opens) || self.format == Format::Json {
                break;
            }
            length += line.len();
        }
        self.text.get(..length).unwrap_or_default()
    }

    /// Reads it.
    pub fn read(&self) -> Result<Content, DocumentError> {
        if self.text.len() > MOST_BYTES {
            let problem = format!("larger than {MOST_BYTES} bytes");
            return Err(DocumentError { place: Place::default(), problem });
        }
        match self.format {
            Format::Yaml => tree::read(self.text.trim_start_matches('\u{feff}'), self.lines_before),
            Format::Json => json::read(self.text, self.lines_before),
        }
    }
}

impl Places {
    /// Where a field is, or the nearest one around it; a path is written as in `spec.metrics[0].type`.
    pub fn find(&self, path: &str) -> Place {
        let mut path = path;
        loop {
            if let Some(place) = self.0.get(path) {
                return *place;
            }
            if path.is_empty() {
                return Place::default();
            }
            path = path.rfind(['.', '[']).and_then(|end| path.get(..end)).unwrap_or_default();
        }
    }

    /// Whether the document has the field.
    pub fn contains(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }
}
