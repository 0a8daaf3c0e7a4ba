//! From a snapshot and its settled decision to what the dashboard shows.

use super::model::{
    AutoscalerView, ConditionView, DecisionView, MetricState, MetricView, Outcome, Unit,
};
use podscale_core::model::{Aim, Milli, Source};
use podscale_core::status::Current;
use podscale_core::steps::{Proposal, Verdict};
use podscale_core::{Decision, Metric, Snapshot, Step, explain};

/// The autoscaler and the decision as the dashboard shows them. `kind` is that of the object that
/// was decided on; the decision must be settled.
#[must_use]
pub fn view(
    kind: &str,
    snapshot: &Snapshot<'_>,
    decision: &Decision,
) -> (AutoscalerView, DecisionView) {
    let autoscaler = snapshot.autoscaler;
    let status = decision.status(snapshot);
    let metrics = autoscaler.metrics.iter().enumerate();
    let view = AutoscalerView {
        namespace: autoscaler.namespace.to_string(),
        name: autoscaler.name.to_string(),
        kind: kind.to_owned(),
        target: format!("{}/{}", autoscaler.target.kind, autoscaler.target.name),
        min: autoscaler.min_replicas,
        max: autoscaler.max_replicas,
        current: match snapshot.scale {
            Ok(scale) => scale.existing,
            Err(_) => status.current_replicas,
        },
        desired: status.desired_replicas,
        metrics: metrics.map(|(place, metric)| metric_view(place, metric, decision)).collect(),
        conditions: status
            .conditions
            .iter()
            .map(|condition| ConditionView {
                kind: match &condition.kind {
                    Ok(kind) => kind.name().to_owned(),
                    Err(name) => name.to_string(),
                },
                status: condition.status.name().to_owned(),
                reason: condition.note.reason().to_owned(),
                message: condition.note.message().into_owned(),
                since: condition.since,
            })
            .collect(),
        last_scale: status.last_scale,
    };
    let decided = told(snapshot, decision, view.current);
    (view, decided)
}

fn told(snapshot: &Snapshot<'_>, decision: &Decision, current: i32) -> DecisionView {
    let rescaled = decision.rescaled_at.is_some();
    let from = decision.found.unwrap_or(current);
    let to = match &decision.rescale {
        Some(rescale) => rescale.to,
        None => from,
    };
    let mut lines = explain::lines(&decision.steps, snapshot);
    let outcome = outcome(decision);
    let reason = match (outcome, &decision.error) {
        (Outcome::Failed, Some(error)) => {
            // The steps tell what was computed; only a failed write is not among them.
            if decision.rescale.is_some() && !rescaled {
                lines.push(format!("but that failed: {error}"));
            }
            error.to_string()
        }
        (Outcome::Up | Outcome::Down, _) => rescale_reason(snapshot, decision),
        (Outcome::Held | Outcome::Limited | Outcome::Paused, _) => {
            let telling = decision.steps.iter().rev().find(|step| holds(step));
            telling
                .map(|s| explain::line(&s, snapshot.autoscaler, snapshot.now))
                .unwrap_or_default()
        }
        (Outcome::Steady, _) if decision.found == Some(0) => "nothing to do".to_owned(),
        (Outcome::Steady, _) => "all metrics are near their targets".to_owned(),
        (Outcome::Failed, None) => lines.last().cloned().unwrap_or_default(),
    };
    DecisionView { time: snapshot.now, from, to, rescaled, outcome, reason, lines }
}

fn rescale_reason(snapshot: &Snapshot<'_>, decision: &Decision) -> String {
    let reason = decision.rescale.map(|rescale| rescale.reason.text(snapshot.autoscaler));
    let told = reason.filter(|reason| !reason.is_empty());
    told.unwrap_or("an earlier recommendation asks for it".into()).into_owned()
}

/// Whether a step is one that keeps the target from the size that was asked for.
fn holds(step: &Step<'_>) -> bool {
    match step {
        Step::Stabilized { from, to, .. } | Step::Limited { from, to, .. } => from != to,
        Step::Disabled | Step::Blocked { .. } => true,
        _ => false,
    }
}

/// What kind of outcome a settled decision has.
#[must_use]
pub fn outcome(decision: &Decision) -> Outcome {
    if let Some(rescale) = &decision.rescale {
        return match decision.rescaled_at {
            None => Outcome::Failed,
            Some(_) if rescale.to > rescale.from => Outcome::Up,
            Some(_) => Outcome::Down,
        };
    }
    if decision.error.is_some() {
        return Outcome::Failed;
    }
    match decision.steps.iter().rev().find(|step| holds(step)) {
        Some(Step::Stabilized { .. }) => Outcome::Held,
        Some(Step::Limited { .. }) => Outcome::Limited,
        Some(Step::Disabled) => Outcome::Paused,
        Some(_) => Outcome::Failed,
        None if decision.found.is_none() => Outcome::Failed,
        None => Outcome::Steady,
    }
}

