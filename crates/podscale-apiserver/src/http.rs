//! The server's HTTP face: finds out what a request wants and who handles it.

mod accept;
mod discovery;
mod eviction;
mod filter;
mod list;
mod mutate;
mod params;
mod path;
mod pods;
mod respond;
mod review;
mod scale;
mod token;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::autoscaling;
use crate::registry::{Served, View};
use crate::resource::Subresource;
use crate::server::{ApiServer, Inner};
use crate::status::{ApiError, ApiResult};
use crate::tokens::same_secret;
use accept::Output;
use params::Params;
use path::{ResourcePath, Route};

/// Bodies larger than this are refused.
const BODY_LIMIT_BYTES: usize = 3 * 1024 * 1024;

impl ApiServer {
    /// The server as an axum router, to be served on a socket or given to a client in-process.
    pub fn router(&self) -> Router {
        Router::new().fallback(handle).with_state(self.clone())
    }
}

/// What handlers know about a request.
pub(crate) struct Call {
    pub server: Arc<Inner>,
    pub served: Arc<Served>,
    pub path: ResourcePath,
    pub params: Params,
    pub headers: HeaderMap,
    pub output: Output,
    pub body: Bytes,
}

impl Call {
    /// Namespace in the path; empty for cluster-wide objects and for all namespaces.
    pub(crate) fn namespace(&self) -> &str {
        self.path.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.path.name.as_deref().unwrap_or_default()
    }

    /// The field manager: what the client says, or else the name of its program.
    pub(crate) fn manager(&self) -> String {
        if let Some(given) = self.params.get("fieldManager").filter(|given| !given.is_empty()) {
            return given.to_owned();
        }
        let agent = self.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let program = agent.unwrap_or_default().split('/').next().unwrap_or_default();
        if program.is_empty() { "unknown".to_owned() } else { program.to_owned() }
    }

    pub(crate) fn content_type(&self) -> &str {
        let given = self.headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok());
        given.unwrap_or_default().split(';').next().unwrap_or_default().trim()
    }
}

async fn handle(State(server): State<ApiServer>, request: Request<Body>) -> Response {
    let media = accept::of_status(request.headers());
    let result = match authorize(&server, &request) {
        Ok(()) => dispatch(server, request).await,
        Err(error) => Err(error),
    };
    result.unwrap_or_else(|error| respond::error(&error, media))
}

fn authorize(server: &ApiServer, request: &Request<Body>) -> ApiResult<()> {
    let Some(token) = &server.inner.config.token else { return Ok(()) };
    if matches!(request.uri().path(), "/healthz" | "/livez" | "/readyz" | "/version") {
        return Ok(());
    }
    let given = token::carried(request.headers());
    if same_secret(given.as_bytes(), token.as_bytes())
        || token::is_for_this_server(&server.inner, given)
    {
        Ok(())
    } else {
        Err(ApiError::unauthorized())
    }
}

async fn dispatch(server: ApiServer, request: Request<Body>) -> ApiResult<Response> {
    let route = path::route(request.uri().path());
    let registry = server.inner.registry();
    match route {
        Route::Group { ref group, ref version, .. }
            if registry.forwarded(group, version).is_some() =>
        {
            crate::aggregate::forward(&server.inner, group, version, request).await
        }
        Route::Resource(ref path) if registry.forwarded(&path.group, &path.version).is_some() => {
            let (group, version) = (path.group.clone(), path.version.clone());
            crate::aggregate::forward(&server.inner, &group, &version, request).await
        }
        Route::Resource(path) => resource(server.inner.clone(), path, request).await,
        other => {
            let (parts, _) = request.into_parts();
            discovery::answer(&server.inner, &other, &parts).await
        }
    }
}

