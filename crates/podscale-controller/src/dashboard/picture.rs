//! An autoscaler right after a decision: kept as values, put into words only when somebody reads it.

use super::model::{
    AutoscalerView, ConditionView, DecisionView, MetricState, MetricView, Unit, key_text,
};
use crate::controller::observer::Decided;
use crate::controller::outcome::{OutcomeKind, holds};
use crate::dialect::{CONFLICT_CONDITION, Kind};
use podscale_api::hpa::wording;
use podscale_core::model::{Bounds, MetricTarget, Milli, Source};
use podscale_core::status::{Condition, Current};
use podscale_core::steps::{Proposal, Steps, Verdict};
use podscale_core::{Autoscaler, Decision, Metric, Rescale, Snapshot, Step, Time, explain};
use std::sync::Arc;

/// What the dashboard keeps of a decision. There is one for every autoscaler and hardly ever a
/// reader, so it holds nothing that can be made from the rest.
#[derive(Debug)]
pub struct Picture {
    kind: &'static Kind,
    autoscaler: Arc<Autoscaler>,
    pub(super) time: Time,
    pub(super) outcome: OutcomeKind,
    pub(super) rescaled: bool,
    pub(super) current: i32,
    pub(super) desired: i32,
    bounds: Bounds,
    found: Option<i32>,
    rescale: Option<Rescale>,
    pub(super) last_scale: Option<Time>,
    conditions: Box<[Condition]>,
    error: Option<Box<str>>,
    steps: Steps,
    conflict: Option<Box<str>>,
}

impl Picture {
    /// Of an object after a pass.
    #[must_use]
    pub fn of(decided: &Decided<'_>) -> Picture {
        let Decided { object, snapshot, outcome, conflict, .. } = decided;
        let picture = Picture::new(object.key.kind, &object.model, snapshot, &outcome.decision);
        Picture { conflict: conflict.map(Into::into), ..picture }
    }

    /// Of an object of this kind after a decision whose writes have ended. `autoscaler` is that of the
    /// snapshot.
    #[must_use]
    pub fn new(
        kind: &'static Kind,
        autoscaler: &Arc<Autoscaler>,
        snapshot: &Snapshot<'_>,
        decision: &Decision,
    ) -> Picture {
        let status = decision.status(snapshot);
        Picture {
            kind,
            autoscaler: Arc::clone(autoscaler),
            time: snapshot.now,
            outcome: OutcomeKind::of(decision),
            rescaled: decision.rescaled_at.is_some(),
            current: match snapshot.scale {
                Ok(scale) => scale.status_replicas,
                Err(_) => status.current_replicas,
            },
            desired: match decision.desired {
                // Nothing was ever decided, so nothing else is wanted than what is there.
                None if status.desired_replicas == 0 => decision.found.unwrap_or_default(),
                _ => status.desired_replicas,
            },
            bounds: match decision.scheduled(snapshot) {
                Some(scheduled) => scheduled.bounds,
                None => autoscaler.bounds(),
            },
            found: decision.found,
            rescale: decision.rescale,
            last_scale: status.last_scale,
            conditions: status.conditions.into_boxed_slice(),
            error: decision.error.clone(),
            steps: decision.steps.clone(),
            conflict: None,
        }
    }

    /// By what the dashboard knows it.
    pub(super) fn key(&self) -> String {
        key_text(self.kind, &self.autoscaler.namespace, &self.autoscaler.name)
    }

    /// The size that was decided, if it is another one than the target has.
    pub(super) fn wanted(&self) -> Option<i32> {
        self.rescale.map(|rescale| rescale.to)
    }

    /// The fewest and the most replicas it may set, by the schedule in force if there is one, also while it is idle.
    pub(super) fn bounds(&self) -> (i32, i32) {
        let Bounds { min, max } = self.bounds;
        let extensions = self.autoscaler.extensions.as_deref();
        let idle = extensions.and_then(|extensions| extensions.scale_to_zero);
        (idle.map_or(min, |idle| idle.idle_replicas.min(min)), max)
    }

