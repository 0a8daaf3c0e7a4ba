//! The metrics of all nodes in plain numbers: `/nodes`, `/nodes/{node}`, `/namespaces/{namespace}/pods`
//! and `…/pods/{pod}`, where the namespace `all-namespaces` is all of them.

use super::{ContainerMetrics, Metadata, NodeMetrics, PodMetrics, Resources};
use crate::answer::{Query, Refusal};
use crate::resource::{FoundNode, FoundPod, Source};
use axum::extract::{Path, RawQuery, State};
use axum::http::Method;
use axum::http::header::ALLOW;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, extract::Request};
use std::sync::Arc;

/// Stands for all namespaces in a path.
const ALL_NAMESPACES: &str = "all-namespaces";

/// The calls, as a router.
pub fn router(source: Source) -> Router {
    Router::new()
        .route("/nodes", get(nodes))
        .route("/nodes/{node}", get(node))
        .route("/namespaces/{namespace}/pods", get(pods))
        .route("/namespaces/{namespace}/pods/{pod}", get(pod))
        .fallback(async || Refusal::no_path())
        .layer(middleware::from_fn(only_reads))
        .with_state(source)
}

async fn only_reads(request: Request, next: Next) -> Response {
    if request.method() == Method::GET {
        next.run(request).await
    } else {
        ([(ALLOW, "GET")], Refusal::not_allowed()).into_response()
    }
}

async fn nodes(State(source): State<Source>, RawQuery(query): RawQuery) -> Response {
    match source.nodes(&Query::read(query.as_deref())).await {
        Ok(nodes) => Json(nodes.into_iter().map(node_metrics).collect::<Vec<_>>()).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

async fn node(State(source): State<Source>, Path(name): Path<String>) -> Response {
    match source.node(&name).await {
        Ok(Some(node)) => Json(node_metrics(node)).into_response(),
        Ok(None) => Refusal::no_metric(format!("no metrics of node {name:?}")).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

async fn pods(
    State(source): State<Source>,
    Path(namespace): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let namespace = (namespace != ALL_NAMESPACES).then_some(namespace.as_str());
    match source.pods(namespace, &Query::read(query.as_deref())).await {
        Ok(pods) => Json(pods.into_iter().map(pod_metrics).collect::<Vec<_>>()).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

async fn pod(
    State(source): State<Source>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    match source.pod(&namespace, &name).await {
        Ok(Some(pod)) => Json(pod_metrics(pod)).into_response(),
        Err(refusal) => refusal.into_response(),
        Ok(None) => {
            let message = format!("no metrics of pod {name:?} in namespace {namespace:?}");
            Refusal::no_metric(message).into_response()
        }
    }
}

fn node_metrics(node: FoundNode) -> NodeMetrics {
    let used = node.used;
    NodeMetrics {
        metadata: Metadata {
            name: node.name.to_string(),
            labels: node.labels,
            ..Metadata::default()
        },
        timestamp: used.time,
        window: used.window,
        resources: Resources::rounded(used.cpu_nanos as f64 / 1e6, used.memory_bytes as f64),
    }
}

fn pod_metrics(pod: FoundPod) -> PodMetrics {
    let containers = pod.used.containers.into_iter().map(|(name, used)| ContainerMetrics {
        name: name.as_ref().into(),
        resources: Resources::rounded(used.cpu_nanos as f64 / 1e6, used.memory_bytes as f64),
    });
    PodMetrics {
        metadata: Metadata {
            name: pod.key.1.to_string(),
            namespace: pod.key.0.to_string(),
            labels: Arc::unwrap_or_clone(pod.labels),
        },
        timestamp: pod.used.time,
        window: pod.used.window,
        containers: containers.collect(),
    }
}
