//! HTTP calls that show and set the load.
//!
//! `GET /load`, `GET /load/{namespace}/{name}`, `PUT` there with one of `{"rps": 120}`,
//! `{"load": {…shape…}}`, `{"enqueue": 500}`, with `"model": {…}` beside it to drive a new workload,
//! `DELETE` there to go back to the configured load; `GET /load/metrics` in exposition text.

use super::text::exposition;
use super::{LoadModel, Wish, WorkloadConfig, WorkloadError, WorkloadState};
use crate::nodes::exposition::CONTENT_TYPE;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use podscale_sim::load::{Constant, MAX_RPS};
use podscale_sim::{Shape, WorkloadSpec};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Body {
    rps: Option<f64>,
    load: Option<Shape>,
    enqueue: Option<f64>,
    model: Option<WorkloadSpec>,
}

/// The calls, as a router.
pub fn router(model: LoadModel) -> Router {
    Router::new()
        .route("/load", get(list))
        .route("/load/{namespace}/{name}", get(show).put(set).delete(reset))
        .route("/load/metrics", get(metrics))
        .with_state(model)
}

async fn list(State(model): State<LoadModel>) -> Response {
    let state = model.state();
    let time = format!("{:.3}", state.time);
    Json(json!({"time": time, "workloads": &state.workloads})).into_response()
}

async fn show(
    State(model): State<LoadModel>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let state = model.state();
    let of =
        |workload: &&WorkloadState| *workload.namespace == *namespace && *workload.name == *name;
    match state.workloads.iter().find(of) {
        Some(workload) => Json(workload).into_response(),
        None => fail(&WorkloadError::Unknown(format!("{namespace}/{name}"))),
    }
}

async fn set(
    State(model): State<LoadModel>,
    Path((namespace, name)): Path<(String, String)>,
    body: Result<Json<Body>, JsonRejection>,
) -> Response {
    let body = match body {
        Ok(Json(body)) => body,
        Err(rejection) => return refuse(rejection.status(), &rejection.body_text()),
    };
    let wish = match (body.rps, body.load, body.enqueue) {
        (Some(rps), None, None) if (0.0..=MAX_RPS).contains(&rps) => Wish::Rps(rps),
        (Some(rps), None, None) => {
            let text = format!("rps: {rps} is not between 0 and {MAX_RPS}");
            return refuse(StatusCode::UNPROCESSABLE_ENTITY, &text);
        }
        (None, Some(shape), None) => Wish::Shape(shape),
        (None, None, Some(amount)) if amount > 0.0 && amount <= MAX_RPS => Wish::Enqueue(amount),
        (None, None, Some(amount)) => {
            let text = format!("enqueue: {amount} is not more than 0 and at most {MAX_RPS}");
            return refuse(StatusCode::UNPROCESSABLE_ENTITY, &text);
        }
        _ => {
            let text = "give exactly one of rps, load and enqueue";
            return refuse(StatusCode::UNPROCESSABLE_ENTITY, text);
        }
    };
    let result = match (body.model, wish) {
        (None, wish) => model.wish(&namespace, &name, wish),
        (Some(spec), wish) => {
            let (load, more) = match wish {
                Wish::Shape(shape) => (shape, None),
                Wish::Rps(rps) => (Shape::Constant(Constant { rps }), None),
                Wish::Enqueue(_) | Wish::Configured => (Shape::Sum(Vec::new()), Some(wish)),
            };
            let added = model.add(&WorkloadConfig {
                namespace: namespace.clone(),
                name: name.clone(),
                selector: BTreeMap::new(),
                container: None,
                model: spec,
                load,
            });
            added.and_then(|()| match more {
                Some(wish) => model.wish(&namespace, &name, wish),
                None => Ok(()),
            })
        }
    };
    match result {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => fail(&error),
    }
}

async fn reset(
    State(model): State<LoadModel>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    match model.wish(&namespace, &name, Wish::Configured) {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => fail(&error),
    }
}

async fn metrics(State(model): State<LoadModel>) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], exposition(&model.state())).into_response()
}

fn fail(error: &WorkloadError) -> Response {
    let code = match error {
        WorkloadError::Unknown(_) => StatusCode::NOT_FOUND,
        WorkloadError::Twice(_) => StatusCode::CONFLICT,
        WorkloadError::Model { .. } | WorkloadError::Load { .. } | WorkloadError::TooMany => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    };
    refuse(code, &error.to_string())
}

fn refuse(code: StatusCode, text: &str) -> Response {
    (code, Json(json!({"error": text}))).into_response()
}