    /// Which other controller or autoscaler is in the way, if so.
    pub(super) fn conflict(&self) -> Option<&str> {
        self.conflict.as_deref()
    }

    /// Value and goal of each metric.
    pub(super) fn values(&self) -> impl Iterator<Item = (Value, Option<f64>)> {
        let metrics = self.autoscaler.metrics.iter().enumerate();
        metrics.map(|(place, metric)| (Value::of(self.proposal(place)), goal(metric.target)))
    }

    /// The autoscaler in words.
    #[must_use]
    pub fn view(&self) -> AutoscalerView {
        let autoscaler = &*self.autoscaler;
        let (min, max) = self.bounds();
        let is_known = |condition: &&Condition| {
            // One that is stored may have ended.
            let is_conflict =
                condition.kind.as_ref().is_err_and(|name| **name == *CONFLICT_CONDITION);
            !is_conflict || self.conflict.is_some()
        };
        AutoscalerView {
            key: self.key(),
            namespace: autoscaler.namespace.to_string(),
            name: autoscaler.name.to_string(),
            kind: self.kind.name.to_owned(),
            target: format!("{}/{}", autoscaler.target.kind, autoscaler.target.name),
            min,
            max,
            current: self.current,
            desired: self.desired,
            metrics: (0..autoscaler.metrics.len()).filter_map(|at| self.metric_view(at)).collect(),
            conditions: self
                .conditions
                .iter()
                .filter(is_known)
                .map(|condition| condition_view(condition, self.kind))
                .collect(),
            last_scale: self.last_scale,
            conflict: self.conflict.as_deref().map(str::to_owned),
        }
    }

    /// The decision in words.
    #[must_use]
    pub fn decision(&self) -> DecisionView {
        let from = self.found.unwrap_or(self.current);
        let to = self.wanted().unwrap_or(from);
        let mut lines = explain::lines(&self.steps, &self.autoscaler, self.time);
        if self.rescale.is_some()
            && let (false, Some(error)) = (self.rescaled, &self.error)
        {
            // The steps are what was computed; only a failed write is not among them.
            lines.push(format!("but that failed: {error}"));
        }
        DecisionView {
            time: self.time,
            from,
            to,
            rescaled: self.rescaled,
            outcome: self.outcome,
            reason: self.reason(),
            lines,
        }
    }

    /// The outcome's reason in one line.
    pub(super) fn reason(&self) -> String {
        let line = |step: Step<'_>| explain::line(&step, &self.autoscaler, self.time);
        match (self.outcome, &self.error) {
            (OutcomeKind::Failed, Some(error)) => error.to_string(),
            (OutcomeKind::Failed, None) => self.steps.iter().last().map(line).unwrap_or_default(),
            (OutcomeKind::Up | OutcomeKind::Down | OutcomeKind::Withheld, _) => {
                self.rescale_reason()
            }
            (OutcomeKind::Held | OutcomeKind::Limited | OutcomeKind::Paused, _) => {
                self.steps.iter().rev().find(holds).map(line).unwrap_or_default()
            }
            (OutcomeKind::Steady, _) if self.found == Some(0) => "nothing to do".to_owned(),
            (OutcomeKind::Steady, _) if self.steps.iter().any(|step| asks(&step)) => {
                "that is what the metrics ask for".to_owned()
            }
            (OutcomeKind::Steady, _) => "all metrics are near their targets".to_owned(),
        }
    }

    fn rescale_reason(&self) -> String {
        let reason = self.rescale.map(|rescale| rescale.reason.text(&self.autoscaler));
        let given = reason.filter(|reason| !reason.is_empty());
        given.unwrap_or("an earlier recommendation asks for it".into()).into_owned()
    }

    /// What the metric at a place of the spec proposed.
    fn proposal(&self, place: usize) -> Option<&Proposal> {
        self.steps.iter().find_map(|step| match step {
            Step::Proposal(proposal) if proposal.metric as usize == place => Some(proposal),
            _ => None,
        })
    }

