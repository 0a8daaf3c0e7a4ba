//! Requests to the API server, as the client reports them.

use super::instruments::{Counter, Family, Histogram, LabelSet};
use super::registry::{Label, Registry};
use super::{Labels, Metrics, REQUEST_SECONDS};
use podscale_client::instrument::{Instrument, WatchEnd};
use std::time::Duration;

/// What tells requests apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RequestLabels {
    verb: &'static str,
    resource: &'static str,
    /// The HTTP status code, or 0 where there was no answer.
    code: u16,
}

impl LabelSet for RequestLabels {
    fn read(&self, visit: &mut dyn FnMut(&[Label<'_>])) {
        let code = match self.code {
            0 => "none".to_owned(),
            code => code.to_string(),
        };
        visit(&[("verb", self.verb), ("resource", self.resource), ("code", &code)]);
    }
}

pub(super) struct Requests {
    made: Family<RequestLabels, Counter>,
    seconds: Family<Labels<1>, Histogram>,
    throttled: Counter,
    watch_restarts: Family<Labels<2>, Counter>,
}

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Requests {
        Requests {
            made: registry.family(
                "podscale_api_requests",
                "Requests to the API server; code \"none\" had no answer",
                Counter::default,
            ),
            seconds: registry.family(
                "podscale_api_request_duration_seconds",
                "How long the API server took to begin its answer, in seconds",
                || Histogram::new(&REQUEST_SECONDS),
            ),
            throttled: registry.metric(
                "podscale_api_requests_throttled",
                "Requests to the API server that waited because of --kube-api-qps",
                Counter::default(),
            ),
            watch_restarts: registry.family(
                "podscale_watch_restarts",
                "Watches opened again, and why",
                Counter::default,
            ),
        }
    }
}

impl Instrument for Metrics {
    fn resource(&self, path: &str) -> &'static str {
        resource(path)
    }

    fn request(&self, verb: &'static str, resource: &'static str, code: u16, took: Duration) {
        let requests = &self.0.requests;
        requests.made.with(&RequestLabels { verb, resource, code }).increment();
        requests.seconds.with(&[("verb", verb)]).observe(took);
    }

    fn throttled(&self) {
        self.0.requests.throttled.increment();
    }

    fn watch_ended(&self, resource: &'static str, end: WatchEnd) {
        let reason = match end {
            WatchEnd::Closed => "closed",
            WatchEnd::Expired => "expired",
            WatchEnd::Failed => "failed",
        };
        let labels = [("resource", resource), ("reason", reason)];
        self.0.requests.watch_restarts.with(&labels).increment();
    }
}

/// What a path is about, out of few words, so that there are never many.
fn resource(path: &str) -> &'static str {
    const METRICS: [(&str, &str); 3] = [
        ("/apis/metrics.k8s.io/", "resource metrics"),
        ("/apis/custom.metrics.k8s.io/", "custom metrics"),
        ("/apis/external.metrics.k8s.io/", "external metrics"),
    ];
    const PLURALS: [&str; 10] = [
        "horizontalpodautoscalers",
        "deployments",
        "statefulsets",
        "replicasets",
        "replicationcontrollers",
        "leases",
        "configmaps",
        "events",
        "pods",
        "nodes",
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
