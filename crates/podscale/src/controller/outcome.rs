//! What kind of outcome a pass had, in one word: the same in metrics, spans, the dashboard and the
//! command line.

use podscale_core::{Decision, Step};
use serde::{Deserialize, Serialize};

/// The kind of outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// More replicas.
    Up,
    /// Fewer replicas.
    Down,
    /// The size is right.
    Steady,
    /// Another size was asked for, and earlier recommendations hold this one.
    Held,
    /// Another size was asked for, and a bound or a rate policy keeps this one.
    Limited,
    /// Another size was decided, and not written on purpose: in a dry run, or while another controller
    /// manages the object.
    Withheld,
    /// Left alone because somebody set it to zero.
    Paused,
    /// It could not be decided or done in full.
    Failed,
}

impl Outcome {
    /// Of a decision, once its writes have ended.
    #[must_use]
    pub fn of(decision: &Decision) -> Outcome {
        if let Some(rescale) = &decision.rescale {
            return match decision.rescaled_at {
                None if decision.withheld().is_some() => Outcome::Withheld,
                None => Outcome::Failed,
                Some(_) if rescale.to > rescale.from => Outcome::Up,
                Some(_) => Outcome::Down,
            };
        }
        if decision.error.is_some() {
            return Outcome::Failed;
        }
        match decision.steps.iter().rev().find(holds) {
            Some(Step::Stabilized { .. }) => Outcome::Held,
            Some(Step::Limited { .. }) => Outcome::Limited,
            Some(Step::Disabled) => Outcome::Paused,
            Some(_) => Outcome::Failed,
            None if decision.found.is_none() => Outcome::Failed,
            None => Outcome::Steady,
        }
    }

    /// The outcome in one word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Outcome::Up => "up",
            Outcome::Down => "down",
            Outcome::Steady => "steady",
            Outcome::Held => "held",
            Outcome::Limited => "limited",
            Outcome::Withheld => "withheld",
            Outcome::Paused => "paused",
            Outcome::Failed => "failed",
        }
    }
}

/// Whether a step is one that keeps the target from the size that was asked for.
pub(crate) fn holds(step: &Step<'_>) -> bool {
    match step {
        Step::Stabilized { from, to, .. } | Step::Limited { from, to, .. } => from != to,
        Step::Disabled | Step::Blocked { .. } => true,
        _ => false,
    }
}
