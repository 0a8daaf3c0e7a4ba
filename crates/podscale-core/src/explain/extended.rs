//! Steps that only autoscalers with extensions take, in plain words.

use super::{ahead, metric_name, plural, span_text};
use crate::model::{Aggregate, Autoscaler, OnMissing, Pace, Scheduled, ShareOf};
use crate::steps::{Activity, CombinedBy, Direction, FormulaFailure, Step};
use crate::time::Time;

/// A step that native autoscalers do not take, in words.
pub(super) fn line(step: &Step<'_>, autoscaler: &Autoscaler, now: Time) -> Option<String> {
    Some(match step {
        Step::Scheduled(scheduled) => scheduled_line(scheduled, now),
        Step::Paused { until } => {
            format!("it is paused{}; metrics are not read", until_text(*until, now))
        }
        Step::Held { replicas, until } => {
            format!("it is held at {replicas}{}; metrics are not read", until_text(*until, now))
        }
        Step::SetToOne => "it has no replicas though it should; metrics are not read".to_owned(),
        Step::Substituted { metric, by, replicas } => {
            substituted_line(&metric_name(autoscaler, *metric), *by, *replicas)
        }
        Step::Activity { activity } => activity_line(*activity, autoscaler, now),
        Step::Combined { by, replicas } => combined_line(*by, *replicas),
        Step::LeftToHpa => "the size is left to the HPA beside it".to_owned(),
        Step::FormulaFailed { reason } => formula_line(*reason, autoscaler),
        Step::Fallback { since, replicas } => {
            let gone = span_text(now.since(*since));
            format!("metrics have been gone for {gone}: the fallback asks for {replicas}")
        }
        Step::Queued { .. }
        | Step::Windowed { .. }
        | Step::Forecast { .. }
        | Step::Led { .. }
        | Step::Spared { .. }
        | Step::Guarded { .. } => ahead::line(step)?,
        Step::Forbidden { direction, from, to, last_scale, window } => format!(
            "kept at {to}, not {from}: going {} is forbidden for {} after a change, and the last one \
             was {} ago",
            word(*direction),
            span_text(*window),
            span_text(now.since(*last_scale))
        ),
        Step::DirectionPaused { direction, from, to, until } => format!(
            "kept at {to}, not {from}: going {} is paused{}",
            word(*direction),
            until_text(*until, now)
        ),
        Step::DeletionCosts { metric, pods, error } => {
            costs_line(&metric_name(autoscaler, *metric), *pods, *error)
        }
        Step::InvalidSpec { .. }
        | Step::ScaleUnknown { .. }
        | Step::Scale { .. }
        | Step::Disabled
        | Step::OutsideBounds { .. }
        | Step::NoPods { .. }
        | Step::Proposal(_)
        | Step::Invalid { .. }
        | Step::Winner { .. }
        | Step::Blocked { .. }
        | Step::Stabilized { .. }
        | Step::Limited { .. }
        | Step::RaisedFromZero { .. }
        | Step::Rescale { .. }
        | Step::Keep { .. }
        | Step::Withheld { .. } => return None,
    })
}

const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

fn until_text(until: Option<Time>, now: Time) -> String {
    until.map_or_else(String::new, |until| format!(" for another {}", span_text(until.since(now))))
}

fn scheduled_line(scheduled: &Scheduled, now: Time) -> String {
    let Scheduled { bounds, schedule, since, or_longer, ramp_percent } = scheduled;
    let since = span_text(now.since(*since));
    let at_least = if *or_longer { "at least " } else { "" };
    let ramp = match ramp_percent {
        100.. => String::new(),
        percent => format!(", {percent}% of the way there"),
    };
    format!(
        "schedule {schedule} has been in force for {at_least}{since}{ramp}: {} to {} replicas",
        bounds.min, bounds.max
    )
}

fn substituted_line(name: &str, by: OnMissing, replicas: Option<i32>) -> String {
    match (by, replicas) {
        (OnMissing::LastValue, Some(n)) => format!("{name} counts with its last answer, {n}"),
        (_, Some(n)) => format!("{name} counts with {n} instead"),
        (_, None) => format!("{name} is left out"),
    }
}

fn costs_line(name: &str, pods: u32, error: Option<&str>) -> String {
    let set = match pods {
        0 => format!("no pod needs another deletion cost by {name}"),
        n => {
            let pods = plural(n, "pod");
            format!("{n} {pods} got a deletion cost by {name}, so that busy pods go last")
        }
    };
    match (error, pods) {
        (None, _) => set,
        (Some(error), 0) => format!("no pod got a deletion cost by {name}: {error}"),
        (Some(error), _) => format!("{set}; others did not: {error}"),
    }
}

fn combined_line(by: CombinedBy, replicas: i32) -> String {
    match by {
        CombinedBy::Min => format!("the smallest of these decides: {replicas}"),
        CombinedBy::Average => format!("their average is {replicas}"),
        CombinedBy::Formula => format!("the expression gives {replicas}"),
        CombinedBy::Nothing => format!("there is no metric, which asks for {replicas}"),
    }
}

fn formula_line(reason: FormulaFailure, autoscaler: &Autoscaler) -> String {
    match reason {
        FormulaFailure::Missing(metric) => format!(
            "the expression needs {}, which has no usable value, so the size stays as it is",
            metric_name(autoscaler, metric)
        ),
        FormulaFailure::NotFinite => {
            "the expression gives no finite number, so the size stays as it is".to_owned()
        }
    }
}

fn activity_line(activity: Activity, autoscaler: &Autoscaler, now: Time) -> String {
    match activity {
        Activity::Active { metric } => format!("{} is active", metric_name(autoscaler, metric)),
        Activity::Inactive => "nothing is active".to_owned(),
        Activity::Forced => "it counts as active, as ordered".to_owned(),
        Activity::Cooling { until } => {
            format!("nothing is active; it is idle in {}", span_text(until.since(now)))
        }
        Activity::Idle { replicas } => {
            format!("nothing is active, so it is idle, with a size of {replicas}")
        }
        Activity::Unknown { metric } => {
            format!("whether {} is active is not known", metric_name(autoscaler, metric))
        }
    }
}

/// What a utilization of the metric at this place is a share of.
pub(super) fn share_of(autoscaler: &Autoscaler, metric: u32) -> &'static str {
    let rules = autoscaler.extensions.as_deref().map(|e| e.rules(metric as usize).share_of);
    match rules.unwrap_or_default() {
        ShareOf::Requests => "requests",
        ShareOf::Limits => "limits",
    }
}

/// Which value of the pods the metric at this place is about, if it is not their mean.
pub(super) fn aggregate(autoscaler: &Autoscaler, metric: u32) -> String {
    let rules = autoscaler.extensions.as_deref().map(|e| e.rules(metric as usize).aggregate);
    match rules.unwrap_or_default() {
        Aggregate::Average => String::new(),
        Aggregate::Max => "the largest ".to_owned(),
        Aggregate::Percentile(percent) => format!("P{percent} of "),
    }
}

/// The rate that a factor and a minimum allow.
pub(super) fn pace(autoscaler: &Autoscaler) -> String {
    match autoscaler.extensions.as_deref().map(|extensions| extensions.pace) {
        Some(Pace::FactorAndMinimum { factor, minimum }) => {
            format!("at most {factor} times as many, or {minimum}, in one step")
        }
        Some(Pace::Policies) | None => "too many in one step".to_owned(),
    }
}
