//! Requests to the API server, as the client reports them.

use super::{Buckets, Labels, Metrics, REQUEST_SECONDS, registered};
use podscale_client::instrument::{Instrument, WatchEnd};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

/// Verb, resource and code of a request.
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

pub(super) struct Requests {
    made: Family<Kind, Counter>,
    seconds: Family<Labels<1>, Histogram, Buckets>,
    throttled: Counter,
    watch_restarts: Family<Labels<2>, Counter>,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Requests {
        let help = "Requests to the API server; code \"none\" had no answer";
        let made = registered(registry, "api_requests", help);
        let seconds = Family::new_with_constructor(Buckets(&REQUEST_SECONDS));
        let help = "How long the API server took to begin its answer, in seconds";
        registry.register("api_request_duration_seconds", help, seconds.clone());
        let help = "Requests to the API server that waited because of --kube-api-qps";
        let throttled = registered(registry, "api_requests_throttled", help);
        let help = "Watches opened again, and why";
        let watch_restarts = registered(registry, "watch_restarts", help);
        Requests { made, seconds, throttled, watch_restarts }
    }
}

impl Instrument for Metrics {
    fn resource(&self, path: &str) -> &'static str {
        resource(path)
    }

    fn request(&self, verb: &'static str, resource: &'static str, code: u16, took: Duration) {
        let requests = &self.0.requests;
        let kind = ([("verb", verb), ("resource", resource)], [("code", CodeText(code))]);
        requests.made.get_or_create(&kind).inc();
        requests.seconds.get_or_create(&[("verb", verb)]).observe(took.as_secs_f64());
    }

    fn throttled(&self) {
        self.0.requests.throttled.inc();
    }

    fn watch_ended(&self, resource: &'static str, end: WatchEnd) {
        let reason = match end {
            WatchEnd::Closed => "closed",
            WatchEnd::Expired => "expired",
            WatchEnd::Failed => "failed",
        };
        let labels = [("resource", resource), ("reason", reason)];
        self.0.requests.watch_restarts.get_or_create(&labels).inc();
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
    }
}
