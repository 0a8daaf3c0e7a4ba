//! The rare form of a quantity: as many decimal digits as it takes.

use std::cmp::Ordering;

use super::scaled::Scaled;

/// More digits than this are refused when read and rounded off when added.
pub(super) const MAX_DIGITS: usize = 4096;

/// ±`digits` × 10^-`scale`.
#[derive(Clone, Debug)]
pub(super) struct Decimal {
    negative: bool,
    /// Values 0 to 9, the most significant first and not 0; none for zero.
    digits: Vec<u8>,
    scale: i32,
}

impl From<Scaled> for Decimal {
    fn from(number: Scaled) -> Self {
        let digits = number.value.unsigned_abs().to_string().bytes().map(|b| b - b'0').collect();
        Decimal::new(number.value < 0, digits, number.exponent.wrapping_neg())
    }
}

impl Decimal {
    /// Leading zeros in `digits` are dropped.
    pub(super) fn new(negative: bool, mut digits: Vec<u8>, scale: i32) -> Self {
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        Decimal { negative: negative && !digits.is_empty(), digits, scale }
    }

    pub(super) fn sign(&self) -> Ordering {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        }
    }

    pub(super) fn exponent(&self) -> i64 {
        -i64::from(self.scale)
    }

    pub(super) fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// The digits as the nearest float, without the scale.
    pub(super) fn mantissa_f64(&self) -> f64 {
        let text: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let size = text.parse().unwrap_or(0.0);
        if self.negative { -size } else { size }
    }

    pub(super) fn multiply(&mut self, factor: u64) {
        let mut carry: u128 = 0;
        for digit in self.digits.iter_mut().rev() {
            carry += u128::from(*digit) * u128::from(factor);
            *digit = (carry % 10) as u8;
            carry /= 10;
        }
        let mut high = Vec::new();
        while carry > 0 {
            high.push((carry % 10) as u8);
            carry /= 10;
        }
        high.reverse();
        self.digits.splice(0..0, high);
    }

    /// The quotient, if the division leaves nothing over.
    pub(super) fn divided_exactly(&self, divisor: u32) -> Option<Decimal> {
        let mut rest = 0;
        let digits = self
            .digits
            .iter()
            .map(|digit| {
                rest = rest * 10 + u32::from(*digit);
                let quotient = (rest / divisor) as u8;
                rest %= divisor;
                quotient
            })
            .collect();
        (rest == 0).then(|| Decimal::new(self.negative, digits, self.scale))
    }

    /// The same number at another scale, rounded away from zero, and whether that was exact;
    /// nothing if it would take too many digits.
    pub(super) fn rounded_up(&self, scale: i32) -> Option<(Decimal, bool)> {
        let added = i64::from(scale) - i64::from(self.scale);
        let mut digits = self.digits.clone();
        let mut exact = true;
        if added > 0 && !digits.is_empty() {
            let length = usize::try_from(added).ok()?.checked_add(digits.len())?;
            if length > MAX_DIGITS {
                return None;
            }
            digits.resize(length, 0);
        } else if added < 0 {
            let dropped = usize::try_from(-added).unwrap_or(usize::MAX);
            let kept = digits.len().saturating_sub(dropped);
            exact = digits.drain(kept..).all(|digit| digit == 0);
            if !exact {
                increment(&mut digits);
            }
        }
        Some((Decimal::new(self.negative, digits, scale), exact))
    }

    /// In units of 10^`exponent`, rounded up and wrapping in the ways upstream has.
    pub(super) fn at_exponent(&self, exponent: i32) -> i64 {
        let down = i64::from(self.scale) + i64::from(exponent);
        if down <= 0 {
            // A factor too large for an integer becomes the smallest one, as it does upstream.
            let up = u32::try_from(-down).ok();
            let factor = up.and_then(|up| 10_i64.checked_pow(up)).unwrap_or(i64::MIN);
            return wrapped(&self.digits, self.negative).wrapping_mul(factor);
        }
        let below_max = self.negative || self.compare_digits(i64::MAX) == Ordering::Less;
        if below_max && down < 19 {
            // Here a fraction always adds one, which for negative numbers is towards zero.
            let (number, divisor) = (wrapped(&self.digits, self.negative), 10_i64.pow(down as u32));
            return number / divisor + i64::from(number % divisor != 0);
        }
        let dropped = usize::try_from(down).unwrap_or(usize::MAX);
        let (kept, fraction) = self.digits.split_at(self.digits.len().saturating_sub(dropped));
        let whole = wrapped(kept, self.negative);
        let up = !self.negative && fraction.iter().any(|digit| *digit != 0);
        whole.wrapping_add(i64::from(up))
    }

    fn compare_digits(&self, number: i64) -> Ordering {
        let other = Decimal::from(Scaled { value: number, exponent: 0 });
        self.digits.len().cmp(&other.digits.len()).then_with(|| self.digits.cmp(&other.digits))
    }

    pub(super) fn compare(&self, other: &Decimal) -> Ordering {
        let by_sign = self.sign().cmp(&other.sign());
        if by_sign != Ordering::Equal || self.digits.is_empty() {
            return by_sign;
        }
        let by_size = self.compare_size(other);
        if self.negative { by_size.reverse() } else { by_size }
    }

    fn compare_size(&self, other: &Decimal) -> Ordering {
        let before_point = |number: &Decimal| number.digits.len() as i64 - i64::from(number.scale);
        before_point(self).cmp(&before_point(other)).then_with(|| {
            let length = self.digits.len().max(other.digits.len());
            let padded = |number: &Decimal, at| number.digits.get(at).copied().unwrap_or(0);
            (0..length).map(|at| padded(self, at)).cmp((0..length).map(|at| padded(other, at)))
        })
    }

    /// The sum at the finer of the two scales; where that would take too many digits, the larger
    /// of the two.
    pub(super) fn plus(&self, other: &Decimal) -> Decimal {
        let scale = self.scale.max(other.scale);
        let (Some((a, _)), Some((b, _))) = (self.rounded_up(scale), other.rounded_up(scale)) else {
            let larger = if self.compare_size(other) == Ordering::Less { other } else { self };
            return larger.clone();
        };
        if a.negative == b.negative {
            return Decimal::new(a.negative, add_digits(&a.digits, &b.digits), scale);
        }
        let (large, small) = if a.compare_size(&b) == Ordering::Less { (b, a) } else { (a, b) };
        Decimal::new(large.negative, subtract_digits(&large.digits, &small.digits), scale)
    }
}

/// The low 64 bits of the integer that the digits spell.
fn wrapped(digits: &[u8], negative: bool) -> i64 {
    let size = digits
        .iter()
        .fold(0_u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(*digit)));
    let size = size.cast_signed();
    if negative { size.wrapping_neg() } else { size }
}

fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
}

fn add_digits(a: &[u8], b: &[u8]) -> Vec<u8> {
    let length = a.len().max(b.len()) + 1;
    let mut sum = vec![0; length];
    let mut carry = 0;
    for (at, digit) in sum.iter_mut().rev().enumerate() {
        let total = from_end(a, at) + from_end(b, at) + carry;
        *digit = total % 10;
        carry = total / 10;
    }
    sum
}

/// `a` is not smaller than `b`.
fn subtract_digits(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut difference = vec![0; a.len()];
    let mut borrow = 0;
    for (at, digit) in difference.iter_mut().rev().enumerate() {
        let total = 10 + from_end(a, at) - from_end(b, at) - borrow;
        *digit = total % 10;
        borrow = 1 - total / 10;
    }
    difference
}

fn from_end(digits: &[u8], at: usize) -> u8 {
    digits.len().checked_sub(at + 1).and_then(|index| digits.get(index)).copied().unwrap_or(0)
}
