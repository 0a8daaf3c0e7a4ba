//! Steps that only autoscalers with extensions take, as data.

use super::Step;
use crate::model::{Milli, OnMissing, Scheduled};
use crate::predict::{Forecast, Pattern};
use crate::time::{Span, Time};
use std::sync::Arc;

/// A place for each stage that a native autoscaler does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExtendedSteps {
    pub(crate) scheduled: Option<Scheduled>,
    pub(crate) order: Option<Order>,
    pub(crate) substitutes: Vec<Substituted>,
    pub(crate) activity: Option<Activity>,
    pub(crate) combined: Option<(CombinedBy, i32)>,
    pub(crate) formula_failed: Option<FormulaFailure>,
    pub(crate) fallback: Option<Fallen>,
    /// Whether an HPA decides the size.
    pub(crate) left_to_hpa: bool,
    pub(crate) queued: Option<Queued>,
    pub(crate) windowed: Option<Windowed>,
    pub(crate) forecast: Option<Forecasted>,
    pub(crate) led: Option<Led>,
    pub(crate) spared: Option<Spared>,
    pub(crate) guarded: Option<Guarded>,
    pub(crate) forbidden: Option<Forbidden>,
    pub(crate) direction_paused: Option<DirectionPaused>,
    /// Whether the size is decided and not to be set.
    pub(crate) dry_run: bool,
    pub(crate) costs: Option<Costs>,
}

/// Deletion costs that pods got before the size went down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Costs {
    pub(crate) metric: u32,
    pub(crate) pods: u32,
    pub(crate) error: Option<Arc<str>>,
}

/// What was done without asking the metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    Paused { until: Option<Time> },
    Held { replicas: i32, until: Option<Time> },
    SetToOne,
}

/// What stands in for a metric without a usable value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Substituted {
    pub(crate) metric: u32,
    pub(crate) by: OnMissing,
    pub(crate) replicas: Option<i32>,
}

/// Metrics that have been gone for so long that the fallback is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fallen {
    pub(crate) since: Time,
    pub(crate) replicas: i32,
}

/// What a queue made of the size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queued {
    pub(crate) waiting: Milli,
    pub(crate) arrivals: Milli,
    pub(crate) within: Span,
    pub(crate) from: i32,
    pub(crate) to: i32,
}

/// What the mean of a window made of the size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Windowed {
    pub(crate) from: i32,
    pub(crate) to: i32,
    pub(crate) burst: bool,
}

/// A forecast, and what it made of the size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forecasted {
    pub(crate) forecast: Forecast,
    pub(crate) from: i32,
    pub(crate) to: i32,
}

/// What following the demand ahead made of the size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Led {
    pub(crate) gained: Milli,
    pub(crate) horizon: Span,
    pub(crate) from: i32,
    pub(crate) to: i32,
}

/// What room for what the demand usually gains made of the size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spared {
    pub(crate) room: Milli,
    pub(crate) allowed: Option<u16>,
    pub(crate) horizon: Span,
    pub(crate) from: i32,
    pub(crate) to: i32,
}

/// Pods that are kept because they will be needed again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Guarded {
    pub(crate) pattern: Pattern,
    pub(crate) peak: Milli,
    pub(crate) within: Span,
    pub(crate) from: i32,
    pub(crate) to: i32,
}

/// A change of size that came too soon after another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forbidden {
    pub(crate) direction: Direction,
    pub(crate) from: i32,
    pub(crate) to: i32,
    pub(crate) last_scale: Time,
    pub(crate) window: Span,
}

/// A change of size in a direction that a person paused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DirectionPaused {
    pub(crate) direction: Direction,
    pub(crate) from: i32,
    pub(crate) to: i32,
    pub(crate) until: Option<Time>,
}

/// Towards which side a size changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// Towards more replicas.
    Up,
    /// Towards fewer replicas.
    Down,
}

/// How proposals were combined, otherwise than by the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CombinedBy {
    /// The smallest decides.
    Min,
    /// Their mean, rounded up.
    Average,
    /// A formula, rounded up.
    Formula,
    /// There is no metric, which asks for nothing.
    Nothing,
}

/// Why a formula gave no size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum FormulaFailure {
    /// It needs the metric at this place, which has no usable value.
    Missing(u32),
    /// Its result is not a finite number.
    NotFinite,
}

