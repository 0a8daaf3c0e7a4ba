//! Puts a decision's steps into plain words. Computes nothing: every number comes from the steps.

use crate::model::{
    Autoscaler, MetricTarget, Milli, PolicyAmount, PrometheusQuery, Source, Trigger,
};
use crate::steps::{Bound, Limit, PodCounts, Proposal, Step, Steps, Verdict, Withheld};
use crate::time::{Span, Time};
use std::fmt::Write;

mod ahead;
mod extended;

/// One line for each step.
#[must_use]
pub fn lines(steps: &Steps, autoscaler: &Autoscaler, now: Time) -> Vec<String> {
    steps.iter().map(|step| line(&step, autoscaler, now)).collect()
}

/// One step in words.
#[must_use]
pub fn line(step: &Step<'_>, autoscaler: &Autoscaler, now: Time) -> String {
    match step {
        Step::InvalidSpec { error } => {
            format!("{} is left alone, the spec is incorrect: {error}", target(autoscaler))
        }
        Step::ScaleUnknown { error } => {
            format!("the size of {} is not known: {error}", target(autoscaler))
        }
        Step::Scale { spec_replicas, status_replicas } if spec_replicas == status_replicas => {
            format!("{} has {}", target(autoscaler), replicas(*spec_replicas))
        }
        Step::Scale { spec_replicas, status_replicas } => {
            let target = target(autoscaler);
            format!("{target} should have {} and has {status_replicas}", replicas(*spec_replicas))
        }
        Step::Disabled => {
            "somebody else set it to zero, so it is left alone until somebody sets another size"
                .to_owned()
        }
        Step::OutsideBounds { bound: Bound::Max, replicas } => {
            format!("that is more than the maximum of {replicas}; metrics are not read")
        }
        Step::OutsideBounds { bound: Bound::Min, replicas } => {
            format!("that is less than the minimum of {replicas}; metrics are not read")
        }
        Step::NoPods { error } => format!("its pods are not known: {error}"),
        Step::Proposal(proposal) => proposal_line(proposal, autoscaler),
        Step::Invalid { metric, error } => {
            format!("{} is broken: {error}", metric_name(autoscaler, *metric))
        }
        Step::Winner { metric, replicas, invalid } => {
            let name = metric_name(autoscaler, *metric);
            match (autoscaler.metrics.len(), invalid) {
                (0 | 1, _) => format!("the metrics ask for {replicas}"),
                (_, 0) => format!("{name} asks for most: {replicas}"),
                (_, n) => format!(
                    "{name} asks for most: {replicas}; {n} broken {} cannot lower that",
                    plural(*n, "metric")
                ),
            }
        }
        Step::Blocked { proposed: None, .. } => {
            "no metric works, so the size stays as it is".to_owned()
        }
        Step::Blocked { invalid, of, proposed: Some(proposed) } => format!(
            "the others ask for {proposed}, but going down is not safe while {invalid} of {of} \
             metrics are broken"
        ),
        Step::Stabilized { from, to, .. } if from == to => {
            format!("no recent recommendation stands against {to}")
        }
        Step::Stabilized { from, to, held_by } => stabilized_line(*from, *to, *held_by, now),
        Step::Limited { from, to, limit } => limited_line(*from, *to, *limit, autoscaler),
        Step::RaisedFromZero { to } => raised_line(*to, autoscaler),
        Step::Rescale { from, to } => format!("so the size changes from {from} to {to}"),
        Step::Keep { replicas } => format!("so the size stays {replicas}"),
        Step::Withheld { reason } => format!("which is not written: {}", withheld_text(*reason)),
        step => extended::line(step, autoscaler, now).unwrap_or_default(),
    }
}

fn raised_line(to: i32, autoscaler: &Autoscaler) -> String {
    match autoscaler.extensions.as_ref().and_then(|extensions| extensions.scale_to_zero) {
        Some(_) => format!("it was idle, and gets at least {to} now"),
        None => format!("it was held at zero, and the minimum is {to} by now"),
    }
}

fn target(autoscaler: &Autoscaler) -> String {
    format!("{} {}", autoscaler.target.kind, autoscaler.target.name)
}

fn replicas(count: i32) -> String {
    format!("{count} {}", plural(count.unsigned_abs(), "replica"))
}

fn plural(count: u32, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// Why a write was left out on purpose.
#[must_use]
pub const fn withheld_text(reason: Withheld) -> &'static str {
    match reason {
        Withheld::DryRun => "this is a dry run",
        Withheld::OtherController => "another controller manages this autoscaler",
        Withheld::TargetTaken => "another autoscaler has this target",
        Withheld::Deferred => "it is left for a later pass",
        Withheld::Gone => "the object is gone",
    }
}

/// A short name for the metric at this place of the spec: its own if the spec gives it one, else what it
/// measures, without the API's words around it. Explanations, the dashboard and whatever else shows
/// metrics to people use this one.
#[must_use]
pub fn metric_name(autoscaler: &Autoscaler, place: u32) -> String {
    let extensions = autoscaler.extensions.as_deref();
    match extensions.and_then(|extensions| extensions.rules(place as usize).name.as_deref()) {
        Some(name) => name.to_owned(),
        None => match autoscaler.metrics.get(place as usize) {
            Some(metric) => source_name(&metric.source),
            None => format!("metric {place}"),
        },
    }
}

fn source_name(source: &Source) -> String {
    match source {
        Source::Resource { name } | Source::Unknown { quoted: name } => name.to_string(),
        Source::ContainerResource { name, container } => format!("{name} of {container}"),
        Source::Pods(series) | Source::External(series) => series.name.to_string(),
        Source::Prometheus(PrometheusQuery { name, .. })
        | Source::Trigger(Trigger { name, .. }) => name.to_string(),
        Source::Object { series, object } => {
            format!("{} of {} {}", series.name, object.kind, object.name)
        }
    }
}

