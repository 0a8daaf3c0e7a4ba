//! What the server says of itself: discovery, OpenAPI, its version, its health and its metrics.

use super::ca_bundles::Registration;
use super::routes::Routes;
use super::{SAMPLES, Served, webhook};
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
        .route(
            "/metrics",
            get(async move || ([(header::CONTENT_TYPE, CONTENT_TYPE)], metrics.text())),
        )
        .with_state(served.clone());
    for api in apis {
        let document = api.document();
        let path = format!("/openapi/v3/apis/{}", api.group_version());
        router = router.route(&path, get(async move || Json(document.clone())));
    }
    router.merge(probes(served, readiness))
}

/// What everybody may ask.
pub(super) fn probes(served: Served, readiness: Readiness) -> Router {
    Router::new()
        .route("/livez", get(async || "ok"))
        .route("/healthz", get(async || "ok"))
        .route("/readyz", get(async move || ready(&served, &readiness).await))
        .fallback(async || Refusal::no_path().into_response())
}

/// Ready once it knows whom to trust and has something to answer with.
async fn ready(served: &Served, readiness: &Readiness) -> Response {
    let mut missing: Vec<&str> = readiness.missing();
    let silent = match &served.resource {
        // A Prometheus that is down is told to those who ask, and is no reason to keep them from the rest.
        Some(source) if source.usage.keeps_samples() => !source.can_answer().await,
        _ => false,
    };
    if silent && !missing.contains(&SAMPLES) {
        missing.push(SAMPLES);
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
    let mut items = Vec::new();
    for (group, resources) in served.groups() {
        let name = group["name"].as_str().unwrap_or_default();
        let mut versions = Vec::new();
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = version["version"].as_str().unwrap_or_default();
            let resources = discovered((name, version), &resources);
            versions.push(json!({
                "version": version, "freshness": "Current", "resources": resources,
            }));
        }
        let metadata = json!({"name": name, "creationTimestamp": null});
        items.push(json!({"metadata": metadata, "versions": versions}));
    }
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items,
    })
}

/// Resources in the form of aggregated discovery. Metrics of objects, such as `pods/requests`, are
/// parts of a resource that itself cannot be read.
fn discovered((group, version): (&str, &str), resources: &[Value]) -> Vec<Value> {
    let mut found = Vec::<Value>::new();
    for resource in resources {
        let name = resource["name"].as_str().unwrap_or_default();
        let scope = if resource["namespaced"] == true { "Namespaced" } else { "Cluster" };
        let kind = json!({"group": group, "version": version, "kind": resource["kind"]});
        let Some((parent, part)) = name.split_once('/') else {
            found.push(json!({
                "resource": name, "responseKind": kind, "scope": scope,
                "singularResource": resource["singularName"], "verbs": resource["verbs"],
            }));
            continue;
        };
        let part = json!({"subresource": part, "responseKind": kind, "verbs": resource["verbs"]});
        match found.last_mut().filter(|last| last["resource"] == parent) {
            Some(last) => last["subresources"]
                .as_array_mut()
                .into_iter()
                .for_each(|parts| parts.push(part.clone())),
            None => found.push(json!({
                "resource": parent, "responseKind": {"group": "", "version": "", "kind": ""},
                "scope": scope, "singularResource": "", "verbs": [], "subresources": [part],
            })),
        }
    }
    found
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

    /// What leads the API server to what is served: APIServices such as `v1beta1.metrics.k8s.io`, and the
    /// configuration of the webhook.
    #[must_use]
    pub fn registrations(&self) -> Vec<Registration> {
        let api_service = |api: Api| {
            let (group, version) = api.group_version().split_once('/').unwrap_or_default();
            Registration::ApiService(format!("{version}.{group}"))
        };
        let webhook = || Registration::Webhooks(webhook::CONFIGURATION.to_owned());
        self.apis().into_iter().map(api_service).chain(self.webhook.then(webhook)).collect()
    }

    /// Whether anything is served for which it matters who asks.
    pub(super) fn is_asked_by_users(&self, routes: &Routes) -> bool {
        !self.apis().is_empty() || self.singlecloud.is_some() || !routes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_objects_are_parts_of_resources() {
        let resource =
            |name: &str| json!({"name": name, "namespaced": true, "kind": "K", "verbs": ["get"]});
        let resources = ["nodes", "pods/a", "pods/b", "services/a"].map(resource);
        let found = discovered(("g", "v1"), &resources);
        let names = |value: &Value| {
            let parts = value["subresources"].as_array().into_iter().flatten();
            let parts: Vec<&str> = parts.filter_map(|part| part["subresource"].as_str()).collect();
            format!("{} {}", value["resource"].as_str().unwrap_or_default(), parts.join(","))
        };
        let found: Vec<String> = found.iter().map(names).collect();
        assert_eq!(found, ["nodes ", "pods a,b", "services a"]);
    }
}
