//! Answers in the forms of Kubernetes: objects, tables, errors; and what requests ask for.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use podscale_api::quantity::Format;
use podscale_api::time::GoDuration;
use podscale_api::{Labels, Quantity, Selector};
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::Duration;

/// What somebody else will answer a request with, or why not.
pub type Answering<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

/// An error as Kubernetes' `Status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Value,
}

impl Refusal {
    /// There is no object of that name.
    #[must_use]
    pub fn not_found(group: &str, resource: &str, name: &str) -> Refusal {
        Refusal {
            code: StatusCode::NOT_FOUND,
            reason: "NotFound",
            message: format!("{resource}.{group} {name:?} not found"),
            details: json!({"name": name, "group": group, "kind": resource}),
        }
    }

    /// There is no such metric.
    #[must_use]
    pub fn no_metric(message: String) -> Refusal {
        let details = Value::Null;
        Refusal { code: StatusCode::NOT_FOUND, reason: "NotFound", message, details }
    }

    /// The path leads nowhere.
    #[must_use]
    pub fn no_path() -> Refusal {
        Refusal::no_metric("the server could not find the requested resource".to_owned())
    }

    /// The request makes no sense.
    #[must_use]
    pub fn bad_request(message: String) -> Refusal {
        let details = Value::Null;
        Refusal { code: StatusCode::BAD_REQUEST, reason: "BadRequest", message, details }
    }

    /// The request has more to say than is listened to.
    #[must_use]
    pub fn too_large(message: String) -> Refusal {
        let code = StatusCode::PAYLOAD_TOO_LARGE;
        Refusal { code, reason: "RequestEntityTooLarge", message, details: Value::Null }
    }

    /// Nobody, or nobody who is known, asks.
    #[must_use]
    pub fn unauthorized() -> Refusal {
        Refusal {
            code: StatusCode::UNAUTHORIZED,
            reason: "Unauthorized",
            message: "Unauthorized".to_owned(),
            details: Value::Null,
        }
    }

    /// Whoever asks may not; `details` name the object.
    #[must_use]
    pub fn forbidden(message: String, details: Value) -> Refusal {
        Refusal { code: StatusCode::FORBIDDEN, reason: "Forbidden", message, details }
    }

    /// Something went wrong here.
    #[must_use]
    pub fn internal(problem: &str) -> Refusal {
        Refusal {
            code: StatusCode::INTERNAL_SERVER_ERROR,
            reason: "InternalError",
            message: format!("Internal error occurred: {problem}"),
            details: Value::Null,
        }
    }

    /// What is needed to answer is not there now.
    #[must_use]
    pub fn unavailable(message: String) -> Refusal {
        let code = StatusCode::SERVICE_UNAVAILABLE;
        Refusal { code, reason: "ServiceUnavailable", message, details: Value::Null }
    }

    /// The answer took too long.
    #[must_use]
    pub fn timeout(message: String) -> Refusal {
        let code = StatusCode::GATEWAY_TIMEOUT;
        Refusal { code, reason: "Timeout", message, details: Value::Null }
    }

    /// The HTTP status code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code.as_u16()
    }

    /// What is said to people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The path can only be read.
    #[must_use]
    pub fn not_allowed() -> Refusal {
        Refusal {
            code: StatusCode::METHOD_NOT_ALLOWED,
            reason: "MethodNotAllowed",
            message: "the server does not allow this method on the requested resource".to_owned(),
            details: Value::Null,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16(),
        });
        if !self.details.is_null() {
            status["details"] = self.details;
        }
        (self.code, Json(status)).into_response()
    }
}

/// What the query of a request asks for.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the text after the question mark.
    #[must_use]
    pub fn read(text: Option<&str>) -> Query {
        let pairs = form_urlencoded::parse(text.unwrap_or_default().as_bytes());
        Query(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect())
    }

    /// The first value of a key, if it is not empty.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// A label selector; everything if there is none.
    ///
    /// # Errors
    /// Says why it is none.
    pub fn selector(&self, key: &str) -> Result<Selector, Refusal> {
        let Some(text) = self.get(key) else {
            return Ok(Selector::everything());
        };
        let problem = |error: podscale_api::selector::SelectorError| {
            Refusal::bad_request(format!("unable to parse {key} {text:?}: {error}"))
        };
        Selector::parse(text).map_err(problem)
    }

    /// What a field selector requires of names and namespaces.
    ///
    /// # Errors
    /// Says which field cannot be selected by.
    pub fn fields(&self) -> Result<Fields, Refusal> {
        let mut fields = Fields::default();
        for term in self.get("fieldSelector").unwrap_or_default().split(',') {
            let term = term.trim();
            if term.is_empty() {
                continue;
            }
            let unequal = term.split_once("!=").map(|(field, value)| (field, value, false));
            let equal = || term.split_once('=').map(|(f, v)| (f, v.trim_start_matches('='), true));
            let Some((field, value, wanted)) = unequal.or_else(equal) else {
                let message = format!("invalid selector: '{term}'; can't understand '{term}'");
                return Err(Refusal::bad_request(message));
            };
            let requirement = (value.trim().to_owned(), wanted);
            match field.trim() {
                "metadata.name" => fields.names.push(requirement),
                "metadata.namespace" => fields.namespaces.push(requirement),
                other => {
                    let message = format!("field label not supported: {other}");
                    return Err(Refusal::bad_request(message));
                }
            }
        }
        Ok(fields)
    }
}

