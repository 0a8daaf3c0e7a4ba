//! What the server says of itself: discovery, OpenAPI, its version, its health and its metrics.

use super::Served;
use crate::metrics::{CONTENT_TYPE, Metrics};
use crate::readiness::Readiness;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use podscale_metrics::answer::Refusal;
use podscale_metrics::openapi::{self, Api};
use podscale_metrics::{custom, external, resource};
use serde_json::{Value, json};

/// The form of discovery that tells everything at once.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Everything but the metrics themselves.
pub(super) fn router(served: Served, metrics: Metrics, readiness: Readiness) -> Router {
    let apis = served.apis();
    let (swagger, index) = (openapi::swagger(&apis), openapi::index(&apis));
    let mut router = Router::new()
        .route("/apis", get(groups))
        .route("/version", get(async || Json(version())))
        .route("/openapi/v2", get(async move || Json(swagger.clone())))
        .route("/openapi/v3", get(async move || Json(index.clone())))
        .route("/livez", get(async || "ok"))
        .route("/healthz", get(async || "ok"))
        .with_state(served.clone())
        .route("/readyz", get(async move || ready(&served, &readiness)))
        .route(
            "/metrics",
            get(async move || ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.text())),
        );
    for api in apis {
        let document = api.document();
        let path = format!("/openapi/v3/apis/{}", api.group_version());
        router = router.route(&path, get(async move || Json(document.clone())));
    }
    router.fallback(async || Refusal::no_path().into_response())
}

/// Ready once it knows whom to trust and has something to answer with.
fn ready(served: &Served, readiness: &Readiness) -> Response {
    let mut missing: Vec<&str> = readiness.missing();
    if served.resource.as_ref().is_some_and(|source| !source.has_samples()) {
        missing.push("two samples of a node");
    }
    if missing.is_empty() {
        return "ok".into_response();
    }
    let text = format!("waiting for {}\n", missing.join(", "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

fn version() -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let mut parts = version.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    json!({
        "major": major, "minor": minor, "gitVersion": format!("v{version}"), "gitCommit": "",
        "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

async fn groups(State(served): State<Served>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let aggregated = accept.unwrap_or_default().split(',').any(|form| form.trim() == AGGREGATED);
    if aggregated {
        return ([(header::CONTENT_TYPE, AGGREGATED)], Json(discovery(&served))).into_response();
    }
    let groups: Vec<Value> = served.groups().into_iter().map(|(group, _)| group).collect();
    Json(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})).into_response()
}

/// All groups with their resources.
fn discovery(served: &Served) -> Value {
    let items: Vec<Value> = served
        .groups()
        .into_iter()
        .map(|(group, resources)| {
            let resources: Vec<Value> = resources.iter().map(discovered).collect();
            let versions: Vec<Value> = group["versions"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|version| {
                    json!({"version": version["version"], "freshness": "Current", "resources": resources})
                })
                .collect();
            json!({"metadata": {"name": group["name"], "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items,
    })
}

/// A resource in the form of aggregated discovery.
fn discovered(resource: &Value) -> Value {
    let scope = if resource["namespaced"] == true { "Namespaced" } else { "Cluster" };
    json!({
        "resource": resource["name"], "responseKind": {"group": "", "version": "", "kind": resource["kind"]},
        "scope": scope, "singularResource": resource["singularName"], "verbs": resource["verbs"],
    })
}

impl Served {
    fn apis(&self) -> Vec<Api> {
        let mut apis = Vec::new();
        if self.resource.is_some() {
            apis.push(Api::Resource);
        }
        if self.custom.is_some() {
            apis.extend([Api::CustomV1beta1, Api::CustomV1beta2]);
        }
        if self.external.is_some() {
            apis.push(Api::External);
        }
        apis
    }

    /// The document of each group, and its resources.
    fn groups(&self) -> Vec<(Value, Vec<Value>)> {
        let mut groups = Vec::new();
        if self.resource.is_some() {
            groups.push((resource::group(), resource::resources()));
        }
        if let Some(provider) = &self.custom {
            groups.push((custom::group(), custom::resources(&**provider)));
        }
        if let Some(provider) = &self.external {
            groups.push((external::group(), external::resources(&**provider)));
        }
        groups
    }

    /// The APIServices that lead to what is served: `v1beta1.metrics.k8s.io`.
    #[must_use]
    pub fn api_services(&self) -> Vec<String> {
        let name = |api: Api| {
            let (group, version) = api.group_version().split_once('/').unwrap_or_default();
            format!("{version}.{group}")
        };
        self.apis().into_iter().map(name).collect()
    }
}
