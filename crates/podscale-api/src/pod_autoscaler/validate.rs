//! What is wrong with a PodAutoscaler. The API server refuses most of it by the definition's schema; what
//! a schema cannot say (cron expressions, time zones, expressions over metrics) is found here, and so is
//! everything else in an object that no API server has seen.

mod metric;
#[cfg(test)]
mod tests;

use super::hpa_form::hpa_form;
use super::spec::{PodAutoscalerSpec, ScalingRules, Schedule, metric_type};
use super::{PodAutoscaler, calendar};
use crate::expression;
use crate::field_error::{BadValue, FieldError, FieldPath, distinct};
use crate::hpa::v2;
use crate::hpa::validate as hpa;
use crate::quantity::{Format, Quantity};
use crate::schedule::MAX_SCHEDULES;
use crate::time::GoDuration;
use std::collections::HashSet;

/// Kind and group as the message of a refusal names them.
pub const QUALIFIED_KIND: &str = "PodAutoscaler.podscale.dev";

const MAX_WINDOW_SECONDS: i32 = 3600;
const SECOND: i64 = 1_000_000_000;

/// Everything that is wrong with an autoscaler, after defaulting.
#[must_use]
pub fn check(pa: &PodAutoscaler) -> Vec<FieldError> {
    let spec = &pa.spec;
    let path = FieldPath::new("spec");
    let mut errors = check_hpa_part(pa);
    for (index, metric) in spec.metrics.iter().enumerate() {
        errors.extend(metric::check(metric, &path.child("metrics").index(index)));
    }
    errors.extend(check_combination(spec, &path));
    if let Some(behavior) = &spec.behavior {
        let path = path.child("behavior");
        for (name, rules) in [("scaleUp", &behavior.scale_up), ("scaleDown", &behavior.scale_down)]
        {
            errors.extend(rules.iter().flat_map(|rules| check_rules(rules, &path.child(name))));
        }
    }
    errors.extend(check_schedules(spec, &path.child("schedules")));
    errors.extend(check_orders(spec, &path));
    errors.extend(check_deletion_cost(spec, &path.child("podDeletionCost")));
    errors.extend(check_ahead(spec, &path));
    distinct(errors)
}

/// What an HPA would be refused for; what it calls external may be a query of ours.
fn check_hpa_part(pa: &PodAutoscaler) -> Vec<FieldError> {
    let mut hpa = hpa_form(pa, None);
    // What an event source gives, and what that is compared with, is said in its metadata, which are not judged here.
    for (place, ..) in pa.spec.triggers() {
        if let Some(source) = hpa.spec.metrics.get_mut(place).and_then(|m| m.external.as_mut()) {
            source.metric.name = metric_type::TRIGGER.to_owned();
            source.target = v2::MetricTarget {
                r#type: v2::target_type::VALUE.to_owned(),
                value: Some(Quantity::from_milli(1000, Format::DecimalSi)),
                ..v2::MetricTarget::default()
            };
        }
    }
    let mut errors = hpa::check_create(&hpa);
    for (index, metric) in pa.spec.metrics.iter().enumerate() {
        let ours = match metric.hpa.r#type.as_str() {
            metric_type::PROMETHEUS => Some("prometheus"),
            metric_type::TRIGGER => Some("trigger"),
            _ => None,
        };
        if let Some(ours) = ours {
            let path = FieldPath::new("spec").child("metrics").index(index);
            let (theirs, ours) = (path.child("external"), path.child(ours));
            // It is not one of an HPA's types where its source is missing, which is said below.
            let of_type = path.child("type").to_string();
            errors.retain(|error| error.field != of_type);
            for error in &mut errors {
                if let Some(rest) = error.field.strip_prefix(&theirs.to_string()) {
                    error.field = format!("{ours}{rest}");
                }
            }
        }
    }
    errors
}

/// How proposals become one.
fn check_combination(spec: &PodAutoscalerSpec, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let words = ["Max", "Min", "Average", "Expression"];
    errors.extend(check_word(spec.combine.as_deref(), &words, &path.child("combine")));
    let mut seen = HashSet::new();
    for (index, name) in spec.metric_names().into_iter().enumerate() {
        if let Some(name) = name.filter(|name| !seen.insert(*name)) {
            let field = path.child("metrics").index(index).child("name");
            errors.push(FieldError::duplicate(&field, name));
        }
    }
    let field = path.child("expression");
    let wanted = spec.combine.as_deref() == Some("Expression");
    match &spec.expression {
        Some(text) if wanted => {
            if let Err(error) = expression::parse(text, &spec.metric_names()) {
                errors.push(FieldError::invalid(&field, text.as_str(), error.to_string()));
            }
        }
        Some(_) => errors.push(FieldError::forbidden(&field, "needs combine: Expression")),
        None if wanted => {
            errors.push(FieldError::required(&field, "must say how the metrics are combined"));
        }
        None => {}
    }
    errors
}

