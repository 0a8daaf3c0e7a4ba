//! Durations as Go writes them: `1m30s`, `1.5s`, `250ms`.

use std::fmt::Write;
use std::time::Duration;

const UNITS: [(&str, f64); 7] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];
const MAX_SECONDS: f64 = 1e9;

/// Reads a duration such as `90s` or `1m30s`; nothing if it is not one, is negative or is longer
/// than about 31 years.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let after = &rest[digits..];
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &after[..end])?;
        seconds += number * unit;
        rest = &after[end..];
    }
    if seconds <= MAX_SECONDS { Duration::try_from_secs_f64(seconds).ok() } else { None }
}

/// Writes a duration as Go does.
#[must_use]
pub fn print(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, size) in [("ns", 1), ("µs", 1_000), ("ms", 1_000_000)] {
        if nanos == 0 {
            return "0s".to_owned();
        }
        if nanos < size * 1000 {
            return format!("{}{unit}", with_fraction(nanos / size, nanos % size, size));
        }
    }
    let whole = duration.as_secs();
    let mut text = String::new();
    if whole >= 3600 {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}h", whole / 3600);
    }
    if whole >= 60 {
        let _ = write!(text, "{}m", whole / 60 % 60);
    }
    let fraction = u128::from(duration.subsec_nanos());
    text + &with_fraction(u128::from(whole % 60), fraction, 1_000_000_000) + "s"
}

/// Writes a duration as Go does, without what is below a millisecond.
#[must_use]
pub fn print_millis(duration: Duration) -> String {
    print(Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
}

fn with_fraction(whole: u128, fraction: u128, size: u128) -> String {
    if fraction == 0 {
        return whole.to_string();
    }
    let digits = size.ilog10() as usize;
    let fraction = format!("{fraction:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_as_in_go() {
        for (text, nanos, printed) in [
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            ("15s", 15_000_000_000, "15s"),
            ("1m30s", 90_000_000_000, "1m30s"),
            ("1.5s", 1_500_000_000, "1.5s"),
            ("250ms", 250_000_000, "250ms"),
            ("1h", 3_600_000_000_000, "1h0m0s"),
            ("2h0.25s", 7_200_250_000_000, "2h0m0.25s"),
            ("1500µs", 1_500_000, "1.5ms"),
            ("12us", 12_000, "12µs"),
            ("7ns", 7, "7ns"),
        ] {
            let duration = parse(text).unwrap();
            assert_eq!(duration.as_nanos(), nanos, "{text}");
            assert_eq!(print(duration), printed, "{text}");
        }
        for text in ["", "s", "5", "-5s", "5x", "1m-5s", "9999999999h", "1..5s", "∞s"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
