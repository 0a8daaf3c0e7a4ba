//! Which objects a list or watch is about.

use podscale_api::Selector;

use crate::http::Call;
use crate::registry::{Served, View};
use crate::status::{ApiError, ApiResult};
use crate::store::Object;

/// Chooses objects by namespace, labels and fields.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    namespace: String,
    labels: Selector,
    fields: Vec<FieldTerm>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTerm {
    path: String,
    value: String,
    equal: bool,
}

impl Filter {
    pub(super) fn of(call: &Call) -> ApiResult<Self> {
        let labels = Selector::parse(call.params.text("labelSelector"))
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let mut fields = parse_fields(call.params.text("fieldSelector"))?;
        for term in &mut fields {
            term.path = known(&call.served, &term.path)?.to_owned();
        }
        if let Some(name) = &call.path.name {
            fields.push(FieldTerm {
                path: "metadata.name".to_owned(),
                value: name.clone(),
                equal: true,
            });
        }
        Ok(Self { namespace: call.namespace().to_owned(), labels, fields })
    }

    /// Whether all objects of the namespace (or of all) are chosen.
    pub(super) fn is_open(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn matches(&self, object: &Object) -> bool {
        (self.namespace.is_empty() || object.namespace() == self.namespace)
            && (self.labels.is_empty() || self.labels.matches(|key| object.label(key)))
            && self.fields.iter().all(|term| {
                (object.field(&term.path).unwrap_or_default() == term.value) == term.equal
            })
    }
}

/// The path under which a field's value is stored, if it can be selected by.
fn known<'a>(served: &Served, path: &'a str) -> ApiResult<&'a str> {
    if matches!(path, "metadata.name" | "metadata.namespace")
        || served.rules.selectable.contains(&path)
    {
        return Ok(path);
    }
    if served.view == View::EventsV1 {
        let core = match path {
            "regarding.kind" => "involvedObject.kind",
            "regarding.namespace" => "involvedObject.namespace",
            "regarding.name" => "involvedObject.name",
            "regarding.uid" => "involvedObject.uid",
            "regarding.apiVersion" => "involvedObject.apiVersion",
            "regarding.resourceVersion" => "involvedObject.resourceVersion",
            "regarding.fieldPath" => "involvedObject.fieldPath",
            "reportingController" => "reportingComponent",
            _ => "",
        };
        if !core.is_empty() {
            return Ok(core);
        }
    }
    if path == "spec.host" && served.info.plural == "pods" {
        return Ok("spec.nodeName");
    }
    if served.info.plural == "jobs" {
        let message = format!("field label {path:?} not supported for Job");
        return Err(ApiError::bad_request(message));
    }
    Err(ApiError::bad_request(
        if served.info.group.is_empty() && !served.rules.selectable.is_empty() {
            format!("field label not supported: {path}")
        } else {
            format!(
                "{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )
        },
    ))
}

fn parse_fields(text: &str) -> ApiResult<Vec<FieldTerm>> {
    let mut terms = Vec::new();
    for part in split(text) {
        let (path, value, equal) = if let Some((path, value)) = part.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = part.split_once("==") {
            (path, value, true)
        } else if let Some((path, value)) = part.split_once('=') {
            (path, value, true)
        } else {
            return Err(ApiError::bad_request(format!(
                "invalid selector: '{text}'; can't understand '{part}'"
            )));
        };
        terms.push(FieldTerm { path: path.to_owned(), value: unescape(value)?, equal });
    }
    Ok(terms)
}

/// Splits at commas that are not escaped.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts.retain(|part| !part.is_empty());
    parts
}

fn unescape(text: &str) -> ApiResult<String> {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some(next @ ('\\' | ',' | '=')) => plain.push(next),
            other => {
                let tail = other.map(String::from).unwrap_or_default();
                return Err(ApiError::bad_request(format!(
                    "invalid field selector: invalid escape sequence: \\{tail}"
                )));
            }
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn field_selectors_are_read() {
        let read = |text: &str| {
            parse_fields(text).map(|terms| {
                let show = |term: &FieldTerm| {
                    format!("{}{}{}", term.path, if term.equal { "=" } else { "!" }, term.value)
                };
                terms.iter().map(show).collect::<Vec<_>>().join(" ")
            })
        };
        let cases = [
            ("", ""),
            ("a=b", "a=b"),
            ("a==b,c!=d", "a=b c!d"),
            (r"a=x\,y\=z\\", r"a=x,y=z\"),
            ("a=", "a="),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(
            read("a=b,junk").map_err(|error| error.message),
            Err("invalid selector: 'a=b,junk'; can't understand 'junk'".to_owned())
        );
    }

    proptest! {
        #[test]
        fn escaped_values_survive(value in ".{0,12}") {
            let escaped = value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
            let terms = parse_fields(&format!("metadata.name={escaped}")).expect("parses");
            prop_assert_eq!(&terms[0].value, &value);
        }

        #[test]
        fn nothing_panics(text in ".{0,24}") {
            let _ = parse_fields(&text);
        }
    }
}
