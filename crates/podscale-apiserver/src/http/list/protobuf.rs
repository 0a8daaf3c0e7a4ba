//! Lists in protobuf.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use crate::http::accept::Form;
use crate::http::{Call, respond};
use crate::registry::Served;
use crate::store::Object;
use crate::table::partial_object_metadata;
use crate::types::protobuf::ProtobufError;
use crate::view::from_storage;
use crate::wire;

/// So many items are encoded before others get their turn on the thread.
const ITEMS_AT_ONCE: usize = 64;

/// A list of objects or of their metadata. The length of a message comes before it, so that,
/// unlike JSON, a list is encoded as a whole before the first of it is sent.
pub(super) fn list(call: &Call, form: Form, metadata: Value, items: Vec<Arc<Object>>) -> Response {
    let (kind, version) = super::list_kind(call, form);
    let served = call.served.clone();
    let body = futures::stream::once(async move {
        let mut encoded = Vec::with_capacity(items.len());
        let mut left = VecDeque::from(items);
        while !left.is_empty() {
            let some = left.drain(..left.len().min(ITEMS_AT_ONCE));
            for object in some {
                encoded.push(item(&served, form, &object)?);
            }
            tokio::task::yield_now().await;
        }
        wire::list(&version, &kind, &metadata, &encoded).map(Bytes::from)
    });
    respond::typed(StatusCode::OK, respond::PROTOBUF, Body::from_stream(body))
}

fn item(served: &Served, form: Form, object: &Object) -> Result<Vec<u8>, ProtobufError> {
    if form == Form::Metadata {
        let partial = partial_object_metadata(&object.value());
        return wire::item("meta.k8s.io/v1", "PartialObjectMetadata", &partial);
    }
    let value = from_storage(served, object.value());
    wire::item(&served.info.api_version(), &served.info.kind, &value)
}
