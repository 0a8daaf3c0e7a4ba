//! Looks for the best choice: some at random, then one change after the other from the best.

use super::{Choice, Objective, Worth};
use podscale_sim::random;
use std::collections::BTreeMap;

/// What draws of the search are for.
const CHOICE: u64 = 0x7475_6e65;

/// How the search goes.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// What is wanted.
    pub objective: Objective,
    /// How many choices are tried at random first.
    pub samples: usize,
    /// How many times the neighbours of the best are tried at most.
    pub rounds: usize,
    /// Where the random ones come from.
    pub seed: u64,
}

/// Everything that was tried, by choice.
pub type Tried = BTreeMap<Choice, Worth>;

impl Search {
    /// Tries choices among things with so many values each; whoever measures gets many at a time. Gives
    /// everything that was tried, and the best of it.
    ///
    /// # Errors
    /// Measuring failed.
    pub fn run<E>(
        &self,
        sizes: &[usize],
        mut measure: impl FnMut(&[Choice]) -> Result<Vec<Worth>, E>,
    ) -> Result<(Tried, Choice), E> {
        let unchanged: Choice = vec![0; sizes.len()];
        let mut first = vec![unchanged.clone()];
        first.extend((0..self.samples).map(|number| self.random(sizes, number)));
        let mut tried = Tried::new();
        try_all(first, &mut tried, &mut measure)?;
        let mut best = self.best(&tried, &unchanged);
        for _ in 0..self.rounds {
            try_all(neighbours(&best, sizes), &mut tried, &mut measure)?;
            let better = self.best(&tried, &best);
            if better == best {
                break;
            }
            best = better;
        }
        Ok((tried, best))
    }

    fn random(&self, sizes: &[usize], number: usize) -> Choice {
        let draw = |place: usize, size: usize| {
            let at = ((number as u64) << 16) | place as u64;
            let unit = (random::unit(self.seed, at, CHOICE) + 1.0) / 2.0;
            ((unit * (size + 1) as f64) as usize).min(size)
        };
        sizes.iter().enumerate().map(|(place, size)| draw(place, *size)).collect()
    }

    /// The best of what was tried; what is no better than the one at hand does not replace it.
    fn best(&self, tried: &Tried, at_hand: &Choice) -> Choice {
        let mut best = at_hand;
        for (choice, worth) in tried {
            if tried.get(best).is_none_or(|known| self.objective.prefers(worth, known)) {
                best = choice;
            }
        }
        best.clone()
    }
}

/// Measures what was not tried yet.
fn try_all<E>(
    mut choices: Vec<Choice>,
    tried: &mut Tried,
    measure: &mut impl FnMut(&[Choice]) -> Result<Vec<Worth>, E>,
) -> Result<(), E> {
    choices.sort();
    choices.dedup();
    choices.retain(|choice| !tried.contains_key(choice));
    if choices.is_empty() {
        return Ok(());
    }
    let worths = measure(&choices)?;
    tried.extend(choices.into_iter().zip(worths));
    Ok(())
}

/// All choices that differ in one thing.
fn neighbours(choice: &Choice, sizes: &[usize]) -> Vec<Choice> {
    let mut found = Vec::new();
    for (place, size) in sizes.iter().enumerate() {
        for value in (0..=*size).filter(|value| *value != choice[place]) {
            let mut other = choice.clone();
            other[place] = value;
            found.push(other);
        }
    }
    found
}

/// The choices that no other one is better than in both, the cheapest first.
#[must_use]
pub fn frontier(tried: &Tried) -> Vec<(&Choice, &Worth)> {
    let undominated = tried.iter().filter(|(_, worth)| !tried.values().any(|w| w.dominates(worth)));
    let mut found: Vec<(&Choice, &Worth)> = undominated.collect();
    found.sort_by(|(_, one), (_, other)| one.pod_hours.total_cmp(&other.pod_hours));
    // Several choices may be worth the same; the first one stands for them.
    found.dedup_by(|(_, one), (_, other)| {
        one.pod_hours == other.pod_hours && one.violations == other.violations
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    /// Fewer pods go wrong more often; the second thing makes everything worse.
    fn measure(choices: &[Choice]) -> Result<Vec<Worth>, Infallible> {
        let worth = |choice: &Choice| Worth {
            violations: 0.001 * choice[0] as f64 + 0.01 * choice[1] as f64,
            pod_hours: 20.0 - choice[0] as f64,
            reversals_per_hour: 0.0,
        };
        Ok(choices.iter().map(worth).collect())
    }

    #[test]
    fn the_cheapest_that_is_allowed_is_found() {
        let objective = Objective::MaxViolations(0.0055);
        let search = Search { objective, samples: 4, rounds: 8, seed: 1 };
        let Ok((tried, best)) = search.run(&[9, 3], measure);
        assert_eq!(best, [5, 0]);
        let again = search.run(&[9, 3], measure);
        assert_eq!(again, Ok((tried.clone(), best)), "the same seed, the same search");
        let frontier = frontier(&tried);
        assert!(frontier.iter().all(|(choice, _)| choice[1] == 0), "{frontier:?}");
        assert!(frontier.windows(2).all(|two| two[0].1.violations > two[1].1.violations));
    }

    #[test]
    fn nothing_is_changed_where_nothing_is_better() {
        let objective = Objective::Weight(1000.0);
        let search = Search { objective, samples: 8, rounds: 8, seed: 7 };
        let Ok((_, best)) = search.run(&[9, 3], measure);
        assert_eq!(best, [0, 0]);
        let Ok((tried, best)) = search.run(&[], |choices: &[Choice]| {
            Ok::<_, Infallible>(vec![Worth::default(); choices.len()])
        });
        assert_eq!((tried.len(), best), (1, Vec::new()));
    }
}
