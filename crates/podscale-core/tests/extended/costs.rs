//! Busy pods go last: which pods get which deletion cost before a scale-down.

use super::fixture::Fixture;
use podscale_core::deletion_cost::{
    Cost, CostChange, MAX_COST_CHANGES, NoValues, cost_changes, without_ours,
};
use podscale_core::model::Milli;
use podscale_core::pod::{Phase, Pod};
use podscale_core::snapshot::{Reading, Selection};
use podscale_core::{CostsWrite, Pass, ScaleWrite, Span, Write, explain};
use proptest::prelude::*;

/// Pods that use so much cpu each.
fn pods(values: &[i64]) -> Fixture {
    let count = i32::try_from(values.len()).expect("few");
    Fixture::of(count).cpu_of_pods(values, 50).extend(|e| e.deletion_cost_by = Some(0))
}

/// The changes for a scale-down to so many, in short: `3:-1` sets, `3:` takes away.
fn changes(fixture: &Fixture, to: i32, costs: &[Cost]) -> String {
    match cost_changes(&fixture.snapshot(), 0, to, costs) {
        Ok(changes) => {
            let text = |change: &CostChange| {
                let cost = change.cost.map(|cost| cost.to_string()).unwrap_or_default();
                format!("{}:{cost}", change.pod)
            };
            changes.iter().map(text).collect::<Vec<_>>().join(" ")
        }
        Err(NoValues) => "no values".to_owned(),
    }
}

#[test]
fn the_smaller_group_is_told_from_the_other() {
    use Cost::{Others, Ours, Unset};
    let five = [50, 10, 40, 20, 30];
    for (what, to, costs, expected) in [
        ("one goes: the idlest", 4, [Unset; 5], "1:-1"),
        ("two go, the idlest first", 3, [Unset; 5], "1:-2 3:-1"),
        ("one stays: the busiest", 1, [Unset; 5], "0:1"),
        ("two stay", 2, [Unset; 5], "0:2 2:1"),
        ("all go", 0, [Unset; 5], ""),
        ("none goes", 5, [Unset; 5], ""),
        ("more than there are", 9, [Unset; 5], ""),
        ("less than nothing", -3, [Unset; 5], ""),
        ("it is said already", 4, [Unset, Ours(-1), Unset, Unset, Unset], ""),
        ("another one was said to go", 4, [Ours(-1), Unset, Unset, Unset, Unset], "0: 1:-1"),
        ("what was to stay may stay", 4, [Ours(3), Unset, Unset, Unset, Unset], "1:-1"),
        ("what was to stay goes", 2, [Unset, Ours(3), Unset, Unset, Unset], "1: 0:2 2:1"),
        ("others' stays", 4, [Unset, Others(7), Unset, Unset, Unset], "3:-1"),
        ("others say which one goes", 4, [Others(-9), Unset, Unset, Unset, Unset], ""),
        ("and one more", 3, [Others(-9), Unset, Unset, Unset, Unset], "1:-1"),
    ] {
        assert_eq!(changes(&pods(&five), to, &costs), expected, "{what}");
    }
    assert_eq!(changes(&pods(&[20, 20, 20]), 2, &[Unset; 3]), "0:-1", "as busy as each other");
}

#[test]
fn only_pods_that_serve_compete_and_unknown_ones_count_as_busy() {
    let unset = [Cost::Unset; 4];
    let mut going = pods(&[10, 20, 30, 40]);
    going.pods_mut()[0].deleting = true;
    assert_eq!(changes(&going, 2, &unset), "1:-1", "it goes anyway");
    let mut starting = pods(&[10, 20, 30, 40]).unready(1);
    assert_eq!(changes(&starting, 3, &unset), "", "the unready one goes first");
    assert_eq!(changes(&starting, 2, &unset), "0:-1");
    starting.pods_mut()[1].phase = Phase::Succeeded;
    assert_eq!(changes(&starting, 1, &unset), "0:-1");
    let unknown = pods(&[10, 20, 30, 40]).without_samples(1);
    assert_eq!(changes(&unknown, 3, &unset), "1:-1");
    assert_eq!(changes(&pods(&[1, 2, 3, 4]).without_samples(4), 3, &unset), "no values");
    let mut failed = pods(&[1, 2, 3, 4]);
    failed.readings[0] = Reading::Failed("no answer".into());
    assert_eq!(changes(&failed, 3, &unset), "no values");
    let old = pods(&[10, 20, 30, 40]).rule(0, |r| r.max_age = Some(Span::seconds(60)));
    assert_eq!(changes(&old, 3, &unset), "0:-1");
    let mut old = old;
    if let Reading::PerPod(readings) = &mut old.readings[0]
        && let Some(sample) = &mut readings.samples[0]
    {
        sample.taken = old.now.before(Span::seconds(61));
    }
    assert_eq!(changes(&old, 3, &unset), "1:-1", "what is too old says nothing");
    let mut nowhere = pods(&[10, 20]);
    nowhere.pods = Selection::NoSelector;
    assert_eq!(changes(&nowhere, 1, &unset), "no values");
}

#[test]
fn what_we_gave_is_taken_away_in_the_end() {
    let costs = [Cost::Unset, Cost::Ours(3), Cost::Others(-1), Cost::Ours(-2)];
    let pods: Vec<usize> = without_ours(&costs).iter().map(|change| change.pod).collect();
    assert_eq!(pods, [1, 3]);
    assert!(without_ours(&costs).iter().all(|change| change.cost.is_none()));
    assert_eq!(without_ours(&vec![Cost::Ours(1); 500]).len(), MAX_COST_CHANGES);
}

