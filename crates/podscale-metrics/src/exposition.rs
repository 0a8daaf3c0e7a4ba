//! Reads Prometheus' exposition text, sample by sample, without copying it.

pub mod families;
pub mod write;

use memchr::{memchr, memchr2, memchr3};
use std::borrow::Cow;
use thiserror::Error;

#[cfg(test)]
mod tests;

/// A line that is not exposition text.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// The line's number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// The metric's name.
    pub name: &'a str,
    /// Its labels.
    pub labels: Labels<'a>,
    /// Its value.
    pub value: f64,
    /// When it was taken, in milliseconds since 1970, if it has one.
    pub time_ms: Option<i64>,
}

/// The labels of a sample: the text between the braces, checked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Labels<'a>(&'a str);

impl<'a> Labels<'a> {
    /// Names and values, in the order of the text.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (name, value, after) = next_label(rest)?;
            rest = after;
            Some((name, unescape(value)))
        })
    }

    /// The value of one label.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.iter().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

/// The samples of a text, in order; comments and empty lines are passed over.
pub fn samples(text: &str) -> impl Iterator<Item = Result<Sample<'_>, LineError>> {
    let mut rest = text;
    let mut line = 0;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            let found = rest[..end].trim_matches([' ', '\t', '\r']);
            rest = rest.get(end + 1..).unwrap_or_default();
            line += 1;
            if !found.is_empty() && !found.starts_with('#') {
                return Some(sample(found).map_err(|problem| LineError { line, problem }));
            }
        }
        None
    })
}

fn sample(line: &str) -> Result<Sample<'_>, &'static str> {
    let end = memchr3(b'{', b' ', b'\t', line.as_bytes()).ok_or("no value")?;
    let (name, rest) = line.split_at(end);
    if !is_name(name) {
        return Err("not a metric name");
    }
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => split_labels(rest)?,
        None => (Labels::default(), rest),
    };
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().ok_or("no value")?;
    let value = value.parse().map_err(|_| "the value is not a number")?;
    let time_ms = match words.next() {
        Some(time) => Some(time.parse().map_err(|_| "the timestamp is not a whole number")?),
        None => None,
    };
    match words.next() {
        Some(_) => Err("something follows the timestamp"),
        None => Ok(Sample { name, labels, value, time_ms }),
    }
}

/// Whether it can be the name of a metric or label.
fn is_name(name: &str) -> bool {
    let of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':';
    name.bytes().all(of_a_name) && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// The labels after an opening brace, and what follows the closing one.
fn split_labels(text: &str) -> Result<(Labels<'_>, &str), &'static str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if let Some(after) = rest.strip_prefix('}') {
            let inner = text.len() - after.len() - 1;
            return Ok((Labels(&text[..inner]), after));
        }
        let (name, _, after) = next_label(rest).ok_or("the labels are broken")?;
        if !is_name(name) {
            return Err("not a label name");
        }
        rest = after.trim_start_matches([' ', '\t']);
        if !rest.starts_with([',', '}']) {
            return Err("the labels are broken");
        }
    }
}

/// The first label of a list: its name, its value as written, and the text after it.
fn next_label(text: &str) -> Option<(&str, &str, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let equals = memchr(b'=', text.as_bytes())?;
    let name = text[..equals].trim_end_matches([' ', '\t']);
    let value = text[equals + 1..].trim_start_matches([' ', '\t']).strip_prefix('"')?;
    let mut from = 0;
    loop {
        let at = from + memchr2(b'"', b'\\', value.as_bytes().get(from..)?)?;
        if value.as_bytes()[at] == b'"' {
            return Some((name, &value[..at], &value[at + 1..]));
        }
        // A backslash and what it escapes; a character of several bytes is left in its middle,
        // which is no harm for a search of bytes.
        from = at + 2;
    }
}

fn unescape(value: &str) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', value.as_bytes()) else {
        return Cow::Borrowed(value);
    };
    let mut text = String::with_capacity(value.len());
    text.push_str(&value[..first]);
    let mut characters = value[first..].chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('n') => text.push('\n'),
                Some(other @ ('\\' | '"')) => text.push(other),
                Some(other) => text.extend(['\\', other]),
                None => text.push('\\'),
            },
            other => text.push(other),
        }
    }
    Cow::Owned(text)
}
