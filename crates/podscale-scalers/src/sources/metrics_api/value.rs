//! Finds the number in what an API answers. A pure function of bytes.

use super::path::Path;
use podscale_api::Quantity;
use podscale_metrics::exposition;
use regex::Regex;
use serde_json::Value;

/// How deep a document of XML is read.
const MOST_DEPTH: usize = 64;

/// What form an answer has, and where in it the number is.
#[derive(Clone, Debug)]
pub(super) enum Location {
    /// A path in a JSON document.
    Json(Path),
    /// Keys between dots in a YAML document.
    Yaml,
    /// Names of elements between dots in an XML document.
    Xml,
    /// A metric with labels, in Prometheus' text.
    Prometheus(Series),
}

/// The first series that has a name and labels.
#[derive(Clone, Debug)]
pub(super) struct Series {
    name: String,
    matchers: Vec<(String, Match)>,
}

#[derive(Clone, Debug)]
enum Match {
    Is(String),
    IsNot(String),
    Matches(Box<Regex>),
    MatchesNot(Box<Regex>),
}

impl Location {
    /// Reads where the number is.
    ///
    /// # Errors
    /// That cannot be read.
    pub(super) fn parse(format: &str, text: &str) -> Result<Location, String> {
        Ok(match format {
            "yaml" => Location::Yaml,
            "xml" => Location::Xml,
            "prometheus" => Location::Prometheus(Series::parse(text)?),
            _ => Location::Json(Path::parse(text)?),
        })
    }

    /// The number in an answer.
    ///
    /// # Errors
    /// The answer does not have this form, or no number there.
    pub(super) fn find(&self, body: &[u8], text: &str) -> Result<f64, String> {
        match self {
            Location::Json(path) => {
                let document: Value = serde_json::from_slice(body)
                    .map_err(|error| format!("the answer is not JSON: {error}"))?;
                number(&path.get(&document), text)
            }
            Location::Yaml => {
                let document: Value = serde_saphyr::from_str(&String::from_utf8_lossy(body))
                    .map_err(|_| "the answer is not YAML".to_owned())?;
                number(keys(&document, text)?, text)
            }
            Location::Xml => xml(body, text),
            Location::Prometheus(series) => series.find(body, text),
        }
    }
}

/// The number that a value is.
fn number(value: &Value, location: &str) -> Result<f64, String> {
    let kind = match value {
        Value::Number(number) => return Ok(number.as_f64().unwrap_or_default()),
        Value::String(text) => return quantity(text, location),
        Value::Null => "Null",
        Value::Bool(true) => "True",
        Value::Bool(false) => "False",
        Value::Array(_) | Value::Object(_) => "JSON",
    };
    Err(format!(
        "valueLocation {location:?} must point to a numeric value or a string parseable as a Quantity, got {kind}"
    ))
}

fn quantity(text: &str, location: &str) -> Result<f64, String> {
    let read = Quantity::parse(text.trim()).map(|quantity| quantity.as_approximate_f64());
    read.map_err(|_| {
        format!("valueLocation {location:?} points to a string that is not parseable as a Quantity")
    })
}

/// What is under keys between dots; those of a list are numbers.
fn keys<'a>(document: &'a Value, path: &str) -> Result<&'a Value, String> {
    let mut at = document;
    for key in path.split('.') {
        let next = match at {
            Value::Object(members) => members.get(key),
            Value::Array(list) => key.parse::<usize>().ok().and_then(|index| list.get(index)),
            // The value was reached before the end of the path.
            _ => return Ok(at),
        };
        at = next.ok_or_else(|| format!("key '{key}' not found in path '{path}'"))?;
    }
    match at {
        Value::Object(_) | Value::Array(_) => {
            Err(format!("path '{path}' does not lead to a value"))
        }
        _ => Ok(at),
    }
}