#[test]
fn a_pass_tells_of_them_and_goes_on_whatever_became_of_them() {
    for (pods_changed, error, expected) in [
        (2, None, "2 pods got a deletion cost by cpu, so that busy pods go last"),
        (0, None, "no pod needs another deletion cost by cpu"),
        (0, Some("forbidden"), "no pod got a deletion cost by cpu: forbidden"),
        (
            1,
            Some("late"),
            "1 pod got a deletion cost by cpu, so that busy pods go last; others did not: late",
        ),
    ] {
        let fixture = pods(&[10, 20, 10, 10]).settled();
        let snapshot = fixture.snapshot();
        let mut pass = Pass::begin(&snapshot);
        let Write::Scale(rescale) = pass.next_write() else { panic!("it goes down") };
        assert!(rescale.to < rescale.from);
        pass.costs_ended(0, CostsWrite { pods: pods_changed, error: error.map(Into::into) });
        assert_eq!(pass.next_write(), Write::Scale(rescale), "the size is set in any case");
        pass.scale_ended(ScaleWrite::Written, snapshot.now);
        let decision = pass.finish().decision;
        let lines = explain::lines(&decision.steps, snapshot.autoscaler, snapshot.now);
        assert_eq!(lines.last().map(String::as_str), Some(expected));
        assert_eq!(decision.error, None);
    }
}

/// The pods that stay of those that serve, as Kubernetes' controllers choose: by cost, then by chance.
fn kept(pods: &[Pod], costs: &[Cost], to: usize, luck: usize) -> Vec<usize> {
    let cost = |cost: &Cost| match cost {
        Cost::Unset => 0,
        Cost::Ours(cost) | Cost::Others(cost) => *cost,
    };
    let mut serving: Vec<usize> = (0..pods.len())
        .filter(|place| pods[*place].is_serving() && !pods[*place].deleting)
        .collect();
    serving.sort_by_key(|place| (cost(&costs[*place]), place.wrapping_mul(luck) % 97));
    let gone = serving.len().saturating_sub(to);
    serving.split_off(gone)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any sequence of scale-downs no pod that went was busier than one that stayed; the costs of
    /// others are as they were, and few writes are made.
    #[test]
    fn busy_pods_stay(
        values in proptest::collection::vec(0..40i64, 1..60),
        foreign in proptest::collection::vec(proptest::option::weighted(0.1, -3..4i32), 60),
        downs in proptest::collection::vec((0..60i32, 0..97usize, any::<i64>()), 1..5),
    ) {
        let mut fixture = pods(&values);
        let mut costs: Vec<Cost> = (0..values.len())
            .map(|place| foreign[place].map_or(Cost::Unset, Cost::Others))
            .collect();
        for (to, luck, shift) in downs {
            // The load moves from pod to pod.
            if let Reading::PerPod(readings) = &mut fixture.readings[0] {
                for (place, sample) in readings.samples.iter_mut().flatten().enumerate() {
                    sample.value = Milli(values[place].wrapping_mul(shift | 1).rem_euclid(41));
                }
            }
            let before = costs.clone();
            let changes = cost_changes(&fixture.snapshot(), 0, to, &costs).expect("values");
            prop_assert!(changes.len() <= MAX_COST_CHANGES);
            for CostChange { pod, cost } in &changes {
                prop_assert!(!matches!(before[*pod], Cost::Others(_)), "that of somebody else");
                costs[*pod] = cost.map_or(Cost::Unset, Cost::Ours);
            }
            let Selection::Pods(all) = &fixture.pods else { unreachable!("pods") };
            let stay = kept(all, &costs, usize::try_from(to).expect("a size"), luck);
            let Reading::PerPod(readings) = &fixture.readings[0] else { unreachable!("values") };
            let value = |place: &usize| readings.samples[*place].expect("a sample").value;
            let ours = |place: &usize| !matches!(costs[*place], Cost::Others(_));
            let least = stay.iter().filter(|place| ours(place)).map(value).min();
            let gone = (0..all.len()).filter(|place| !stay.contains(place) && ours(place));
            let busiest = gone.map(|place| value(&place)).max();
            if let (Some(least), Some(busiest)) = (least, busiest) {
                // What others say about theirs may take a place of ours.
                let theirs = costs.iter().any(|cost| matches!(cost, Cost::Others(_)));
                prop_assert!(theirs || busiest <= least, "{busiest:?} went, {least:?} stayed");
            }
        }
    }

    /// Of very many pods the busiest are kept with few writes.
    #[test]
    fn writes_are_bounded(count in 150..400usize, to in 0..400i32) {
        let values: Vec<i64> = (0..count).map(|n| i64::try_from(n).expect("few")).collect();
        let fixture = pods(&values);
        let costs = vec![Cost::Unset; count];
        let changes = cost_changes(&fixture.snapshot(), 0, to, &costs).expect("values");
        prop_assert!(changes.len() <= MAX_COST_CHANGES);
        if let (Some(change), true) = (changes.first(), to > 0) {
            let lowest = change.cost.is_some_and(|cost| cost < 0);
            prop_assert_eq!(change.pod, if lowest { 0 } else { count - 1 });
        }
    }
}
