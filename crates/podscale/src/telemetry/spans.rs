//! The spans of a look at an autoscaler. Without somebody who wants them they are switched off where
//! they are made, and cost one comparison.
//!
//! Nothing in them is secret: calls are named by verb and kind, never by address, header or body.

use crate::controller::observer::{Decided, Observer, why};
use crate::dashboard::outcome;
use crate::scrape::Answer;
use crate::watch::world::Key;
use podscale_api::hpa::v2::{MetricSpec, metric_type};
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

/// What spans are filtered by: the log leaves them out, telemetry wants nothing else.
pub const TARGET: &str = "podscale_spans";

/// The status of spans that ended badly.
const ERROR: &str = "ERROR";

/// A look at one autoscaler; the decision is noted on it by [`Outcomes`].
#[must_use]
pub fn look(key: &Key) -> Span {
    info_span!(
        target: TARGET,
        parent: None,
        "decide",
        k8s.namespace.name = &*key.namespace,
        podscale.autoscaler = &*key.name,
        podscale.target = Empty,
        podscale.outcome = Empty,
        podscale.replicas.from = Empty,
        podscale.replicas.to = Empty,
        podscale.reason = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// Notes on each look's span what was decided, and why.
pub struct Outcomes;

impl Observer for Outcomes {
    fn decided(&self, decided: &Decided<'_>) {
        let span = Span::current();
        if span.is_disabled() {
            return;
        }
        let Decided { snapshot, decision, .. } = decided;
        let target = &snapshot.autoscaler.target;
        span.record("podscale.target", format!("{}/{}", target.kind, target.name));
        span.record("podscale.outcome", outcome(decision).word());
        if let Ok(scale) = snapshot.scale {
            span.record("podscale.replicas.from", scale.wanted);
        }
        if let Some(desired) = decision.desired {
            span.record("podscale.replicas.to", desired);
        }
        span.record("podscale.reason", why(decided));
        if let Some(error) = &decision.error {
            span.record("otel.status_code", ERROR);
            span.record("otel.status_description", tracing::field::display(error));
        }
    }
}

/// Reads one metric within a span, so that it shows how long its source took.
pub async fn read(metric: &MetricSpec, reading: impl Future<Output = Answer>) -> Answer {
    let span = info_span!(
        target: TARGET,
        "read metric",
        podscale.metric.r#type = metric.r#type,
        podscale.metric.name = name(metric),
        otel.status_code = Empty,
        otel.status_description = Empty,
    );
    let answer = reading.instrument(span.clone()).await;
    if let Answer::Failed(why) = &answer {
        span.record("otel.status_code", ERROR);
        span.record("otel.status_description", &**why);
    }
    answer
}

fn name(metric: &MetricSpec) -> &str {
    let name = match metric.r#type.as_str() {
        metric_type::RESOURCE => metric.resource.as_ref().map(|m| &m.name),
        metric_type::CONTAINER_RESOURCE => metric.container_resource.as_ref().map(|m| &m.name),
        metric_type::PODS => metric.pods.as_ref().map(|m| &m.metric.name),
        metric_type::OBJECT => metric.object.as_ref().map(|m| &m.metric.name),
        metric_type::EXTERNAL => metric.external.as_ref().map(|m| &m.metric.name),
        _ => None,
    };
    name.map_or("", |name| name.as_ref())
}

/// A call of the API server.
#[must_use]
pub fn call(verb: &'static str, resource: &'static str) -> Span {
    info_span!(
        target: TARGET,
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

/// A call was answered with a code, or not at all if that is 0.
pub fn answered(span: &Span, code: u16) {
    if code > 0 {
        span.record("http.response.status_code", code);
    }
    if code == 0 || code >= 400 {
        span.record("otel.status_code", ERROR);
    }
    if code == 0 {
        span.record("otel.status_description", "no answer");
    }
}
