//! API groups that other servers answer for: metrics, mostly.

mod remote;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, Request, header};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::backends::Backend;
use crate::registry::Forwarded;
use crate::resource::GroupResource;
use crate::server::{ApiServer, Inner};
use crate::status::{ApiError, ApiResult};
use crate::value::{fields, is_set, list, text};
use crate::write::revise::revise;

/// Most bytes that another server's discovery may have.
const DISCOVERY_LIMIT_BYTES: usize = 4 * 1024 * 1024;

impl ApiServer {
    /// Lets a router in this process answer for the APIServices that name this service.
    pub fn register_backend(&self, namespace: &str, service: &str, router: Router) {
        self.inner.backends.insert(namespace, service, Backend::Local(router));
        let services = self.inner.store.snapshot(&api_services());
        for name in services.objects.keys() {
            judge(&self.inner, name);
        }
    }
}

/// The resource whose objects say which groups other servers answer for.
pub(crate) fn api_services() -> GroupResource {
    GroupResource { group: "apiregistration.k8s.io".into(), resource: "apiservices".into() }
}

/// Who answers for a group: who was registered, or else what the service's endpoints say.
fn backend(server: &Inner, forwarded: &Forwarded) -> Option<Backend> {
    if let Some(known) = server.backends.get(&forwarded.service) {
        return Some(known);
    }
    let endpoints = GroupResource { group: "".into(), resource: "endpoints".into() };
    let key = crate::store::key(&forwarded.service.0, &forwarded.service.1);
    let found = server.store.get(&endpoints, &key)?.value();
    let subset = list(&found, "/subsets").first()?.clone();
    let address = text(&subset, "/addresses/0/ip");
    let port = subset.pointer("/ports/0/port").and_then(Value::as_u64)?;
    (!address.is_empty()).then(|| Backend::Remote(format!("https://{address}:{port}")))
}

/// Hands a request to the server that answers for its group.
pub(crate) async fn forward(
    server: &Inner,
    group: &str,
    version: &str,
    mut request: Request<Body>,
) -> ApiResult<Response> {
    let registry = server.registry();
    let forwarded = registry.forwarded(group, version).ok_or_else(ApiError::no_such_path)?;
    let headers = request.headers_mut();
    // Who asks is told as an authenticating proxy tells it.
    headers.remove(header::AUTHORIZATION);
    headers.insert("x-remote-user", HeaderValue::from_static("system:admin"));
    headers.insert("x-remote-group", HeaderValue::from_static("system:masters"));
    match backend(server, forwarded) {
        Some(Backend::Local(router)) => {
            let answer = router.oneshot(request).await;
            Ok(answer.unwrap_or_else(|never| match never {}))
        }
        Some(Backend::Remote(url)) => {
            let trust = trust(server, group, version);
            remote::send(&url, &trust, request).await.map_err(|error| {
                ApiError::unavailable(format!("error trying to reach service: {error}"))
            })
        }
        None => Err(ApiError::unavailable("service unavailable")),
    }
}

fn trust(server: &Inner, group: &str, version: &str) -> remote::Trust {
    let found = server.store.get(&api_services(), &format!("{version}.{group}"));
    let service = found.map(|found| found.value()).unwrap_or_default();
    remote::Trust {
        skip: service.pointer("/spec/insecureSkipTLSVerify").and_then(Value::as_bool) == Some(true)
            || text(&service, "/spec/caBundle").is_empty(),
        bundle: text(&service, "/spec/caBundle").to_owned(),
        host: format!(
            "{}.{}.svc",
            text(&service, "/spec/service/name"),
            text(&service, "/spec/service/namespace")
        ),
    }
}

/// What another server says that it serves.
pub(crate) async fn discover(server: &Inner, group: &str, version: &str) -> Option<Value> {
    let request = Request::get(format!("/apis/{group}/{version}"))
        .header(header::ACCEPT, "application/json")
        .body(Body::empty())
        .ok()?;
    let response = forward(server, group, version, request).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let body = Limited::new(response.into_body(), DISCOVERY_LIMIT_BYTES).collect().await.ok()?;
    serde_json::from_slice(&body.to_bytes()).ok()
}

/// Says in an APIService's status whether someone answers for it.
pub(crate) fn judge(server: &Inner, name: &str) {
    let now = server.now_text();
    revise(server, &api_services(), name, |service| {
        let (status, reason, message) = verdict(server, service);
        let old = list(service, "/status/conditions").iter().find(|condition| {
            text(condition, "/type") == "Available" && text(condition, "/status") == status
        });
        let since = old.map_or(now.as_str(), |old| text(old, "/lastTransitionTime")).to_owned();
        let condition = json!({
            "type": "Available",
            "status": status,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        });
        fields(service).insert("status".to_owned(), json!({ "conditions": [condition] }));
    });
}

fn verdict(server: &Inner, service: &Value) -> (&'static str, &'static str, String) {
    if !is_set(service.pointer("/spec/service")) {
        return ("True", "Local", "Local APIServices are always available".to_owned());
    }
    let (namespace, name) =
        (text(service, "/spec/service/namespace"), text(service, "/spec/service/name"));
    let forwarded = Forwarded {
        group: text(service, "/spec/group").to_owned(),
        version: text(service, "/spec/version").to_owned(),
        service: (namespace.to_owned(), name.to_owned()),
        port: 443,
        group_priority: 0,
        version_priority: 0,
    };
    if backend(server, &forwarded).is_some() {
        return ("True", "Passed", "all checks passed".to_owned());
    }
    let services = GroupResource { group: "".into(), resource: "services".into() };
    match server.store.get(&services, &crate::store::key(namespace, name)) {
        None => {
            ("False", "ServiceNotFound", format!("service/{name} in {namespace:?} is not present"))
        }
        Some(_) => (
            "False",
            "MissingEndpoints",
            format!("endpoints for service/{name} in {namespace:?} have no addresses"),
        ),
    }
}
