//! Resource quantities: fixed-point numbers with a unit suffix, as Kubernetes reads, rounds,
//! compares and prints them.
//!
//! Most quantities are an integer of at most 18 digits with a power of ten, held in place. The
//! rest (longer numbers, fractions of binary units, unusual spellings) live behind a box.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use decimal::Decimal;
use scaled::Scaled;

mod decimal;
mod parse;
mod print;
mod scaled;
#[cfg(test)]
mod tests;

pub use parse::ParseQuantityError;

/// The power of ten of a thousandth.
const MILLI: i32 = -3;

/// The family of suffixes that a quantity was written in and is printed with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `12M`: powers of 1000.
    #[default]
    DecimalSi,
    /// `12Mi`: powers of 1024.
    BinarySi,
    /// `12e6`: powers of 1000 as an exponent.
    DecimalExponent,
}

/// A number such as `250m`, `1.5Gi` or `3e6`; compares by value, prints in its own format.
#[derive(Clone)]
pub struct Quantity(Repr);

#[derive(Clone)]
enum Repr {
    /// The fields of a `Scaled`, spread out so that the format fits beside them.
    Inline {
        value: i64,
        exponent: i32,
        format: Format,
    },
    Boxed(Box<Boxed>),
}

#[derive(Clone)]
struct Boxed {
    amount: Amount,
    format: Format,
    /// The spelling that was read, where it is printed again although it is not canonical.
    text: Option<Box<str>>,
}

#[derive(Clone)]
enum Amount {
    Scaled(Scaled),
    Decimal(Decimal),
}

/// A borrowed view of whichever form holds the number.
enum Number<'a> {
    Scaled(Scaled),
    Decimal(&'a Decimal),
}

impl Quantity {
    /// Zero, in decimal suffixes.
    pub const ZERO: Quantity = Quantity::from_value(0, Format::DecimalSi);

    /// Reads a quantity as `FromStr` does.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        parse::parse(text)
    }

    /// A whole number.
    pub const fn from_value(value: i64, format: Format) -> Self {
        Self::inline(value, 0, format)
    }

    /// A number of thousandths.
    pub const fn from_milli(milli: i64, format: Format) -> Self {
        Self::inline(milli, MILLI, format)
    }

    const fn inline(value: i64, exponent: i32, format: Format) -> Self {
        Quantity(Repr::Inline { value, exponent, format })
    }

    fn boxed(amount: Amount, format: Format, text: Option<&str>) -> Self {
        Quantity(Repr::Boxed(Box::new(Boxed { amount, format, text: text.map(Box::from) })))
    }

    fn number(&self) -> Number<'_> {
        match &self.0 {
            Repr::Inline { value, exponent, .. } => {
                Number::Scaled(Scaled { value: *value, exponent: *exponent })
            }
            Repr::Boxed(boxed) => match &boxed.amount {
                Amount::Scaled(number) => Number::Scaled(*number),
                Amount::Decimal(number) => Number::Decimal(number),
            },
        }
    }

    /// The suffix family that it is printed with.
    pub fn format(&self) -> Format {
        match &self.0 {
            Repr::Inline { format, .. } => *format,
            Repr::Boxed(boxed) => boxed.format,
        }
    }

    /// The number in thousandths, rounded away from zero; wraps when it does not fit, as upstream.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(MILLI)
    }

    /// The whole number, rounded away from zero; wraps when it does not fit, as upstream.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// The number in units of ten to the `exponent`, rounded up; wraps when it does not fit.
    pub fn scaled_value(&self, exponent: i32) -> i64 {
        match self.number() {
            Number::Scaled(number) => number.at_exponent(exponent),
            Number::Decimal(number) => number.at_exponent(exponent),
        }
    }

    /// The nearest float that upstream's quick conversion finds (mantissa times a power of ten).
    pub fn as_approximate_f64(&self) -> f64 {
        let (mantissa, exponent) = match self.number() {
            Number::Scaled(number) => (number.value as f64, i64::from(number.exponent)),
            Number::Decimal(number) => (number.mantissa_f64(), number.exponent()),
        };
        if exponent == 0 { mantissa } else { mantissa * power_of_ten(exponent) }
    }

    /// Whether the number is zero.
    pub fn is_zero(&self) -> bool {
        self.sign() == Ordering::Equal
    }

    /// How the number compares with zero.
    pub fn sign(&self) -> Ordering {
        match self.number() {
            Number::Scaled(number) => number.value.cmp(&0),
            Number::Decimal(number) => number.sign(),
        }
    }

    /// Adds a quantity; a zero takes over the other's format.
    ///
    /// Beside a number thousands of digits longer, the shorter one is dropped.
    pub fn add(&mut self, other: &Quantity) {
        let format = if self.is_zero() { other.format() } else { self.format() };
        if let (Number::Scaled(a), Number::Scaled(b)) = (self.number(), other.number())
            && let Some(number) = a.checked_add(b)
        {
            *self = Self::inline(number.value, number.exponent, format);
            return;
        }
        let sum = self.to_decimal().plus(&other.to_decimal());
        *self = Self::boxed(Amount::Decimal(sum), format, None);
    }

    fn to_decimal(&self) -> Decimal {
        match self.number() {
            Number::Scaled(number) => Decimal::from(number),
            Number::Decimal(number) => number.clone(),
        }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.number(), other.number()) {
            (Number::Scaled(a), Number::Scaled(b)) => a.compare(b),
            _ => self.to_decimal().compare(&other.to_decimal()),
        }
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Repr::Boxed(boxed) = &self.0
            && let Some(text) = &boxed.text
        {
            return f.write_str(text);
        }
        match self.number() {
            Number::Scaled(number) => print::scaled(number, self.format(), f),
            Number::Decimal(number) => print::decimal(number, self.format(), f),
        }
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quantity({self})")
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 250m or 1Gi")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Quantity, E> {
        Quantity::parse(text.trim()).map_err(E::custom)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_value(value, Format::DecimalSi))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Quantity, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.visit_str(&value.to_string()),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Quantity, E> {
        // Plain notation for everyday numbers; far ones keep an exponent instead of 300 zeros.
        let plain = value == 0.0 || (1e-9..1e21).contains(&value.abs());
        let text = if plain { value.to_string() } else { format!("{value:e}") };
        self.visit_str(&text)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}

/// Ten to the `exponent`, assembled from the same two factors as upstream, so that the last bit
/// agrees even where the nearest float would differ.
fn power_of_ten(exponent: i64) -> f64 {
    const ONES: [f64; 32] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31,
    ];
    const UP: [f64; 10] = [1e0, 1e32, 1e64, 1e96, 1e128, 1e160, 1e192, 1e224, 1e256, 1e288];
    const DOWN: [f64; 11] =
        [1e0, 1e-32, 1e-64, 1e-96, 1e-128, 1e-160, 1e-192, 1e-224, 1e-256, 1e-288, 1e-320];
    let size = exponent.unsigned_abs();
    let (thirties, ones) = ((size / 32) as usize, (size % 32) as usize);
    match exponent {
        309.. => f64::INFINITY,
        0..=308 => UP[thirties] * ONES[ones],
        -323..=-1 => DOWN[thirties] / ONES[ones],
        _ => 0.0,
    }
}