fn proposal_line(proposal: &Proposal, autoscaler: &Autoscaler) -> String {
    let current = &proposal.current;
    let mut line = extended::aggregate(autoscaler, proposal.metric);
    line.push_str(&metric_name(autoscaler, proposal.metric));
    let is_memory = matches!(
        autoscaler.metrics.get(proposal.metric as usize).map(|m| &*m.source),
        Some(Source::Resource { name } | Source::ContainerResource { name, .. })
            if &**name == "memory"
    );
    let amount_text = |amount| if is_memory { bytes_text(amount) } else { amount_text(amount) };
    let known = |amount: Option<Milli>| amount.map_or("unknown".to_owned(), amount_text);
    let _ = match proposal.target {
        MetricTarget::Utilization(target) => {
            let percent = current.average_utilization.unwrap_or_default();
            let share = extended::share_of(autoscaler, proposal.metric);
            write!(line, " is at {percent}% of {share}, target {target}%")
        }
        MetricTarget::AverageValue(target) if !proposal.ratio.is_finite() => {
            write!(line, " has no pods to be shared among, target {} each", amount_text(target))
        }
        MetricTarget::AverageValue(target) => {
            let value = known(current.average_value);
            write!(line, " is at {value} per pod, target {}", amount_text(target))
        }
        MetricTarget::Value(target) => {
            write!(line, " is at {}, target {}", known(current.value), amount_text(target))
        }
        MetricTarget::Unset => Ok(()),
    };
    if proposal.ratio.is_finite() {
        let _ = write!(line, " (ratio {:.3}", proposal.ratio);
        if let Some(adjusted) = proposal.adjusted_ratio {
            let _ = write!(line, ", {adjusted:.3} with the pods that have no usable sample");
        }
        line.push_str(&pods_text(proposal.pods));
        line.push(')');
    }
    let _ = match proposal.verdict {
        Verdict::WithinTolerance => write!(line, ": close enough, stay at {}", proposal.replicas),
        Verdict::DirectionReversed => {
            write!(line, ": counting them turns the direction, stay at {}", proposal.replicas)
        }
        Verdict::Scaled | Verdict::Divided => write!(line, ": asks for {}", proposal.replicas),
    };
    line
}

fn pods_text(pods: PodCounts) -> String {
    let groups = [
        (pods.ready, "ready"),
        (pods.unready, "unready"),
        (pods.missing, "without metrics"),
        (pods.ignored, "ignored"),
        (pods.unmatched, "unknown"),
    ];
    let mut text = String::new();
    for (count, group) in groups {
        if count > 0 {
            text.push_str(if text.is_empty() { "; pods: " } else { ", " });
            let _ = write!(text, "{count} {group}");
        }
    }
    text
}

/// An amount without needless digits: thousandths where there are any.
fn amount_text(Milli(amount): Milli) -> String {
    match (amount / 1000, amount % 1000) {
        (whole, 0) => whole.to_string(),
        (0, _) => format!("{amount}m"),
        (whole, rest) => {
            format!("{whole}.{:03}", rest.unsigned_abs()).trim_end_matches('0').to_owned()
        }
    }
}

/// Bytes in the largest binary unit that leaves a whole part.
fn bytes_text(Milli(milli): Milli) -> String {
    const UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut amount = milli as f64 / 1000.0;
    let mut unit = 0;
    while amount.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(amount.fract() != 0.0 && unit > 0);
    format!("{amount:.digits$}{}", UNITS[unit])
}

fn stabilized_line(
    from: i32,
    to: i32,
    held_by: Option<crate::history::Recommendation>,
    now: Time,
) -> String {
    match held_by {
        Some(by) => format!(
            "held at {to}, not {from}: {} was recommended {} ago",
            by.replicas,
            span_text(now.since(by.at))
        ),
        None => format!("held at {to}, not {from}, by recent recommendations"),
    }
}

fn limited_line(from: i32, to: i32, limit: Limit, autoscaler: &Autoscaler) -> String {
    match limit {
        Limit::Bound(Bound::Min) => format!("raised from {from} to the minimum of {to}"),
        Limit::Bound(Bound::Max) => format!("capped from {from} to the maximum of {to}"),
        Limit::DefaultRate => {
            format!("capped from {from} to {to}: at most double, or four, in one step")
        }
        Limit::Pace => format!("capped from {from} to {to}: {}", extended::pace(autoscaler)),
        Limit::Disabled => format!("kept at {to}, not {from}: this direction is disabled"),
        Limit::Policy { policy, period_start } => {
            let amount = match policy.amount {
                PolicyAmount::Pods(pods) => {
                    format!("{pods} {}", plural(pods.unsigned_abs(), "pod"))
                }
                PolicyAmount::Percent(percent) => format!("{percent}%"),
                PolicyAmount::Unknown => "an unknown amount".to_owned(),
            };
            format!(
                "limited from {from} to {to}: {amount} in {}, which began at {period_start}",
                span_text(policy.period)
            )
        }
    }
}

/// A length of time in its two largest units: nobody counts the seconds of a day.
fn span_text(span: Span) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let seconds = i64::from(span.as_whole_seconds());
    let mut left = seconds.abs();
    let parts = UNITS.map(|(unit, name)| {
        let count = left / unit;
        left %= unit;
        (count, name)
    });
    let mut text = if seconds < 0 { "-".to_owned() } else { String::new() };
    let shown = parts.iter().skip_while(|(count, _)| *count == 0).take(2);
    for (count, name) in shown.filter(|(count, _)| *count > 0) {
        let _ = write!(text, "{count}{name}");
    }
    if seconds == 0 { "0s".to_owned() } else { text }
}
