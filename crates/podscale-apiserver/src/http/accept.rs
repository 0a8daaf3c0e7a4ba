//! In which form the client wants its answer.

use http::{HeaderMap, header};

use crate::status::{ApiError, ApiResult};

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Output {
    pub form: Form,
    pub media: Media,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Json,
    Yaml,
    Protobuf,
}

/// What is shown of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of them.
    Object,
    /// Rows of a table.
    Table,
    /// Their metadata alone.
    Metadata,
}

/// Reads the Accept header. Custom objects are `json_only`: they have no protobuf form, only their
/// metadata has.
pub(crate) fn negotiate(headers: &HeaderMap, json_only: bool) -> ApiResult<Output> {
    let given: Vec<&str> = ranges(headers).collect();
    if given.is_empty() {
        return Ok(Output { form: Form::Object, media: Media::Json });
    }
    if !given.iter().any(|range| media(range).is_some()) {
        return Err(ApiError::not_acceptable());
    }
    let written = |output: &Output| {
        !(json_only && output.media == Media::Protobuf && output.form == Form::Object)
    };
    given.into_iter().filter_map(accept).find(written).ok_or_else(ApiError::no_such_form)
}

/// How to write a Status: the first way that the client accepts, or JSON. It cannot be asked for
/// as something else.
pub(crate) fn of_status(headers: &HeaderMap) -> Media {
    let plain = ranges(headers).filter(|range| !range.contains("as="));
    plain.filter_map(media).next().unwrap_or(Media::Json)
}

fn ranges(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

/// What a media type stands for; `None` if it is not written here.
fn media(range: &str) -> Option<Media> {
    match range.split(';').next()?.trim() {
        "application/json" | "*/*" | "application/*" => Some(Media::Json),
        "application/yaml" => Some(Media::Yaml),
        "application/vnd.kubernetes.protobuf" => Some(Media::Protobuf),
        _ => None,
    }
}

fn accept(range: &str) -> Option<Output> {
    let mut parts = range.split(';').map(str::trim);
    parts.next()?;
    let media = media(range)?;
    let mut form = "";
    let (mut group, mut version) = ("", "");
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => form = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            _ => {}
        }
    }
    let meta = group == "meta.k8s.io" && matches!(version, "v1" | "v1beta1");
    let form = match form {
        "" => Form::Object,
        // Tables have no protobuf form.
        "Table" if meta && media != Media::Protobuf => Form::Table,
        "PartialObjectMetadata" | "PartialObjectMetadataList" if meta => Form::Metadata,
        _ => return None,
    };
    Some(Output { form, media })
}

/// Whether the client wants discovery in one piece.
pub(crate) fn wants_aggregated(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).map(str::trim).next().is_some_and(|first| {
        first.contains("as=APIGroupDiscoveryList")
            && first.contains("g=apidiscovery.k8s.io")
            && first.contains("v=v2")
            && !first.contains("v=v2beta1")
    })
}
