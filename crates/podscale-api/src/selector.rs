//! Label selectors: what they match, and how Kubernetes reads and prints them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::names::{label_key_errors, label_value_errors};
use crate::quote::quote;

mod object;
mod parse;
#[cfg(test)]
mod tests;

pub use object::{LabelSelector, LabelSelectorRequirement};

/// Why a selector is not valid, in the words of the API server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

/// How a label relates to a requirement's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `key=value`
    Equals,
    /// `key==value`, the same as `Equals` but printed differently.
    DoubleEquals,
    /// `key!=value`; also true without the label.
    NotEquals,
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`; also true without the label.
    NotIn,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>1`, as integers.
    GreaterThan,
    /// `key<1`, as integers.
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: Box<str>,
    operator: Operator,
    values: Box<[Box<str>]>,
}

/// Conditions that must all hold; without any it selects everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// Sorted by key; none for a selector that selects nothing at all.
    requirements: Option<Box<[Requirement]>>,
}

impl Requirement {
    /// Checks the parts of a requirement; all that is wrong is reported at once.
    pub fn new(key: &str, operator: Operator, values: &[&str]) -> Result<Self, SelectorError> {
        let errors = requirement_errors(key, operator, values);
        if !errors.is_empty() {
            return Err(SelectorError(aggregate(errors)));
        }
        Ok(Self::unchecked(key, operator, values))
    }

    fn unchecked(key: &str, operator: Operator, values: &[&str]) -> Self {
        let values = values.iter().map(|value| Box::from(*value)).collect();
        Requirement { key: key.into(), operator, values }
    }

    /// The label that it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label relates to the values.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values in the order given.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(|value| &**value)
    }

    /// Whether a label's value, or its absence, satisfies the requirement.
    pub fn accepts(&self, label: Option<&str>) -> bool {
        let listed = |label: &str| self.values.iter().any(|value| **value == *label);
        let integers = |label: &str| {
            let value = self.values.first().and_then(|value| value.parse::<i64>().ok());
            label.parse::<i64>().ok().zip(value)
        };
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(listed),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => label.and_then(integers).is_some_and(|(a, b)| a > b),
            Operator::LessThan => label.and_then(integers).is_some_and(|(a, b)| a < b),
        }
    }
}

impl Selector {
    /// Selects everything.
    pub fn everything() -> Self {
        Selector { requirements: Some(Box::default()) }
    }

    /// Selects nothing.
    pub fn nothing() -> Self {
        Selector { requirements: None }
    }

    /// Requires exactly these values, without checking that they are valid labels.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let equals = |(key, value)| Requirement::unchecked(key, Operator::Equals, &[value]);
        Self::from_requirements(labels.into_iter().map(equals).collect())
    }

    /// All of these must hold.
    pub fn from_requirements(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Selector { requirements: Some(requirements.into()) }
    }

    /// Reads a selector as `FromStr` does.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::parse(text).map(Self::from_requirements)
    }

    /// Whether an object is selected, given a way to look up its labels.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.as_ref().is_some_and(|all| {
            all.iter().all(|requirement| requirement.accepts(label(&requirement.key)))
        })
    }

    /// Whether it selects everything because it requires nothing.
    pub fn is_empty(&self) -> bool {
        self.requirements.as_ref().is_some_and(|all| all.is_empty())
    }

    /// The conditions, sorted by label.
    pub fn requirements(&self) -> &[Requirement] {
        self.requirements.as_deref().unwrap_or_default()
    }

    /// The only value that a label may have, if there is one: what an index can look up.
    pub fn exact_value(&self, key: &str) -> Option<&str> {
        let first = self.requirements().iter().find(|requirement| *requirement.key == *key)?;
        match (first.operator, &*first.values) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

impl Default for Selector {
    fn default() -> Self {
        Self::everything()
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements().iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after, end) = match self.operator {
            Operator::Equals => ("", "=", ""),
            Operator::DoubleEquals => ("", "==", ""),
            Operator::NotEquals => ("", "!=", ""),
            Operator::GreaterThan => ("", ">", ""),
            Operator::LessThan => ("", "<", ""),
            Operator::In => ("", " in (", ")"),
            Operator::NotIn => ("", " notin (", ")"),
            Operator::Exists => ("", "", ""),
            Operator::DoesNotExist => ("!", "", ""),
        };
        write!(f, "{before}{}{after}", self.key)?;
        let mut values = Cow::Borrowed(&*self.values);
        if !values.is_sorted() {
            values.to_mut().sort();
        }
        f.write_str(&values.join(","))?;
        f.write_str(end)
    }
}

fn requirement_errors(key: &str, operator: Operator, values: &[&str]) -> Vec<String> {
    let mut errors = Vec::new();
    let key_errors = label_key_errors(key);
    if !key_errors.is_empty() {
        errors.push(format!("key: Invalid value: {}: {}", quote(key), key_errors.join("; ")));
    }
    let wrong_count = match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if values.len() != 1 => {
            Some("exact-match compatibility requires one single value")
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            Some("values set must be empty for exists and does not exist")
        }
        Operator::GreaterThan | Operator::LessThan if values.len() != 1 => {
            Some("for 'Gt', 'Lt' operators, exactly one value is required")
        }
        _ => None,
    };
    if let Some(wrong) = wrong_count {
        errors.push(format!("values: Invalid value: {}: {wrong}", json_list(values)));
    }
    if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
        for (at, value) in values.iter().enumerate() {
            if value.parse::<i64>().is_err() {
                errors.push(format!(
                    "values[{at}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be \
                     an integer",
                    quote(value)
                ));
            }
        }
    }
    for (at, value) in values.iter().enumerate() {
        let value_errors = label_value_errors(value);
        if !value_errors.is_empty() {
            let reasons = value_errors.join("; ");
            errors.push(format!("values[{at}][{key}]: Invalid value: {}: {reasons}", quote(value)));
        }
    }
    errors
}

/// Upstream shows a list as JSON, and an empty one as `null`.
fn json_list(values: &[&str]) -> String {
    if values.is_empty() {
        return "null".into();
    }
    let quoted: Vec<_> = values.iter().map(|value| json_text(value)).collect();
    format!("[{}]", quoted.join(","))
}

/// A JSON string with the characters escaped that could be taken for HTML.
fn json_text(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// One error stands alone; several are put in brackets, each once.
fn aggregate(errors: Vec<String>) -> String {
    let mut seen = BTreeSet::new();
    let mut distinct: Vec<_> =
        errors.into_iter().filter(|error| seen.insert(error.clone())).collect();
    match (distinct.len(), distinct.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            distinct.extend(last);
            format!("[{}]", distinct.join(", "))
        }
    }
}
