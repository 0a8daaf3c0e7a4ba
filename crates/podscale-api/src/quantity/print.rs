//! Canonical text: no fraction, and the largest suffix that loses nothing.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use super::Format;
use super::decimal::Decimal;
use super::scaled::Scaled;

/// Below this in size, numbers print in decimal even when binary was asked for.
const SMALLEST_BINARY: i64 = 1024;

pub(super) fn scaled(number: Scaled, format: Format, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if number.value == 0 {
        return out.write_str("0");
    }
    let format = if format == Format::BinarySi {
        match binary_whole(number) {
            Whole::Fits(whole) => return binary(whole, out),
            Whole::TooLong => return decimal(&Decimal::from(number), format, out),
            Whole::NotBinary => Format::DecimalSi,
        }
    } else {
        format
    };
    let (mut value, mut exponent) = (i128::from(number.value), number.exponent);
    while value % 10 == 0 {
        value /= 10;
        exponent = exponent.wrapping_add(1);
    }
    while exponent % 3 != 0 {
        value *= 10;
        exponent = exponent.wrapping_sub(1);
    }
    write!(out, "{value}")?;
    decimal_suffix(exponent, format, out)
}

enum Whole {
    Fits(i64),
    TooLong,
    NotBinary,
}

fn binary_whole(number: Scaled) -> Whole {
    let limit = |value| Scaled { value, exponent: 0 };
    if number.compare(limit(-SMALLEST_BINARY)) == Ordering::Greater
        && number.compare(limit(SMALLEST_BINARY)) == Ordering::Less
    {
        return Whole::NotBinary;
    }
    if number.exponent >= 0 {
        let factor = u32::try_from(number.exponent).ok().and_then(|up| 10_i64.checked_pow(up));
        let whole = factor.and_then(|factor| number.value.checked_mul(factor));
        return whole.map_or(Whole::TooLong, Whole::Fits);
    }
    match number.rounded_up(0) {
        (whole, true) => Whole::Fits(whole),
        (_, false) => Whole::NotBinary,
    }
}

fn binary(mut whole: i64, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut steps = 0;
    // Upstream cannot negate the smallest integer and prints it undivided.
    while whole != i64::MIN && whole % 1024 == 0 {
        whole /= 1024;
        steps += 1;
    }
    write!(out, "{whole}{}", binary_suffix(steps))
}

pub(super) fn decimal(
    number: &Decimal,
    format: Format,
    out: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    if number.sign() == Ordering::Equal {
        return out.write_str("0");
    }
    if number.sign() == Ordering::Less {
        out.write_char('-')?;
    }
    let format = if format == Format::BinarySi {
        if let Some(whole) = binary_whole_decimal(number) {
            return binary_decimal(whole, out);
        }
        Format::DecimalSi
    } else {
        format
    };
    let significant = number.digits().iter().rposition(|digit| *digit != 0).map_or(0, |at| at + 1);
    let stripped = number.digits().len() - significant;
    let mut exponent = i32::try_from(number.exponent() + stripped as i64).unwrap_or(i32::MAX);
    write_digits(&number.digits()[..significant], out)?;
    while exponent % 3 != 0 {
        out.write_char('0')?;
        exponent = exponent.wrapping_sub(1);
    }
    decimal_suffix(exponent, format, out)
}

/// The number as an integer, if it is one and large enough for binary suffixes.
fn binary_whole_decimal(number: &Decimal) -> Option<Decimal> {
    let limit = |value| Decimal::from(Scaled { value, exponent: 0 });
    if number.compare(&limit(-SMALLEST_BINARY)) == Ordering::Greater
        && number.compare(&limit(SMALLEST_BINARY)) == Ordering::Less
    {
        return None;
    }
    let (whole, exact) = number.rounded_up(0)?;
    exact.then_some(whole)
}

fn binary_decimal(mut whole: Decimal, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut steps = 0;
    while let Some(quotient) = whole.divided_exactly(1024) {
        whole = quotient;
        steps += 1;
    }
    write_digits(whole.digits(), out)?;
    out.write_str(binary_suffix(steps))
}

fn write_digits(digits: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    digits.iter().try_for_each(|digit| out.write_char(char::from(b'0' + digit)))
}

/// Beyond the known suffixes upstream prints none at all, and so do we.
fn decimal_suffix(exponent: i32, format: Format, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if format == Format::DecimalExponent {
        return if exponent == 0 { Ok(()) } else { write!(out, "e{exponent}") };
    }
    out.write_str(match exponent {
        -9 => "n",
        -6 => "u",
        -3 => "m",
        3 => "k",
        6 => "M",
        9 => "G",
        12 => "T",
        15 => "P",
        18 => "E",
        _ => "",
    })
}

fn binary_suffix(steps: u32) -> &'static str {
    match steps {
        1 => "Ki",
        2 => "Mi",
        3 => "Gi",
        4 => "Ti",
        5 => "Pi",
        6 => "Ei",
        _ => "",
    }
}
