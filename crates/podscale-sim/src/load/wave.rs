//! The sine of whole and part turns, from nothing but additions and multiplications: the same bits on every machine, which
//! the functions of C libraries do not promise, and in a fraction of their time.

use std::f64::consts::TAU;

/// From here on, every number is whole.
const WHOLE: f64 = (1_i64 << 52) as f64;

/// Which quarter of which turn an angle is closest to.
#[derive(Clone, Copy, PartialEq)]
struct Quarter {
    /// The whole turns before it.
    turn: f64,
    number: i32,
}

impl Quarter {
    /// The closest to so many turns; nothing where every number is whole.
    fn of(turns: f64) -> Option<Quarter> {
        if turns.abs() >= WHOLE {
            return None;
        }
        // As `trunc` does, which is a call of a function where machines of every age are to run this.
        let turn = (turns as i64) as f64;
        let part = turns - turn;
        Some(Quarter { turn, number: (part * 4.0 + 0.5_f64.copysign(part)) as i32 })
    }

    /// How far so many turns are from it: at most an eighth of a turn to either side, where few terms are enough.
    fn angle(self, turns: f64) -> f64 {
        (turns - self.turn - f64::from(self.number) * 0.25) * TAU
    }

    fn is_even(self) -> bool {
        self.number & 1 == 0
    }

    /// The sign of the sine in it.
    fn sign(self) -> f64 {
        if self.number & 2 == 0 { 1.0 } else { -1.0 }
    }
}

/// The sine of so many turns, to about the last bit.
pub(super) fn sine(turns: f64) -> f64 {
    let Some(quarter) = Quarter::of(turns) else { return 0.0 };
    let angle = quarter.angle(turns);
    let value = if quarter.is_even() { sine_near_zero(angle) } else { cosine_near_zero(angle) };
    value * quarter.sign()
}

/// Turns in order into their sines. Those that are close to each other are in the same quarter: that is found once, and
/// what is left has no branches, so that a processor works on several of them at once.
pub(super) fn sines(turns: &mut [f64]) {
    if let [only] = turns {
        *only = sine(*only);
        return;
    }
    let (Some(first), Some(last)) = (turns.first(), turns.last()) else { return };
    match (Quarter::of(*first), Quarter::of(*last)) {
        (Some(quarter), Some(last)) if quarter == last => {
            let sign = quarter.sign();
            if quarter.is_even() {
                for turns in turns {
                    *turns = sine_near_zero(quarter.angle(*turns)) * sign;
                }
            } else {
                for turns in turns {
                    *turns = cosine_near_zero(quarter.angle(*turns)) * sign;
                }
            }
        }
        _ => turns.iter_mut().for_each(|turns| *turns = sine(*turns)),
    }
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

    #[test]
    fn many_at_once_are_as_each_of_them() {
        let starts = [-1e17, -3.3, -0.2, -0.13, 0.0, 0.1249, 0.62, 0.99, 12.3, 1e9, 4.4e15, 1e17];
        for (start, step) in
            starts.into_iter().flat_map(|start| [(start, 1e-5), (start, 0.03), (start, 0.7)])
        {
            let turns: [f64; 16] = std::array::from_fn(|place| start + place as f64 * step);
            let mut found = turns;
            sines(&mut found);
            assert_eq!(
                found.map(f64::to_bits),
                turns.map(|turns| sine(turns).to_bits()),
                "{start} {step}"
            );
        }
        sines(&mut []);
    }
}
