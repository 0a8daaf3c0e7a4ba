//! A change of a deployment's size in the middle of a rollout, spread over its replica sets.

use super::revision;
use super::status::replicas_of;
use k8s_openapi::api::apps::v1::ReplicaSet;

/// The new sizes of the active replica sets (oldest first), in proportion to what each could have
/// before. `most` is the size with the surge, `allowed` the sum that the sizes should reach,
/// `reported` the number of pods when nothing was noted. What is left over by rounding goes to the
/// largest; of equals, to the newest when growing and the oldest when shrinking.
#[must_use]
pub fn proportional(
    sets: &[&ReplicaSet],
    wanted: i32,
    most: i32,
    allowed: i32,
    reported: i32,
) -> Vec<i32> {
    let mut sizes: Vec<i32> = sets.iter().map(|set| replicas_of(set)).collect();
    let total = sizes.iter().fold(0_i32, |sum, size| sum.saturating_add(*size));
    let missing = allowed.saturating_sub(total);
    if missing == 0 {
        return sizes;
    }
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by_key(|index| {
        let age = i64::try_from(*index).unwrap_or(i64::MAX);
        (-i64::from(sizes[*index]), if missing > 0 { -age } else { age })
    });
    let mut given = 0_i32;
    for index in &order {
        if sizes[*index] == 0 || given == missing {
            continue;
        }
        let share = share(sets[*index], wanted, most, reported);
        let left = missing.saturating_sub(given);
        let share = if missing > 0 { share.min(left) } else { share.max(left) };
        sizes[*index] = sizes[*index].saturating_add(share);
        given = given.saturating_add(share);
    }
    if let Some(largest) = order.first() {
        let left = missing.saturating_sub(given);
        sizes[*largest] = sizes[*largest].saturating_add(left).max(0);
    }
    sizes
}

/// By how much one replica set changes so that its part of the whole stays the same.
fn share(set: &ReplicaSet, wanted: i32, most: i32, reported: i32) -> i32 {
    let size = replicas_of(set);
    if wanted == 0 {
        return -size;
    }
    let before = revision::most(&set.metadata).filter(|before| *before > 0).unwrap_or(reported);
    if before <= 0 {
        return 0;
    }
    // Rounded to the nearest, halves up; all values are positive and fit.
    let (size_now, most, before) = (i64::from(size), i64::from(most), i64::from(before));
    let new = (2 * size_now * most + before) / (2 * before);
    i32::try_from(new - size_now).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sizes_change_in_proportion() {
        // sizes with the most noted on each, wanted, surge, new sizes
        let cases: &[(&[i32], i32, i32, i32, &[i32])] = &[
            (&[5, 5], 10, 20, 0, &[10, 10]),
            (&[10, 5], 15, 20, 0, &[13, 7]),
            (&[5, 5, 5], 15, 20, 0, &[6, 7, 7]),
            (&[1, 2], 3, 3, 0, &[1, 2]),
            (&[8, 2], 10, 5, 0, &[4, 1]),
            (&[8, 5], 13, 0, 3, &[0, 0]),
            (&[8, 5], 13, 30, 3, &[20, 13]),
            (&[3, 3, 3], 9, 4, 0, &[1, 1, 2]),
        ];
        for (sizes, noted, wanted, surge, expected) in cases {
            let sets: Vec<ReplicaSet> = sizes
                .iter()
                .map(|size| {
                    let mut set: ReplicaSet = serde_json::from_value(
                        json!({"metadata": {}, "spec": {"replicas": size, "selector": {}}}),
                    )
                    .unwrap();
                    revision::note_sizes(&mut set.metadata, *noted, *noted);
                    set
                })
                .collect();
            let sets: Vec<&ReplicaSet> = sets.iter().collect();
            let most = wanted + surge;
            let allowed = if *wanted > 0 { most } else { 0 };
            let found = proportional(&sets, *wanted, most, allowed, 0);
            assert_eq!(found, *expected, "{sizes:?} to {wanted}+{surge}");
        }
    }
}
