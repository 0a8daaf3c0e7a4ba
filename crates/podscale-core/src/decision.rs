//! What was decided, and what becomes of it as the results of its writes come in.

use crate::history::{Learned, Memory, Scaled};
use crate::model::{Autoscaler, Scheduled};
use crate::snapshot::Snapshot;
use crate::status::{
    Condition, ConditionChanges, ConditionKind, Current, Note, Status, StoredMetric,
};
use crate::steps::{Steps, Withheld};
use crate::text;
use crate::time::Time;
use std::borrow::Cow;
use std::sync::Arc;

/// What one snapshot led to. Whoever acts on it drives a [`crate::Pass`], which keeps it up to date
/// with the results of its writes.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The size the target was found with; `None` if it could not be read.
    pub found: Option<i32>,
    /// The size the target should have, as the status shows it; `None` leaves what is stored.
    pub desired: Option<i32>,
    /// The change to make, if any.
    pub rescale: Option<Rescale>,
    /// The conditions set on the way.
    pub conditions: ConditionChanges,
    /// What the metrics said.
    pub metrics: MetricResults,
    /// The events to record, in order.
    pub events: Vec<Event>,
    /// What the history learns.
    pub learned: Learned,
    /// When the target was given its new size, once that is done.
    pub rescaled_at: Option<Time>,
    /// Why the pass failed, in whole or in part.
    pub error: Option<Box<str>>,
    /// What happened on the way.
    pub steps: Steps,
}

/// A change of the target's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rescale {
    /// The size it has.
    pub from: i32,
    /// The size it gets.
    pub to: i32,
    /// Why.
    pub reason: RescaleReason,
}

/// Why a target's size changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RescaleReason {
    /// It was above the maximum.
    AboveMax,
    /// It was below the minimum.
    BelowMin,
    /// A metric asks for more.
    AboveTarget {
        /// Its place in the spec.
        metric: u32,
    },
    /// No metric asks for as much.
    BelowTarget,
    /// An earlier recommendation asks for it, while the metrics are content now.
    Earlier,
    /// The metrics together ask for more.
    CombinedAboveTarget,
    /// It had no replicas though it should.
    Zero,
    /// A person holds it at this size.
    Held,
    /// Nothing has been active for long.
    Idle,
    /// Something is active again.
    Activated,
    /// No size could be computed for long.
    Fallback,
    /// More will be needed before a pod that is added now is ready.
    Expected,
}

impl RescaleReason {
    /// The reason as events give it.
    #[must_use]
    pub fn text(self, autoscaler: &Autoscaler) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            RescaleReason::AboveMax => text::ABOVE_MAX,
            RescaleReason::BelowMin => text::BELOW_MIN,
            RescaleReason::AboveTarget { metric } => {
                return text::above_target(autoscaler.title(metric)).into();
            }
            RescaleReason::BelowTarget => text::ALL_BELOW_TARGET,
            RescaleReason::Earlier => "",
            RescaleReason::CombinedAboveTarget => text::COMBINED_ABOVE_TARGET,
            RescaleReason::Zero => text::NOT_ABOVE_ZERO,
            RescaleReason::Held => text::HELD_BY_SPEC,
            RescaleReason::Idle => text::NOTHING_ACTIVE,
            RescaleReason::Activated => text::ACTIVE,
            RescaleReason::Fallback => text::METRICS_GONE,
            RescaleReason::Expected => text::MORE_EXPECTED,
        })
    }
}

/// How a status differs from the stored one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusChange {
    /// Not at all.
    None,
    /// In what the metrics measured, and in nothing else.
    Values,
    /// In something that people or programs act on.
    Matters,
}

/// What a decision says of the metrics in the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricResults {
    /// Nothing: what is stored stays.
    Untouched,
    /// They were not read, and the stored values are cleared.
    NotRead,
    /// They were read, as [`Decision::read_metrics`] gives them.
    Read,
}

/// Something to be reported about the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a warning or normal.
    pub warning: bool,
    /// The reason, for programs.
    pub reason: Cow<'static, str>,
    /// The message, for people.
    pub message: String,
}

