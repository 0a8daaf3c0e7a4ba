//! `external.metrics.k8s.io/v1beta1`: values of metrics that belong to no object of the cluster, from
//! whoever provides them.

use crate::answer::{Answering, Query, Refusal, group_document, seconds_text};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use jiff::Timestamp;
use podscale_api::{Labels, Quantity, Selector};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The group.
pub const GROUP: &str = "external.metrics.k8s.io";
/// Its version.
pub const VERSIONS: [&str; 1] = ["v1beta1"];
const VERSION: &str = "external.metrics.k8s.io/v1beta1";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalRequest {
    /// For which namespace.
    pub namespace: String,
    /// Which metric.
    pub metric: String,
    /// Which of its series.
    pub selector: Selector,
}

impl ExternalRequest {
    /// That there is no such metric.
    #[must_use]
    pub fn not_found(&self) -> Refusal {
        Refusal::no_metric(format!(
            "the server could not find the metric {} for external metrics",
            self.metric
        ))
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalValue {
    /// The labels of its series.
    pub labels: Labels,
    /// When it was measured.
    pub time: Timestamp,
    /// Over how long, if that is known.
    pub window: Option<Duration>,
    /// How much it is.
    pub value: Quantity,
}

/// Has metrics of what is outside the cluster.
pub trait ExternalMetrics: Send + Sync + 'static {
    /// The names of all metrics that are known, for discovery.
    fn metrics(&self) -> Vec<String>;

    /// The values of a metric.
    fn values<'a>(&'a self, request: &'a ExternalRequest) -> Answering<'a, Vec<ExternalValue>>;
}

/// Whom the router asks.
pub type Provider = Arc<dyn ExternalMetrics>;

/// The API, as a router.
pub fn router(provider: Provider) -> Router {
    let values = "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}";
    Router::new()
        .route("/apis/external.metrics.k8s.io", get(async || Json(group())))
        .route("/apis/external.metrics.k8s.io/v1beta1", get(list_resources))
        .route(values, get(list_values))
        .with_state(provider)
}

/// The discovery document of the group.
#[must_use]
pub fn group() -> Value {
    group_document(GROUP, &VERSIONS)
}

/// The metrics as discovery lists them.
#[must_use]
pub fn resources(provider: &dyn ExternalMetrics) -> Vec<Value> {
    let mut names = provider.metrics();
    names.sort();
    names.dedup();
    let resource = |name: String| {
        json!({
            "name": name, "singularName": "", "namespaced": true,
            "kind": "ExternalMetricValueList", "verbs": ["get"],
        })
    };
    names.into_iter().map(resource).collect()
}

async fn list_resources(State(provider): State<Provider>) -> Json<Value> {
    Json(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": VERSION,
        "resources": resources(&*provider),
    }))
}

async fn list_values(
    State(provider): State<Provider>,
    Path((namespace, metric)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Query::read(query.as_deref());
    answer(&*provider, namespace, metric, &query).await.into_response()
}

async fn answer(
    provider: &dyn ExternalMetrics,
    namespace: String,
    metric: String,
    query: &Query,
) -> Result<Json<Value>, Refusal> {
    let selector = query.selector("labelSelector")?;
    let request = ExternalRequest { namespace, metric, selector };
    let values = provider.values(&request).await?;
    let items: Vec<Value> = values.iter().map(|value| item(&request.metric, value)).collect();
    Ok(Json(json!({
        "kind": "ExternalMetricValueList", "apiVersion": VERSION, "metadata": {}, "items": items,
    })))
}

fn item(metric: &str, value: &ExternalValue) -> Value {
    let mut item = json!({
        "metricName": metric,
        "metricLabels": value.labels.iter().collect::<BTreeMap<_, _>>(),
        "timestamp": seconds_text(value.time),
        "value": value.value.to_string(),
    });
    if let Some(window) = value.window {
        item["window"] = window.as_secs().max(1).into();
    }
    item
}
