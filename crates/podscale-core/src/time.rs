//! Points in time and lengths of time, in microseconds. They come in as values; nothing here knows
//! what time it is.

use serde::{Deserialize, Serialize};

/// A point in time: microseconds since 1970-01-01T00:00:00Z.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// A length of time in microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub i64);

const MICROS_PER_SECOND: i64 = 1_000_000;

impl Time {
    /// The time a span later; stays at the end of time rather than wrapping around.
    #[must_use]
    pub const fn after(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }

    /// The time a span earlier; stays at the beginning of time rather than wrapping around.
    #[must_use]
    pub const fn before(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }

    /// How long ago `earlier` was at this time; negative if it is still to come.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The same time without its fraction of a second, as Kubernetes stores times.
    #[must_use]
    #[inline]
    pub const fn whole_seconds(self) -> Time {
        Time(self.0.saturating_sub(self.0.rem_euclid(MICROS_PER_SECOND)))
    }
}

impl Span {
    /// A span of whole seconds.
    #[must_use]
    pub const fn seconds(seconds: i64) -> Span {
        Span(seconds.saturating_mul(MICROS_PER_SECOND))
    }

    /// The whole seconds of this span, as an `i32` that stays in range.
    #[must_use]
    pub const fn as_whole_seconds(self) -> i32 {
        let seconds = self.0 / MICROS_PER_SECOND;
        if seconds > i32::MAX as i64 {
            i32::MAX
        } else if seconds < i32::MIN as i64 {
            i32::MIN
        } else {
            seconds as i32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_stays_in_range() {
        assert_eq!(Time(i64::MAX).after(Span(1)), Time(i64::MAX));
        assert_eq!(Time(i64::MIN).before(Span(1)), Time(i64::MIN));
        assert_eq!(Time(i64::MIN).since(Time(i64::MAX)), Span(i64::MIN));
        assert_eq!(Span::seconds(i64::MAX).as_whole_seconds(), i32::MAX);
    }

    #[test]
    fn whole_seconds_cut_towards_the_past() {
        assert_eq!(Time(1_999_999).whole_seconds(), Time(1_000_000));
        assert_eq!(Time(-1).whole_seconds(), Time(-1_000_000));
        assert_eq!(Time(i64::MIN).whole_seconds(), Time(i64::MIN));
    }
}
