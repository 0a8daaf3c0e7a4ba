//! What is wrong with which field of an object, in the words of Kubernetes' API server.

pub mod metadata;
pub mod names;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;

use serde::Serialize;

use crate::quote::quote;

/// Kind of a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Problem {
    /// Something that must be there is missing.
    Required,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value has another type than the schema asks for.
    TypeInvalid,
    /// The value is none of those allowed.
    NotSupported,
    /// The value may not be set in these circumstances.
    Forbidden,
    /// The value must be unique and is not.
    Duplicate,
    /// What the value refers to does not exist.
    NotFound,
    /// A text is too long.
    TooLong,
    /// A list or map has too many entries.
    TooMany,
    /// The check itself could not be done.
    Internal,
}

impl Problem {
    /// The `reason` of a cause in `Status.details.causes`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// Where a field is, such as `spec.metrics[0].type`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// A path that starts with this field.
    pub fn new(field: &str) -> Self {
        Self(field.to_owned())
    }

    /// The path of a field below.
    pub fn child(&self, field: &str) -> Self {
        if self.0.is_empty() { Self::new(field) } else { Self(format!("{}.{field}", self.0)) }
    }

    /// The path of a list's item.
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// The path of a map's entry.
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Go prints the path of the object itself like this.
        f.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

/// A refused value as messages show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue(String);

impl BadValue {
    /// A text in Go's quotes.
    pub fn text(text: &str) -> Self {
        Self(quote(text))
    }

    /// Any value as Go writes it in JSON (which escapes `<`, `>` and `&`).
    pub fn json(value: &impl Serialize) -> Self {
        Self(go_json(value))
    }

    /// Words that stand for the value, as they are.
    pub fn verbatim(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<i64> for BadValue {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl From<i32> for BadValue {
    fn from(number: i32) -> Self {
        Self(number.to_string())
    }
}

/// One mistake in an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// What kind of mistake it is.
    pub problem: Problem,
    /// Where it is.
    pub field: String,
    /// The value that is wrong, unless the message leaves it out.
    pub value: Option<BadValue>,
    /// What would be right; may be empty.
    pub detail: String,
}

impl FieldError {
    fn new(
        problem: Problem,
        field: &FieldPath,
        value: Option<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        Self { problem, field: field.to_string(), value, detail: detail.into() }
    }

    /// A value is missing.
    pub fn required(field: &FieldPath, detail: impl Into<String>) -> Self {
        Self::new(Problem::Required, field, None, detail)
    }

    /// A value is malformed or out of bounds.
    pub fn invalid(
        field: &FieldPath,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(Problem::Invalid, field, Some(value.into()), detail)
    }

    /// A value has the wrong type.
    pub fn type_invalid(
        field: &FieldPath,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(Problem::TypeInvalid, field, Some(value.into()), detail)
    }

    /// A value is none of those that are supported.
    pub fn not_supported<S: AsRef<str>>(
        field: &FieldPath,
        value: impl Into<BadValue>,
        supported: &[S],
    ) -> Self {
        let quoted: Vec<String> = supported.iter().map(|value| quote(value.as_ref())).collect();
        let detail = match quoted.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", quoted.join(", ")),
        };
        Self::new(Problem::NotSupported, field, Some(value.into()), detail)
    }

    /// A field may not be set.
    pub fn forbidden(field: &FieldPath, detail: impl Into<String>) -> Self {
        Self::new(Problem::Forbidden, field, None, detail)
    }

    /// A value occurs twice.
    pub fn duplicate(field: &FieldPath, value: impl Into<BadValue>) -> Self {
        Self::new(Problem::Duplicate, field, Some(value.into()), "")
    }

    /// A text has more bytes than allowed.
    pub fn too_long(field: &FieldPath, limit: usize) -> Self {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        Self::new(Problem::TooLong, field, None, format!("may not be more than {limit} {bytes}"))
    }

    /// A list or map has more entries than allowed.
    pub fn too_many(field: &FieldPath, actual: usize, limit: usize) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        let value = BadValue::verbatim(actual.to_string());
        let detail = format!("must have at most {limit} {items}");
        Self::new(Problem::TooMany, field, Some(value), detail)
    }

    /// A check could not be done.
    pub fn internal(field: &FieldPath, detail: impl Into<String>) -> Self {
        Self::new(Problem::Internal, field, None, detail)
    }

    /// The message without the field, as in `Status.details.causes`.
    pub fn body(&self) -> String {
        let mut body = self.problem.words().to_owned();
        for part in [self.value.as_ref().map_or("", |value| &value.0), &self.detail] {
            if !part.is_empty() {
                body.push_str(": ");
                body.push_str(part);
            }
        }
        body
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// The same mistakes without repetitions.
pub fn distinct(errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut kept: Vec<FieldError> = Vec::with_capacity(errors.len());
    for error in errors {
        if !kept.contains(&error) {
            kept.push(error);
        }
    }
    kept
}

/// All mistakes as one text: a single one as it is, several in brackets, repeated ones once.
pub fn summary(errors: &[FieldError]) -> String {
    listed(errors.iter().map(ToString::to_string))
}

/// Texts as one: a single one as it is, several in brackets, repeated ones once.
pub fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut seen = HashSet::new();
    let texts: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// The message of the 422 answer; the kind is written as `HorizontalPodAutoscaler.autoscaling`.
pub fn invalid_message(qualified_kind: &str, name: &str, errors: &[FieldError]) -> String {
    let name = quote(name);
    if errors.is_empty() {
        format!("{qualified_kind} {name} is invalid")
    } else {
        format!("{qualified_kind} {name} is invalid: {}", summary(errors))
    }
}

/// One entry of `Status.details.causes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Machine-readable kind of the mistake.
    pub reason: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where.
    pub field: String,
}

/// The causes of the 422 answer, one for each mistake.
pub fn causes(errors: &[FieldError]) -> Vec<Cause> {
    errors
        .iter()
        .map(|error| Cause {
            reason: error.problem.reason(),
            message: error.body(),
            field: error.field.clone(),
        })
        .collect()
}

/// A value as Go writes it in JSON.
pub fn go_json(value: &impl Serialize) -> String {
    let plain = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    // These characters cannot stand outside of strings in JSON, so replacing them everywhere is safe.
    let mut escaped = String::with_capacity(plain.len());
    for character in plain.chars() {
        match character {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A float as Go prints it: the shortest form, with an exponent below -4 and from 6 on.
pub fn go_float(float: f64) -> String {
    let scientific = format!("{float:e}");
    match scientific.split_once('e').map(|(digits, exponent)| (digits, exponent.parse::<i32>())) {
        Some((digits, Ok(exponent))) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => float.to_string(),
    }
}
