//! The status of a PodAutoscaler, from its wire form and back.

use super::prometheus_query;
use crate::hpa::v2::{self, HorizontalPodAutoscalerStatus};
use crate::pod_autoscaler::PodAutoscaler;
use crate::pod_autoscaler::spec::{self, metric_type};
use crate::pod_autoscaler::status::{
    DecisionStatus, MOST_DECISIONS, MetricStatus, PodAutoscalerStatus, PrometheusStatus,
};
use crate::translate::status as hpa;
use podscale_core::decision::MetricResults;
use podscale_core::model::{Bounds, Control, Mode, Source};
use podscale_core::status::{Condition, Current, Status, StoredMetric};
use podscale_core::{Decision, Snapshot, Time};
use std::sync::Arc;

mod columns;

/// The condition that says whether the spec can be used.
pub const VALID: &str = "Valid";

/// What a stored status says, as the rules see it.
#[must_use]
pub fn from_wire(status: &PodAutoscalerStatus) -> Status {
    Status {
        observed_generation: status.observed_generation,
        last_scale: status.last_scale_time.map(|t| t.0),
        current_replicas: status.current_replicas,
        desired_replicas: status.desired_replicas,
        metrics: status.current_metrics.iter().map(stored_metric).collect(),
        conditions: status.conditions.iter().map(hpa::condition).collect(),
    }
}

fn stored_metric(metric: &MetricStatus) -> StoredMetric {
    let Some(prometheus) = metric.prometheus.as_ref() else {
        return hpa::stored_metric(&metric.hpa);
    };
    let PrometheusStatus { server, query, current } = &**prometheus;
    let source = Source::Prometheus(prometheus_query(metric.name.as_deref(), server, query));
    match hpa::current(current) {
        Some(current) => StoredMetric::Known { source: Arc::new(source), current },
        None => StoredMetric::Foreign,
    }
}

/// The status to store after a decision on the object as it was read.
#[must_use]
pub fn to_wire(
    decision: &Decision,
    snapshot: &Snapshot<'_>,
    pa: &PodAutoscaler,
) -> PodAutoscalerStatus {
    let (now, generation) = (snapshot.now, pa.metadata.generation);
    let status = decision.status(snapshot);
    let stored = pa.status.clone().unwrap_or_default();
    let results = || decision.read_metrics().zip(&pa.spec.metrics);
    let bounds = bounds(snapshot);
    let mut new = PodAutoscalerStatus {
        observed_generation: status.observed_generation,
        last_scale_time: status.last_scale.map(hpa::stored_time),
        current_replicas: status.current_replicas,
        desired_replicas: status.desired_replicas,
        reference: columns::reference(&pa.spec.scale_target_ref),
        targets: match decision.metrics {
            MetricResults::Untouched => stored.targets,
            MetricResults::NotRead => {
                columns::targets(pa.spec.metrics.iter().map(|metric| (None, metric)))
            }
            MetricResults::Read => columns::targets(results()),
        },
        mode: mode(snapshot),
        active_schedule: bounds.1.map(|name| name.to_string()).unwrap_or_default(),
        min_replicas: Some(bounds.0.min),
        max_replicas: Some(bounds.0.max),
        current_metrics: match decision.metrics {
            MetricResults::Untouched => stored.current_metrics,
            MetricResults::NotRead => Vec::new(),
            MetricResults::Read => results().map(|(c, spec)| metric(c.as_ref(), spec)).collect(),
        },
        decisions: decisions(decision, snapshot, stored.decisions),
        conditions: status.conditions.iter().map(|c| condition(c, generation, now)).collect(),
    };
    let (valid, reason, message) = match snapshot.autoscaler.invalid() {
        None => (true, "Accepted", "the spec can be used"),
        Some(why) => (false, "Invalid", &**why),
    };
    set_condition(&mut new, pa, (VALID, valid), reason, message.to_owned(), now);
    new
}