/// The text of an element, or of an attribute of the last one; of several with the same name the first. The
/// path begins with the outermost element or within it.
fn xml(body: &[u8], path: &str) -> Result<f64, String> {
    let text =
        std::str::from_utf8(body).map_err(|_| "the answer is not XML: not text".to_owned())?;
    let options = roxmltree::ParsingOptions { nodes_limit: 100_000, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(text, options)
        .map_err(|error| format!("the answer is not XML: {error}"))?;
    let names: Vec<&str> = path.split('.').collect();
    if names.len() > MOST_DEPTH {
        return Err(format!("path '{path}' is too deep"));
    }
    let root = document.root_element();
    let within = match names.split_first() {
        Some((first, rest)) if *first == root.tag_name().name() => below(root, rest),
        _ => None,
    };
    let found = within.or_else(|| below(root, &names));
    quantity(found.ok_or_else(|| format!("path '{path}' does not lead to a value"))?, path)
}

fn below<'a>(node: roxmltree::Node<'a, '_>, names: &[&str]) -> Option<&'a str> {
    let Some((name, rest)) = names.split_first() else { return node.text() };
    let named = |child: &roxmltree::Node<'_, '_>| child.tag_name().name() == *name;
    let child = node.children().filter(|child| child.is_element()).find(named);
    match child {
        Some(child) => below(child, rest),
        None if rest.is_empty() => node.attribute(name.trim_start_matches('@')),
        None => None,
    }
}

impl Series {
    /// Reads `name{label="value",other!="value"}`.
    fn parse(text: &str) -> Result<Series, String> {
        let wrong = || format!("{text:?} is not a metric such as name{{label=\"value\"}}");
        let text_trimmed = text.trim();
        let (name, labels) = match text_trimmed.split_once('{') {
            Some((name, rest)) => (name, rest.trim_end().strip_suffix('}').ok_or_else(wrong)?),
            None => (text_trimmed, ""),
        };
        let (mut name, mut matchers) = (name.trim().to_owned(), Vec::new());
        let mut rest = labels.trim();
        while !rest.is_empty() {
            let end = rest.find(['=', '!']).ok_or_else(wrong)?;
            let (label, after) = (rest[..end].trim(), &rest[end..]);
            let length = if after.starts_with("=~") || after.starts_with('!') { 2 } else { 1 };
            let (operator, after) = after.split_at_checked(length).ok_or_else(wrong)?;
            let (value, after) = quoted(after.trim_start()).ok_or_else(wrong)?;
            let regex = |value: &str| {
                let regex =
                    Regex::new(&format!("^(?:{value})$")).map_err(|error| error.to_string());
                regex.map(Box::new)
            };
            let found = match operator {
                "=" => Match::Is(value),
                "!=" => Match::IsNot(value),
                "=~" => Match::Matches(regex(&value)?),
                "!~" => Match::MatchesNot(regex(&value)?),
                _ => return Err(wrong()),
            };
            match found {
                Match::Is(value) if label == "__name__" => name = value,
                found => matchers.push((label.to_owned(), found)),
            }
            rest = after.trim_start().strip_prefix(',').unwrap_or(after).trim_start();
        }
        if name.is_empty() {
            return Err(wrong());
        }
        Ok(Series { name, matchers })
    }

    fn find(&self, body: &[u8], text: &str) -> Result<f64, String> {
        let body = std::str::from_utf8(body)
            .map_err(|_| "prometheus format parsing error: not text".to_owned())?;
        let mut known = false;
        for sample in exposition::samples(body) {
            let sample =
                sample.map_err(|error| format!("prometheus format parsing error: {error}"))?;
            if sample.name != self.name {
                continue;
            }
            known = true;
            let meets = |(label, wanted): &(String, Match)| {
                wanted.meets(&sample.labels.get(label).unwrap_or_default())
            };
            if self.matchers.iter().all(meets) {
                return Ok(sample.value);
            }
        }
        Err(match known {
            true => format!("value {text} not found"),
            false => format!("metric '{}' not found", self.name),
        })
    }
}

impl Match {
    fn meets(&self, value: &str) -> bool {
        match self {
            Match::Is(wanted) => value == wanted,
            Match::IsNot(wanted) => value != wanted,
            Match::Matches(regex) => regex.is_match(value),
            Match::MatchesNot(regex) => !regex.is_match(value),
        }
    }
}

/// A text between quotes, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''))?;
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, found)) = chars.next() {
        match found {
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            found if found == quote => return Some((value, &text[at + 1..])),
            found => value.push(found),
        }
    }
    None
}
