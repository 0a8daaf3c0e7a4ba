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
    let bits = mix(hash ^ mix(slot ^ mix(purpose)));
    // 53 bits fill a float's fraction exactly.
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
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
}