async fn resource(
    server: Arc<Inner>,
    path: ResourcePath,
    request: Request<Body>,
) -> ApiResult<Response> {
    let served = server
        .registry()
        .find(&path.group, &path.version, &path.resource)
        .filter(|served| path.fits(&served.info))
        .ok_or_else(|| missing(&server, &path))?;
    let (parts, body) = request.into_parts();
    let params = Params::parse(parts.uri.query().unwrap_or_default());
    let body = read_body(body).await?;
    // A Scale has a protobuf form whatever it is the scale of.
    let json_only = served.info.custom && path.subresource.as_deref() != Some("scale");
    let output = accept::negotiate(&parts.headers, json_only)?;
    let call = Call { server, served, path, params, headers: parts.headers, output, body };
    let response = route_call(&call, &parts.method)?;
    if call.served.info.group.is_empty() && call.served.info.plural == "endpoints" {
        let warning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
        return Ok(respond::with_warnings(response, &[warning.to_owned()]));
    }
    if let View::Autoscaling(version) = call.served.view {
        let warning = autoscaling::deprecation(version);
        return Ok(respond::with_warnings(response, warning.as_slice()));
    }
    Ok(response)
}

fn route_call(call: &Call, method: &Method) -> ApiResult<Response> {
    let verb = |name: &str| call.served.info.verbs.contains(&name);
    if let Some(subresource) = &call.path.subresource {
        return route_subresource(call, method, subresource);
    }
    if call.served.info.verbs == ["create"] {
        return match *method {
            Method::POST if call.path.name.is_none() => review::create(call),
            _ => Err(ApiError::method_not_allowed()),
        };
    }
    match (method, call.path.name.is_some()) {
        (&Method::GET | &Method::HEAD, true) if call.params.flag("watch") || call.path.watch => {
            watch::watch(call)
        }
        (&Method::GET | &Method::HEAD, true) => list::get(call),
        (&Method::GET, false) if call.params.flag("watch") || call.path.watch => watch::watch(call),
        (&Method::GET | &Method::HEAD, false) => list::list(call),
        (&Method::POST, false) if verb("create") => mutate::create(call),
        (&Method::PUT, true) => mutate::update(call, crate::write::Endpoint::Object),
        (&Method::PATCH, true) => mutate::patch(call, crate::write::Endpoint::Object),
        (&Method::DELETE, true) => mutate::delete(call),
        (&Method::DELETE, false) => mutate::delete_collection(call),
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn route_subresource(call: &Call, method: &Method, name: &str) -> ApiResult<Response> {
    use crate::write::Endpoint;
    let found = call.served.info.subresources.iter().find(|known| known.name() == name);
    let found = found.ok_or_else(ApiError::no_such_resource)?;
    match (found, method) {
        (Subresource::Status, &Method::GET) => list::get(call),
        (Subresource::Status, &Method::PUT) => mutate::update(call, Endpoint::Status),
        (Subresource::Status, &Method::PATCH) => mutate::patch(call, Endpoint::Status),
        (Subresource::Scale(paths), &Method::GET) => scale::get(call, paths),
        (Subresource::Scale(paths), &Method::PUT) => scale::update(call, paths),
        (Subresource::Scale(paths), &Method::PATCH) => scale::patch(call, paths),
        (Subresource::Finalize, &Method::PUT) => mutate::update(call, Endpoint::Finalize),
        (Subresource::Eviction, &Method::POST) => eviction::evict(call),
        (Subresource::Binding, &Method::POST) => pods::bind(call),
        (Subresource::Log, &Method::GET) => pods::log(call),
        (Subresource::Token, &Method::POST) => token::create(call),
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Groups that are not served at all are not even a path.
fn missing(server: &Inner, path: &ResourcePath) -> ApiError {
    let known = path.group.is_empty()
        || server.registry().groups().iter().any(|(group, _)| *group == path.group);
    if known { ApiError::no_such_resource() } else { ApiError::no_such_path() }
}

async fn read_body(body: Body) -> ApiResult<Bytes> {
    match Limited::new(body, BODY_LIMIT_BYTES).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ApiError::too_large(BODY_LIMIT_BYTES)),
        Err(error) => Err(ApiError::bad_request(format!("cannot read the body: {error}"))),
    }
}

/// An answer of plain text.
fn plain(code: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = code;
    let kind = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
