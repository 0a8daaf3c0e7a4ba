//! The web page that shows every autoscaler, what it decides and why.
//!
//! The controller publishes into a [`Hub`]; [`router`] serves the page and pushes what changes. All
//! is read-only, comes from this program alone, and nothing is kept for browsers that lag behind.

mod assets;
mod events;
mod history;
mod hub;
pub mod model;
mod picture;

pub use crate::controller::outcome::OutcomeKind;
use crate::dialect::hpa::HPA;
pub use assets::STYLE;
pub use hub::Hub;
pub use model::{AutoscalerView, ConditionView, DecisionView, MetricState, MetricView, Row, Unit};
pub use picture::Picture;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::map_response;
use axum::response::sse::{KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use events::{Reader, Seen};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many browsers may listen at once.
const READERS: usize = 256;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; manifest-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

#[derive(Clone)]
struct Served {
    hub: Hub,
    places: Arc<Semaphore>,
}

/// The page, its files and its data.
pub fn router(hub: Hub) -> Router {
    Router::new()
        .route("/", get(assets::page))
        .route("/assets/{file}", get(assets::file))
        .route("/api/autoscalers", get(list))
        .route("/api/autoscalers/{namespace}/{name}", get(one))
        .route("/api/events", get(events))
        .fallback(async || refuse(StatusCode::NOT_FOUND, "there is nothing here"))
        .layer(map_response(harden))
        .with_state(Served { hub, places: Arc::new(Semaphore::new(READERS)) })
}

async fn list(State(served): State<Served>) -> Response {
    let rows = served.hub.everything(None).rows;
    Json(json!({"now": served.hub.clock().now().as_millisecond(), "autoscalers": rows}))
        .into_response()
}

#[derive(Deserialize)]
struct OfKind {
    /// The resource with its group, for instance `horizontalpodautoscalers.autoscaling`, which is what
    /// is meant if there is none.
    kind: Option<String>,
}

async fn one(
    State(served): State<Served>,
    Path((namespace, name)): Path<(String, String)>,
    Query(of_kind): Query<OfKind>,
) -> Response {
    let resource = of_kind.kind.filter(|resource| resource != HPA.resource);
    let key = match resource {
        None => format!("{namespace}/{name}"),
        Some(resource) => format!("{namespace}/{name}/{resource}"),
    };
    match served.hub.one(&key) {
        Some((row, past)) => {
            let now = served.hub.clock().now().as_millisecond();
            Json(json!({"now": now, "autoscaler": row, "past": past})).into_response()
        }
        None => {
            let text = format!("no autoscaler {key} has been decided on yet");
            refuse(StatusCode::NOT_FOUND, &text)
        }
    }
}

#[derive(Deserialize)]
struct Wanted {
    watch: Option<String>,
    /// The id of the last event of a stream before, of which the list is still known.
    since: Option<String>,
}

async fn events(
    State(served): State<Served>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> Response {
    let Ok(place) = served.places.try_acquire_owned() else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "too many browsers are listening");
    };
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let seen = match (header, wanted.since.as_deref()) {
        (Some(id), _) => Seen::All(id),
        (None, Some(id)) => Seen::List(id),
        (None, None) => Seen::Nothing,
    };
    let reader = Reader::new(served.hub, wanted.watch, &seen, place);
    let mut response = Sse::new(reader.stream()).keep_alive(KeepAlive::default()).into_response();
    // Proxies that buffer would hold events back.
    let buffering = HeaderName::from_static("x-accel-buffering");
    response.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    response
}

async fn harden(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn refuse(code: StatusCode, text: &str) -> Response {
    (code, Json(json!({"error": text}))).into_response()
}

#[cfg(test)]
mod tests;
