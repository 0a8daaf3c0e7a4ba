//! What a `/scale` endpoint answered, taken as Kubernetes' own scale client takes it: any kind of
//! Scale that it knows becomes an `autoscaling/v1` one, anything else is refused in its words.

use serde::Deserialize;
use serde_json::Value;

use super::{Scale, ScaleSpec, ScaleStatus};
use crate::labels::Labels;
use crate::meta::ObjectMeta;
use crate::quote::quote;
use crate::selector::{LabelSelector, SelectorError};
use crate::serde_form::null_default;

/// Where Kubernetes' clients make their scheme; part of a message. Builds of Kubernetes spell it
/// differently, so nothing should depend on it.
pub const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// What Go calls the two fields that every object is first read for.
pub const TYPE_META: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Why an answer cannot be taken as a Scale, in the words of Kubernetes' scale client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleDecodeError {
    /// It is not JSON, or not an object.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(String),
    /// The group and version make no sense.
    #[error("unexpected GroupVersion string: {0}")]
    GroupVersion(String),
    /// It does not say what it is.
    #[error("Object '{field}' is missing in '{body}'")]
    Missing {
        /// `Kind` or `apiVersion`.
        field: &'static str,
        /// The whole answer.
        body: String,
    },
    /// It is no Scale.
    #[error("no kind {} is registered for version {} in scheme {}", quote(.kind), quote(.version), quote(SCHEME))]
    Kind {
        /// Its kind.
        kind: String,
        /// Its group and version.
        version: String,
    },
    /// A field has a value of another type.
    #[error("{0}")]
    Field(String),
    /// Its selector cannot be parsed.
    #[error(
        "received an object from a /scale endpoint which was not convertible to autoscaling Scale: \
         failed to parse target selector: {0}"
    )]
    Selector(SelectorError),
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TypeMeta {
    #[serde(deserialize_with = "null_default")]
    api_version: String,
    #[serde(deserialize_with = "null_default")]
    kind: String,
}

/// Scales of before `autoscaling/v1` gave the selector as a map, and as text beside it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OldScale {
    #[serde(deserialize_with = "null_default")]
    metadata: ObjectMeta,
    #[serde(deserialize_with = "null_default")]
    spec: ScaleSpec,
    #[serde(deserialize_with = "null_default")]
    status: OldStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OldStatus {
    #[serde(deserialize_with = "null_default")]
    replicas: i32,
    selector: Option<Labels>,
    #[serde(deserialize_with = "null_default")]
    target_selector: String,
}

impl Scale {
    /// Reads the answer of a `/scale` endpoint. The selector comes out as Kubernetes prints it,
    /// however it was written; one that is empty or absent stays empty.
    ///
    /// # Errors
    /// It is not a Scale, or its selector cannot be parsed.
    pub fn decode(body: &[u8]) -> Result<Scale, ScaleDecodeError> {
        let TypeMeta { api_version, kind } = type_meta(body)?;
        if api_version.matches('/').count() > 1 {
            return Err(ScaleDecodeError::GroupVersion(api_version));
        }
        let missing = |field| {
            let body = String::from_utf8_lossy(body).into_owned();
            Err(ScaleDecodeError::Missing { field, body })
        };
        match (&*kind, &*api_version) {
            ("", _) => missing("Kind"),
            (_, "") => missing("apiVersion"),
            ("Scale", "autoscaling/v1") => {
                let mut scale: Scale = fields(body, "string")?;
                scale.status.selector = normalized(&scale.status.selector)?;
                Ok(scale)
            }
            ("Scale", "extensions/v1beta1" | "apps/v1beta1" | "apps/v1beta2") => {
                from_old(fields(body, "map[string]string")?)
            }
            _ => Err(ScaleDecodeError::Kind { kind, version: api_version }),
        }
    }
}

