//! When a status is worth writing. What people act on is written at once; a status of which only
//! measured values have changed is written less often, so that a large cluster does not drown its
//! API server in numbers that nobody reads.

use podscale_core::{Span, StatusChange, Time};

/// How many statuses a second may be written for their values alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RefreshRate(pub f64);

impl Default for RefreshRate {
    /// Up to three hundred autoscalers at the usual period are refreshed each time they are
    /// reconciled, as Kubernetes does.
    fn default() -> RefreshRate {
        RefreshRate(20.0)
    }
}

/// How many statuses there are to refresh, and how often each is reconciled.
#[derive(Clone, Copy, Debug)]
pub struct RefreshDemand {
    /// How many autoscalers there are.
    pub autoscalers: usize,
    /// How often each is reconciled.
    pub period: Span,
}

impl RefreshRate {
    /// Whether a status is to be written now that was last written at `last`.
    #[must_use]
    pub fn is_due(
        self,
        change: StatusChange,
        last: Option<Time>,
        now: Time,
        demand: RefreshDemand,
    ) -> bool {
        match (change, last) {
            (StatusChange::None, _) => false,
            (StatusChange::Values, Some(last)) => now.since(last) >= self.refresh_interval(demand),
            (StatusChange::Values, None) | (StatusChange::Matters, _) => true,
        }
    }

    /// How long it takes until each was refreshed once.
    fn refresh_interval(self, demand: RefreshDemand) -> Span {
        let seconds = demand.autoscalers as f64 / self.0.max(f64::MIN_POSITIVE);
        let interval = Span((seconds * 1e6) as i64);
        // Within a period is at every reconcile: they are not evenly spaced to the moment.
        if interval <= demand.period { Span(0) } else { interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_wait_and_what_matters_does_not() {
        use StatusChange::{Matters, None as Nothing, Values};
        let rate = RefreshRate(20.0);
        let cases = [
            ("nothing to write", Nothing, Some(0), 10, false),
            ("few: as Kubernetes does", Values, Some(99), 300, true),
            ("many: not yet", Values, Some(1), 5000, false),
            ("many: it is time", Values, Some(-150), 5000, true),
            ("never written", Values, None, 5000, true),
            ("it matters", Matters, Some(99), 100_000, true),
        ];
        for (what, change, last, autoscalers, expected) in cases {
            let at = |seconds| Time(0).after(Span::seconds(seconds));
            let demand = RefreshDemand { autoscalers, period: Span::seconds(15) };
            let due = rate.is_due(change, last.map(at), at(100), demand);
            assert_eq!(due, expected, "{what}");
        }
        let quick = RefreshDemand { autoscalers: 200, period: Span::seconds(1) };
        assert!(
            !rate.is_due(Values, Some(Time(0)), Time(2_000_000), quick),
            "not at every reconcile"
        );
        assert!(rate.is_due(Values, Some(Time(0)), Time(10_000_000), quick));
        assert!(!RefreshRate(0.0).is_due(Values, Some(Time(0)), Time(i64::MAX / 2), quick));
    }
}
