//! `external.metrics.k8s.io/v1beta1`: the load model's series of whole workloads, by label.

use super::series::{Metric, series_labels};
use crate::load::{LoadModel, LoadState};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use podscale_metrics::answer::{Query, Refusal, decimal, group_document, seconds_text, selects};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The group.
pub const GROUP: &str = "external.metrics.k8s.io";
const VERSION: &str = "external.metrics.k8s.io/v1beta1";

/// The API, as a router.
pub fn router(model: LoadModel) -> Router {
    Router::new()
        .route("/apis/external.metrics.k8s.io", get(group))
        .route("/apis/external.metrics.k8s.io/v1beta1", get(resources))
        .route("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}", get(values))
        .with_state(model)
}

async fn group() -> Json<Value> {
    Json(group_document(GROUP, &["v1beta1"]))
}

async fn resources() -> Json<Value> {
    let resources = Metric::ALL.map(|metric| {
        json!({
            "name": metric.name(), "singularName": "", "namespaced": true,
            "kind": "ExternalMetricValueList", "verbs": ["get"],
        })
    });
    Json(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": VERSION, "resources": resources,
    }))
}

async fn values(
    State(model): State<LoadModel>,
    Path((namespace, metric)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    answer(&model.state(), &namespace, &metric, &Query::read(query.as_deref())).into_response()
}

fn answer(
    state: &LoadState,
    namespace: &str,
    name: &str,
    query: &Query,
) -> Result<Json<Value>, Refusal> {
    let selector = query.selector("labelSelector")?;
    let missing = || format!("the server could not find the metric {name} for external metrics");
    let metric = Metric::named(name).ok_or_else(|| Refusal::no_metric(missing()))?;
    let workloads = state.workloads.iter().filter(|workload| *workload.namespace == *namespace);
    let items: Vec<Value> = workloads
        .map(|workload| (workload, series_labels(workload)))
        .filter(|(_, labels)| selects(&selector, labels))
        .map(|(workload, labels)| {
            json!({
                "metricName": name,
                "metricLabels": labels.iter().collect::<BTreeMap<_, _>>(),
                "timestamp": seconds_text(state.time),
                "window": state.window.as_secs().max(1),
                "value": decimal(metric.of_workload(workload)),
            })
        })
        .collect();
    Ok(Json(json!({
        "kind": "ExternalMetricValueList", "apiVersion": VERSION, "metadata": {}, "items": items,
    })))
}
