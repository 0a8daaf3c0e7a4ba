//! Turning results into responses.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};

use super::Call;
use super::accept::{Form, Media};
use crate::registry::{Served, View};
use crate::status::ApiError;
use crate::store::Object;
use crate::table::{IncludeObject, partial_object_metadata};
use crate::view::from_storage;
use crate::wire;
use crate::write::Written;

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
pub(crate) const PROTOBUF: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf");

/// An answer of JSON bytes.
pub(crate) fn bytes(code: StatusCode, body: impl Into<Body>) -> Response {
    typed(code, JSON, body)
}

/// An answer of bytes of this type.
pub(crate) fn typed(code: StatusCode, kind: HeaderValue, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// An answer of JSON.
pub(crate) fn json(code: StatusCode, value: &Value) -> Response {
    bytes(code, value.to_string())
}

/// The answer to a request that failed.
pub(crate) fn error(error: &ApiError, media: Media) -> Response {
    if error.plain {
        return super::plain(error.code, error.message.clone());
    }
    let status = error.to_value();
    let mut response =
        written(media, error.code, &status).unwrap_or_else(|_| json(error.code, &status));
    if let Some(seconds) =
        error.details.as_ref().and_then(|details| details.get("retryAfterSeconds"))
        && let Ok(value) = HeaderValue::from_str(&seconds.to_string())
    {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

/// Adds warnings that clients show to their users.
pub(crate) fn with_warnings(mut response: Response, warnings: &[String]) -> Response {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}

/// The bytes of a stored object in the served version.
pub(crate) fn object_bytes(served: &Served, object: &Object) -> Bytes {
    match served.view {
        View::Stored => object.bytes(),
        // All versions but one are renamed; the bytes tell.
        _ => Bytes::from(from_storage(served, object.value()).to_string()),
    }
}

/// An answer with one object, in the form the client asked for.
pub(crate) fn object(
    call: &Call,
    code: StatusCode,
    written: Written,
) -> Result<Response, ApiError> {
    match (written, call.output.form) {
        (written, Form::Table) => table(call, code, &written.into_value()),
        (Written::Stored(object), Form::Object) if call.output.media == Media::Json => {
            Ok(bytes(code, object_bytes(&call.served, &object)))
        }
        (written, _) => value(call, code, from_storage(&call.served, written.into_value())),
    }
}

/// An answer with one object of the served version, in the form the client asked for.
pub(crate) fn value(call: &Call, code: StatusCode, value: Value) -> Result<Response, ApiError> {
    let shown = match call.output.form {
        Form::Object => value,
        Form::Metadata => partial_object_metadata(&value),
        Form::Table => return table(call, code, &value),
    };
    render(call, code, &shown)
}

/// An answer with one stored object as a table.
fn table(call: &Call, code: StatusCode, value: &Value) -> Result<Response, ApiError> {
    let include = include(call)?;
    let version = value.pointer("/metadata/resourceVersion").cloned();
    let metadata = json!({ "resourceVersion": version });
    let table = call.served.printer.table([value], metadata, include, true, call.server.now());
    render(call, code, &table)
}

/// An answer as the client wants it written.
pub(crate) fn render(call: &Call, code: StatusCode, value: &Value) -> Result<Response, ApiError> {
    written(call.output.media, code, value)
}

fn written(media: Media, code: StatusCode, value: &Value) -> Result<Response, ApiError> {
    Ok(match media {
        Media::Json => json(code, value),
        Media::Yaml => match serde_saphyr::to_string(value) {
            Ok(text) => typed(code, YAML, text),
            Err(_) => json(code, value),
        },
        Media::Protobuf => {
            typed(code, PROTOBUF, wire::object(value).map_err(ApiError::no_protobuf)?)
        }
    })
}

/// How much of each object a table carries along.
pub(crate) fn include(call: &Call) -> Result<IncludeObject, ApiError> {
    let given = call.params.text("includeObject");
    IncludeObject::parse(given).map_err(|_| {
        ApiError::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {given:?}: \
             must be 'Metadata', 'Object', 'None', or empty"
        ))
    })
}
