//! What the offsets of partitions come to.

use std::collections::HashMap;

/// No offset was committed.
pub(super) const NONE: i64 = -1;

/// How offsets are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) threshold: i64,
    /// Whether a group without offsets begins with the first message, and not with the next.
    pub(super) from_earliest: bool,
    pub(super) zero_if_invalid: bool,
    pub(super) idle_consumers: bool,
    pub(super) exclude_persistent: bool,
    pub(super) only_with_lag: bool,
    pub(super) even: bool,
}

/// Where a group is in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Which topic, and which of its partitions.
    pub(super) partition: (i64, i64),
    pub(super) committed: i64,
    /// Where the next message will be.
    pub(super) latest: i64,
    /// Where the first message is that is still kept; only known where it counts.
    pub(super) first: i64,
}

/// Offsets that a trigger saw last, by partition.
pub(super) type Seen = HashMap<(i64, i64), i64>;

impl Rules {
    /// The value, and the lag that says whether there is something to do.
    pub(super) fn count(&self, positions: &[Position], seen: &mut Seen) -> (i64, i64) {
        let (mut total, mut with_persistent, mut partitions_with_lag) = (0_i64, 0_i64, 0_i64);
        for position in positions {
            let (lag, all) = self.lag(position, seen);
            total = total.saturating_add(lag);
            with_persistent = with_persistent.saturating_add(all);
            partitions_with_lag += i64::from(lag > 0);
        }
        let partitions = i64::try_from(positions.len()).unwrap_or(i64::MAX);
        if self.idle_consumers && !self.only_with_lag && !self.even {
            return (total, with_persistent);
        }
        if self.even {
            let replicas = self.even_replicas(total, partitions);
            total = replicas.saturating_mul(self.threshold);
        }
        // More consumers than partitions would have nothing to do.
        let most = if self.only_with_lag { partitions_with_lag } else { partitions };
        if total / self.threshold.max(1) > most {
            total = most.saturating_mul(self.threshold);
        }
        (total, with_persistent)
    }

    /// How far a group is behind in a partition: as it counts, and with what does not move.
    fn lag(&self, position: &Position, seen: &mut Seen) -> (i64, i64) {
        let Position { partition, committed, latest, first } = *position;
        if committed == NONE {
            let lag = match (self.zero_if_invalid, self.from_earliest) {
                (true, _) => 0,
                (false, true) => latest.saturating_sub(first).max(0),
                // One consumer, so that it commits where it begins.
                (false, false) => 1,
            };
            return (lag, lag);
        }
        let lag = latest.saturating_sub(committed);
        if self.exclude_persistent && seen.insert(partition, committed) == Some(committed) {
            return (0, lag);
        }
        (lag, lag)
    }

    /// The least number of consumers that can bear the lag and have as many partitions each.
    fn even_replicas(&self, lag: i64, partitions: i64) -> i64 {
        let mut even = (1..=partitions).filter(|number| partitions % number == 0);
        even.find(|number| number.saturating_mul(self.threshold) >= lag).unwrap_or(partitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(offsets: &[(i64, i64)]) -> Vec<Position> {
        let position = |(id, (committed, latest)): (usize, &(i64, i64))| Position {
            partition: (0, i64::try_from(id).expect("few")),
            committed: *committed,
            latest: *latest,
            first: 2,
        };
        offsets.iter().enumerate().map(position).collect()
    }

    #[test]
    fn lags_are_added_up_within_bounds() {
        let ten = Rules { threshold: 10, ..Rules::default() };
        let earliest = Rules { from_earliest: true, ..ten.clone() };
        let zero = Rules { zero_if_invalid: true, ..ten.clone() };
        let idle = Rules { idle_consumers: true, ..ten.clone() };
        let idle_even = Rules { even: true, ..idle.clone() };
        let with_lag = Rules { only_with_lag: true, ..ten.clone() };
        let even = Rules { even: true, ..ten.clone() };
        for (rules, offsets, expected) in [
            (&ten, vec![(5, 12), (0, 0)], (7, 7)),
            (&ten, vec![(0, 1000), (0, 0)], (20, 1000)),
            (&ten, vec![(0, 29), (0, 0)], (29, 29)),
            (&ten, vec![(NONE, 50), (NONE, 0)], (2, 2)),
            // The first two are not kept any longer.
            (&earliest, vec![(NONE, 5), (NONE, 0)], (3, 3)),
            (&zero, vec![(NONE, 50)], (0, 0)),
            (&idle, vec![(0, 1000)], (1000, 1000)),
            (&idle_even, vec![(0, 1000)], (10, 1000)),
            (&with_lag, vec![(0, 1000), (7, 7)], (10, 1000)),
            (&even, vec![(0, 11); 1], (10, 11)),
            (&even, vec![(0, 25), (0, 0), (0, 0), (0, 0)], (40, 25)),
            (&even, vec![(0, 15), (0, 0), (0, 0), (0, 0)], (20, 15)),
            (&even, vec![(3, 3), (0, 0)], (10, 0)),
            (&ten, vec![], (0, 0)),
        ] {
            let found = rules.count(&positions(&offsets), &mut Seen::new());
            assert_eq!(found, expected, "{rules:?} {offsets:?}");
        }
    }

    #[test]
    fn what_does_not_move_counts_once() {
        let rules = Rules { threshold: 10, exclude_persistent: true, ..Rules::default() };
        let mut seen = Seen::new();
        for (committed, expected) in [(5, (7, 7)), (5, (0, 7)), (6, (6, 6)), (6, (0, 6))] {
            assert_eq!(rules.count(&positions(&[(committed, 12)]), &mut seen), expected);
        }
    }
}
