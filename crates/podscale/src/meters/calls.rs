//! Counts the calls of the API server where every call passes: around the client's service.

use super::{Buckets, CALL_SECONDS, Labels, added};
use crate::telemetry::spans;
use axum::http::{Method, Request, Response};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;
use tower::{Layer, Service};
use tracing::Instrument;

/// Verb, resource and code of a call.
type Kind = ([(&'static str, &'static str); 2], [(&'static str, CodeText); 1]);

/// A code of HTTP, or none where there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CodeText(u16);

impl prometheus_client::encoding::EncodeLabelValue for CodeText {
    fn encode(
        &self,
        encoder: &mut prometheus_client::encoding::LabelValueEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        use std::fmt::Write;
        match self.0 {
            0 => encoder.write_str("none"),
            code => write!(encoder, "{code}"),
        }
    }
}

/// The calls that were made. Clones count together.
#[derive(Clone)]
pub struct Calls {
    made: Family<Kind, Counter>,
    seconds: Family<Labels<1>, Histogram, Buckets>,
}

impl Calls {
    pub(super) fn register(registry: &mut Registry) -> Calls {
        let help = "Calls of the API server; code \"none\" had no answer";
        let made = added(registry, "api_requests", help);
        let seconds = Family::new_with_constructor(Buckets(&CALL_SECONDS));
        let help = "How long the API server took to begin its answer, in seconds";
        registry.register("api_request_duration_seconds", help, seconds.clone());
        Calls { made, seconds }
    }

    fn count(&self, verb: &'static str, resource: &'static str, code: u16, began: Instant) {
        let kind = ([("verb", verb), ("resource", resource)], [("code", CodeText(code))]);
        self.made.get_or_create(&kind).inc();
        self.seconds.get_or_create(&[("verb", verb)]).observe(began.elapsed().as_secs_f64());
    }
}

/// Puts the counting around a service.
#[derive(Clone)]
pub struct CallLayer(Calls);

impl CallLayer {
    pub(super) fn new(calls: Calls) -> CallLayer {
        CallLayer(calls)
    }
}

impl<S> Layer<S> for CallLayer {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, calls: self.0.clone() }
    }
}

/// A service whose calls are counted.
#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    calls: Calls,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
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
        let query = request.uri().query().unwrap_or_default();
        let verb = verb(request.method(), query);
        let resource = resource(request.uri().path());
        let calls = self.calls.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let (began, span) = (Instant::now(), spans::call(verb, resource));
            let answer = answer.instrument(span.clone()).await;
            let code = answer.as_ref().map_or(0, |answer| answer.status().as_u16());
            calls.count(verb, resource, code, began);
            spans::answered(&span, code);
            answer
        })
    }
}

fn verb(method: &Method, query: &str) -> &'static str {
    let watches = || query.split('&').any(|p| matches!(p, "watch=true" | "watch=1" | "watch"));
    match method.as_str() {
        "GET" if watches() => "watch",
        "GET" if query.starts_with("limit=") => "list",
        "GET" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "other",
    }
}

/// What a path is about, out of few words, so that there are never many.
fn resource(path: &str) -> &'static str {
    const METRICS: [(&str, &str); 3] = [
        ("/apis/metrics.k8s.io/", "resource metrics"),
        ("/apis/custom.metrics.k8s.io/", "custom metrics"),
        ("/apis/external.metrics.k8s.io/", "external metrics"),
    ];
    const PLURALS: [&str; 9] = [
        "horizontalpodautoscalers",
        "deployments",
        "statefulsets",
        "replicasets",
        "replicationcontrollers",
        "leases",
        "configmaps",
        "events",
        "pods",
    ];
    if let Some((_, name)) = METRICS.iter().find(|(start, _)| path.starts_with(start)) {
        return name;
    }
    if path.ends_with("/scale") {
        return "scale";
    }
    if path.ends_with("/status") {
        return "status";
    }
    let mut segments = path.split('/');
    segments.find_map(|s| PLURALS.iter().find(|p| **p == s)).copied().unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_apart_by_few_words() {
        let hpas = "/apis/autoscaling/v2/horizontalpodautoscalers";
        let of = "/apis/autoscaling/v2/namespaces/pods/horizontalpodautoscalers/web";
        for (path, expected) in [
            (hpas, "horizontalpodautoscalers"),
            (&format!("{of}/status"), "status"),
            ("/apis/apps/v1/namespaces/a/deployments/web/scale", "scale"),
            ("/apis/metrics.k8s.io/v1beta1/namespaces/a/pods", "resource metrics"),
            ("/apis/custom.metrics.k8s.io/v1beta2/namespaces/a/pods/*/x", "custom metrics"),
            ("/api/v1/pods", "pods"),
            ("/api/v1/namespaces/x/events", "events"),
            ("/apis/example.com/v1/namespaces/x/things/y", "other"),
        ] {
            assert_eq!(resource(path), expected, "{path}");
        }
        for (method, query, expected) in [
            (Method::GET, "limit=500", "list"),
            (Method::GET, "labelSelector=a", "get"),
            (Method::GET, "watch=true&resourceVersion=5", "watch"),
            (Method::PUT, "", "update"),
            (Method::OPTIONS, "", "other"),
        ] {
            assert_eq!(verb(&method, query), expected, "{method} {query}");
        }
    }
}
