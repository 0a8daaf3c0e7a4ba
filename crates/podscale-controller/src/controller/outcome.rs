//! What kind of outcome a pass had, in one word: the same in metrics, spans, the dashboard and the
//! command line.

use podscale_core::{Decision, Step};
use serde::{Deserialize, Serialize};

/// The kind of outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutcomeKind {
    /// More replicas.
    Up,
    /// Fewer replicas.
    Down,
    /// The size is right.
    Steady,
    /// Another size was asked for, and earlier recommendations, a forbidden window or a person's order
    /// hold this one.
    Held,
    /// Another size was asked for, and a bound or a rate policy keeps this one.
    Limited,
    /// Another size was decided, and not written on purpose: in a dry run, or while another controller
    /// manages the object.
    Withheld,
    /// Left alone because somebody set it to zero, or paused it.
    Paused,
    /// It could not be decided or done in full.
    Failed,
}

impl OutcomeKind {
    /// Of a decision, once its writes have ended.
    #[must_use]
    pub fn of(decision: &Decision) -> OutcomeKind {
        if let Some(rescale) = &decision.rescale {
            return match decision.rescaled_at {
                None if decision.withheld().is_some() => OutcomeKind::Withheld,
                None => OutcomeKind::Failed,
                Some(_) if rescale.to > rescale.from => OutcomeKind::Up,
                Some(_) => OutcomeKind::Down,
            };
        }
        if decision.error.is_some() {
            return OutcomeKind::Failed;
        }
        match decision.steps.iter().rev().find(holds) {
            Some(Step::Stabilized { .. } | Step::Held { .. } | Step::Forbidden { .. }) => {
                OutcomeKind::Held
            }
            Some(Step::Limited { .. }) => OutcomeKind::Limited,
            Some(Step::Disabled | Step::Paused { .. } | Step::DirectionPaused { .. }) => {
                OutcomeKind::Paused
            }
            Some(_) => OutcomeKind::Failed,
            None if decision.found.is_none() => OutcomeKind::Failed,
            None => OutcomeKind::Steady,
        }
    }

    /// The outcome in one word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            OutcomeKind::Up => "up",
            OutcomeKind::Down => "down",
            OutcomeKind::Steady => "steady",
            OutcomeKind::Held => "held",
            OutcomeKind::Limited => "limited",
            OutcomeKind::Withheld => "withheld",
            OutcomeKind::Paused => "paused",
            OutcomeKind::Failed => "failed",
        }
    }
}

/// Whether a step is one that keeps the target from the size that was asked for.
pub(crate) fn holds(step: &Step<'_>) -> bool {
    match step {
        Step::Stabilized { from, to, .. } | Step::Limited { from, to, .. } => from != to,
        Step::Disabled
        | Step::Blocked { .. }
        | Step::FormulaFailed { .. }
        | Step::Paused { .. }
        | Step::Held { .. }
        | Step::Forbidden { .. }
        | Step::DirectionPaused { .. } => true,
        _ => false,
    }
}
