//! The annotations by which a deployment numbers its replica sets and remembers their sizes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The number of a revision.
pub const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers that the same template had before.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// The deployment's size when the replica set was last given one.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The same with the surge.
const MOST: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that belong to the deployment alone.
const NOT_COPIED: [&str; 6] = [
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
];
/// The longest history that is kept, in characters.
const LONGEST_HISTORY: usize = 2000;

fn annotation<'a>(meta: &'a ObjectMeta, key: &str) -> Option<&'a String> {
    meta.annotations.as_ref()?.get(key)
}

/// The revision of an object; none, or nonsense, is 0.
#[must_use]
pub fn of(meta: &ObjectMeta) -> i64 {
    annotation(meta, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The deployment's size when the replica set was last given one.
#[must_use]
pub fn desired(meta: &ObjectMeta) -> Option<i32> {
    annotation(meta, DESIRED)?.parse().ok().filter(|size| *size >= 0)
}

/// The most pods the deployment could have when the replica set was last given a size.
#[must_use]
pub fn most(meta: &ObjectMeta) -> Option<i32> {
    annotation(meta, MOST)?.parse().ok().filter(|size| *size >= 0)
}

/// Notes the deployment's sizes on a replica set.
pub fn note_sizes(meta: &mut ObjectMeta, desired: i32, most: i32) {
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(DESIRED.into(), desired.to_string());
    annotations.insert(MOST.into(), most.to_string());
}

/// Copies the deployment's annotations to its newest replica set and raises its revision to `next`;
/// says whether anything changed.
pub fn annotate(meta: &mut ObjectMeta, deployment: &ObjectMeta, next: i64) -> bool {
    let before = meta.annotations.clone().unwrap_or_default();
    let annotations = meta.annotations.get_or_insert_default();
    for (key, value) in deployment.annotations.iter().flatten() {
        if !NOT_COPIED.contains(&key.as_str()) {
            annotations.insert(key.clone(), value.clone());
        }
    }
    let old = annotations.get(REVISION).cloned();
    let number = old.as_ref().map_or(Some(0), |old| old.parse::<i64>().ok());
    if number.is_some_and(|number| number < next) {
        annotations.insert(REVISION.into(), next.to_string());
        if let Some(old) = old {
            let history = annotations.get(HISTORY).map(String::as_str);
            let history = prolong(history.unwrap_or_default(), &old);
            annotations.insert(HISTORY.into(), history);
        }
    }
    before != *annotations
}

/// Adds a number to a history and drops the oldest that have no room.
fn prolong(history: &str, number: &str) -> String {
    let mut numbers: Vec<&str> = history.split(',').filter(|number| !number.is_empty()).collect();
    numbers.push(number);
    let mut length: usize = numbers.iter().map(|number| number.len() + 1).sum();
    let surplus = numbers.iter().take_while(|number| {
        let too_long = length > LONGEST_HISTORY + 1;
        length = length.saturating_sub(number.len() + 1);
        too_long
    });
    let surplus = surplus.count();
    numbers.split_off(surplus).join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn meta(annotations: &[(&str, &str)]) -> ObjectMeta {
        let annotations: BTreeMap<String, String> =
            annotations.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() }
    }

    #[test]
    fn the_newest_set_gets_the_next_revision_and_remembers_its_old_ones() {
        let deployment = meta(&[
            ("team", "a"),
            (REVISION, "9"),
            ("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ]);
        let mut set = meta(&[]);
        assert!(annotate(&mut set, &deployment, 1));
        assert_eq!(set, meta(&[("team", "a"), (REVISION, "1")]));
        assert!(!annotate(&mut set, &deployment, 1));
        assert!(annotate(&mut set, &deployment, 3));
        assert!(annotate(&mut set, &deployment, 7));
        assert_eq!(set, meta(&[("team", "a"), (REVISION, "7"), (HISTORY, "1,3")]));
        assert!(!annotate(&mut set, &deployment, 2), "revisions never fall");
        let mut odd = meta(&[(REVISION, "x"), ("team", "a")]);
        assert!(!annotate(&mut odd, &deployment, 5));
    }

    #[test]
    fn history_is_bounded() {
        let mut history = String::new();
        for number in 1..5000 {
            history = prolong(&history, &number.to_string());
            assert!(history.len() <= LONGEST_HISTORY, "{}", history.len());
        }
        assert!(history.ends_with(",4998,4999"));
        assert!(history.len() > LONGEST_HISTORY - 5);
    }
}