fn metric_view(place: usize, metric: &Metric, decision: &Decision) -> MetricView {
    let proposal = decision.steps.iter().find_map(|step| match step {
        Step::Proposal(proposal) if proposal.metric as usize == place => Some(proposal),
        _ => None,
    });
    let unit = unit(metric);
    let value = proposal.and_then(|p| amount(&p.current, metric.aim));
    let goal = match metric.aim {
        Aim::Value(aim) | Aim::AverageValue(aim) => Some(whole(aim)),
        Aim::Utilization(percent) => Some(f64::from(percent)),
        Aim::Unset => None,
    };
    let words = |number: Option<f64>| number.map_or("unknown".to_owned(), |n| unit.text(n));
    MetricView {
        name: name(&metric.source),
        unit,
        value,
        goal,
        current: words(value),
        target: words(goal),
        ratio: proposal.map(|p| p.ratio).filter(|ratio| ratio.is_finite()),
        state: proposal.map_or(MetricState::Unread, state),
    }
}

fn state(proposal: &Proposal) -> MetricState {
    match proposal.verdict {
        Verdict::WithinTolerance => MetricState::Near,
        _ if proposal.ratio > 1.0 => MetricState::Above,
        _ if proposal.ratio < 1.0 => MetricState::Below,
        _ => MetricState::Near,
    }
}

fn amount(current: &Current, aim: Aim) -> Option<f64> {
    match aim {
        Aim::Value(_) => current.value.map(whole),
        Aim::AverageValue(_) => current.average_value.map(whole),
        Aim::Utilization(_) => current.average_utilization.map(f64::from),
        Aim::Unset => None,
    }
}

#[allow(clippy::cast_precision_loss)]
fn whole(Milli(amount): Milli) -> f64 {
    amount as f64 / 1000.0
}

fn name(source: &Source) -> String {
    match source {
        Source::Resource { name } | Source::Unknown { quoted: name } => name.to_string(),
        Source::ContainerResource { name, container } => format!("{name} of {container}"),
        Source::Pods(series) | Source::External(series) => series.name.to_string(),
        Source::Object { series, object } => {
            format!("{} of {}/{}", series.name, object.kind, object.name)
        }
    }
}

fn unit(metric: &Metric) -> Unit {
    match (&*metric.source, metric.aim) {
        (_, Aim::Utilization(_)) => Unit::Percent,
        (Source::Resource { name } | Source::ContainerResource { name, .. }, _) => match &**name {
            "cpu" => Unit::Cores,
            "memory" | "ephemeral-storage" => Unit::Bytes,
            _ => Unit::Count,
        },
        _ => Unit::Count,
    }
}

impl Unit {
    /// A number of this unit in few words.
    #[must_use]
    pub fn text(self, number: f64) -> String {
        match self {
            Unit::Percent => format!("{number:.0}%"),
            Unit::Cores if number.abs() < 1.0 => format!("{:.0}m", number * 1000.0),
            Unit::Cores => short(number, ""),
            Unit::Bytes => {
                let (scaled, suffix) = stepped(number, 1024.0, &["", "Ki", "Mi", "Gi", "Ti"]);
                short(scaled, suffix)
            }
            Unit::Count if number != 0.0 && number.abs() < 1.0 => short(number * 1000.0, "m"),
            Unit::Count => {
                let (scaled, suffix) = stepped(number, 1000.0, &["", "k", "M", "G", "T"]);
                short(scaled, suffix)
            }
        }
    }
}

fn stepped(number: f64, base: f64, suffixes: &'static [&'static str]) -> (f64, &'static str) {
    let mut scaled = number;
    let mut rest = suffixes.iter();
    let mut suffix = rest.next().copied().unwrap_or_default();
    // Small counts stay whole: 1,500 is easier to read than 1.5k.
    let limit = if base < 1024.0 { 10.0 * base } else { base };
    while scaled.abs() >= limit {
        let Some(next) = rest.next() else { break };
        scaled /= base;
        suffix = next;
    }
    (scaled, suffix)
}

/// Three digits or so, without needless zeros.
fn short(number: f64, suffix: &str) -> String {
    let digits = if number.abs() >= 100.0 { 0 } else { 1 };
    let text = format!("{number:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests;
