//! Spreads work over pods by weight without overfilling any.

/// One pod's part of the work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    /// How much of the work it should get, relative to the others.
    pub weight: f64,
    /// How much it can take.
    pub most: f64,
    /// How much it got.
    pub given: f64,
}

/// Gives each share its part of `amount` by weight; what a full one cannot take goes to the others.
/// Returns how much was given in all.
pub(super) fn spread(amount: f64, shares: &mut [Share]) -> f64 {
    // Those that fill up first (least room per weight) go first, so that one pass is enough.
    let mut order: Vec<usize> = (0..shares.len()).filter(|i| shares[*i].weight > 0.0).collect();
    let fullness = |share: &Share| share.most / share.weight;
    let first = order.first().map(|index| fullness(&shares[*index]));
    if order.iter().any(|index| Some(fullness(&shares[*index])) != first) {
        order.sort_by(|a, b| fullness(&shares[*a]).total_cmp(&fullness(&shares[*b])));
    }
    let mut weight: f64 = order.iter().map(|index| shares[*index].weight).sum();
    let mut left = amount.max(0.0);
    let mut given = 0.0;
    let last = order.len().saturating_sub(1);
    for (position, index) in order.into_iter().enumerate() {
        let share = &mut shares[index];
        // The last one takes the rest, so that rounding loses nothing.
        let part = if position == last { left } else { left * (share.weight / weight).min(1.0) };
        share.given = part.min(share.most).max(0.0);
        left = (left - share.given).max(0.0);
        weight -= share.weight;
        given += share.given;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(amount: f64, shares: &[(f64, f64)], expected: &[f64]) {
        let mut shares: Vec<Share> =
            shares.iter().map(|&(weight, most)| Share { weight, most, given: 0.0 }).collect();
        let given = spread(amount, &mut shares);
        let parts: Vec<f64> = shares.iter().map(|share| share.given).collect();
        assert_eq!(parts, expected, "{amount} over {shares:?}");
        assert_eq!(given, expected.iter().sum::<f64>());
    }

    #[test]
    fn work_is_spread_by_weight_and_overflow_moves_on() {
        check(9.0, &[(1.0, 10.0), (1.0, 10.0), (1.0, 10.0)], &[3.0, 3.0, 3.0]);
        check(9.0, &[(1.0, 10.0), (2.0, 10.0)], &[3.0, 6.0]);
        check(9.0, &[(1.0, 1.0), (1.0, 10.0), (1.0, 2.0)], &[1.0, 6.0, 2.0]);
        check(99.0, &[(1.0, 1.0), (1.0, 2.0)], &[1.0, 2.0]);
        check(9.0, &[(0.0, 5.0), (1.0, 5.0)], &[0.0, 5.0]);
        check(9.0, &[], &[]);
    }
}
