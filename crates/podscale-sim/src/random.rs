//! Random numbers that depend on nothing but what they are asked with.

/// A hash of bytes that is the same on every machine and in every run.
#[must_use]
pub fn hash(bytes: &[u8], seed: u64) -> u64 {
    let start = mix(seed);
    bytes.iter().fold(start, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    })
}

/// A number from -1 to 1 that depends on nothing but the three given.
#[must_use]
pub fn unit(hash: u64, slot: u64, purpose: u64) -> f64 {
    salted(hash, salt(slot, purpose))
}

/// What [`salted`] needs to know of a slot and a purpose, for many numbers of the same.
#[must_use]
pub fn salt(slot: u64, purpose: u64) -> u64 {
    mix(slot ^ mix(purpose))
}

/// The number that [`unit`] gives for the slot and the purpose of this salt.
#[must_use]
pub fn salted(hash: u64, salt: u64) -> f64 {
    let bits = mix(hash ^ salt);
    // 53 bits fill a float's fraction exactly. Signed numbers are converted in one step.
    (bits >> 11).cast_signed() as f64 / (1u64 << 52) as f64 - 1.0
}

/// A number around 0 that is distributed nearly as the standard normal distribution is, and depends
/// on nothing but the three given: the number of ones among 64 random bits, smoothed.
#[must_use]
pub fn normal(hash: u64, slot: u64, purpose: u64) -> f64 {
    let bits = mix(hash ^ salt(slot, purpose));
    let between = (mix(bits) >> 11).cast_signed() as f64 / (1u64 << 53) as f64 - 0.5;
    // Times what a division by the deviation would be: this is needed for every second of a run.
    (f64::from(bits.count_ones()) - 32.0 + between) * (1.0 / NORMAL_DEVIATION)
}

/// The standard deviation of the ones among 64 bits and of the smoothing: √(16 + 1/12).
const NORMAL_DEVIATION: f64 = 4.010_403_136_579_37;

/// How many of independent events happen where so many are expected; depends on nothing but the
/// numbers given.
#[must_use]
pub fn poisson(expected: f64, hash: u64, slot: u64, purpose: u64) -> f64 {
    if expected.is_nan() || expected <= 0.0 {
        return 0.0;
    }
    if expected > MANY {
        return nearest((expected + expected.sqrt() * normal(hash, slot, purpose)).max(0.0));
    }
    // By inversion: the first count whose cumulated probability exceeds a uniform number.
    let uniform = (unit(hash, slot, purpose) + 1.0) / 2.0;
    let (mut count, mut probability) = (0.0, (-expected).exp());
    let mut cumulated = probability;
    while cumulated < uniform && count < 200.0 {
        count += 1.0;
        probability *= expected / count;
        cumulated += probability;
    }
    count
}

/// Above what is expected, counts are drawn from the normal distribution.
const MANY: f64 = 30.0;
/// From here on, every number is whole.
const WHOLE: f64 = (1_i64 << 52) as f64;
/// The largest number below a half: a half would lift what is just below one.
const HALF: f64 = 0.5 - f64::EPSILON / 4.0;

/// Turns what is expected in slots into how many happen in them, each as [`poisson`] says. Where many are expected in all
/// of them, which is the rule, nothing branches, so that a processor works on several of them at once.
pub(crate) fn poissons(
    expected: &mut [f64],
    hash: u64,
    slots: impl Iterator<Item = u64>,
    purpose: u64,
) {
    /// What is far from the numbers that are always whole, also with all that may come on top.
    const MOST: f64 = WHOLE / 8.0;
    let all_many = expected.iter().all(|expected| *expected > MANY && *expected < MOST);
    for (expected, slot) in expected.iter_mut().zip(slots) {
        *expected = match all_many {
            true => {
                let drawn = *expected + expected.sqrt() * normal(hash, slot, purpose);
                let raised = if drawn > 0.0 { drawn + HALF } else { HALF };
                // Without its fraction: the sum has no room for one, and is rounded up or down.
                let rounded = (raised + WHOLE) - WHOLE;
                if rounded > raised { rounded - 1.0 } else { rounded }
            }
            false => poisson(*expected, hash, slot, purpose),
        };
    }
}

/// The nearest whole number to one that is not negative, as `round` gives it. That is a call of a function where machines
/// of every age are to run this, and one is needed for every second of a run; a branch would be guessed wrongly half the time.
fn nearest(number: f64) -> f64 {
    if number >= WHOLE { number } else { ((number + HALF) as i64) as f64 }
}

/// Scatters the bits of a number (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_repeat_and_spread() {
        assert_eq!(unit(1, 2, 3), unit(1, 2, 3));
        let numbers: Vec<f64> = (0..1000).map(|slot| unit(7, slot, 0)).collect();
        assert!(numbers.iter().all(|number| (-1.0..=1.0).contains(number)));
        let mean = numbers.iter().sum::<f64>() / 1000.0;
        assert!(mean.abs() < 0.1, "{mean}");
        assert_ne!(hash(b"a", 1), hash(b"a", 2));
        assert_ne!(hash(b"a", 1), hash(b"b", 1));
    }

    #[test]
    fn the_nearest_whole_number_is_as_round_gives_it() {
        let odd = [0.0, 0.49999999999999994, 0.5, 1.5, 2.5, 1e15 + 0.5, 4503599627370495.5, 1e300];
        let drawn = (0..10_000).map(|slot| (unit(1, slot, 2) + 1.0) * 500.0);
        for number in drawn.chain(odd).chain([f64::INFINITY]) {
            assert_eq!(nearest(number), number.round(), "{number}");
        }
    }

    #[test]
    fn distributions_have_their_mean_and_variance() {
        let moments = |draw: &dyn Fn(u64) -> f64| {
            let draws: Vec<f64> = (0..20_000).map(draw).collect();
            let mean = draws.iter().sum::<f64>() / 20_000.0;
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / 20_000.0;
            (mean, variance)
        };
        let (mean, variance) = moments(&|slot| normal(3, slot, 1));
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        for expected in [0.2, 3.0, 29.0, 400.0] {
            let (mean, variance) = moments(&|slot| poisson(expected, 5, slot, 2));
            assert!((mean / expected - 1.0).abs() < 0.05, "{mean} for {expected}");
            assert!((variance / expected - 1.0).abs() < 0.1, "{variance} for {expected}");
        }
        assert_eq!(poisson(0.0, 1, 2, 3), 0.0);
        assert_eq!(poisson(f64::NAN, 1, 2, 3), 0.0);
    }

    #[test]
    fn many_at_once_are_as_each_of_them() {
        let near: [f64; 16] = std::array::from_fn(|place| 30.5 + place as f64 * 0.7);
        let far: [f64; 16] = std::array::from_fn(|place| 10f64.powi(place as i32 - 1) * 31.3);
        for seed in 0..2_000 {
            for expected in [near, near.map(|expected| expected - 10.0), far] {
                let mut counts = expected;
                poissons(&mut counts, seed, 100.., 7);
                let each: Vec<f64> =
                    (100..).zip(expected).map(|(slot, e)| poisson(e, seed, slot, 7)).collect();
                assert_eq!(counts.as_slice(), each, "{expected:?}");
            }
        }
    }
}
