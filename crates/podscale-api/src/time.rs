//! Times and durations in the forms that Kubernetes writes: RFC 3339 and Go's `1m30s`.

use std::fmt;
use std::str::FromStr;

use podscale_core::{Span, Time};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

mod calendar;
mod duration;
#[cfg(test)]
mod tests;

pub use calendar::{ParseTimeError, parse_rfc3339};
pub use duration::ParseDurationError;

/// Whole seconds in UTC, as most of Kubernetes' times: `2000-01-01T00:00:15Z`.
pub fn format_rfc3339(time: Time) -> String {
    calendar::Rfc3339 { time, fraction_digits: 0 }.to_string()
}

/// Six digits after the point, as in leases and events: `2000-01-01T00:00:15.250000Z`.
pub fn format_rfc3339_micros(time: Time) -> String {
    calendar::Rfc3339 { time, fraction_digits: 6 }.to_string()
}

/// As many digits after the point as it takes: `2000-01-01T00:00:15.25Z`.
pub fn format_rfc3339_exact(time: Time) -> String {
    let mut micros = time.0.rem_euclid(1_000_000);
    let mut fraction_digits = 6;
    while fraction_digits > 0 && micros % 10 == 0 {
        micros /= 10;
        fraction_digits -= 1;
    }
    calendar::Rfc3339 { time, fraction_digits }.to_string()
}

/// A time on the wire: read with any fraction, written in whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub Time);

/// A time on the wire that keeps its fraction of a second, with no more digits than it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExactTimestamp(pub Time);

/// A length of time in nanoseconds, read and written as Go does: `1m30s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GoDuration(pub i64);

impl GoDuration {
    /// Reads a duration as `FromStr` does.
    pub fn parse(text: &str) -> Result<Self, ParseDurationError> {
        duration::parse(text).map(GoDuration)
    }

    /// The same length in microseconds; what is finer is dropped.
    pub const fn to_span(self) -> Span {
        Span(self.0 / 1000)
    }

    /// The same length; one that is too long for nanoseconds becomes the longest possible.
    pub const fn from_span(span: Span) -> Self {
        GoDuration(span.0.saturating_mul(1000))
    }

    /// As people write it, without the zero units that Go adds: `5m` instead of `5m0s`.
    pub fn to_short_string(self) -> String {
        let text = self.to_string();
        let text = match text.strip_suffix("m0s") {
            Some(minutes) => format!("{minutes}m"),
            None => text,
        };
        match text.strip_suffix("h0m") {
            Some(hours) => format!("{hours}h"),
            None => text,
        }
    }
}

impl FromStr for GoDuration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        duration::format(self.0, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&calendar::Rfc3339 { time: self.0, fraction_digits: 0 })
    }
}

impl Serialize for ExactTimestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_rfc3339_exact(self.0))
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimeVisitor).map(Timestamp)
    }
}

impl<'de> Deserialize<'de> for ExactTimestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TimeVisitor).map(ExactTimestamp)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DurationVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an RFC 3339 time")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Time, E> {
        parse_rfc3339(text).map_err(E::custom)
    }
}

struct DurationVisitor;

impl Visitor<'_> for DurationVisitor {
    type Value = GoDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 1m30s")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<GoDuration, E> {
        GoDuration::parse(text).map_err(E::custom)
    }
}
