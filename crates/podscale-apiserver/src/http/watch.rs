//! Watches: what there is, then what changes, until the client has enough.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch as signal;
use tokio::time::Instant;

use super::accept::{Form, Media, Output};
use super::filter::Filter;
use super::params::{ListParams, Version};
use super::{Call, respond};
use crate::registry::Served;
use crate::server::Inner;
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Cursor, Event, Object};
use crate::table::{IncludeObject, partial_object_metadata};
use crate::view::from_storage;
use crate::wire;

/// Events are sent in pieces of about this size.
const CHUNK_BYTES: usize = 64 * 1024;
/// How long a watch lasts that names no time.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

const PROTOBUF_STREAM: HeaderValue =
    HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch");

/// Answers with a stream of events.
pub(super) fn watch(call: &Call) -> ApiResult<Response> {
    let params = ListParams::parse(&call.params, true)?;
    let filter = Filter::of(call)?;
    let include = respond::include(call)?;
    let timeout = params.timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
    let (source, initial, marked) = start(call, &params, &filter);
    let watch = Watch {
        server: call.server.clone(),
        served: call.served.clone(),
        filter,
        output: call.output,
        include,
        headers: true,
        bookmarks: params.bookmarks,
        deadline: Instant::now() + timeout,
        next_bookmark: Instant::now() + call.server.config.bookmark_interval,
        closing: call.server.closing.subscribe(),
        initial: initial.into_iter(),
        marked,
        source,
    };
    let chunks = futures::stream::unfold(watch, |mut watch| async move {
        let chunk = watch.next().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), watch))
    });
    let kind = if call.output.media == Media::Protobuf { PROTOBUF_STREAM } else { respond::JSON };
    Ok(respond::typed(StatusCode::OK, kind, Body::from_stream(chunks)))
}

/// Why an idle watch goes on.
enum Woken {
    Changed,
    Closing,
    Late,
    Bookmark,
}

enum Source {
    Live(Cursor),
    /// The error to end with.
    Broken(ApiError),
    Ended,
}

/// Where to start: the events, the objects to begin with, and the revision to mark their end with.
fn start(
    call: &Call,
    params: &ListParams,
    filter: &Filter,
) -> (Source, Vec<Arc<Object>>, Option<u64>) {
    let (store, resource) = (&call.server.store, &call.served.storage);
    let from = match (params.version, params.send_initial_events) {
        // A list that is not older than a past revision is today's.
        (Version::NotOlderThan(revision), Some(true)) if revision > store.revision() => {
            let error = ApiError::too_new(revision, store.revision());
            return (Source::Broken(error), Vec::new(), None);
        }
        (_, Some(true)) => None,
        (Version::Latest | Version::Any, Some(false)) => Some(store.revision()),
        (Version::Latest | Version::Any, None) => None,
        (Version::NotOlderThan(revision) | Version::Exact(revision), _) => Some(revision),
    };
    match from {
        Some(revision) => match store.follow(resource, revision) {
            Ok(cursor) => (Source::Live(cursor), Vec::new(), None),
            Err(expired) => (Source::Broken(ApiError::expired(expired)), Vec::new(), None),
        },
        None => {
            let (snapshot, cursor) = store.snapshot_and_follow(resource);
            let matching =
                snapshot.objects.values().filter(|object| filter.matches(object)).cloned();
            let marked = (params.send_initial_events == Some(true) && params.bookmarks)
                .then_some(snapshot.revision);
            (Source::Live(cursor), matching.collect(), marked)
        }
    }
}

struct Watch {
    server: Arc<Inner>,
    served: Arc<Served>,
    filter: Filter,
    output: Output,
    include: IncludeObject,
    /// Whether the next table still has to name its columns.
    headers: bool,
    bookmarks: bool,
    deadline: Instant,
    next_bookmark: Instant,
    closing: signal::Receiver<bool>,
    initial: std::vec::IntoIter<Arc<Object>>,
    marked: Option<u64>,
    source: Source,
}

