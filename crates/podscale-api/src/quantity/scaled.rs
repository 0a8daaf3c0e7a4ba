//! The usual form of a quantity: a 64-bit integer times a power of ten.

use std::cmp::Ordering;

/// `value` × 10^`exponent`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scaled {
    pub(super) value: i64,
    pub(super) exponent: i32,
}

impl Scaled {
    /// In units of 10^`exponent`, rounded away from zero.
    ///
    /// Upstream multiplies by the round factors in one wrapping step but by the others digit by
    /// digit, giving up with zero; decisions depend on which.
    pub(super) fn at_exponent(self, exponent: i32) -> i64 {
        if self.exponent < exponent {
            return self.rounded_up(exponent).0;
        }
        match self.exponent.wrapping_sub(exponent) {
            up @ (1 | 2 | 3 | 6 | 9) => self.value.wrapping_mul(10_i64.pow(up as u32)),
            up if up <= 0 => self.value,
            up => self.times_power_of_ten(up).unwrap_or(0),
        }
    }

    /// In units of a larger 10^`exponent`, rounded away from zero, and whether that was exact.
    pub(super) fn rounded_up(self, exponent: i32) -> (i64, bool) {
        let down = i64::from(exponent) - i64::from(self.exponent);
        let Some(divisor) = u32::try_from(down).ok().and_then(|down| 10_i64.checked_pow(down))
        else {
            return (self.value.signum(), self.value == 0);
        };
        let exact = self.value % divisor == 0;
        let toward_zero = self.value / divisor;
        (if exact { toward_zero } else { toward_zero + self.value.signum() }, exact)
    }

    fn times_power_of_ten(self, up: i32) -> Option<i64> {
        if self.value == 0 {
            return Some(0);
        }
        self.value.checked_mul(10_i64.checked_pow(u32::try_from(up).ok()?)?)
    }

    /// The sum at the smaller exponent, if it fits.
    pub(super) fn checked_add(self, other: Scaled) -> Option<Scaled> {
        if other.value == 0 {
            return Some(self);
        }
        if self.value == 0 {
            return Some(other);
        }
        let exponent = self.exponent.min(other.exponent);
        let a = self.times_power_of_ten(self.exponent.checked_sub(exponent)?)?;
        let b = other.times_power_of_ten(other.exponent.checked_sub(exponent)?)?;
        Some(Scaled { value: a.checked_add(b)?, exponent })
    }

    pub(super) fn compare(self, other: Scaled) -> Ordering {
        if self.exponent == other.exponent {
            return self.value.cmp(&other.value);
        }
        let sign = self.value.signum();
        if sign != other.value.signum() || sign == 0 {
            return sign.cmp(&other.value.signum());
        }
        let by_size = self.digits_before_point().cmp(&other.digits_before_point());
        if by_size != Ordering::Equal {
            return if sign > 0 { by_size } else { by_size.reverse() };
        }
        // Equally long before the point, so the exponents are less than 19 apart.
        let exponent = self.exponent.min(other.exponent);
        self.widened(exponent).cmp(&other.widened(exponent))
    }

    fn digits_before_point(self) -> i64 {
        let digits = self.value.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1);
        i64::from(digits) + i64::from(self.exponent)
    }

    fn widened(self, exponent: i32) -> i128 {
        let up = (i64::from(self.exponent) - i64::from(exponent)).clamp(0, 19);
        i128::from(self.value) * 10_i128.pow(up as u32)
    }
}
