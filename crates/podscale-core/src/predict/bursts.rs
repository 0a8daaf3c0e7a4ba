//! How far the demand went beyond what was expected, and how often.

use crate::compact::{CompactError, Reader, write_varint};

/// Excess over what was expected, in thousandths of it; above the last one it counts as the last.
const EDGES: [u16; 16] =
    [0, 25, 50, 75, 100, 150, 200, 250, 300, 400, 500, 600, 800, 1000, 1500, 2000];
/// Beyond so many outcomes older ones count half.
const MOST: u32 = 4096;
/// With fewer outcomes nothing is said.
const FEWEST: u32 = 64;

/// How often the demand went how far beyond what was expected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bursts {
    counts: [u16; EDGES.len()],
}

impl Bursts {
    /// Takes in what was expected and what came, in replicas.
    pub(super) fn add(&mut self, expected: f64, came: f64) {
        let excess = (came - expected) / expected.max(1.0) * 1000.0;
        let place = EDGES.iter().position(|edge| excess <= f64::from(*edge));
        let place = place.unwrap_or(EDGES.len() - 1);
        self.counts[place] = self.counts[place].saturating_add(1);
        if self.outcomes() > MOST {
            self.counts.iter_mut().for_each(|count| *count /= 2);
        }
    }

    fn outcomes(&self) -> u32 {
        self.counts.iter().map(|count| u32::from(*count)).sum()
    }

    /// The excess that so many percent of the outcomes did not go beyond, as a part of what was expected.
    pub(super) fn excess(&self, percent: u8) -> f64 {
        let outcomes = self.outcomes();
        if outcomes < FEWEST {
            return 0.0;
        }
        let wanted = outcomes * u32::from(percent.min(99)) / 100;
        let mut covered = 0;
        for (count, edge) in self.counts.iter().zip(EDGES) {
            covered += u32::from(*count);
            if covered >= wanted {
                return f64::from(edge) / 1000.0;
            }
        }
        f64::from(EDGES[EDGES.len() - 1]) / 1000.0
    }

    /// Appends it to what is kept.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for count in self.counts {
            write_varint(out, u64::from(count));
        }
    }

    /// What was kept.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Bursts, CompactError> {
        let mut bursts = Bursts::default();
        for count in &mut bursts.counts {
            *count = reader.small()?;
        }
        Ok(bursts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excess_covers_as_many_outcomes_as_asked_for() {
        let mut bursts = Bursts::default();
        for _ in 0..FEWEST - 1 {
            bursts.add(10.0, 100.0);
        }
        assert_eq!(bursts.excess(90), 0.0, "too few to tell");
        let mut bursts = Bursts::default();
        for number in 0..1000 {
            bursts.add(10.0, if number % 10 == 0 { 14.0 } else { 9.0 });
        }
        assert_eq!((bursts.excess(50), bursts.excess(95)), (0.0, 0.4));
        for _ in 0..20_000 {
            bursts.add(10.0, f64::INFINITY);
            bursts.add(f64::NAN, 1.0);
        }
        assert!(bursts.outcomes() <= MOST);
        assert_eq!(bursts.excess(99), 2.0);
    }
}
