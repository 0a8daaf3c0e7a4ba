//! When a status is worth writing. What people act on is written at once; a status of which only
//! measured values have changed waits its turn, so that a large cluster does not drown its API
//! server in numbers that nobody reads.

use podscale_core::{Span, StatusChange, Time};

/// How many statuses a second may be written for their values alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RefreshRate(pub f64);

impl Default for RefreshRate {
    /// Up to three hundred autoscalers at the usual period are refreshed each time they are looked
    /// at, as Kubernetes does.
    fn default() -> RefreshRate {
        RefreshRate(20.0)
    }
}

impl RefreshRate {
    /// Whether a status is to be written now, when one of `autoscalers` was written at `last`.
    #[must_use]
    pub fn is_due(
        self,
        change: StatusChange,
        last: Option<Time>,
        now: Time,
        autoscalers: usize,
    ) -> bool {
        match (change, last) {
            (StatusChange::None, _) => false,
            (StatusChange::Values, Some(last)) => now.since(last) >= self.turn(autoscalers),
            (StatusChange::Values, None) | (StatusChange::Matters, _) => true,
        }
    }

    /// How long it takes until each of so many had its turn.
    fn turn(self, autoscalers: usize) -> Span {
        // Less than a usual period is no waiting at all: looks are not evenly spaced to the moment.
        let seconds = autoscalers as f64 / self.0.max(f64::MIN_POSITIVE);
        if seconds <= 15.0 { Span(0) } else { Span((seconds * 1e6) as i64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_wait_their_turn_and_what_matters_does_not() {
        use StatusChange::{Matters, None as Nothing, Values};
        let rate = RefreshRate(20.0);
        let cases = [
            ("nothing to write", Nothing, Some(0), 10, false),
            ("few: as Kubernetes does", Values, Some(99), 300, true),
            ("many: not yet", Values, Some(1), 5000, false),
            ("many: its turn", Values, Some(-150), 5000, true),
            ("never written", Values, None, 5000, true),
            ("it matters", Matters, Some(99), 100_000, true),
        ];
        for (what, change, last, autoscalers, expected) in cases {
            let at = |seconds| Time(0).after(Span::seconds(seconds));
            let due = rate.is_due(change, last.map(at), at(100), autoscalers);
            assert_eq!(due, expected, "{what}");
        }
        assert!(!RefreshRate(0.0).is_due(Values, Some(Time(0)), Time(i64::MAX / 2), 1));
    }
}