fn check_rules(rules: &ScalingRules, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = path.child("forbiddenWindowSeconds");
    let seconds = rules.forbidden_window_seconds;
    errors.extend(check_within(seconds, 0, MAX_WINDOW_SECONDS, &field));
    let Some(limit) = &rules.limit else { return errors };
    let path = path.child("limit");
    if let Some(factor) = limit.factor.as_ref().filter(|factor| factor.as_approximate_f64() < 1.0) {
        let value = BadValue::text(&factor.to_string());
        errors.push(FieldError::invalid(&path.child("factor"), value, "must be at least 1"));
    }
    errors.extend(check_least(limit.minimum, 1, &path.child("minimum")));
    errors
}

fn check_schedules(spec: &PodAutoscalerSpec, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (count, most) = (spec.schedules.len(), MAX_SCHEDULES);
    if count > most {
        errors.push(FieldError::too_many(path, count, most));
    }
    let mut seen = HashSet::new();
    for (index, one) in spec.schedules.iter().enumerate() {
        let path = path.index(index);
        if one.name.is_empty() {
            errors.push(FieldError::required(&path.child("name"), ""));
        } else if !seen.insert(one.name.as_str()) {
            errors.push(FieldError::duplicate(&path.child("name"), one.name.as_str()));
        }
        errors.extend(check_bounds(one, spec, &path));
        // Bounds were checked above, together with those of the spec.
        for refusal in calendar::refusals(one) {
            let value = match refusal.field {
                "timeZone" => one.time_zone.as_deref(),
                "start" => Some(one.start.as_str()),
                "end" => one.end.as_deref(),
                "duration" => one.duration.as_deref(),
                _ => one.ramp.as_deref(),
            };
            let field = path.child(refusal.field);
            let value = value.unwrap_or_default();
            errors.push(FieldError::invalid(&field, value, refusal.problem));
        }
    }
    errors
}

fn check_bounds(one: &Schedule, spec: &PodAutoscalerSpec, path: &FieldPath) -> Vec<FieldError> {
    let (min_field, max_field) = (path.child("minReplicas"), path.child("maxReplicas"));
    let mut errors = check_least(one.min_replicas, 0, &min_field);
    errors.extend(check_least(one.max_replicas, 1, &max_field));
    let min = one.min_replicas.or(spec.min_replicas).unwrap_or(1);
    let max = one.max_replicas.unwrap_or(spec.max_replicas);
    match (one.min_replicas, one.max_replicas) {
        (None, None) => {
            let detail = "must set minReplicas, maxReplicas or both";
            errors.push(FieldError::required(&min_field, detail));
        }
        (Some(min), _) if min > max => {
            let detail = format!("must not be greater than maxReplicas, which is {max}");
            errors.push(FieldError::invalid(&min_field, min, detail));
        }
        (None, Some(max)) if min > max => {
            let detail = format!("must not be less than minReplicas, which is {min}");
            errors.push(FieldError::invalid(&max_field, max, detail));
        }
        _ => {}
    }
    errors
}

