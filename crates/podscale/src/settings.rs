//! Reads the values of settings, as flags and annotations give them.

use podscale_api::time::GoDuration;
use podscale_core::Span;
use std::time::Duration;

/// A duration as Go writes it, such as `90s` or `1m30s`.
///
/// # Errors
/// It is not one, or negative.
pub fn duration(text: &str) -> Result<Duration, String> {
    let GoDuration(nanos) = GoDuration::parse(text).map_err(|error| error.to_string())?;
    let nanos = u64::try_from(nanos).map_err(|_| "a duration cannot be negative".to_owned())?;
    Ok(Duration::from_nanos(nanos))
}

/// A duration as [`duration`] reads it that is longer than nothing.
///
/// # Errors
/// It is not one.
pub fn period(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be longer than nothing".to_owned()),
        period => Ok(period),
    }
}

/// A share, or a count that need not be whole.
///
/// # Errors
/// It is not a finite number, or negative.
pub fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
        _ => Err("not a number of at least 0, such as 0.1".to_owned()),
    }
}

/// A duration as the core counts it.
#[must_use]
pub fn span(duration: Duration) -> Span {
    Span(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}