/// Whether anything is active, where idle targets get another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Activity {
    /// A metric is above its activation threshold.
    Active {
        /// Its place in the spec.
        metric: u32,
    },
    /// No metric is, but one was not long ago.
    Cooling {
        /// When that will have been long ago.
        until: Time,
    },
    /// No metric is, which is all that follows from it.
    Inactive,
    /// It counts as active, whatever metrics say.
    Forced,
    /// No metric is, nor has been for long.
    Idle {
        /// The size of an idle target.
        replicas: i32,
    },
    /// A metric that could be active cannot be read.
    Unknown {
        /// Its place in the spec.
        metric: u32,
    },
}

impl ExtendedSteps {
    pub(super) fn scheduled(&self) -> Option<Step<'_>> {
        self.scheduled.as_ref().map(Step::Scheduled)
    }

    pub(super) fn order(&self) -> Option<Step<'_>> {
        Some(match self.order? {
            Order::Paused { until } => Step::Paused { until },
            Order::Held { replicas, until } => Step::Held { replicas, until },
            Order::SetToOne => Step::SetToOne,
        })
    }

    /// What stands in for metrics, and whether anything is active.
    pub(super) fn substitutes(&self) -> impl DoubleEndedIterator<Item = Step<'_>> {
        let activity = self.activity.map(|activity| Step::Activity { activity });
        let step = |s: &Substituted| {
            let Substituted { metric, by, replicas } = *s;
            Step::Substituted { metric, by, replicas }
        };
        self.substitutes.iter().map(step).chain(activity)
    }

    /// What became of the proposals, beside the agreement that native autoscalers know.
    pub(super) fn agreed(&self) -> impl DoubleEndedIterator<Item = Step<'_>> {
        let combined = self.combined.map(|(by, replicas)| Step::Combined { by, replicas });
        let failed = self.formula_failed.map(|reason| Step::FormulaFailed { reason });
        let fallback =
            self.fallback.map(|Fallen { since, replicas }| Step::Fallback { since, replicas });
        let left = self.left_to_hpa.then_some(Step::LeftToHpa);
        combined.into_iter().chain(failed).chain(fallback).chain(left).chain(self.ahead())
    }

    /// What a queue and the window made of it, and what was done ahead of the demand.
    fn ahead(&self) -> impl DoubleEndedIterator<Item = Step<'_>> {
        let queued = self.queued.map(|Queued { waiting, arrivals, within, from, to }| {
            Step::Queued { waiting, arrivals, within, from, to }
        });
        let windowed =
            self.windowed.map(|Windowed { from, to, burst }| Step::Windowed { from, to, burst });
        let forecast = self.forecast.as_ref().map(|Forecasted { forecast, from, to }| {
            Step::Forecast { forecast, from: *from, to: *to }
        });
        let led = self.led.map(|Led { gained, horizon, from, to }| Step::Led {
            gained,
            horizon,
            from,
            to,
        });
        let spared = self.spared.map(|Spared { room, allowed, horizon, from, to }| Step::Spared {
            room,
            allowed,
            horizon,
            from,
            to,
        });
        let guarded = self.guarded.map(|Guarded { pattern, peak, within, from, to }| {
            Step::Guarded { pattern, peak, within, from, to }
        });
        queued.into_iter().chain(windowed).chain(forecast).chain(led).chain(spared).chain(guarded)
    }

    /// What became of deletion costs.
    pub(super) fn costs(&self) -> Option<Step<'_>> {
        let Costs { metric, pods, error } = self.costs.as_ref()?;
        Some(Step::DeletionCosts { metric: *metric, pods: *pods, error: error.as_deref() })
    }

    /// What kept the size, after rates and bounds.
    pub(super) fn held_back(&self) -> impl DoubleEndedIterator<Item = Step<'_>> {
        let forbidden = self.forbidden.map(|forbidden| {
            let Forbidden { direction, from, to, last_scale, window } = forbidden;
            Step::Forbidden { direction, from, to, last_scale, window }
        });
        let paused = self.direction_paused.map(|paused| {
            let DirectionPaused { direction, from, to, until } = paused;
            Step::DirectionPaused { direction, from, to, until }
        });
        forbidden.into_iter().chain(paused)
    }
}
