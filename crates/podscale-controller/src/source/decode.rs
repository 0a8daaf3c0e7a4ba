//! Decodes the answers of the metrics APIs, and words what cannot be decoded as Kubernetes' own
//! clients do, since people read it in conditions and events.

use podscale_api::quote::quote;
use podscale_api::scale::{SCHEME, TYPE_META};
use podscale_client::call::{Answer, CallError};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Which of upstream's clients would have read an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// One made for a kind, which an answer may say it is; it believes any other kind that it is not
    /// told of.
    Typed {
        /// The kind that an answer may say, if it matters.
        kind: Option<&'static str>,
    },
    /// One that reads what the answer says it is, in JSON or YAML.
    Dynamic {
        /// The kind that it must be.
        kind: &'static str,
    },
}

/// An answer that says what it is.
pub(super) trait Described {
    /// Its API version and kind, as far as it says.
    fn type_meta(&self) -> (&str, &str);
}

impl Codec {
    /// What an answer holds.
    ///
    /// # Errors
    /// It is something else.
    pub(super) fn decode<T: DeserializeOwned + Described>(
        self,
        answer: &Answer,
    ) -> Result<T, CallError> {
        let wrong = |text: String| Err(CallError::Unreadable(text));
        if let Some(text) = self.refuse_form(answer) {
            return wrong(text);
        }
        let list: T = match answer.json() {
            Ok(list) => list,
            Err(error) => return wrong(self.undecodable(&answer.body, &error)),
        };
        let (version, kind) = list.type_meta();
        let expected = match self {
            Codec::Typed { kind } => kind.filter(|_| !list.type_meta().1.is_empty()),
            Codec::Dynamic { .. } if kind.is_empty() => return wrong(missing_kind(&answer.body)),
            Codec::Dynamic { kind } => Some(kind),
        };
        if expected.is_some_and(|expected| expected != kind) {
            let (kind, version) = (quote(kind), quote(version));
            let scheme = quote(SCHEME);
            return wrong(format!(
                "no kind {kind} is registered for version {version} in scheme {scheme}"
            ));
        }
        Ok(list)
    }

    /// Why an answer of this form is not even looked at, if so.
    fn refuse_form(self, answer: &Answer) -> Option<String> {
        let Codec::Typed { .. } = self else { return None };
        let form = answer.content_type.split(';').next().unwrap_or_default().trim();
        if answer.body.is_empty() {
            let form = if form.is_empty() { "application/json" } else { form };
            return Some(format!(
                "0-length response with status code: 200 and content type: {form}"
            ));
        }
        // Servers that say nothing useful of the form are believed to answer in JSON.
        let readable = ["", "application/json", "application/octet-stream", "text/plain"];
        (!readable.contains(&form)).then(|| format!("serializer for {form} doesn't exist"))
    }

    fn undecodable(self, body: &[u8], error: &serde_json::Error) -> String {
        let parse = "couldn't get version/kind; json parse error:";
        let first = body.trim_ascii_start().first().copied();
        match (self, first) {
            (Codec::Dynamic { .. }, None) => missing_kind(body),
            (Codec::Dynamic { .. }, Some(first)) if first != b'{' => {
                let found = match serde_json::from_slice(body) {
                    Ok(Value::Array(_)) => "array",
                    Ok(Value::Number(_)) => "number",
                    Ok(Value::Bool(_)) => "bool",
                    Ok(Value::Null) => return missing_kind(body),
                    _ => "string",
                };
                format!("{parse} json: cannot unmarshal {found} into Go value of type {TYPE_META}")
            }
            (_, Some(first)) if !b"{[\"-0123456789tfn".contains(&first) => {
                let first = char::from(first);
                format!("{parse} invalid character '{first}' looking for beginning of value")
            }
            _ if error.is_eof() => format!("{parse} unexpected end of JSON input"),
            // Go does not say where a value of another type stands.
            _ if error.is_data() => without_place(error.to_string()),
            _ => format!("{parse} {error}"),
        }
    }
}

fn without_place(mut text: String) -> String {
    if let Some(place) = text.rfind(" at line ") {
        text.truncate(place);
    }
    text
}

fn missing_kind(body: &[u8]) -> String {
    format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Probe {
        api_version: String,
        kind: String,
    }

    impl Described for Probe {
        fn type_meta(&self) -> (&str, &str) {
            (&self.api_version, &self.kind)
        }
    }

    #[test]
    fn what_cannot_be_decoded_is_worded_as_upstream_does() {
        let typed = Codec::Typed { kind: Some("PodMetricsList") };
        let external = Codec::Typed { kind: None };
        let dynamic = Codec::Dynamic { kind: "MetricValueList" };
        let parse = "couldn't get version/kind; json parse error:";
        let foreign = r#"{"kind":"ConfigMapList","apiVersion":"v1","items":[]}"#;
        let no_kind = r#"no kind "ConfigMapList" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111""#;
        let string =
            format!("{parse} json: cannot unmarshal string into Go value of type {TYPE_META}");
        let json = "application/json";
        for (codec, form, body, expected) in [
            (
                typed,
                json,
                "what?",
                format!("{parse} invalid character 'w' looking for beginning of value"),
            ),
            (dynamic, json, "what?", string.clone()),
            (
                typed,
                json,
                "",
                "0-length response with status code: 200 and content type: application/json"
                    .to_owned(),
            ),
            (dynamic, json, "", "Object 'Kind' is missing in ''".to_owned()),
            (typed, json, "{}", "decoded".to_owned()),
            (dynamic, json, "{}", "Object 'Kind' is missing in '{}'".to_owned()),
            (
                typed,
                "text/html; charset=utf-8",
                "<p>",
                "serializer for text/html doesn't exist".to_owned(),
            ),
            (dynamic, "text/html", "<p>", string),
            (typed, json, foreign, no_kind.to_owned()),
            (external, json, foreign, "decoded".to_owned()),
            (dynamic, json, foreign, no_kind.to_owned()),
            (typed, json, r#"{"kind":"#, format!("{parse} unexpected end of JSON input")),
        ] {
            let answer = Answer { content_type: form.to_owned(), body: body.as_bytes().to_vec() };
            let found = match codec.decode::<Probe>(&answer) {
                Ok(_) => "decoded".to_owned(),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected, "{codec:?} {form} {body}");
        }
    }
}
