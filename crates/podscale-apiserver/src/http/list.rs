//! Reading objects: one, all, or page by page.

mod protobuf;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine};
use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use serde_json::{Value, json};

use super::accept::{Form, Media};
use super::filter::Filter;
use super::params::{ListParams, Version};
use super::{Call, respond};
use crate::registry::View;
use crate::status::{ApiError, ApiResult};
use crate::store::{Object, Snapshot};
use crate::table::partial_object_metadata;
use crate::value::{integer, text};
use crate::view::from_storage;
use crate::write::Written;
use crate::write::decode::{self, Format};

/// Items are sent in pieces of about this size.
const CHUNK_BYTES: usize = 64 * 1024;

/// One object.
pub(super) fn get(call: &Call) -> ApiResult<Response> {
    let params = ListParams::parse(&call.params, false)?;
    refuse_future(call, params.version)?;
    let key = crate::store::key(call.namespace(), call.name());
    let found = call.server.store.get(&call.served.storage, &key);
    let object = found.ok_or_else(|| ApiError::not_found(&call.served.info, call.name()))?;
    respond::object(call, StatusCode::OK, Written::Stored(object))
}

/// All objects that are asked for, or a page of them.
pub(super) fn list(call: &Call) -> ApiResult<Response> {
    let params = ListParams::parse(&call.params, false)?;
    let filter = Filter::of(call)?;
    let page = page(call, &params, &filter)?;
    let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
    if let (Some(token), Some(fields)) = (&page.token, metadata.as_object_mut()) {
        fields.insert("continue".to_owned(), Value::from(token.as_str()));
        if let Some(remaining) = page.remaining {
            fields.insert("remainingItemCount".to_owned(), Value::from(remaining));
        }
    } else if call.served.info.custom && call.output.form == Form::Object {
        // Lists of custom objects say that they are complete.
        metadata["continue"] = json!("");
    }
    match call.output.form {
        Form::Table => {
            let include = respond::include(call)?;
            // Tables show objects as they are stored, whatever the version asked for.
            let items: Vec<Value> = page.items.iter().map(|item| item.value()).collect();
            let now = call.server.now();
            let table = call.served.printer.table(&items, metadata, include, true, now);
            respond::render(call, StatusCode::OK, &table)
        }
        Form::Object if call.output.media == Media::Yaml => {
            let items: Vec<Value> =
                page.items.iter().map(|item| from_storage(&call.served, item.value())).collect();
            let list = json!({
                "kind": call.served.info.list_kind,
                "apiVersion": call.served.info.api_version(),
                "metadata": metadata,
                "items": items,
            });
            respond::render(call, StatusCode::OK, &list)
        }
        form if call.output.media == Media::Protobuf => {
            Ok(protobuf::list(call, form, metadata, page.items))
        }
        form => Ok(stream(call, form, &metadata, page.items)),
    }
}

/// Sends the items as they are encoded, so that a large list is never in memory twice.
fn stream(call: &Call, form: Form, metadata: &Value, items: Vec<Arc<Object>>) -> Response {
    let (kind, version) = list_kind(call, form);
    let head = format!(
        "{{\"kind\":{},\"apiVersion\":{},\"metadata\":{metadata},\"items\":[",
        Value::from(kind),
        Value::from(version),
    );
    let served = call.served.clone();
    // `None` once everything has been sent.
    let start = Some((items.into_iter(), Bytes::from(head), true));
    let chunks = futures::stream::unfold(start, move |state| {
        let served = served.clone();
        async move {
            let (mut items, head, mut first) = state?;
            let mut chunk = BytesMut::with_capacity(CHUNK_BYTES + 8 * 1024);
            chunk.put(head);
            while chunk.len() < CHUNK_BYTES {
                let Some(item) = items.next() else {
                    chunk.put_slice(b"]}\n");
                    return Some((Ok::<_, std::convert::Infallible>(chunk.freeze()), None));
                };
                if !first {
                    chunk.put_u8(b',');
                }
                first = false;
                match (form, served.view) {
                    // Items of built-in lists leave kind and version out.
                    (Form::Object, View::Stored) => {
                        chunk.put_u8(b'{');
                        chunk.put_slice(item.body());
                    }
                    (Form::Object, _) => {
                        let mut value = from_storage(&served, item.value());
                        if !served.info.custom
                            && let Some(fields) = value.as_object_mut()
                        {
                            fields.remove("kind");
                            fields.remove("apiVersion");
                        }
                        chunk.put_slice(value.to_string().as_bytes());
                    }
                    _ => {
                        let partial = partial_object_metadata(&item.value());
                        chunk.put_slice(partial.to_string().as_bytes());
                    }
                }
            }
            Some((Ok(chunk.freeze()), Some((items, Bytes::new(), first))))
        }
    });
    respond::bytes(StatusCode::OK, Body::from_stream(chunks))
}

