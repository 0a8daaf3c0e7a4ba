//! Several paths at once, `[a.x,b.y]` and `{"n":a.b,c}`: a list or an object of what they find.

use super::Path;
use serde_json::Value;

/// What is made of what several paths find; what is not there is left out.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Selectors {
    /// A list.
    List(Vec<Path>),
    /// An object.
    Object(Vec<(String, Path)>),
}

impl Selectors {
    /// Those that a text begins with, and what follows them.
    ///
    /// # Errors
    /// They are not closed, or cannot be used.
    pub(super) fn parse(text: &str, nested: usize) -> Result<(Selectors, &str), String> {
        let (parts, rest) =
            split(text).ok_or_else(|| format!("a bracket is not closed in {text:?}"))?;
        if text.starts_with('[') {
            let paths = parts.iter().map(|(_, path)| Path::parse_within(path, nested));
            return Ok((Selectors::List(paths.collect::<Result<_, _>>()?), rest));
        }
        let mut members: Vec<(String, Path)> = Vec::new();
        for (name, path) in parts {
            let name = name.map_or_else(|| last_name(path), plain);
            if members.iter().any(|(known, _)| *known == name) {
                return Err(format!("{{…}} has {name:?} twice: write another name before a colon"));
            }
            members.push((name, Path::parse_within(path, nested)?));
        }
        Ok((Selectors::Object(members), rest))
    }

    /// How many times as much as they are given they may make.
    pub(super) fn copies(&self) -> usize {
        match self {
            Selectors::List(paths) => paths.iter().map(Path::copies).sum(),
            Selectors::Object(members) => members.iter().map(|(_, path)| path.copies()).sum(),
        }
    }

    /// What they make of a value.
    pub(super) fn select(&self, value: Option<&Value>) -> Value {
        let find = |path: &Path| path.find(value).map(std::borrow::Cow::into_owned);
        match self {
            Selectors::List(paths) => paths.iter().filter_map(find).collect(),
            Selectors::Object(members) => {
                let found = members.iter().filter_map(|(name, path)| Some((name, find(path)?)));
                Value::Object(found.map(|(name, value)| (name.clone(), value)).collect())
            }
        }
    }
}

/// A path, perhaps with a name.
type Part<'a> = (Option<&'a str>, &'a str);

/// The parts between commas up to the bracket that closes, and what follows it.
fn split(text: &str) -> Option<(Vec<Part<'_>>, &str)> {
    let bytes = text.as_bytes();
    let (mut parts, mut depth, mut begin) = (Vec::new(), 1, 1);
    // A colon after a modifier begins its argument.
    let (mut colon, mut after_modifier) = (None, false);
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        let is_end = match byte {
            b'\\' => {
                at += 1;
                false
            }
            b'"' => {
                at += 1;
                while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                    at += if *byte == b'\\' { 2 } else { 1 };
                }
                false
            }
            b'@' => {
                after_modifier |= matches!(bytes.get(at.wrapping_sub(1)), Some(b'.' | b'|'));
                false
            }
            b':' if !after_modifier && depth == 1 => {
                colon = colon.or(Some(at));
                false
            }
            b'[' | b'(' | b'{' => {
                depth += 1;
                false
            }
            b']' | b')' | b'}' => {
                depth -= 1;
                depth == 0
            }
            b',' => depth == 1,
            _ => false,
        };
        if is_end {
            parts.push(match colon {
                Some(colon) => (Some(text.get(begin..colon)?), text.get(colon + 1..at)?),
                None => (None, text.get(begin..at)?),
            });
            (colon, after_modifier, begin) = (None, false, at + 1);
        }
        at += 1;
        if depth == 0 {
            return Some((parts, text.get(at..)?));
        }
    }
    None
}

/// A name as it is written, perhaps in quotes.
fn plain(name: &str) -> String {
    serde_json::from_str(name).unwrap_or_else(|_| name.to_owned())
}

/// What something is called that has no name: as the last part of its path.
fn last_name(path: &str) -> String {
    let mut last = path;
    for (at, _) in path.match_indices(['.', '|']).rev() {
        if !path[..at].ends_with('\\') {
            last = &path[at + 1..];
            break;
        }
    }
    let is_simple = |char: char| char >= ' ' && !"[]{}()#|!".contains(char);
    if last.chars().all(is_simple) { last.to_owned() } else { "_".to_owned() }
}
