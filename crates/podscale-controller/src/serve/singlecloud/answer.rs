//! Answers in singlecloud's form: resources with links, collections, and errors.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use podscale_api::singlecloud::{Autoscaler, Invalid, TYPE};
use podscale_client::call::CallError;
use serde::Serialize;
use serde_json::{Value, json};

/// How many warnings an answer carries.
const WARNINGS: usize = 10;

/// An error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    code: &'static str,
    status: StatusCode,
    message: String,
    field: String,
}

impl Failure {
    fn new(code: &'static str, status: StatusCode, message: impl Into<String>) -> Failure {
        Failure { code, status, message: message.into(), field: String::new() }
    }

    /// Nobody who is known asks.
    pub(super) fn unauthorized() -> Failure {
        Failure::new("Unauthorized", StatusCode::UNAUTHORIZED, "a valid bearer token is needed")
    }

    /// Whoever asks may not.
    pub(super) fn forbidden(message: String) -> Failure {
        Failure::new("PermissionDenied", StatusCode::FORBIDDEN, message)
    }

    /// There is no such thing.
    pub(super) fn not_found(message: impl Into<String>) -> Failure {
        Failure::new("NotFound", StatusCode::NOT_FOUND, message)
    }

    /// It cannot be done with that.
    pub(super) fn not_allowed() -> Failure {
        let message = "the method is not allowed here";
        Failure::new("MethodNotAllow", StatusCode::METHOD_NOT_ALLOWED, message)
    }

    /// What was sent makes no sense.
    pub(super) fn body(invalid: Invalid) -> Failure {
        let Invalid { field, message } = invalid;
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Failure { code: "InvalidBodyContent", status, message, field }
    }

    /// The cluster, or a check that it would make, refuses a change.
    pub(super) fn refused(doing: &str, name: &str, why: impl std::fmt::Display) -> Failure {
        let message = format!("{doing} hpa {name} failed {why}");
        Failure::new("ConnectClusterFailed", StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// As [`Failure::refused`], for a reason that has a field.
    pub(super) fn refused_field(doing: &str, name: &str, invalid: &Invalid) -> Failure {
        Failure { field: invalid.field.clone(), ..Failure::refused(doing, name, invalid) }
    }

    /// There is an autoscaler of that name.
    pub(super) fn duplicate(name: &str) -> Failure {
        let message = format!("duplicate hpa name {name}");
        Failure::new("DuplicateResource", StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// Something went wrong that is not the client's fault.
    pub(super) fn server(message: impl Into<String>) -> Failure {
        Failure::new("ServerError", StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// An autoscaler that cannot be read is not there, or something is wrong.
    pub(super) fn reading(name: &str, error: &CallError) -> Failure {
        if error.is_not_found() {
            return Failure::not_found(format!("no found hpa {name}"));
        }
        Failure::server(format!("get hpa {name} failed {error}"))
    }

    /// What the client reads.
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Failure { code, status, message, field } = self;
        let mut body =
            json!({"code": code, "status": status.as_u16(), "type": "error", "message": message});
        if !field.is_empty() {
            body["field"] = field.into();
        }
        (status, Json(body)).into_response()
    }
}

/// Where resources are, as clients reach them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The scheme and the host.
    pub(super) host: String,
    /// The path of the collection.
    pub(super) collection: String,
}

impl Place {
    /// An autoscaler with its links.
    pub(super) fn linked(&self, mut autoscaler: Autoscaler) -> Autoscaler {
        let collection = format!("{}{}", self.host, self.collection);
        let own = format!("{collection}/{}", autoscaler.name);
        let links =
            [("self", &own), ("update", &own), ("remove", &own), ("collection", &collection)];
        autoscaler.links = links.into_iter().map(|(name, url)| (name, url.as_str())).collect();
        autoscaler
    }

    /// A list of resources.
    pub(super) fn list(&self, kind: &str, data: &[impl Serialize]) -> Value {
        let own = format!("{}{}", self.host, self.collection);
        json!({"type": "collection", "resourceType": kind, "links": {"self": own}, "data": data})
    }

    /// All autoscalers.
    pub(super) fn autoscalers(&self, all: Vec<Autoscaler>) -> Value {
        let all: Vec<Autoscaler> = all.into_iter().map(|one| self.linked(one)).collect();
        self.list(TYPE, &all)
    }
}

/// Says in the head of an answer which fields were ignored, as Kubernetes does.
pub(super) fn warn(mut answer: Response, unknown: &[String]) -> Response {
    for field in unknown.iter().take(WARNINGS) {
        let plain: String = field.chars().filter(|c| c.is_ascii_graphic() && *c != '"').collect();
        let text = format!("299 - \"unknown field {plain}\"");
        if let Ok(value) = HeaderValue::from_str(&text) {
            answer.headers_mut().append(header::WARNING, value);
        }
    }
    answer
}
