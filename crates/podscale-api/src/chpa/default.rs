//! What stands in for the numbers that a CHPA leaves open. Our definition fills them in when an object
//! is stored; the original one left that to its controller, so both happen.

use super::ChpaSpec;

/// For how long after a change of the size it is not changed again, in either direction.
pub const FORBIDDEN_WINDOW_SECONDS: i32 = 300;
/// How many times the current size may be set at once.
pub const SCALE_UP_LIMIT_FACTOR: f64 = 2.0;
/// The size that may be set at once, whatever the factor says.
pub const SCALE_UP_LIMIT_MINIMUM: i32 = 4;
/// How far a ratio may be off one before anything moves.
pub const TOLERANCE: f64 = 0.1;

/// What its definition allows for a forbidden window.
pub const FORBIDDEN_WINDOW_RANGE: (i32, i32) = (1, 600);
/// What its definition allows for the factor.
pub const SCALE_UP_LIMIT_FACTOR_RANGE: (f64, f64) = (1.0, 10.0);
/// What its definition allows for the minimum of the limit.
pub const SCALE_UP_LIMIT_MINIMUM_RANGE: (i32, i32) = (1, 20);
/// What its definition allows for the tolerance.
pub const TOLERANCE_RANGE: (f64, f64) = (0.01, 0.99);

impl ChpaSpec {
    /// Fills in every number that is zero or absent; doing it again changes nothing.
    pub fn fill_in(&mut self) {
        fill(&mut self.downscale_forbidden_window_seconds, FORBIDDEN_WINDOW_SECONDS);
        fill(&mut self.upscale_forbidden_window_seconds, FORBIDDEN_WINDOW_SECONDS);
        fill(&mut self.scale_up_limit_factor, SCALE_UP_LIMIT_FACTOR);
        fill(&mut self.scale_up_limit_minimum, SCALE_UP_LIMIT_MINIMUM);
        fill(&mut self.tolerance, TOLERANCE);
    }
}

fn fill<T: Default + PartialEq>(number: &mut T, default: T) {
    if *number == T::default() {
        *number = default;
    }
}