impl Event {
    /// Its type in the API.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        if self.warning { "Warning" } else { "Normal" }
    }

    /// A warning.
    #[must_use]
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Event {
        Event { warning: true, reason: Cow::Borrowed(reason), message: message.into() }
    }

    /// An event that is not a warning.
    #[must_use]
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Event {
        Event { warning: false, reason: Cow::Borrowed(reason), message: message.into() }
    }
}

const FAILED_COMPUTE: &str = "FailedComputeMetricsReplicas";

impl Decision {
    /// Nothing was decided yet.
    #[inline]
    pub(crate) fn undecided() -> Decision {
        Decision {
            found: None,
            desired: None,
            rescale: None,
            conditions: ConditionChanges::default(),
            metrics: MetricResults::Untouched,
            events: Vec::new(),
            learned: Learned::default(),
            rescaled_at: None,
            error: None,
            steps: Steps::default(),
        }
    }

    /// The size that the target has in the end.
    #[must_use]
    pub fn replicas(&self) -> Option<i32> {
        match (&self.rescale, self.rescaled_at) {
            (Some(rescale), Some(_)) => Some(rescale.to),
            _ => self.found,
        }
    }

    /// Why the target was not given its new size, if that was on purpose.
    #[must_use]
    pub fn withheld(&self) -> Option<Withheld> {
        self.steps.withheld
    }

