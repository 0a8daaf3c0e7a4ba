//! How far a ratio may be off one before anything moves.

use crate::model::{Autoscaler, Behavior, ScalingRules, Settings};

/// The tolerated distance of a ratio from one, per direction.
#[derive(Clone, Copy)]
pub(super) struct Tolerances {
    down: f64,
    up: f64,
}

impl Tolerances {
    /// Those of an autoscaler: the controller's, unless its behavior has its own.
    #[inline]
    pub(super) fn of(autoscaler: &Autoscaler, settings: &Settings) -> Tolerances {
        let own = |rules: fn(&Behavior) -> &ScalingRules| {
            let behavior = autoscaler.behavior.as_ref();
            behavior.and_then(|b| rules(b).tolerance).unwrap_or(settings.tolerance)
        };
        Tolerances { down: own(|b| &b.scale_down), up: own(|b| &b.scale_up) }
    }

    /// Whether a ratio is close enough to one to do nothing.
    #[inline]
    pub(super) fn allow(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}
