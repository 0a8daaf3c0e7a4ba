//! Go's durations: signed sums of numbers with units, `-1h15m30.918s`.

use std::fmt::{self, Write};

/// One more than the longest duration: only a negative one may be this long.
const LIMIT: u64 = 1 << 63;

/// Why a text is not a duration, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// It is not a sum of numbers with units, or too long.
    #[error("time: invalid duration {}", go_quoted(.0))]
    Invalid(String),
    /// A number stands without a unit.
    #[error("time: missing unit in duration {}", go_quoted(.0))]
    MissingUnit(String),
    /// A unit is not known.
    #[error("time: unknown unit {} in duration {}", go_quoted(.unit), go_quoted(.duration))]
    UnknownUnit {
        /// What stands where a unit should be.
        unit: String,
        /// The whole text.
        duration: String,
    },
}

pub(super) fn parse(text: &str) -> Result<i64, ParseDurationError> {
    let invalid = || ParseDurationError::Invalid(text.into());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (whole, after_whole) = split_digits(rest);
        let (fraction, after) = match after_whole.strip_prefix('.') {
            Some(after_point) => split_digits(after_point),
            None => ("", after_whole),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let whole = nanos(whole).ok_or_else(invalid)?;
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if unit.is_empty() {
            return Err(ParseDurationError::MissingUnit(text.into()));
        }
        let factor = unit_nanos(unit).ok_or_else(|| ParseDurationError::UnknownUnit {
            unit: unit.into(),
            duration: text.into(),
        })?;
        let part = whole.checked_mul(factor).filter(|part| *part <= LIMIT).ok_or_else(invalid)?;
        let part = part + fraction_nanos(fraction, factor);
        total = total.checked_add(part).filter(|total| *total <= LIMIT).ok_or_else(invalid)?;
        rest = after;
    }
    match (negative, i64::try_from(total)) {
        (true, Ok(total)) => Ok(-total),
        (true, Err(_)) => Ok(i64::MIN),
        (false, Ok(total)) => Ok(total),
        (false, Err(_)) => Err(invalid()),
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn nanos(digits: &str) -> Option<u64> {
    digits
        .bytes()
        .try_fold(0_u64, |number, digit| {
            number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        })
        .filter(|number| *number <= LIMIT)
}

/// Rounds as Go does: in floating point, from as many digits as fit an integer.
fn fraction_nanos(digits: &str, factor: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        let longer = number * 10 + u64::from(digit - b'0');
        if longer > LIMIT {
            break;
        }
        (number, scale) = (longer, scale * 10.0);
        if number > (LIMIT - 1) / 10 {
            break;
        }
    }
    (number as f64 * (factor as f64 / scale)) as u64
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

pub(super) fn format(nanos: i64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = nanos.unsigned_abs();
    if nanos < 0 {
        f.write_char('-')?;
    }
    match size {
        0 => f.write_str("0s"),
        1..1_000 => write!(f, "{size}ns"),
        1_000..1_000_000 => write_fraction(f, size, 1_000, "\u{b5}s"),
        1_000_000..1_000_000_000 => write_fraction(f, size, 1_000_000, "ms"),
        _ => {
            let (minutes, rest) = (size / 60_000_000_000, size % 60_000_000_000);
            if minutes >= 60 {
                write!(f, "{}h", minutes / 60)?;
            }
            if minutes > 0 {
                write!(f, "{}m", minutes % 60)?;
            }
            write_fraction(f, rest, 1_000_000_000, "s")
        }
    }
}

fn write_fraction(f: &mut fmt::Formatter<'_>, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let (mut rest, mut place) = (nanos % unit, unit / 10);
    if rest > 0 {
        f.write_char('.')?;
    }
    while rest > 0 && place > 0 {
        write!(f, "{}", rest / place)?;
        rest %= place;
        place /= 10;
    }
    f.write_str(name)
}

/// Go's time package escapes every byte that is not plain ASCII.
fn go_quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(byte));
            }
            b' '..0x80 => out.push(char::from(byte)),
            // Writing to a String does not fail.
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}