    /// Whether the metric at a place of the spec was to be read and could not be.
    fn is_unread(&self, place: usize) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Invalid { metric, .. } => metric as usize == place,
            _ => false,
        })
    }

    fn metric_view(&self, place: usize) -> Option<MetricView> {
        let metric = self.autoscaler.metrics.get(place)?;
        let proposal = self.proposal(place);
        let unit = unit(metric);
        let value = Value::of(proposal);
        let goal = goal(metric.target);
        let words = |number: Option<f64>| number.map_or("unknown".to_owned(), |n| unit.text(n));
        Some(MetricView {
            name: explain::metric_name(&self.autoscaler, u32::try_from(place).ok()?),
            unit,
            value: value.number(),
            goal,
            current: match value {
                Value::NoPods => NO_PODS.to_owned(),
                value => words(value.number()),
            },
            target: words(goal),
            ratio: proposal.map(|p| p.ratio).filter(|ratio| ratio.is_finite()),
            state: match proposal {
                Some(proposal) => state(proposal),
                None if self.is_unread(place) => MetricState::Unread,
                None => MetricState::NotAsked,
            },
        })
    }
}

fn condition_view(condition: &Condition, kind: &Kind) -> ConditionView {
    let name = if kind.is_native() { wording::HPA } else { kind.name };
    ConditionView {
        kind: match &condition.kind {
            Ok(kind) => kind.name().to_owned(),
            Err(name) => name.to_string(),
        },
        status: condition.status.name().to_owned(),
        reason: condition.note.reason().to_owned(),
        message: wording::about(&condition.note.message(), name).into_owned(),
        since: condition.since,
    }
}

/// Whether a step is a metric that is off its target.
fn asks(step: &Step<'_>) -> bool {
    matches!(step, Step::Proposal(proposal) if proposal.verdict != Verdict::WithinTolerance)
}

fn goal(target: MetricTarget) -> Option<f64> {
    match target {
        MetricTarget::Value(target) | MetricTarget::AverageValue(target) => Some(whole(target)),
        MetricTarget::Utilization(percent) => Some(f64::from(percent)),
        MetricTarget::Unset => None,
    }
}

fn state(proposal: &Proposal) -> MetricState {
    match proposal.verdict {
        _ if has_no_pods(proposal) => MetricState::NoPods,
        Verdict::WithinTolerance => MetricState::Near,
        _ if proposal.ratio > 1.0 => MetricState::Above,
        _ if proposal.ratio < 1.0 => MetricState::Below,
        _ => MetricState::Near,
    }
}

/// What is shown in place of a number that no pods share.
pub(super) const NO_PODS: &str = "no pods";

/// What a metric says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// Nothing: it could not be read.
    Unread,
    /// Nothing that can be shown: it is an average over no pods, which the status holds as the largest
    /// number there is.
    NoPods,
    Number(f64),
}

impl Value {
    fn of(proposal: Option<&Proposal>) -> Value {
        match proposal {
            None => Value::Unread,
            Some(proposal) if has_no_pods(proposal) => Value::NoPods,
            Some(proposal) => amount(&proposal.current, proposal.target),
        }
    }

    fn number(self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(number),
            Value::Unread | Value::NoPods => None,
        }
    }
}

/// Whether a metric per pod was read while there were no pods to share it among.
fn has_no_pods(proposal: &Proposal) -> bool {
    matches!(proposal.target, MetricTarget::AverageValue(_)) && !proposal.ratio.is_finite()
}

fn amount(current: &Current, target: MetricTarget) -> Value {
    let number = match target {
        MetricTarget::Value(_) => current.value.map(whole),
        MetricTarget::AverageValue(_) => current.average_value.map(whole),
        MetricTarget::Utilization(_) => current.average_utilization.map(f64::from),
        MetricTarget::Unset => None,
    };
    number.map_or(Value::Unread, Value::Number)
}

#[allow(clippy::cast_precision_loss)]
fn whole(Milli(amount): Milli) -> f64 {
    amount as f64 / 1000.0
}

fn unit(metric: &Metric) -> Unit {
    match (&*metric.source, metric.target) {
        (_, MetricTarget::Utilization(_)) => Unit::Percent,
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
pub(super) mod sample;
#[cfg(test)]
mod tests;
