//! The HTTP server of a kubelet: metrics of its node and pods in several forms, to be read only.

use super::usage::{Pair, PodSample, Used};
use super::{Fault, NodeInfo, PodView, Table, Usage, exposition, summary};
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use jiff::Timestamp;
use podscale_metrics::plain::{ContainerMetrics, Metadata, NodeMetrics, PodMetrics, Resources};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// What a kubelet answers from.
#[derive(Debug)]
pub struct Kubelet {
    /// Its node.
    pub node: Arc<NodeInfo>,
    /// The pods of all nodes.
    pub table: Arc<Table>,
    /// What was used.
    pub usage: Arc<Usage>,
    /// When it was started.
    pub started: Timestamp,
}

/// A running pod and what it used.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The pod.
    pub view: PodView,
    sample: PodSample,
}

impl Measured {
    /// A running pod with what was measured of it; nothing if there is nothing.
    fn of(view: PodView, pair: &Pair) -> Option<Measured> {
        let sample = pair.newest.pods.get(&view.facts.uid)?;
        let measurable = view.life.running()
            && view.fault != Some(Fault::NoMetrics)
            && sample.restarts == view.life.restarts;
        measurable.then(|| Measured { sample: sample.clone(), view })
    }

    /// When its containers were started.
    #[must_use]
    pub fn started(&self) -> Timestamp {
        self.view.life.started.unwrap_or(self.view.life.since)
    }

    /// Each container's name and use.
    pub fn containers(&self) -> impl Iterator<Item = (&str, Used)> {
        let names = self.view.facts.containers.iter().map(|container| &*container.name);
        names.zip(self.sample.containers.iter().copied())
    }
}

/// The server of one kubelet, as a router.
pub fn router(kubelet: Arc<Kubelet>) -> Router {
    let all =
        plain_forms().route("/metrics/resource", get(resource)).route("/stats/summary", get(stats));
    with_reads_only(all, kubelet)
}

/// The same over TLS: whoever shows no token learns only that the kubelet is there.
pub fn router_with_token(kubelet: Arc<Kubelet>, token: &str) -> Router {
    let bearer: Arc<str> = format!("Bearer {token}").into();
    let check = move |request: Request, next: Next| {
        let shown = request.headers().get(header::AUTHORIZATION);
        let known = shown.is_some_and(|shown| shown.as_bytes() == bearer.as_bytes());
        let open = known || request.uri().path() == "/healthz";
        async move { if open { next.run(request).await } else { unauthorized() } }
    };
    router(kubelet).layer(middleware::from_fn(check))
}

/// The same in the clear, where there is TLS as well: only the plain numbers.
pub fn plain_router(kubelet: Arc<Kubelet>) -> Router {
    let all = plain_forms()
        .route("/metrics/resource", get(async || unauthorized()))
        .route("/stats/summary", get(async || unauthorized()));
    with_reads_only(all, kubelet)
}

fn plain_forms() -> Router<Arc<Kubelet>> {
    Router::new()
        .route("/healthz", get(async || "ok"))
        .route("/node", get(node))
        .route("/pods", get(pods))
        .route("/namespaces/{namespace}/pods/{pod}", get(pod))
}

fn with_reads_only(router: Router<Arc<Kubelet>>, kubelet: Arc<Kubelet>) -> Router {
    router
        .layer(middleware::from_fn_with_state(Arc::clone(&kubelet), only_reads))
        .with_state(kubelet)
}

fn unauthorized() -> Response {
    (StatusCode::UNAUTHORIZED, "only over TLS and with the cluster's token\n").into_response()
}

/// Lets only reads through, and none while the node is stopped.
async fn only_reads(State(kubelet): State<Arc<Kubelet>>, request: Request, next: Next) -> Response {
    if !kubelet.node.running() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the node is stopped\n").into_response();
    }
    if request.method() != Method::GET {
        let allow = [(header::ALLOW, "GET")];
        return (StatusCode::METHOD_NOT_ALLOWED, allow, "only GET\n").into_response();
    }
    next.run(request).await
}

impl Kubelet {
    fn measured(&self, pair: &Pair) -> Vec<Measured> {
        let pods = self.table.pods_on(&self.node.name).into_iter();
        pods.filter_map(|view| Measured::of(view, pair)).collect()
    }
}

async fn node(State(kubelet): State<Arc<Kubelet>>) -> Response {
    let pair = kubelet.usage.pair();
    let name = &kubelet.node.name;
    let Some(rate) = pair.node(name) else {
        return (StatusCode::NOT_FOUND, "no metrics of the node yet\n").into_response();
    };
    let metadata = Metadata { name: name.to_string(), ..Metadata::default() };
    let resources = Resources::rounded(rate.cpu_millis, rate.memory_bytes);
    let (timestamp, window) = (pair.newest.time, pair.window());
    Json(NodeMetrics { metadata, timestamp, window, resources }).into_response()
}

async fn pods(State(kubelet): State<Arc<Kubelet>>) -> Json<Vec<PodMetrics>> {
    let pair = kubelet.usage.pair();
    let measured = kubelet.measured(&pair);
    Json(measured.iter().filter_map(|measured| pod_metrics(measured, &pair)).collect())
}

async fn pod(
    State(kubelet): State<Arc<Kubelet>>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let pair = kubelet.usage.pair();
    let view = kubelet.table.pod(&kubelet.node.name, &namespace, &name);
    let measured = view.and_then(|view| Measured::of(view, &pair));
    match measured.and_then(|measured| pod_metrics(&measured, &pair)) {
        Some(metrics) => Json(metrics).into_response(),
        None => {
            let text = format!("no metrics of pod {namespace}/{name} on this node\n");
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

fn pod_metrics(measured: &Measured, pair: &Pair) -> Option<PodMetrics> {
    let facts = &measured.view.facts;
    let rates = pair.pod(&facts.uid)?;
    let containers = facts.containers.iter().zip(rates).map(|(container, rate)| ContainerMetrics {
        name: container.name.to_string(),
        resources: Resources::rounded(rate.cpu_millis, rate.memory_bytes),
    });
    Some(PodMetrics {
        metadata: Metadata {
            name: facts.name.to_string(),
            namespace: facts.namespace.to_string(),
            labels: facts.labels.clone(),
        },
        timestamp: pair.newest.time,
        window: pair.window(),
        containers: containers.collect(),
    })
}

async fn resource(State(kubelet): State<Arc<Kubelet>>) -> Response {
    let pair = kubelet.usage.pair();
    let node = pair.newest.nodes.get(&kubelet.node.name).copied();
    let text = exposition::resource_metrics(node, &kubelet.measured(&pair), pair.newest.time);
    ([(header::CONTENT_TYPE, exposition::CONTENT_TYPE)], text).into_response()
}

async fn stats(State(kubelet): State<Arc<Kubelet>>) -> Json<serde_json::Value> {
    let pair = kubelet.usage.pair();
    Json(summary::summary(&kubelet, &kubelet.measured(&pair), &pair))
}
