//! When which node is scraped: each at its own moment of every round, so that they are spread over it.
//! Times are counted from the scraper's start.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// The part of a round within which a new node is scraped for the first time.
const FIRST_PART: u32 = 8;

/// Where in a round a node has its moment: spread evenly, the same after every restart.
#[must_use]
pub fn phase(node: &str, resolution: Duration) -> Duration {
    let mut hasher = DefaultHasher::new();
    node.hash(&mut hasher);
    // 32 bits of it are fine enough, and exact as a fraction.
    let share = f64::from(u32::try_from(hasher.finish() >> 32).unwrap_or(0)) / 4_294_967_296.0;
    resolution.mul_f64(share)
}

/// When a node that is new now is scraped for the first time: soon, but not all at once.
#[must_use]
pub fn first(node: &str, resolution: Duration, now: Duration) -> Duration {
    now.saturating_add(phase(node, resolution / FIRST_PART))
}

/// When a node is scraped after a scrape at this time: at its next moment, but not before half a
/// round has passed.
#[must_use]
pub fn next(node: &str, resolution: Duration, scraped: Duration) -> Duration {
    let resolution = resolution.max(Duration::from_millis(1));
    let earliest = scraped.saturating_add(resolution / 2);
    let (phase, round) = (phase(node, resolution).as_nanos(), resolution.as_nanos());
    let into = earliest.as_nanos() % round;
    let wait = if phase >= into { phase - into } else { phase + round - into };
    earliest.saturating_add(Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nodes_are_spread_over_the_round() {
        let resolution = Duration::from_secs(15);
        let mut seconds = [0; 15];
        for number in 0..3000 {
            let node = format!("node-{number}");
            seconds[usize::try_from(phase(&node, resolution).as_secs()).unwrap()] += 1;
            assert!(first(&node, resolution, Duration::ZERO) < resolution / 8);
        }
        assert!(seconds.iter().all(|count| (120..290).contains(count)), "{seconds:?}");
    }

    proptest! {
        #[test]
        fn each_node_keeps_its_moment(name in "[a-z]{1,9}", ms in 1u64..100_000, now in 0u64..1_000_000) {
            let resolution = Duration::from_millis(ms);
            let scraped = first(&name, resolution, Duration::from_millis(now));
            let second = next(&name, resolution, scraped);
            let gap = second - scraped;
            prop_assert!(gap >= resolution / 2 && gap <= resolution * 3 / 2, "{gap:?}");
            let rounds = next(&name, resolution, second) - second;
            prop_assert_eq!(rounds, resolution, "from then on it is once in every round");
        }
    }
}