impl Watch {
    /// The next piece of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        let mut chunk = BytesMut::new();
        while chunk.len() < CHUNK_BYTES {
            let Some(object) = self.initial.next() else { break };
            self.put(&mut chunk, "ADDED", &object);
        }
        if self.initial.len() == 0
            && let Some(revision) = self.marked.take()
        {
            self.put_bookmark(&mut chunk, revision, true);
        }
        if !chunk.is_empty() {
            return Some(chunk.freeze());
        }
        loop {
            let cursor = match std::mem::replace(&mut self.source, Source::Ended) {
                Source::Live(cursor) => cursor,
                Source::Broken(error) => {
                    self.put_value(&mut chunk, "ERROR", &error.to_value());
                    return Some(chunk.freeze());
                }
                Source::Ended => return None,
            };
            if let Some(piece) = self.follow(cursor, &mut chunk).await {
                return piece;
            }
        }
    }

    /// `None` to be called again, `Some(None)` at the end of the stream.
    async fn follow(&mut self, mut cursor: Cursor, chunk: &mut BytesMut) -> Option<Option<Bytes>> {
        match cursor.read() {
            Err(expired) => {
                self.source = Source::Broken(ApiError::expired(expired));
                return None;
            }
            Ok(batch) => {
                for event in &batch.events {
                    self.put_change(chunk, event);
                }
                if !chunk.is_empty() {
                    self.source = Source::Live(cursor);
                    return Some(Some(chunk.split().freeze()));
                }
                if !batch.events.is_empty() {
                    self.source = Source::Live(cursor);
                    return None;
                }
                let revision = batch.revision;
                let woken = tokio::select! {
                    biased;
                    _ = self.closing.wait_for(|closing| *closing) => Woken::Closing,
                    () = cursor.changed() => Woken::Changed,
                    () = tokio::time::sleep_until(self.deadline) => Woken::Late,
                    () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                        Woken::Bookmark
                    }
                };
                match woken {
                    Woken::Changed => {}
                    Woken::Closing | Woken::Late => return Some(None),
                    Woken::Bookmark => {
                        self.next_bookmark = Instant::now() + self.server.config.bookmark_interval;
                        self.put_bookmark(chunk, revision, false);
                        self.source = Source::Live(cursor);
                        return Some(Some(chunk.split().freeze()));
                    }
                }
            }
        }
        self.source = Source::Live(cursor);
        None
    }

    /// What a change means to someone who sees only matching objects.
    fn put_change(&mut self, chunk: &mut BytesMut, event: &Event) {
        let now = event.change != Change::Deleted && self.filter.matches(&event.object);
        let before = event.previous.as_ref().is_some_and(|previous| self.filter.matches(previous));
        let kind = match (before, now) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return,
        };
        match &event.previous {
            // Who no longer sees an object gets it as it last looked, at the new revision.
            Some(previous) if kind == "DELETED" && event.change != Change::Deleted => {
                let last = previous.at_revision(event.object.revision);
                self.put(chunk, kind, &last);
            }
            _ => self.put(chunk, kind, &event.object),
        }
    }

    fn put(&mut self, chunk: &mut BytesMut, kind: &str, object: &Object) {
        match self.output.form {
            Form::Object if self.output.media == Media::Json => {
                put_event(chunk, kind, &respond::object_bytes(&self.served, object));
            }
            Form::Object => {
                self.put_value(chunk, kind, &from_storage(&self.served, object.value()));
            }
            Form::Metadata => {
                self.put_value(chunk, kind, &partial_object_metadata(&object.value()));
            }
            Form::Table => {
                let value = object.value();
                let metadata = json!({ "resourceVersion": object.revision.to_string() });
                let table = self.served.printer.table(
                    [&value],
                    metadata,
                    self.include,
                    self.headers,
                    self.server.now(),
                );
                self.headers = false;
                self.put_value(chunk, kind, &table);
            }
        }
    }

    /// Adds an event with what has been made for it.
    fn put_value(&self, chunk: &mut BytesMut, kind: &str, value: &Value) {
        if self.output.media != Media::Protobuf {
            return put_event(chunk, kind, value.to_string().as_bytes());
        }
        match wire::object(value) {
            Ok(bytes) => wire::put_event(chunk, kind, &bytes),
            Err(error) => {
                tracing::error!(%error, "an event of a watch cannot be written in protobuf");
            }
        }
    }

    fn put_bookmark(&self, chunk: &mut BytesMut, revision: u64, initial: bool) {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if initial && let Some(fields) = metadata.as_object_mut() {
            let end = json!({ "k8s.io/initial-events-end": "true" });
            fields.insert("annotations".to_owned(), end);
        }
        let info = &self.served.info;
        let object = match self.output.form {
            Form::Object => json!({
                "kind": info.kind,
                "apiVersion": info.api_version(),
                "metadata": metadata,
            }),
            Form::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
            }),
            Form::Table => json!({
                "kind": "Table",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "columnDefinitions": Value::Null,
                "rows": [],
            }),
        };
        self.put_value(chunk, "BOOKMARK", &object);
    }
}

fn put_event(chunk: &mut BytesMut, kind: &str, object: &[u8]) {
    chunk.reserve(object.len() + 40);
    chunk.put_slice(b"{\"type\":\"");
    chunk.put_slice(kind.as_bytes());
    chunk.put_slice(b"\",\"object\":");
    chunk.put_slice(object);
    chunk.put_slice(b"}\n");
}
