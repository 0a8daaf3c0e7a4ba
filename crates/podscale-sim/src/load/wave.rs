//! The sine of whole and part turns, from nothing but additions and multiplications: the same bits on every machine, which
//! the functions of C libraries do not promise, and in a fraction of their time.

use std::f64::consts::TAU;

/// From here on, every number is whole.
const WHOLE: f64 = (1_i64 << 52) as f64;

/// The sine of so many turns, to about the last bit.
pub(super) fn sine(turns: f64) -> f64 {
    if turns.abs() >= WHOLE {
        return 0.0;
    }
    // As `fract` does, which is a call of a function where machines of every age are to run this.
    let part = turns - (turns as i64) as f64;
    let quarter = (part * 4.0 + 0.5_f64.copysign(part)) as i32;
    // At most an eighth of a turn to either side of a whole quarter, where few terms are enough.
    let angle = (part - f64::from(quarter) * 0.25) * TAU;
    let value = if quarter & 1 == 0 { sine_near_zero(angle) } else { cosine_near_zero(angle) };
    if quarter & 2 == 0 { value } else { -value }
}

/// The terms of the series up to the fifteenth power; what is left out is less than half of the last bit. Terms are
/// added in pairs, so that a processor need not wait for one to begin with the next.
fn sine_near_zero(angle: f64) -> f64 {
    let square = angle * angle;
    let fourth = square * square;
    let low = -1.0 / 6.0 + square * (1.0 / 120.0);
    let middle = -1.0 / 5_040.0 + square * (1.0 / 362_880.0);
    let high = -1.0 / 39_916_800.0 + square * (1.0 / 6_227_020_800.0);
    let last = -1.0 / 1_307_674_368_000.0;
    let terms = (low + fourth * middle) + fourth * fourth * (high + fourth * last);
    angle + angle * square * terms
}

/// The terms of the series up to the sixteenth power.
fn cosine_near_zero(angle: f64) -> f64 {
    let square = angle * angle;
    let fourth = square * square;
    let low = 1.0 / 24.0 - square * (1.0 / 720.0);
    let middle = 1.0 / 40_320.0 - square * (1.0 / 3_628_800.0);
    let high = 1.0 / 479_001_600.0 - square * (1.0 / 87_178_291_200.0);
    let last = 1.0 / 20_922_789_888_000.0;
    let terms = (low + fourth * middle) + fourth * fourth * (high + fourth * last);
    1.0 - (0.5 * square - fourth * terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sine() {
        for step in -40_000..=40_000 {
            let turns = f64::from(step) / 9_973.0;
            let expected = (turns.fract() * TAU).sin();
            let found = sine(turns);
            assert!((found - expected).abs() < 1e-15, "{turns}: {found} is not {expected}");
        }
    }

    #[test]
    fn whole_quarters_are_exact() {
        let quarters = [0.0, 0.25, 0.5, 0.75, 1.0, 7.25, -0.25, -0.5, -0.75, 1e6, 1e300];
        let expected = [0.0, 1.0, 0.0, -1.0, 0.0, 1.0, -1.0, 0.0, 1.0, 0.0, 0.0];
        assert_eq!(quarters.map(|turns| sine(turns).abs()), expected.map(f64::abs));
        assert_eq!([0.25, 0.75, -0.25, -0.75].map(sine), [1.0, -1.0, -1.0, 1.0]);
    }
}
