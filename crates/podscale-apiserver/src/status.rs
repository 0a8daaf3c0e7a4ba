//! Answers that are not objects: Kubernetes' `Status`, with its codes, reasons and messages.

use http::StatusCode;
use podscale_api::admission::Refusal;
use podscale_api::field_error::{self, FieldError};
use serde_json::{Map, Value, json};

use crate::resource::ResourceInfo;
use crate::store::Expired;
use crate::types::protobuf::ProtobufError;

/// Why a request was refused, in the form clients know.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    /// HTTP status.
    pub code: StatusCode,
    /// Machine-readable reason such as `NotFound`.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
    /// `details` of the Status.
    pub details: Option<Value>,
    /// A token to go on with a list that expired.
    pub continue_token: Option<String>,
    /// Whether the answer is plain text, for paths that are no API.
    pub plain: bool,
}

/// The result of handling a request.
pub type ApiResult<T> = Result<T, ApiError>;

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

fn details(group: &str, kind: &str, name: &str) -> Map<String, Value> {
    let fields = [("name", name), ("group", group), ("kind", kind)];
    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
    given.map(|(field, value)| (field.to_owned(), Value::from(value))).collect()
}

impl ApiError {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            plain: false,
        }
    }

    fn of(mut self, info: &ResourceInfo, name: &str) -> Self {
        self.details = Some(Value::Object(details(&info.group, &info.plural, name)));
        self
    }

    /// There is nothing at this path.
    pub fn no_such_path() -> Self {
        let mut error = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found\n");
        error.plain = true;
        error
    }

    /// There is no such resource, though its group exists.
    pub fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        let mut error = Self::new(StatusCode::NOT_FOUND, "NotFound", message);
        error.details = Some(json!({}));
        error
    }

    /// There is no such object.
    pub fn not_found(info: &ResourceInfo, name: &str) -> Self {
        let message = format!("{} {name:?} not found", info.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).of(info, name)
    }

    /// There already is such an object.
    pub fn already_exists(info: &ResourceInfo, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", info.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).of(info, name)
    }

    /// The object is not in the state that the request counts on.
    pub fn conflict(info: &ResourceInfo, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", info.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).of(info, name)
    }

    /// The object has been changed by someone else.
    pub fn modified(info: &ResourceInfo, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version \
                   and try again";
        Self::conflict(info, name, why)
    }

    /// Others own fields that were applied.
    pub fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        let mut error = Self::new(StatusCode::CONFLICT, "Conflict", message);
        error.details = Some(json!({ "causes": causes }));
        error
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The object breaks rules.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = field_error::invalid_message(&qualified, name, errors);
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        let mut details = details(group, kind, name);
        let causes = field_error::causes(errors);
        if !causes.is_empty() {
            details.insert("causes".to_owned(), serde_json::to_value(causes).unwrap_or_default());
        }
        error.details = Some(Value::Object(details));
        error
    }

    /// An admission webhook, or who stands in its place, refuses the object.
    pub fn denied(webhook: &str, refusal: Refusal) -> Self {
        let Refusal { message, details } = refusal;
        let message = format!("admission webhook {webhook:?} denied the request: {message}");
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        error.details = Some(details);
        error
    }

    /// A patch cannot be applied to the object.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        error.details = Some(json!({}));
        error
    }

    /// The request is understood but not allowed.
    pub fn forbidden(info: &ResourceInfo, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", info.qualified());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).of(info, name)
    }

    /// The namespace is going away, so nothing new may be put into it.
    pub fn namespace_terminating(info: &ResourceInfo, name: &str, namespace: &str) -> Self {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let mut error = Self::forbidden(info, name, &why);
        if let Some(Value::Object(details)) = &mut error.details {
            details.insert(
                "causes".to_owned(),
                json!([{
                    "reason": "NamespaceTerminating",
                    "message": format!("namespace {namespace} is being terminated"),
                    "field": "metadata.namespace",
                }]),
            );
        }
        error
    }

    /// The resource does not offer this verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut error = Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
        error.details = Some(json!({}));
        error
    }

    /// Nobody is logged in.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// The body is in a format that is not read here.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// The client accepts no format that is written here.
    pub fn not_acceptable() -> Self {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, \
            application/yaml, application/vnd.kubernetes.protobuf, \
            application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        let mut error = Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message);
        error.details = Some(json!({}));
        error
    }

    /// The client wants objects in a form that there is not.
    pub fn no_such_form() -> Self {
        let message = "only the following media types are accepted: application/json, \
                       application/yaml, application/vnd.kubernetes.protobuf";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// The answer has no protobuf form, or does not fit into it.
    pub fn no_protobuf(error: ProtobufError) -> Self {
        match error {
            ProtobufError::NoForm(_) => {
                Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", error.to_string())
            }
            other => Self::internal(other),
        }
    }

    /// The content type is of no patch.
    pub fn not_a_patch() -> Self {
        let mut error = Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
        );
        error.details = Some(json!({}));
        error
    }

    /// The body is larger than allowed.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// The history needed for a watch is gone.
    pub fn expired(expired: Expired) -> Self {
        Self::new(StatusCode::GONE, "Expired", expired.to_string())
    }

    /// The history needed for a list is gone.
    pub fn list_expired() -> Self {
        let message = "The resourceVersion for the provided list is too old.";
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// The history needed for the rest of a list is gone; `token` continues without consistency.
    pub fn continue_expired(token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list \
            result. You can start a new list without the continue parameter, or use the continue \
            token in this response to retrieve the remainder of the results. Continuing with the \
            provided token results in an inconsistent list - objects that were created, modified, \
            or deleted between the time the first chunk was returned and now may show up in the \
            list.";
        let mut error = Self::new(StatusCode::GONE, "Expired", message);
        error.continue_token = Some(token);
        error
    }

    /// A revision from the future was asked for.
    pub fn too_new(requested: u64, current: u64) -> Self {
        let message =
            format!("Timeout: Too large resource version: {requested}, current: {current}");
        let mut error = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        error.details = Some(json!({
            "causes": [{
                "reason": "ResourceVersionTooLarge",
                "message": "Too large resource version",
            }],
            "retryAfterSeconds": 1,
        }));
        error
    }

    /// The service behind an API group does not answer.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// Something is wrong in the server itself.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let text = format!("Internal error occurred: {message}");
        let mut error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", text);
        error.details = Some(json!({ "causes": [{ "message": message.to_string() }] }));
        error
    }

    /// Something went wrong that has no reason of its own.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// Too many disruptions at once.
    pub fn too_many_requests(message: impl Into<String>, causes: Vec<Value>) -> Self {
        let mut error = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        error.details = Some(json!({ "causes": causes }));
        error
    }

    /// The Status object.
    pub fn to_value(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), Value::from(token.as_str()));
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code.as_u16(),
        });
        let fields = crate::value::fields(&mut status);
        if !self.reason.is_empty() {
            fields.insert("reason".to_owned(), Value::from(self.reason));
        }
        if let Some(details) = &self.details {
            fields.insert("details".to_owned(), details.clone());
        }
        status
    }
}

/// The Status that says that an object was deleted.
pub fn deleted(info: &ResourceInfo, name: &str, uid: &str) -> Value {
    let mut details = details(&info.group, &info.plural, name);
    details.insert("uid".to_owned(), Value::from(uid));
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}