/// Kind and version of a list in this form.
fn list_kind(call: &Call, form: Form) -> (String, String) {
    let info = &call.served.info;
    match form {
        Form::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        _ => (info.list_kind.clone(), info.api_version()),
    }
}

/// Part of a list.
pub(super) struct Page {
    pub items: Vec<Arc<Object>>,
    pub revision: u64,
    pub token: Option<String>,
    pub remaining: Option<usize>,
}

/// Finds the objects that a list asks for.
pub(super) fn page(call: &Call, params: &ListParams, filter: &Filter) -> ApiResult<Page> {
    refuse_future(call, params.version)?;
    let (snapshot, after) = snapshot(call, params)?;
    let (lower, upper) = bounds(filter.namespace());
    let start = after.filter(|after| *after >= lower).unwrap_or(lower);
    let range = (std::ops::Bound::Excluded(start.as_str()), upper_bound(&upper));
    let mut matching = snapshot
        .objects
        .range::<_, str>(range)
        .map(|(_, object)| object)
        .filter(|object| filter.matches(object));
    let limit = params.limit.unwrap_or(usize::MAX);
    let items: Vec<Arc<Object>> = matching.by_ref().take(limit).cloned().collect();
    let next = matching.next();
    let (token, remaining) = match (next, items.last()) {
        (Some(_), Some(last)) => {
            let rest = matching.count() + 1;
            (Some(encode_token(snapshot.revision, &last.key)), filter.is_open().then_some(rest))
        }
        _ => (None, None),
    };
    Ok(Page { items, revision: snapshot.revision, token, remaining })
}

fn upper_bound(upper: &str) -> std::ops::Bound<&str> {
    if upper.is_empty() { std::ops::Bound::Unbounded } else { std::ops::Bound::Excluded(upper) }
}

/// The keys that a namespace's objects lie between.
fn bounds(namespace: &str) -> (String, String) {
    if namespace.is_empty() {
        return (String::new(), String::new());
    }
    // '0' follows '/', so this is right after the last key of the namespace.
    (format!("{namespace}/"), format!("{namespace}0"))
}

fn snapshot(call: &Call, params: &ListParams) -> ApiResult<(Snapshot, Option<String>)> {
    let (store, resource) = (&call.server.store, &call.served.storage);
    if let Some(token) = &params.token {
        let (revision, after) = decode_token(token).map_err(|reason| {
            let message = format!("invalid continue token: continue key is not valid: {reason}");
            ApiError::bad_request(message)
        })?;
        let Some(revision) = revision else {
            return Ok((store.snapshot(resource), Some(after)));
        };
        return match store.snapshot_at(resource, revision) {
            Ok(snapshot) => Ok((snapshot, Some(after))),
            Err(_) => Err(ApiError::continue_expired(encode_inconsistent(&after))),
        };
    }
    match params.version {
        Version::Exact(revision) => store
            .snapshot_at(resource, revision)
            .map(|snapshot| (snapshot, None))
            .map_err(|_| ApiError::list_expired()),
        _ => Ok((store.snapshot(resource), None)),
    }
}

/// Refuses revisions that are yet to come.
pub(super) fn refuse_future(call: &Call, version: Version) -> ApiResult<()> {
    let current = call.server.store.revision();
    match version {
        Version::NotOlderThan(wanted) | Version::Exact(wanted) if wanted > current => {
            Err(ApiError::too_new(wanted, current))
        }
        _ => Ok(()),
    }
}

fn encode_token(revision: u64, after: &str) -> String {
    let token = json!({ "v": "meta.k8s.io/v1", "rv": revision, "start": format!("{after}\u{0}") });
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn encode_inconsistent(after: &str) -> String {
    let token = json!({ "v": "meta.k8s.io/v1", "rv": -1, "start": format!("{after}\u{0}") });
    URL_SAFE_NO_PAD.encode(token.to_string())
}

/// The revision (absent where consistency was given up) and the key to go on after.
fn decode_token(token: &str) -> Result<(Option<u64>, String), String> {
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) => format!("illegal base64 data at input byte {at}"),
        _ => format!("illegal base64 data at input byte {}", token.len()),
    })?;
    let (value, _) = decode::parse(&bytes, Format::Json, None)?;
    if text(&value, "/v") != "meta.k8s.io/v1" {
        let version = text(&value, "/v");
        return Err(format!("server does not recognize this encoded version {version}"));
    }
    let revision = integer(&value, "/rv").filter(|revision| *revision != 0);
    let revision =
        revision.ok_or("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")?;
    let start = text(&value, "/start").trim_end_matches('\u{0}');
    if start.is_empty() {
        return Err("encoded start key empty or missing (version meta.k8s.io/v1)".to_owned());
    }
    Ok((u64::try_from(revision).ok(), start.to_owned()))
}