/// What an answer says that it is.
fn type_meta(body: &[u8]) -> Result<TypeMeta, ScaleDecodeError> {
    let not_an_object = |found: &str| {
        let text = format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}");
        ScaleDecodeError::Json(text)
    };
    // What does not begin as an object is read as YAML upstream, where bare words are a text.
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(match serde_json::from_slice(body) {
            Ok(Value::Array(_)) => not_an_object("array"),
            Ok(Value::Number(_)) => not_an_object("number"),
            Ok(Value::Bool(_)) => not_an_object("bool"),
            Ok(Value::Null) => missing_kind(body),
            _ if body.trim_ascii().is_empty() => missing_kind(body),
            _ => not_an_object("string"),
        });
    }
    serde_json::from_slice(body).map_err(|error| {
        ScaleDecodeError::Json(if error.is_eof() {
            "unexpected end of JSON input".to_owned()
        } else {
            error.to_string()
        })
    })
}

fn missing_kind(body: &[u8]) -> ScaleDecodeError {
    ScaleDecodeError::Missing { field: "Kind", body: String::from_utf8_lossy(body).into_owned() }
}

/// Reads the fields of a Scale whose selector has this type in Go.
fn fields<T: serde::de::DeserializeOwned>(
    body: &[u8],
    selector: &str,
) -> Result<T, ScaleDecodeError> {
    serde_json::from_slice(body).map_err(|error| {
        let go = serde_json::from_slice(body).ok().and_then(|value| wrong_type(&value, selector));
        ScaleDecodeError::Field(go.unwrap_or_else(|| error.to_string()))
    })
}

/// The first field of a Scale that has a value of another type, in Go's words.
fn wrong_type(scale: &Value, selector: &str) -> Option<String> {
    let fields = [
        ("ScaleSpec", "spec.replicas", "int32"),
        ("ScaleStatus", "status.replicas", "int32"),
        ("ScaleStatus", "status.selector", selector),
    ];
    fields.iter().find_map(|(of, field, wanted)| {
        let value = scale.pointer(&format!("/{}", field.replace('.', "/")))?;
        let found = match value {
            Value::Null => return None,
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(_) if value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => {
                "number".to_owned()
            }
            Value::Number(number) => format!("number {number}"),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let fits = match *wanted {
            "int32" => found == "number",
            "string" => found == "string",
            _ => found == "object",
        };
        (!fits).then(|| {
            format!(
                "json: cannot unmarshal {found} into Go struct field {of}.{field} of type {wanted}"
            )
        })
    })
}

fn from_old(OldScale { metadata, spec, status }: OldScale) -> Result<Scale, ScaleDecodeError> {
    let selector = match &status.selector {
        _ if !status.target_selector.is_empty() => normalized(&status.target_selector)?,
        Some(labels) => {
            let all = LabelSelector { match_labels: labels.clone(), ..LabelSelector::default() };
            printed(&all)?
        }
        None => String::new(),
    };
    Ok(Scale {
        kind: "Scale".to_owned(),
        api_version: "autoscaling/v1".to_owned(),
        metadata,
        spec,
        status: ScaleStatus { replicas: status.replicas, selector },
    })
}

/// A selector's text as Kubernetes prints it after reading it.
fn normalized(text: &str) -> Result<String, ScaleDecodeError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    printed(&LabelSelector::parse(text).map_err(ScaleDecodeError::Selector)?)
}

