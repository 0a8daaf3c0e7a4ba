//! In which form the client wants its answer.

use http::{HeaderMap, header};

use crate::status::{ApiError, ApiResult};

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Output {
    pub form: Form,
    pub yaml: bool,
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

/// Reads the Accept header.
pub(crate) fn negotiate(headers: &HeaderMap) -> ApiResult<Output> {
    let plain = Output { form: Form::Object, yaml: false };
    let given: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|value| !value.is_empty())
        .collect();
    if given.is_empty() {
        return Ok(plain);
    }
    let known = |range: &&str| media(range).is_some();
    if !given.iter().any(known) {
        return Err(ApiError::not_acceptable());
    }
    given.into_iter().find_map(accept).ok_or_else(ApiError::no_such_form)
}

/// Whether the media type is YAML; `None` if it is neither that nor JSON.
fn media(range: &str) -> Option<bool> {
    match range.split(';').next()?.trim() {
        "application/json" | "*/*" | "application/*" => Some(false),
        "application/yaml" => Some(true),
        _ => None,
    }
}

fn accept(range: &str) -> Option<Output> {
    let mut parts = range.split(';').map(str::trim);
    parts.next()?;
    let yaml = media(range)?;
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
        "Table" if meta => Form::Table,
        "PartialObjectMetadata" | "PartialObjectMetadataList" if meta => Form::Metadata,
        _ => return None,
    };
    Some(Output { form, yaml })
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
