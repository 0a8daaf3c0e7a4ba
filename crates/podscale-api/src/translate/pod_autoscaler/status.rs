//! The status of a PodAutoscaler, from its wire form and back.

use super::prometheus_query;
use crate::hpa::v2::{self, HorizontalPodAutoscalerStatus};
use crate::hpa::wording::{about, condition_about};
use crate::pod_autoscaler::spec::{self, metric_type};
use crate::pod_autoscaler::status::{
    DecisionStatus, MOST_DECISIONS, MetricStatus, PodAutoscalerStatus, PrometheusStatus,
    TriggerStatus,
};
use crate::pod_autoscaler::{KIND, PodAutoscaler};
use crate::translate::status as hpa;
use podscale_core::decision::MetricResults;
use podscale_core::model::Source;
use podscale_core::status::{Condition, ConditionKind, Current, Status, StoredMetric};
use podscale_core::{Autoscaler, Decision, Metric, Snapshot, Time};
use std::sync::Arc;

mod columns;
mod standing;

use standing::{Standing, found, reason};
pub use standing::{is_stale, is_stale_in_conflict};

/// The condition that says whether the spec can be used.
pub const VALID: &str = "Valid";
/// The reason of that condition where it cannot.
pub const INVALID: &str = "Invalid";
/// What it does while another autoscaler or controller is in its way.
const CONFLICT: &str = "Conflict";

/// What a stored status says of an object of this meaning, as the rules see it.
#[must_use]
pub fn from_wire(status: &PodAutoscalerStatus, model: &Autoscaler) -> Status {
    let metrics = status.current_metrics.iter().enumerate();
    Status {
        observed_generation: status.observed_generation,
        last_scale: status.last_scale_time.map(|t| t.0),
        last_active: None,
        current_replicas: status.current_replicas,
        desired_replicas: status.desired_replicas,
        metrics: metrics.map(|(at, stored)| stored_metric(stored, model.metrics.get(at))).collect(),
        conditions: status.conditions.iter().map(|c| hpa::condition(c, KIND)).collect(),
    }
}

