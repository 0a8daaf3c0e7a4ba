//! `metrics.k8s.io/v1beta1`: what pods and nodes use.

mod items;
mod source;

use crate::answer::{
    Query, Refusal, Row, bytes, cores, group_document, table, wants_table, window_text,
};
use crate::store::Used;
use axum::extract::{Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use items::{node_list, node_object, pod_list, pod_object};
use serde_json::{Value, json};

pub(crate) use source::{FoundNode, FoundPod};
pub use source::{Source, UsageProvider};

/// The group.
pub const GROUP: &str = "metrics.k8s.io";
/// Its version.
pub const VERSIONS: [&str; 1] = ["v1beta1"];
const VERSION: &str = "metrics.k8s.io/v1beta1";
const COLUMNS: [(&str, &str, &str); 4] = [
    ("Name", "name", "Name of the resource"),
    ("cpu", "quantity", "CPU used in the window, on average"),
    ("memory", "quantity", "Memory used at the end of the window"),
    ("Window", "duration", "How long the window is"),
];

/// The API, as a router.
pub fn router(source: Source) -> Router {
    Router::new()
        .route("/apis/metrics.k8s.io", get(async || Json(group())))
        .route("/apis/metrics.k8s.io/v1beta1", get(list_resources))
        .route("/apis/metrics.k8s.io/v1beta1/nodes", get(list_nodes))
        .route("/apis/metrics.k8s.io/v1beta1/nodes/{name}", get(get_node))
        .route("/apis/metrics.k8s.io/v1beta1/pods", get(list_all_pods))
        .route("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods", get(list_pods))
        .route("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{name}", get(get_pod))
        .with_state(source)
}

/// The discovery document of the group.
#[must_use]
pub fn group() -> Value {
    group_document(GROUP, &VERSIONS)
}

/// What discovery lists.
#[must_use]
pub fn resources() -> Vec<Value> {
    let resource = |name: &str, kind: &str, namespaced: bool| {
        json!({
            "name": name, "singularName": "", "namespaced": namespaced, "kind": kind,
            "verbs": ["get", "list"],
        })
    };
    vec![resource("nodes", "NodeMetrics", false), resource("pods", "PodMetrics", true)]
}

async fn list_resources() -> Json<Value> {
    Json(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": VERSION,
        "resources": resources(),
    }))
}

async fn list_all_pods(
    State(source): State<Source>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    answer_pods(&source, None, &Query::read(query.as_deref()), &headers).await
}

async fn list_pods(
    State(source): State<Source>,
    Path(namespace): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    answer_pods(&source, Some(&namespace), &Query::read(query.as_deref()), &headers).await
}

async fn answer_pods(
    source: &Source,
    namespace: Option<&str>,
    query: &Query,
    headers: &HeaderMap,
) -> Response {
    if is_watch(query) {
        return Refusal::not_allowed().into_response();
    }
    match source.pods(namespace, query).await {
        Err(refusal) => refusal.into_response(),
        Ok(pods) if wants_table(headers) => {
            table(&COLUMNS, pods.iter().map(pod_row).collect(), query.get("includeObject"))
        }
        Ok(pods) => pod_list(&pods),
    }
}

async fn get_pod(
    State(source): State<Source>,
    Path((namespace, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let pod = match source.pod(&namespace, &name).await {
        Ok(Some(pod)) => pod,
        Ok(None) => {
            let name = format!("{namespace}/{name}");
            return Refusal::not_found(GROUP, "podmetrics", &name).into_response();
        }
        Err(refusal) => return refusal.into_response(),
    };
    if wants_table(&headers) {
        let query = Query::read(query.as_deref());
        return table(&COLUMNS, vec![pod_row(&pod)], query.get("includeObject"));
    }
    Json(pod_object(&pod)).into_response()
}

async fn list_nodes(
    State(source): State<Source>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let query = Query::read(query.as_deref());
    if is_watch(&query) {
        return Refusal::not_allowed().into_response();
    }
    match source.nodes(&query).await {
        Err(refusal) => refusal.into_response(),
        Ok(nodes) if wants_table(&headers) => {
            table(&COLUMNS, nodes.iter().map(node_row).collect(), query.get("includeObject"))
        }
        Ok(nodes) => node_list(&nodes),
    }
}

async fn get_node(
    State(source): State<Source>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let node = match source.node(&name).await {
        Ok(Some(node)) => node,
        Ok(None) => return Refusal::not_found(GROUP, "nodemetrics", &name).into_response(),
        Err(refusal) => return refusal.into_response(),
    };
    if wants_table(&headers) {
        let query = Query::read(query.as_deref());
        return table(&COLUMNS, vec![node_row(&node)], query.get("includeObject"));
    }
    Json(node_object(&node)).into_response()
}

fn is_watch(query: &Query) -> bool {
    matches!(query.get("watch"), Some("true" | "1"))
}

fn pod_row(pod: &FoundPod) -> Row {
    let sum = |of: fn(&Used) -> u64| {
        pod.used.containers.iter().fold(0u64, |sum, (_, used)| sum.saturating_add(of(used)))
    };
    let (cpu, memory) = (sum(|used| used.cpu_nanos), sum(|used| used.memory_bytes));
    let window = window_text(pod.used.window);
    let cells = vec![pod.key.1.to_string(), cores(cpu), bytes(memory), window];
    Row { cells, object: pod_object(pod) }
}

fn node_row(node: &FoundNode) -> Row {
    let window = window_text(node.used.window);
    let used = &node.used;
    let cells =
        vec![node.name.to_string(), cores(used.cpu_nanos), bytes(used.memory_bytes), window];
    Row { cells, object: node_object(node) }
}
