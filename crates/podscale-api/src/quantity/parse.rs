//! Reading quantities, with upstream's tolerance for odd spellings.

use super::decimal::{Decimal, MAX_DIGITS};
use super::scaled::Scaled;
use super::{Amount, Format, Quantity};
use std::cmp::Ordering;

/// The finest power of ten that is kept; what is smaller rounds away from zero.
const NANO: i32 = -9;
/// Integers up to this many digits are held in place.
const INLINE_DIGITS: usize = 18;

/// Why a text is not a quantity, in the words of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// It does not look like a number with a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// It has no digits.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is not one of the known ones.
    #[error("unable to parse quantity's suffix")]
    Suffix,
    /// The number written out would be absurdly long.
    #[error("quantity has more than {MAX_DIGITS} digits")]
    TooLong,
}

/// The pieces of a quantity's text.
struct Parts<'a> {
    negative: bool,
    /// A plus sign, leading zeros or a point: a spelling that printing would not give.
    unusual: bool,
    has_digits: bool,
    /// Without leading zeros.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// What a suffix multiplies with.
#[derive(Clone, Copy)]
enum Unit {
    Ten { exponent: i32, format: Format },
    Two { exponent: u32 },
}

pub(super) fn parse(text: &str) -> Result<Quantity, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let parts = split(text)?;
    let unit = unit(parts.suffix).ok_or(ParseQuantityError::Suffix)?;
    match inline(&parts, unit) {
        Some((number, format, kept)) if kept && !canonical(&parts, number.exponent, format) => {
            Ok(Quantity::boxed(Amount::Scaled(number), format, Some(text)))
        }
        Some((number, format, _)) => Ok(Quantity::inline(number.value, number.exponent, format)),
        None => long(&parts, unit),
    }
}

fn split(text: &str) -> Result<Parts<'_>, ParseQuantityError> {
    let (sign, unsigned) = match text.as_bytes().first() {
        Some(b'+' | b'-') => text.split_at(1),
        _ => ("", text),
    };
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let from_first = unsigned.trim_start_matches('0');
    let (whole, rest) = from_first.split_at(digits(from_first));
    let (fraction, suffix, point) = match rest.strip_prefix('.') {
        Some(rest) => {
            let (fraction, suffix) = rest.split_at(digits(rest));
            (fraction, suffix, true)
        }
        None => ("", rest, false),
    };
    let exponent = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if digits(exponent) != exponent.len() {
        return Err(ParseQuantityError::Format);
    }
    let zeros = from_first.len() < unsigned.len();
    Ok(Parts {
        negative: sign == "-",
        unusual: sign == "+" || zeros || point,
        has_digits: zeros || !whole.is_empty() || !fraction.is_empty(),
        whole,
        fraction,
        suffix,
    })
}

fn unit(suffix: &str) -> Option<Unit> {
    let ten = |exponent| Some(Unit::Ten { exponent, format: Format::DecimalSi });
    let two = |exponent| Some(Unit::Two { exponent });
    match suffix {
        "" => ten(0),
        "m" => ten(-3),
        "n" => ten(-9),
        "u" => ten(-6),
        "k" => ten(3),
        "M" => ten(6),
        "G" => ten(9),
        "T" => ten(12),
        "P" => ten(15),
        "E" => ten(18),
        "Ki" => two(10),
        "Mi" => two(20),
        "Gi" => two(30),
        "Ti" => two(40),
        "Pi" => two(50),
        "Ei" => two(60),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            // Upstream keeps the low 32 bits.
            Some(Unit::Ten { exponent: exponent as i32, format: Format::DecimalExponent })
        }
    }
}

/// The number if it is short, its format, and whether its spelling is remembered.
fn inline(parts: &Parts<'_>, unit: Unit) -> Option<(Scaled, Format, bool)> {
    let whole_digits = parts.whole.len().max(1);
    match unit {
        Unit::Ten { exponent, format } => {
            if whole_digits + parts.fraction.len() > INLINE_DIGITS {
                return None;
            }
            let exponent = exponent.wrapping_sub(parts.fraction.len() as i32);
            if exponent < NANO {
                return None;
            }
            let mantissa = integer(parts.whole, parts.fraction);
            let kept = exponent % 3 == 0 && mantissa % 1000 != 0 && !parts.whole.is_empty();
            Some((signed(parts, mantissa, exponent), format, kept))
        }
        Unit::Two { exponent } => {
            // About three decimal digits for every ten bits, with some to spare.
            let spent = 3 * exponent as usize / 10 + 1;
            if !parts.fraction.is_empty() || whole_digits + spent > 15 {
                return None;
            }
            let mantissa = integer(parts.whole, "");
            let number = signed(parts, mantissa << exponent, 0);
            Some((number, Format::BinarySi, mantissa % 8 != 0))
        }
    }
}

fn integer(whole: &str, fraction: &str) -> i64 {
    whole
        .bytes()
        .chain(fraction.bytes())
        .fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
}

fn signed(parts: &Parts<'_>, size: i64, exponent: i32) -> Scaled {
    Scaled { value: if parts.negative { -size } else { size }, exponent }
}

/// Whether a remembered spelling is what printing gives anyway.
fn canonical(parts: &Parts<'_>, exponent: i32, format: Format) -> bool {
    if parts.unusual {
        return false;
    }
    match format {
        Format::DecimalSi | Format::BinarySi => true,
        Format::DecimalExponent => exponent != 0 && parts.suffix == format!("e{exponent}"),
    }
}

/// The number with all its digits, rounded up to nano units; binary units cap at 2^63 - 1.
fn long(parts: &Parts<'_>, unit: Unit) -> Result<Quantity, ParseQuantityError> {
    if !parts.has_digits {
        return Err(ParseQuantityError::Numeric);
    }
    let digits = parts.whole.bytes().chain(parts.fraction.bytes()).map(|b| b - b'0').collect();
    let fraction_digits = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
    let (format, number) = match unit {
        Unit::Ten { exponent, format } => {
            let scale = fraction_digits.wrapping_add(exponent.wrapping_neg());
            (format, nano(Decimal::new(parts.negative, digits, scale))?)
        }
        Unit::Two { .. } if parts.whole.len() > 30 => (Format::BinarySi, capped(parts.negative)),
        Unit::Two { exponent } => {
            let mut number = Decimal::new(parts.negative, digits, fraction_digits);
            number.multiply(1 << exponent);
            let number = nano(number)?;
            let size = |value| Decimal::from(signed(parts, value, 0));
            let outward = if parts.negative { Ordering::Less } else { Ordering::Greater };
            if number.compare(&size(i64::MAX)) == outward {
                (Format::BinarySi, capped(parts.negative))
            } else if number.compare(&size(1)) == outward.reverse()
                && number.sign() != Ordering::Equal
            {
                (Format::DecimalSi, number)
            } else {
                (Format::BinarySi, number)
            }
        }
    };
    Ok(Quantity::boxed(Amount::Decimal(number), format, None))
}

fn capped(negative: bool) -> Decimal {
    Decimal::from(Scaled { value: if negative { -i64::MAX } else { i64::MAX }, exponent: 0 })
}

fn nano(number: Decimal) -> Result<Decimal, ParseQuantityError> {
    if number.sign() == Ordering::Equal {
        return Ok(number);
    }
    match number.rounded_up(-NANO) {
        Some((rounded, _)) if rounded.digits().len() <= MAX_DIGITS => Ok(rounded),
        _ => Err(ParseQuantityError::TooLong),
    }
}