fn stored_metric(metric: &MetricStatus, model: Option<&Metric>) -> StoredMetric {
    if let Some(trigger) = metric.trigger.as_ref() {
        return stored_trigger(trigger, model).unwrap_or(StoredMetric::Foreign);
    }
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

/// The value of an event source that is the one which the object has at this place.
fn stored_trigger(stored: &TriggerStatus, model: Option<&Metric>) -> Option<StoredMetric> {
    let source = &model?.source;
    match &**source {
        Source::Trigger(trigger) if *trigger.name == *stored.metric => {
            let current = hpa::current(&stored.current)?;
            Some(StoredMetric::Known { source: Arc::clone(source), current })
        }
        _ => None,
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
    let metrics = pa.spec.metrics.iter().zip(&snapshot.autoscaler.metrics);
    let results = || decision.read_metrics().zip(metrics.clone());
    let Standing { mode, schedule, bounds } = Standing::decided(decision, snapshot);
    let conditions: Vec<v2::Condition> =
        status.conditions.iter().map(|c| condition(c, generation, now)).collect();
    let mut new = PodAutoscalerStatus {
        observed_generation: Some(generation),
        last_scale_time: status.last_scale.map(hpa::stored_time),
        current_replicas: found(snapshot, decision.found).unwrap_or(status.current_replicas),
        desired_replicas: status.desired_replicas,
        reference: columns::reference(&pa.spec.scale_target_ref),
        targets: match decision.metrics {
            MetricResults::Untouched if !stored.targets.is_empty() => stored.targets,
            MetricResults::Untouched | MetricResults::NotRead => {
                columns::unknown_targets(pa, snapshot.autoscaler)
            }
            MetricResults::Read => columns::targets(results()),
        },
        mode,
        reason: reason(&conditions),
        active_schedule: schedule,
        min_replicas: Some(bounds.min),
        max_replicas: Some(bounds.max),
        current_metrics: match decision.metrics {
            MetricResults::Untouched => stored.current_metrics,
            MetricResults::NotRead => Vec::new(),
            MetricResults::Read => {
                results().map(|(c, (spec, model))| metric(c.as_ref(), spec, model)).collect()
            }
        },
        decisions: decisions(decision, snapshot, stored.decisions),
        conditions,
    };
    let (valid, reason, message) = match snapshot.autoscaler.invalid() {
        None => (true, "Accepted", "the spec can be used"),
        Some(why) => (false, INVALID, &**why),
    };
    set_condition(&mut new, pa, (VALID, valid), reason, message.to_owned(), now);
    new
}

/// The status to store while another autoscaler or controller is in the way, given the size that the target
/// has: a condition of this name says so, and what is shown is about the spec as it is.
#[must_use]
pub fn in_conflict(
    pa: &PodAutoscaler,
    model: &Autoscaler,
    (name, reason): (&str, &str),
    message: &str,
    replicas: Option<i32>,
    now: Time,
) -> PodAutoscalerStatus {
    let stored = pa.status.clone().unwrap_or_default();
    let Standing { schedule, bounds, .. } = Standing::at(model, now);
    let mut new = PodAutoscalerStatus {
        observed_generation: Some(pa.metadata.generation),
        current_replicas: replicas.unwrap_or(stored.current_replicas),
        reference: columns::reference(&pa.spec.scale_target_ref),
        targets: columns::unknown_targets(pa, model),
        mode: CONFLICT.to_owned(),
        reason: reason.to_owned(),
        active_schedule: schedule,
        min_replicas: Some(bounds.min),
        max_replicas: Some(bounds.max),
        ..stored
    };
    set_condition(&mut new, pa, (name, true), reason, message.to_owned(), now);
    // Whoever waits for it to be active does not wait for the other one.
    let active = (ConditionKind::ScalingActive.name(), false);
    set_condition(&mut new, pa, active, reason, message.to_owned(), now);
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
        message: about(&condition.note.message(), KIND).into_owned(),
        observed_generation: Some(generation),
    }
}

fn metric(current: Option<&Current>, spec: &spec::Metric, model: &Metric) -> MetricStatus {
    let Some(current) = current else { return MetricStatus::default() };
    let name = spec.name.clone();
    if ![metric_type::PROMETHEUS, metric_type::TRIGGER].contains(&&*spec.hpa.r#type) {
        let hpa = hpa::wire_metric(Some(current), &spec.hpa);
        return MetricStatus { hpa, name, ..MetricStatus::default() };
    }
    let kind = v2::MetricStatus { r#type: spec.hpa.r#type.clone(), ..v2::MetricStatus::default() };
    let current = hpa::values(current, "");
    if let (Some(source), Source::Trigger(trigger)) = (spec.event_source(), &*model.source) {
        let (r#type, metric) = (source.r#type.clone(), trigger.name.to_string());
        let trigger = Some(Box::new(TriggerStatus { r#type, metric, current }));
        return MetricStatus { hpa: kind, name, trigger, prometheus: None };
    }
    let prometheus = spec.prometheus.as_ref().map(|source| {
        let (server, query) = (source.server.clone(), source.query.clone());
        Box::new(PrometheusStatus { server, query, current })
    });
    MetricStatus { hpa: kind, name, prometheus, trigger: None }
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

/// A status with what another one of the HPA's form says.
#[must_use]
pub fn with_hpa_form(
    stored: Option<&PodAutoscalerStatus>,
    other: &HorizontalPodAutoscalerStatus,
) -> PodAutoscalerStatus {
    PodAutoscalerStatus {
        observed_generation: other.observed_generation,
        last_scale_time: other.last_scale_time,
        current_replicas: other.current_replicas,
        desired_replicas: other.desired_replicas,
        conditions: other.conditions.iter().map(|c| condition_about(c, KIND)).collect(),
        ..stored.cloned().unwrap_or_default()
    }
}
