//! How far a ratio may be off one before anything moves.

use crate::model::{
    Autoscaler, Behavior, Extensions, MetricTarget, Milli, ScalingRules, Settings, Tolerance,
    Watermarks,
};

/// Between which ratios nothing moves.
#[derive(Clone, Copy)]
pub(super) struct Tolerances {
    lowest: f64,
    highest: f64,
}

impl Tolerances {
    /// Those of an autoscaler: the controller's, unless its behavior has its own.
    #[inline]
    pub(super) fn of(autoscaler: &Autoscaler, settings: &Settings) -> Tolerances {
        Tolerances::or(autoscaler, settings, Tolerance::default())
    }

    #[inline]
    fn or(autoscaler: &Autoscaler, settings: &Settings, otherwise: Tolerance) -> Tolerances {
        let own = |rules: fn(&Behavior) -> &ScalingRules, otherwise: Option<f64>| {
            let behavior = autoscaler.behavior.as_ref();
            behavior.and_then(|b| rules(b).tolerance).or(otherwise).unwrap_or(settings.tolerance)
        };
        let down = own(|b| &b.scale_down, otherwise.down);
        let up = own(|b| &b.scale_up, otherwise.up);
        Tolerances { lowest: 1.0 - down, highest: 1.0 + up }
    }

    /// Those of one metric with rules of its own: its watermarks, or else the autoscaler's.
    pub(super) fn of_metric(
        autoscaler: &Autoscaler,
        settings: &Settings,
        extensions: &Extensions,
        target: MetricTarget,
        watermarks: Option<Watermarks>,
    ) -> Tolerances {
        let target = match target {
            MetricTarget::Value(Milli(target)) | MetricTarget::AverageValue(Milli(target)) => {
                target as f64
            }
            MetricTarget::Utilization(percent) => f64::from(percent) * 1000.0,
            MetricTarget::Unset => f64::NAN,
        };
        match (watermarks, extensions.tolerance) {
            (Some(Watermarks { low, high }), _) => {
                Tolerances { lowest: low.0 as f64 / target, highest: high.0 as f64 / target }
            }
            (None, Some(tolerance)) => Tolerances::or(autoscaler, settings, tolerance),
            (None, None) => Tolerances::of(autoscaler, settings),
        }
    }

    /// Whether a ratio is close enough to one to do nothing.
    #[inline]
    pub(super) fn allow(self, ratio: f64) -> bool {
        self.lowest <= ratio && ratio <= self.highest
    }
}
