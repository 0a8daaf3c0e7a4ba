//! Records on each reconcile's span what was decided, and why.

use crate::controller::observer::{Decided, JobsDecided, Observer, why};
use crate::controller::outcome::OutcomeKind;
use podscale_client::instrument::SPAN_ERROR;
use tracing::Span;

/// The observer that does it.
pub struct Outcomes;

impl Observer for Outcomes {
    fn decided(&self, decided: &Decided<'_>) {
        let span = Span::current();
        if span.is_disabled() {
            return;
        }
        let (snapshot, decision) = (decided.snapshot, decided.decision());
        let target = &snapshot.autoscaler.target;
        span.record("podscale.target", format!("{}/{}", target.kind, target.name));
        span.record("podscale.outcome", decided.outcome_kind().word());
        if let Ok(scale) = snapshot.scale {
            span.record("podscale.replicas.from", scale.spec_replicas);
        }
        if let Some(desired) = decision.desired {
            span.record("podscale.replicas.to", desired);
        }
        span.record("podscale.reason", why(decided));
        if let Some(error) = &decision.error {
            span.record("otel.status_code", SPAN_ERROR);
            span.record("otel.status_description", tracing::field::display(error));
        }
    }

    fn jobs_decided(&self, decided: &JobsDecided<'_>) {
        let span = Span::current();
        if span.is_disabled() {
            return;
        }
        let outcome = decided.outcome_kind();
        span.record("podscale.target", "Jobs");
        span.record("podscale.outcome", outcome.word());
        if let Some(counts) = decided.counts() {
            span.record("podscale.replicas.from", counts.running);
            let wanted = counts.running.saturating_add(decided.wanted());
            span.record("podscale.replicas.to", wanted);
        }
        let reason = decided.reason();
        if outcome == OutcomeKind::Failed {
            span.record("otel.status_code", SPAN_ERROR);
            span.record("otel.status_description", &reason);
        }
        span.record("podscale.reason", reason);
    }
}
