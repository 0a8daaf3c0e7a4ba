//! HTTP calls that make pods misbehave and nodes stop.
//!
//! `GET /nodes`, `PUT /nodes/{node}` with `{"running": false}`, `PUT /faults/{namespace}/{pod}` with
//! `{"fault": "crash"}`, `DELETE /faults/{namespace}/{pod}`.

use super::{Fault, NodesControl, NodesError};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    running: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Misbehave {
    fault: Fault,
}

#[derive(Serialize)]
struct Shown<'a> {
    name: &'a str,
    address: String,
    port: u16,
    running: bool,
}

/// The calls, as a router.
pub fn router(control: NodesControl) -> Router {
    Router::new()
        .route("/nodes", get(list))
        .route("/nodes/{node}", put(set_running))
        .route("/faults/{namespace}/{pod}", put(set_fault).delete(clear_fault))
        .with_state(control)
}

async fn list(State(control): State<NodesControl>) -> Response {
    let shown = control.nodes().iter().map(|info| Shown {
        name: &info.name,
        address: info.kubelet.ip().to_string(),
        port: info.kubelet.port(),
        running: info.running(),
    });
    Json(shown.collect::<Vec<_>>()).into_response()
}

async fn set_running(
    State(control): State<NodesControl>,
    Path(node): Path<String>,
    Json(run): Json<Run>,
) -> Response {
    answer(control.set_running(&node, run.running).await)
}

async fn set_fault(
    State(control): State<NodesControl>,
    Path((namespace, pod)): Path<(String, String)>,
    Json(wish): Json<Misbehave>,
) -> Response {
    answer(control.set_fault(&namespace, &pod, Some(wish.fault)).await)
}

async fn clear_fault(
    State(control): State<NodesControl>,
    Path((namespace, pod)): Path<(String, String)>,
) -> Response {
    answer(control.set_fault(&namespace, &pod, None).await)
}

fn answer(result: Result<(), NodesError>) -> Response {
    let Err(error) = result else {
        return StatusCode::NO_CONTENT.into_response();
    };
    let code = match error {
        NodesError::NoNode(_) | NodesError::NoPod(..) => StatusCode::NOT_FOUND,
        NodesError::ShutDown => StatusCode::SERVICE_UNAVAILABLE,
        NodesError::Listen { .. }
        | NodesError::Certificate { .. }
        | NodesError::TooMany(_)
        | NodesError::Call(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (code, Json(json!({"error": error.to_string()}))).into_response()
}