/// Modes, pauses, idle sizes and the like.
fn check_orders(spec: &PodAutoscalerSpec, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let words = ["Active", "DryRun", "Paused"];
    errors.extend(check_word(spec.mode.as_deref(), &words, &path.child("mode")));
    let words = ["Owned", "Selector"];
    errors.extend(check_word(spec.pod_selection.as_deref(), &words, &path.child("podSelection")));
    if let Some(hold) = &spec.hold {
        let field = path.child("hold").child("replicas");
        errors.extend(check_least(Some(hold.replicas), 0, &field));
    }
    if let Some(zero) = &spec.scale_to_zero {
        let path = path.child("scaleToZero");
        let (field, idle) = (path.child("idleReplicas"), zero.idle_replicas.unwrap_or(0));
        errors.extend(check_least(zero.idle_replicas, 0, &field));
        let min = spec.min_replicas.unwrap_or(1).max(1);
        if idle >= min {
            let detail = format!("must be less than minReplicas, which is {min}");
            errors.push(FieldError::invalid(&field, idle, detail));
        }
        let wakes = ["Object", "External", metric_type::PROMETHEUS, metric_type::TRIGGER];
        if idle == 0 && !spec.metrics.iter().any(|m| wakes.contains(&m.hpa.r#type.as_str())) {
            let detail = "needs a metric of type Object, External, Prometheus or Trigger";
            errors.push(FieldError::forbidden(&path, detail));
        }
        errors.extend(check_duration(zero.cool_down.as_deref(), 0, &path.child("coolDown")));
        let field = path.child("zeroByOthers");
        let words = ["LeaveAlone", "Wake"];
        errors.extend(check_word(zero.zero_by_others.as_deref(), &words, &field));
    }
    errors.extend(check_duration(spec.warm_up.as_deref(), 0, &path.child("warmUp")));
    let field = path.child("syncPeriod");
    errors.extend(check_duration(spec.sync_period.as_deref(), SECOND, &field));
    if let Some(fallback) = &spec.fallback {
        let path = path.child("fallback");
        errors.extend(check_least(Some(fallback.replicas), 0, &path.child("replicas")));
        errors.extend(check_duration(fallback.after.as_deref(), 0, &path.child("after")));
    }
    errors
}

/// Busy pods last.
fn check_deletion_cost(spec: &PodAutoscalerSpec, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(cost) = &spec.pod_deletion_cost else { return errors };
    if spec.deletion_cost_by().is_none() {
        let detail = "must be the name of a metric of type Resource, ContainerResource or Pods";
        errors.push(FieldError::invalid(&path.child("metric"), cost.metric.as_str(), detail));
    }
    if spec.scale_target_ref.kind == "StatefulSet" {
        let detail =
            "a StatefulSet removes the pods with the highest ordinals, whatever their costs are";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

/// A queue that is to be served.
fn check_queue(spec: &PodAutoscalerSpec, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(queue) = &spec.queue else { return errors };
    for (field, name) in [("length", &queue.length), ("arrivals", &queue.arrivals)] {
        if spec.whole_metric(name).is_none() {
            let detail =
                "must be the name of a metric of type Object, External, Prometheus or Trigger";
            errors.push(FieldError::invalid(&path.child(field), name.as_str(), detail));
        }
    }
    let field = path.child("itemsPerSecond");
    match &queue.items_per_second {
        None => errors.push(FieldError::required(&field, "")),
        Some(items) if items.milli_value() <= 0 => {
            let value = BadValue::text(&items.to_string());
            errors.push(FieldError::invalid(&field, value, "must be positive"));
        }
        Some(_) => {}
    }
    errors.extend(check_duration(queue.within.as_deref(), SECOND, &path.child("within")));
    errors
}

/// Windows, and what is done ahead of the demand.
fn check_ahead(spec: &PodAutoscalerSpec, path: &FieldPath) -> Vec<FieldError> {
    let mut errors = check_queue(spec, &path.child("queue"));
    if let Some(window) = &spec.window {
        let path = path.child("window");
        let field = path.child("stable");
        let long = window.stable.as_deref().and_then(|text| GoDuration::parse(text).ok());
        if let (Some(text), Some(GoDuration(nanos))) = (&window.stable, long)
            && !(SECOND..=3600 * SECOND).contains(&nanos)
        {
            errors.push(FieldError::invalid(&field, text.as_str(), "must be from 1s to 1h"));
        } else {
            errors.extend(check_duration(window.stable.as_deref(), 0, &field));
        }
        errors.extend(check_duration(window.panic.as_deref(), 0, &path.child("panic")));
        let field = path.child("panicThresholdPercent");
        errors.extend(check_within(window.panic_threshold_percent, 100, 1000, &field));
    }
    let words = ["Balanced", "Cheap", "Safe"];
    errors.extend(check_word(spec.profile.as_deref(), &words, &path.child("profile")));
    let field = path.child("startUpTime");
    errors.extend(check_duration(spec.start_up_time.as_deref(), 0, &field));
    if let Some(predict) = &spec.predict {
        let path = path.child("predict");
        errors.extend(check_within(predict.confidence, 1, 99, &path.child("confidence")));
        let field = path.child("scaleInGuard");
        errors.extend(check_duration(predict.scale_in_guard.as_deref(), 0, &field));
    }
    if let Some(lead) = &spec.lead {
        let field = path.child("lead").child("limitPercent");
        errors.extend(check_within(lead.limit_percent, 0, 1000, &field));
    }
    if let Some(headroom) = &spec.headroom {
        let path = path.child("headroom");
        errors.extend(check_within(headroom.confidence, 1, 99, &path.child("confidence")));
        let field = path.child("limitPercent");
        errors.extend(check_within(headroom.limit_percent, 0, 1000, &field));
        let field = path.child("overloadPermille");
        errors.extend(check_within(headroom.overload_permille, 1, 500, &field));
    }
    errors
}

fn check_within(
    number: Option<i32>,
    least: i32,
    most: i32,
    field: &FieldPath,
) -> Option<FieldError> {
    let wrong = number.filter(|number| !(least..=most).contains(number))?;
    Some(FieldError::invalid(field, wrong, format!("must be from {least} to {most}")))
}

fn check_word(word: Option<&str>, words: &[&str], field: &FieldPath) -> Option<FieldError> {
    let word = word.filter(|word| !words.contains(word))?;
    Some(FieldError::not_supported(field, word, words))
}

fn check_least(number: Option<i32>, least: i32, field: &FieldPath) -> Vec<FieldError> {
    let wrong = number.filter(|number| *number < least);
    let detail = format!("must be greater than or equal to {least}");
    wrong.map(|number| FieldError::invalid(field, number, detail)).into_iter().collect()
}

fn check_duration(text: Option<&str>, least: i64, field: &FieldPath) -> Option<FieldError> {
    let text = text?;
    let detail = match GoDuration::parse(text) {
        Ok(GoDuration(nanos)) if nanos >= least => return None,
        Ok(_) if least > 0 => "must be at least 1s".to_owned(),
        Ok(_) => "must not be negative".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(FieldError::invalid(field, text, detail))
}