/// Names and namespaces that are wanted (or, with `false`, unwanted).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    names: Vec<(String, bool)>,
    namespaces: Vec<(String, bool)>,
}

impl Fields {
    /// Whether an object is selected.
    #[must_use]
    pub(crate) fn match_object(&self, namespace: &str, name: &str) -> bool {
        let fits = |required: &[(String, bool)], found: &str| {
            required.iter().all(|(value, wanted)| (value == found) == *wanted)
        };
        fits(&self.names, name) && fits(&self.namespaces, namespace)
    }
}

/// Whether labels are selected.
#[must_use]
pub fn selects(selector: &Selector, labels: &Labels) -> bool {
    selector.matches(|key| labels.get(key))
}

/// Whether a table is wanted rather than objects: what stands first counts.
#[must_use]
pub(crate) fn wants_table(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let first = accept.unwrap_or_default().split(',').next().unwrap_or_default();
    let has = |wanted: &str| first.split(';').any(|part| part.trim() == wanted);
    has("as=Table") && has("g=meta.k8s.io") && has("v=v1")
}

/// One row of a table: its cells, and the object that it is of.
pub struct Row {
    /// What is shown.
    pub cells: Vec<String>,
    /// What it is of.
    pub object: Value,
}

/// A table of columns (name, format, description) and rows; `objects` is the query's wish for what
/// each row carries of its object.
#[must_use]
pub fn table(columns: &[(&str, &str, &str)], rows: Vec<Row>, objects: Option<&str>) -> Response {
    let columns: Vec<Value> = columns
        .iter()
        .map(|(name, format, description)| {
            json!({"name": name, "type": "string", "format": format, "description": description, "priority": 0})
        })
        .collect();
    let rows: Vec<Value> = rows
        .into_iter()
        .map(|row| {
            let mut value = json!({"cells": row.cells});
            match objects {
                Some("None") => {}
                Some("Object") => value["object"] = row.object,
                _ => {
                    value["object"] = json!({
                        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                        "metadata": row.object["metadata"],
                    });
                }
            }
            value
        })
        .collect();
    let table = json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": ""},
        "columnDefinitions": columns, "rows": rows,
    });
    Json(table).into_response()
}

/// A quantity of cores from billionths, in the canonical form.
#[must_use]
pub fn cores(nanos: u64) -> String {
    for (size, suffix) in [(1_000_000_000, ""), (1_000_000, "m"), (1_000, "u")] {
        if nanos.is_multiple_of(size) {
            return format!("{}{suffix}", nanos / size);
        }
    }
    format!("{nanos}n")
}

/// A quantity of bytes, in the canonical form.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let mut number = bytes;
    let mut suffix = "";
    for larger in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if number == 0 || !number.is_multiple_of(1024) {
            break;
        }
        number /= 1024;
        suffix = larger;
    }
    format!("{number}{suffix}")
}

/// A quantity of anything to a thousandth; what is no number is zero.
#[must_use]
pub fn decimal(value: f64) -> Quantity {
    // The cast saturates, and makes zero of what is no number.
    Quantity::from_milli((value * 1000.0).round() as i64, Format::DecimalSi)
}

/// The discovery document of a group; the first version is preferred.
#[must_use]
pub fn group_document(group: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": group,
        "versions": versions, "preferredVersion": versions.first(),
    })
}

/// A time as the metrics APIs give it: whole seconds.
#[must_use]
pub fn seconds_text(time: Timestamp) -> String {
    format!("{time:.0}")
}

/// A window as the metrics APIs give it: as Go writes durations, without what is below a millisecond.
#[must_use]
pub(crate) fn window_text(window: Duration) -> String {
    let millis = i64::try_from(window.as_millis()).unwrap_or(i64::MAX);
    GoDuration(millis.saturating_mul(1_000_000)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_canonical() {
        for (nanos, text) in
            [(0, "0"), (2_000_000_000, "2"), (250_000_000, "250m"), (1_500, "1500n"), (7_000, "7u")]
        {
            assert_eq!(cores(nanos), text);
        }
        for (count, text) in
            [(0, "0"), (1000, "1000"), (2048, "2Ki"), (64 << 20, "64Mi"), (65 << 10, "65Ki")]
        {
            assert_eq!(bytes(count), text);
        }
        for (value, text) in
            [(0.0, "0"), (1.5, "1500m"), (12.0, "12"), (f64::NAN, "0"), (0.0004, "0")]
        {
            assert_eq!(decimal(value).to_string(), text);
        }
    }

    #[test]
    fn field_selectors_choose_by_name_and_namespace() {
        let fields = |text: &str| Query::read(Some(&format!("fieldSelector={text}"))).fields();
        let web = fields("metadata.name%3Dweb,metadata.namespace!%3Dtest").unwrap();
        assert!(web.match_object("shop", "web"));
        assert!(!web.match_object("test", "web") && !web.match_object("shop", "api"));
        assert!(fields("metadata.name%3D%3Dweb").unwrap().match_object("any", "web"));
        assert!(fields("").unwrap().match_object("any", "any"));
        assert!(fields("spec.nodeName%3Dn").is_err() && fields("web").is_err());
    }

    #[test]
    fn a_table_is_made_when_it_is_asked_for_first() {
        let wants = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            wants_table(&headers)
        };
        assert!(wants("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"));
        assert!(!wants("application/json"));
        assert!(!wants("application/json;as=Table;v=v1beta9;g=meta.k8s.io"));
        assert!(!wants_table(&HeaderMap::new()));
    }
}
