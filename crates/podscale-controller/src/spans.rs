//! The spans of a reconcile. Without somebody who wants them they are switched off where they are
//! made, and cost one comparison.

use crate::dialect::Key;
use podscale_client::instrument::{SPAN_ERROR, SPAN_TARGET};
use podscale_core::model::Source;
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

/// A reconcile of one object; what came of it is noted on it later.
#[must_use]
pub fn reconcile(key: &Key) -> Span {
    info_span!(
        target: SPAN_TARGET,
        parent: None,
        "reconcile",
        k8s.namespace.name = &*key.namespace,
        podscale.autoscaler = &*key.name,
        podscale.kind = key.kind.name,
        podscale.target = Empty,
        podscale.outcome = Empty,
        podscale.replicas.from = Empty,
        podscale.replicas.to = Empty,
        podscale.reason = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// Reads one metric within a span, so that it shows how long its source took.
pub(crate) async fn read_metric<A>(
    metric: &Source,
    reading: impl Future<Output = A>,
    failure: impl FnOnce(&A) -> Option<&str>,
) -> A {
    let (kind, name) = described(metric);
    let span = info_span!(
        target: SPAN_TARGET,
        "read metric",
        podscale.metric.r#type = kind,
        podscale.metric.name = name,
        otel.status_code = Empty,
        otel.status_description = Empty,
    );
    let answer = reading.instrument(span.clone()).await;
    if let Some(why) = failure(&answer) {
        span.record("otel.status_code", SPAN_ERROR);
        span.record("otel.status_description", why);
    }
    answer
}

/// The type of a metric as specs call it, and its name.
fn described(metric: &Source) -> (&'static str, &str) {
    let name = match metric {
        Source::Resource { name } | Source::ContainerResource { name, .. } => name,
        Source::Pods(series) | Source::Object { series, .. } | Source::External(series) => {
            &series.name
        }
        Source::Prometheus(query) => &query.name,
        Source::Trigger(trigger) => &trigger.name,
        Source::Unknown { quoted } => quoted,
    };
    (metric.type_name(), name)
}