/// Sets a condition that no rule knows; its time moves only if its status does.
pub fn set_condition(
    status: &mut PodAutoscalerStatus,
    pa: &PodAutoscaler,
    (name, holds): (&str, bool),
    reason: &str,
    message: String,
    now: Time,
) {
    let text = if holds { "True" } else { "False" };
    let place = status.conditions.iter().position(|condition| condition.r#type == name);
    let before = place.and_then(|place| status.conditions.get(place));
    let since = before.filter(|before| before.status == text).and_then(|b| b.last_transition_time);
    let new = v2::Condition {
        r#type: name.to_owned(),
        status: text.to_owned(),
        last_transition_time: Some(since.unwrap_or_else(|| hpa::stored_time(now))),
        reason: reason.to_owned(),
        message,
        observed_generation: Some(pa.metadata.generation),
    };
    match place.and_then(|place| status.conditions.get_mut(place)) {
        Some(condition) => *condition = new,
        None => status.conditions.push(new),
    }
}

/// A condition in the form of all of Kubernetes' conditions, which want every field.
fn condition(condition: &Condition, generation: i64, now: Time) -> v2::Condition {
    let name = match &condition.kind {
        Ok(kind) => kind.name(),
        Err(name) => name,
    };
    v2::Condition {
        r#type: name.to_owned(),
        status: condition.status.name().to_owned(),
        last_transition_time: Some(hpa::stored_time(condition.since.unwrap_or(now))),
        reason: condition.note.reason().to_owned(),
        message: condition.note.message().into_owned(),
        observed_generation: Some(generation),
    }
}

fn metric(current: Option<&Current>, spec: &spec::Metric) -> MetricStatus {
    let Some(current) = current else { return MetricStatus::default() };
    let name = spec.name.clone();
    if spec.hpa.r#type != metric_type::PROMETHEUS {
        return MetricStatus {
            hpa: hpa::wire_metric(Some(current), &spec.hpa),
            name,
            prometheus: None,
        };
    }
    let kind = v2::MetricStatus { r#type: spec.hpa.r#type.clone(), ..v2::MetricStatus::default() };
    let prometheus = spec.prometheus.as_ref().map(|source| {
        let (server, query) = (source.server.clone(), source.query.clone());
        Box::new(PrometheusStatus { server, query, current: hpa::values(current, "") })
    });
    MetricStatus { hpa: kind, name, prometheus }
}

/// The last changes of size with this one in front, if it is one.
fn decisions(
    decision: &Decision,
    snapshot: &Snapshot<'_>,
    mut stored: Vec<DecisionStatus>,
) -> Vec<DecisionStatus> {
    if let (Some(rescale), Some(at)) = (&decision.rescale, decision.rescaled_at) {
        let new = DecisionStatus {
            time: hpa::stored_time(at),
            from: rescale.from,
            to: rescale.to,
            reason: rescale.reason.text(snapshot.autoscaler).into_owned(),
        };
        stored.insert(0, new);
        stored.truncate(MOST_DECISIONS);
    }
    stored
}

/// The bounds now, and the schedule that set them.
fn bounds(snapshot: &Snapshot<'_>) -> (Bounds, Option<Arc<str>>) {
    let base = snapshot.autoscaler.bounds();
    let extensions = snapshot.autoscaler.extensions.as_deref();
    let scheduled = extensions
        .and_then(|extensions| extensions.schedules.as_ref())
        .and_then(|schedules| schedules.at(snapshot.now, base));
    match scheduled {
        Some(scheduled) => (scheduled.bounds, Some(scheduled.schedule)),
        None => (base, None),
    }
}

/// What it does now, in a word.
fn mode(snapshot: &Snapshot<'_>) -> String {
    let extensions = snapshot.autoscaler.extensions.as_deref();
    let control = extensions.map_or_else(Control::default, |extensions| extensions.control);
    let now = snapshot.now;
    let paused = (control.pause_up_at(now).is_some(), control.pause_down_at(now).is_some());
    match (control.mode_at(now), control.hold_at(now), paused) {
        (Mode::Paused, ..) | (Mode::Active, _, (true, true)) => "Paused".to_owned(),
        (Mode::DryRun, ..) => "DryRun".to_owned(),
        (Mode::Active, Some(hold), _) => format!("Hold({})", hold.replicas),
        (Mode::Active, None, (true, false)) => "NoScaleUp".to_owned(),
        (Mode::Active, None, (false, true)) => "NoScaleDown".to_owned(),
        (Mode::Active, None, (false, false)) => "Active".to_owned(),
    }
}

/// A status with what another one of the HPA's form says.
#[must_use]
pub fn with_hpa_form(
    stored: Option<&PodAutoscalerStatus>,
    hpa: &HorizontalPodAutoscalerStatus,
) -> PodAutoscalerStatus {
    PodAutoscalerStatus {
        observed_generation: hpa.observed_generation,
        last_scale_time: hpa.last_scale_time,
        current_replicas: hpa.current_replicas,
        desired_replicas: hpa.desired_replicas,
        conditions: hpa.conditions.clone(),
        ..stored.cloned().unwrap_or_default()
    }
}
