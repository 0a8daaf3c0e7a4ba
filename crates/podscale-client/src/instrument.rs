//! What the client reports about itself, and the layer through which every request passes: it
//! measures requests and puts a span around each.
//!
//! Nothing in spans is secret: requests are named by verb and resource, never by address, header or
//! body.

use http::{Method, Request, Response};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tower::{Layer, Service};
use tracing::field::Empty;
use tracing::{Instrument as _, Span, info_span};

/// What spans are filtered by: the log leaves them out, telemetry wants nothing else.
pub const SPAN_TARGET: &str = "podscale_spans";

/// The status of spans that ended badly.
pub const SPAN_ERROR: &str = "ERROR";

/// Why a watch had to be opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// The server closed it, as it does from time to time.
    Closed,
    /// The server no longer has what was missed, and everything was listed again.
    Expired,
    /// Something went wrong.
    Failed,
}

/// Counts and measures what the client does.
pub trait Instrument: Send + Sync + 'static {
    /// What a path is about, out of few words, so that there are never many.
    fn resource(&self, _path: &str) -> &'static str {
        "other"
    }

    /// A request was answered with this code, or not at all if that is 0.
    fn request(&self, _verb: &'static str, _resource: &'static str, _code: u16, _took: Duration) {}

    /// A request waited because of the rate limit.
    fn throttled(&self) {}

    /// A watch of a resource, such as `pods`, had to be opened again.
    fn watch_ended(&self, _resource: &'static str, _end: WatchEnd) {}
}

/// Nobody wants to know.
impl Instrument for () {}

/// Shared by all parts of a client.
pub type Instruments = Arc<dyn Instrument>;

/// Puts the measuring around a service.
#[derive(Clone)]
pub struct RequestLayer(Instruments);

impl RequestLayer {
    /// Reports to these.
    #[must_use]
    pub fn new(instruments: Instruments) -> RequestLayer {
        RequestLayer(instruments)
    }
}

impl<S> Layer<S> for RequestLayer {
    type Service = Measured<S>;

    fn layer(&self, inner: S) -> Measured<S> {
        Measured { inner, instruments: Arc::clone(&self.0) }
    }
}

/// A service whose requests are measured.
#[derive(Clone)]
pub struct Measured<S> {
    inner: S,
    instruments: Instruments,
}

impl<S, A, B> Service<Request<A>> for Measured<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let verb = verb(request.method(), path, query);
        let resource = self.instruments.resource(path);
        let instruments = Arc::clone(&self.instruments);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let (began, span) = (Instant::now(), request_span(verb, resource));
            let answer = answer.instrument(span.clone()).await;
            let code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            instruments.request(verb, resource, code, began.elapsed());
            answered(&span, code);
            answer
        })
    }
}

fn request_span(verb: &'static str, resource: &'static str) -> Span {
    info_span!(
        target: SPAN_TARGET,
        "call",
        otel.name = format!("{verb} {resource}"),
        otel.kind = "client",
        podscale.api.verb = verb,
        podscale.api.resource = resource,
        http.response.status_code = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// Notes on a span how the request ended; 0 is no answer.
fn answered(span: &Span, code: u16) {
    if code > 0 {
        span.record("http.response.status_code", code);
    }
    if code == 0 || code >= 400 {
        span.record("otel.status_code", SPAN_ERROR);
    }
    if code == 0 {
        span.record("otel.status_description", "no answer");
    }
}

/// The verb of a request, as Kubernetes' audit logs and roles name it.
fn verb(method: &Method, path: &str, query: &str) -> &'static str {
    let watches = || query.split('&').any(|p| matches!(p, "watch=true" | "watch=1" | "watch"));
    match method.as_str() {
        "GET" if watches() => "watch",
        "GET" if is_collection(path) => "list",
        "GET" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "other",
    }
}

/// Whether a path is that of many objects rather than of one.
fn is_collection(path: &str) -> bool {
    let mut segments =
        path.trim_matches('/').split('/').skip_while(|s| *s == "api" || *s == "apis");
    // The core group has a version only, the others have a name and a version.
    let versions = if path.starts_with("/apis/") { 2 } else { 1 };
    if segments.by_ref().take(versions).count() < versions {
        return false;
    }
    let rest: Vec<&str> = segments.collect();
    match rest.as_slice() {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest.len() == 1 || rest[1] == "*",
        [_] => true,
        [_, "*", ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_those_of_kubernetes() {
        for (method, path, expected) in [
            (Method::GET, "/api/v1/pods?limit=500", "list"),
            (Method::GET, "/api/v1/namespaces/x/pods?labelSelector=a", "list"),
            (Method::GET, "/api/v1/namespaces/x/pods/y", "get"),
            (Method::GET, "/api/v1/namespaces", "list"),
            (Method::GET, "/api/v1/namespaces/x", "get"),
            (Method::GET, "/api/v1", "get"),
            (Method::GET, "/apis/apps/v1", "get"),
            (Method::GET, "/apis/apps", "get"),
            (Method::GET, "/version", "get"),
            (Method::GET, "/api/v1/pods?watch=true&resourceVersion=5", "watch"),
            (Method::GET, "/apis/apps/v1/namespaces/x/deployments/y/scale", "get"),
            (Method::GET, "/apis/metrics.k8s.io/v1beta1/pods", "list"),
            (Method::GET, "/apis/external.metrics.k8s.io/v1beta1/namespaces/x/depth", "list"),
            (Method::GET, "/apis/custom.metrics.k8s.io/v1beta2/namespaces/x/pods/*/rps", "list"),
            (Method::PUT, "/api/v1/namespaces/x/pods/y", "update"),
            (Method::OPTIONS, "/", "other"),
        ] {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            assert_eq!(verb(&method, path, query), expected, "{method} {path}");
        }
    }
}