    /// What the schedules of the autoscaler make of its bounds, if one of them is in force. Only where no size
    /// was found, and so nothing decided, is the calendar asked.
    #[must_use]
    pub fn scheduled(&self, snapshot: &Snapshot<'_>) -> Option<Cow<'_, Scheduled>> {
        if self.found.is_some() {
            return self.steps.scheduled().map(Cow::Borrowed);
        }
        let autoscaler = snapshot.autoscaler;
        let schedules = autoscaler.extensions.as_deref()?.schedules.as_ref()?;
        schedules.at(snapshot.now, autoscaler.bounds()).map(Cow::Owned)
    }

    /// What rules beyond a native autoscaler's remember after it.
    #[must_use]
    pub fn memory<'a>(&'a self, snapshot: &Snapshot<'a>) -> Option<&'a Memory> {
        self.learned.memory.as_deref().or(snapshot.history.memory.as_deref())
    }

    /// What each metric of the spec said, in order; `None` where it could not be read.
    pub fn read_metrics(&self) -> impl ExactSizeIterator<Item = Option<Current>> {
        self.steps.metrics.iter().map(|answer| Some(answer.as_ref().ok()?.current))
    }

    /// Takes in that the target was given its new size.
    pub(crate) fn scale_written(&mut self, snapshot: &Snapshot<'_>, at: Time) {
        let Some(Rescale { from, to, reason }) = self.rescale else { return };
        let (autoscaler, stored) = (snapshot.autoscaler, snapshot.status);
        let message = text::new_size(to, &reason.text(autoscaler));
        self.events.push(Event::normal("SuccessfulRescale", message));
        let able = ConditionKind::AbleToScale;
        self.conditions.set(stored, able, true, Note::SucceededRescale(to), at);
        if autoscaler.reports_zero() {
            let zeroed = from > 0 && to == 0 && autoscaler.may_set_zero();
            let note = if zeroed { Note::ScaledToZero } else { Note::NotScaledToZero };
            self.conditions.set(stored, ConditionKind::ScaledToZero, zeroed, note, at);
        }
        self.rescaled_at = Some(at);
        self.learned.scaled = autoscaler.behavior.as_ref().map(|b| Scaled::new(b, from, to, at));
    }

    /// Takes in that the target could not be given its new size.
    pub(crate) fn scale_write_failed(&mut self, snapshot: &Snapshot<'_>, error: &str, at: Time) {
        let Some(Rescale { to, reason, .. }) = self.rescale else { return };
        let reason = reason.text(snapshot.autoscaler);
        let message = text::new_size_failed(to, &reason, error);
        self.events.push(Event::warning("FailedRescale", message));
        let note = Note::text("FailedUpdateScale", text::unable_to_update_scale(error));
        self.conditions.set(snapshot.status, ConditionKind::AbleToScale, false, note, at);
        self.desired = None;
        self.error = Some(text::rescale_failed(snapshot.autoscaler, error).into());
    }

    /// Takes in that the status could not be written.
    pub(crate) fn status_write_failed(&mut self, snapshot: &Snapshot<'_>, error: &str) {
        let event = Event::warning("FailedUpdateStatus", error);
        // The status is written before the failure to compute is reported.
        match self.events.iter().position(|e| e.reason == FAILED_COMPUTE) {
            Some(place) => self.events.insert(place, event),
            None => self.events.push(event),
        }
        // A pass that ended early keeps the error that ended it.
        if self.desired.is_some() {
            self.error = Some(text::status_failed(snapshot.autoscaler, error).into());
        }
    }

    /// Whether the status that follows from this decision differs from the stored one.
    #[must_use]
    pub fn changes_status(&self, snapshot: &Snapshot<'_>) -> bool {
        self.status_change(snapshot) != StatusChange::None
    }

    /// How the status that follows from this decision differs from the stored one.
    #[must_use]
    pub fn status_change(&self, snapshot: &Snapshot<'_>) -> StatusChange {
        let stored = snapshot.status;
        let rescaled = self.rescaled_at.is_some() && self.rescaled_at != stored.last_scale;
        if rescaled || self.conditions.differ_from(stored, snapshot.autoscaler) {
            return StatusChange::Matters;
        }
        let Some(found) = self.found else {
            return StatusChange::None;
        };
        let matters = stored.observed_generation != Some(snapshot.autoscaler.generation)
            || stored.current_replicas != found
            || self.desired.is_some_and(|desired| stored.desired_replicas != desired);
        if matters { StatusChange::Matters } else { self.metrics_change(snapshot) }
    }

    fn metrics_change(&self, snapshot: &Snapshot<'_>) -> StatusChange {
        let stored = &snapshot.status.metrics;
        match self.metrics {
            MetricResults::Untouched => return StatusChange::None,
            MetricResults::NotRead if stored.is_empty() => return StatusChange::None,
            MetricResults::NotRead => return StatusChange::Matters,
            MetricResults::Read => {}
        }
        if stored.len() != self.read_metrics().len() {
            return StatusChange::Matters;
        }
        let lined_up = stored.iter().zip(self.read_metrics()).zip(&snapshot.autoscaler.metrics);
        let mut change = StatusChange::None;
        for ((old, new), metric) in lined_up {
            match (old, new) {
                (StoredMetric::Known { source, current }, Some(new)) => {
                    if !(Arc::ptr_eq(source, &metric.source) || *source == metric.source) {
                        return StatusChange::Matters;
                    }
                    if *current != new {
                        change = StatusChange::Values;
                    }
                }
                (StoredMetric::Unread, None) => {}
                _ => return StatusChange::Matters,
            }
        }
        change
    }

    /// The status that follows from this decision.
    #[must_use]
    pub fn status(&self, snapshot: &Snapshot<'_>) -> Status {
        let stored = snapshot.status;
        let conditions: Vec<Condition> =
            self.conditions.merged_into(&stored.conditions, snapshot.autoscaler);
        let Some(found) = self.found else {
            return Status { conditions, ..stored.clone() };
        };
        let metrics = match self.metrics {
            MetricResults::Untouched => stored.metrics.clone(),
            MetricResults::NotRead => Vec::new(),
            MetricResults::Read => self
                .read_metrics()
                .zip(&snapshot.autoscaler.metrics)
                .map(|(current, metric)| match current {
                    Some(current) => {
                        StoredMetric::Known { source: Arc::clone(&metric.source), current }
                    }
                    None => StoredMetric::Unread,
                })
                .collect(),
        };
        Status {
            observed_generation: Some(snapshot.autoscaler.generation),
            last_scale: self.rescaled_at.or(stored.last_scale),
            last_active: stored.last_active,
            current_replicas: found,
            desired_replicas: self.desired.unwrap_or(stored.desired_replicas),
            metrics,
            conditions,
        }
    }

    /// Notes a failure to compute a size.
    pub(crate) fn compute_failed(&mut self, snapshot: &Snapshot<'_>, error: &str) {
        self.events.push(Event::warning(FAILED_COMPUTE, error));
        self.error = Some(text::compute_failed(snapshot.autoscaler, error).into());
    }
}