fn printed(selector: &LabelSelector) -> Result<String, ScaleDecodeError> {
    let selector = selector.to_selector().map_err(ScaleDecodeError::Selector)?;
    Ok(selector.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(text: &str) -> Result<String, String> {
        let json = serde_json::json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "spec": {"replicas": 2}, "status": {"replicas": 3, "selector": text},
        });
        let scale = Scale::decode(json.to_string().as_bytes()).map_err(|e| e.to_string())?;
        assert_eq!((scale.spec.replicas, scale.status.replicas), (2, 3));
        Ok(scale.status.selector)
    }

    #[test]
    fn selectors_come_out_as_kubernetes_prints_them() {
        for (text, printed) in [
            ("", ""),
            ("  ", ""),
            ("app=web", "app=web"),
            ("app==web", "app=web"),
            ("tier notin (b,a), tier=x0 ,app in (w1)", "app in (w1),tier=x0,tier notin (a,b)"),
            ("tier notin (a),tier=x0", "tier=x0,tier notin (a)"),
            ("b,!a", "!a,b"),
            // A key has one value in a map: the last one.
            ("a=b,a=c", "a=c"),
            ("a=", "a="),
        ] {
            assert_eq!(selector(text), Ok(printed.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn selectors_that_cannot_be_parsed_are_no_scale() {
        let prefix = "received an object from a /scale endpoint which was not convertible to \
                      autoscaling Scale: failed to parse target selector: ";
        for (text, error) in [
            (
                "!!bad",
                r#"couldn't parse the selector string "!!bad": unable to parse requirement: found '!', expected: identifier"#,
            ),
            (
                "foo=bar=42",
                r#"couldn't parse the selector string "foo=bar=42": found '=', expected: ',' or 'end of string'"#,
            ),
            ("a!=b", r#""!=" is not a valid label selector operator"#),
            ("a>1", r#""gt" isn't supported in label selectors"#),
            ("a<1", r#""lt" isn't supported in label selectors"#),
        ] {
            assert_eq!(selector(text), Err(format!("{prefix}{error}")));
        }
    }

    #[test]
    fn what_is_no_scale_is_refused_in_upstreams_words() {
        let type_meta = format!("into Go value of type {TYPE_META}");
        let parse = "couldn't get version/kind; json parse error:";
        for (body, error) in [
            (
                r#"{"kind":"Widget","apiVersion":"example.com/v1","spec":{"replicas":3}}"#,
                format!(
                    r#"no kind "Widget" is registered for version "example.com/v1" in scheme "{SCHEME}""#
                ),
            ),
            (
                r#"{"kind":"Scale","apiVersion":"apps/v1"}"#,
                format!(
                    r#"no kind "Scale" is registered for version "apps/v1" in scheme "{SCHEME}""#
                ),
            ),
            (
                r#"{"apiVersion":"autoscaling/v1"}"#,
                r#"Object 'Kind' is missing in '{"apiVersion":"autoscaling/v1"}'"#.to_owned(),
            ),
            (
                r#"{"kind":"Scale"}"#,
                r#"Object 'apiVersion' is missing in '{"kind":"Scale"}'"#.to_owned(),
            ),
            ("{}", "Object 'Kind' is missing in '{}'".to_owned()),
            ("null", "Object 'Kind' is missing in 'null'".to_owned()),
            ("", "Object 'Kind' is missing in ''".to_owned()),
            (
                r#"{"kind":"Scale","apiVersion":"a/b/c"}"#,
                "unexpected GroupVersion string: a/b/c".to_owned(),
            ),
            (r#"{"kind":"#, format!("{parse} unexpected end of JSON input")),
            ("no such page", format!("{parse} json: cannot unmarshal string {type_meta}")),
            ("[1]", format!("{parse} json: cannot unmarshal array {type_meta}")),
            ("7", format!("{parse} json: cannot unmarshal number {type_meta}")),
        ] {
            let refused = Scale::decode(body.as_bytes()).expect_err(body).to_string();
            assert_eq!(refused, error, "{body}");
        }
        let wrong = br#"{"kind":"Scale","apiVersion":"autoscaling/v1","spec":{"replicas":"3"}}"#;
        let text = "json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32";
        assert_eq!(Scale::decode(wrong), Err(ScaleDecodeError::Field(text.to_owned())));
    }

    #[test]
    fn older_scales_are_converted() {
        for (status, printed) in [
            (r#"{"replicas":1,"selector":{"b":"c","a":"b"}}"#, "a=b,b=c"),
            (r#"{"replicas":1,"selector":{"a":"b"},"targetSelector":"x in (z,y)"}"#, "x in (y,z)"),
            (r#"{"replicas":1}"#, ""),
        ] {
            let body =
                format!(r#"{{"kind":"Scale","apiVersion":"apps/v1beta2","status":{status}}}"#);
            let scale = Scale::decode(body.as_bytes()).expect(status);
            assert_eq!(scale.status.selector, printed);
            assert_eq!((&*scale.api_version, scale.status.replicas), ("autoscaling/v1", 1));
        }
    }
}
