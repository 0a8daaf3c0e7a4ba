//! What the dashboard keeps of a decision about the size of a target, and its words.

use super::super::model::{ConditionView, MetricState, MetricView, Unit};
use crate::controller::outcome::{OutcomeKind, holds};
use crate::dialect::Kind;
use podscale_api::hpa::wording;
use podscale_core::model::{MetricTarget, Milli, Source};
use podscale_core::status::{Condition, Current};
use podscale_core::steps::{Proposal, Steps, Verdict};
use podscale_core::{Autoscaler, Metric, Rescale, Step, Time, explain};
use std::sync::Arc;

/// What a decision about the size of a target was made of.
#[derive(Debug)]
pub(super) struct SizeMade {
    pub(super) kind: &'static Kind,
    pub(super) autoscaler: Arc<Autoscaler>,
    pub(super) rescale: Option<Rescale>,
    pub(super) conditions: Box<[Condition]>,
    pub(super) error: Option<Box<str>>,
    pub(super) steps: Steps,
}

impl SizeMade {
    pub(super) fn values(&self) -> impl Iterator<Item = (Value, Option<f64>)> {
        let metrics = self.autoscaler.metrics.iter().enumerate();
        metrics.map(|(place, metric)| (Value::of(self.proposal(place)), goal(metric.target)))
    }

    pub(super) fn target(&self) -> String {
        format!("{}/{}", self.autoscaler.target.kind, self.autoscaler.target.name)
    }

    pub(super) fn metrics(&self) -> Vec<MetricView> {
        (0..self.autoscaler.metrics.len()).filter_map(|at| self.metric_view(at)).collect()
    }

    pub(super) fn conditions(&self) -> Vec<ConditionView> {
        let conditions = self.conditions.iter();
        conditions.map(|condition| condition_view(condition, self.kind)).collect()
    }

    pub(super) fn lines(&self, time: Time, rescaled: bool) -> Vec<String> {
        let mut lines = explain::lines(&self.steps, &self.autoscaler, time);
        if self.rescale.is_some()
            && let (false, Some(error)) = (rescaled, &self.error)
        {
            // The steps are what was computed; only a failed write is not among them.
            lines.push(format!("but that failed: {error}"));
        }
        lines
    }

    pub(super) fn reason(&self, outcome: OutcomeKind, found: Option<i32>, time: Time) -> String {
        let line = |step: Step<'_>| explain::line(&step, &self.autoscaler, time);
        match (outcome, &self.error) {
            (OutcomeKind::Failed, Some(error)) => error.to_string(),
            (OutcomeKind::Failed, None) => self.steps.iter().last().map(line).unwrap_or_default(),
            (OutcomeKind::Up | OutcomeKind::Down | OutcomeKind::Withheld, _) => {
                self.rescale_reason()
            }
            (OutcomeKind::Held | OutcomeKind::Limited | OutcomeKind::Paused, _) => {
                self.steps.iter().rev().find(holds).map(line).unwrap_or_default()
            }
            (OutcomeKind::Steady, _) if found == Some(0) => "nothing to do".to_owned(),
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
pub(in super::super) const NO_PODS: &str = "no pods";

/// What a metric says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Value {
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
pub(super) fn whole(Milli(amount): Milli) -> f64 {
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
