//! Situations in words, and the words in which they are explained. The recordings of the real
//! controller judge the rules; these rows show that the explanations are true.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "support/fixture.rs"]
mod fixture;

use fixture::Fixture;
use podscale_core::model::PolicyAmount::{Percent, Pods};
use podscale_core::model::{Milli, Source, Targets};
use podscale_core::snapshot::{Reading, ScaleError, Selection};
use podscale_core::status::{Condition, ConditionKind, ConditionStatus, Note};
use podscale_core::{Metric, decide, explain};

/// Compares all lines but the first, which only says what the target is.
#[track_caller]
fn check(fixture: Fixture, expected: &[&str]) {
    let snapshot = fixture.snapshot();
    let lines = explain::lines(&decide(&snapshot).steps, snapshot.autoscaler, snapshot.now);
    assert_eq!(lines[1..], *expected);
}

#[test]
fn too_much_load() {
    check(
        Fixture::of(4).cpu(300, 50).limits(2, 20),
        &[
            "cpu is at 300% of requests, target 50% (ratio 6.000; pods: 4 ready): asks for 24",
            "the metrics ask for 24",
            "no recent recommendation stands against 24",
            "capped from 24 to 8: at most double, or four, in one step",
            "so the size changes from 4 to 8",
        ],
    );
}

#[test]
fn nothing_to_do() {
    check(
        Fixture::of(3).cpu(50, 50),
        &[
            "cpu is at 50% of requests, target 50% (ratio 1.000; pods: 3 ready): close enough, stay at 3",
            "the metrics ask for 3",
            "no recent recommendation stands against 3",
            "so the size stays 3",
        ],
    );
}

#[test]
fn pods_that_cannot_be_judged_soften_the_answer() {
    check(
        Fixture::of(4).cpu(100, 50).unready(1).without_samples(1),
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000, 1.000 with the pods that have no \
             usable sample; pods: 2 ready, 1 unready, 1 without metrics): close enough, stay at 4",
            "the metrics ask for 4",
            "no recent recommendation stands against 4",
            "so the size stays 4",
        ],
    );
}

#[test]
fn the_highest_of_several_metrics_wins() {
    check(
        Fixture::of(4).cpu(100, 50).queue(50, 10),
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000; pods: 4 ready): asks for 8",
            "queue is at 12.5 per pod, target 10 (ratio 1.250): asks for 5",
            "cpu asks for most: 8",
            "no recent recommendation stands against 8",
            "so the size changes from 4 to 8",
        ],
    );
}

#[test]
fn a_broken_metric_blocks_the_way_down_only() {
    check(
        Fixture::of(4).cpu(25, 50).broken(),
        &[
            "cpu is at 25% of requests, target 50% (ratio 0.500; pods: 4 ready): asks for 2",
            "queue is broken: unable to get external metric default/queue/nil: unable to fetch \
             metrics from external metrics API: connection refused",
            "the others ask for 2, but going down is not safe while 1 of 2 metrics are broken",
        ],
    );
    check(
        Fixture::of(2).cpu(100, 50).broken(),
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000; pods: 2 ready): asks for 4",
            "queue is broken: unable to get external metric default/queue/nil: unable to fetch \
             metrics from external metrics API: connection refused",
            "cpu asks for most: 4; 1 broken metric cannot lower that",
            "no recent recommendation stands against 4",
            "so the size changes from 2 to 4",
        ],
    );
}

#[test]
fn recent_recommendations_hold_the_size_up() {
    check(
        Fixture::of(8).cpu(25, 50).recommended(8, 300).recommended(6, 30),
        &[
            "cpu is at 25% of requests, target 50% (ratio 0.500; pods: 8 ready): asks for 4",
            "the metrics ask for 4",
            "held at 8, not 4: 8 was recommended 5m ago",
            "so the size stays 8",
        ],
    );
}

#[test]
fn policies_limit_the_pace() {
    check(
        Fixture::of(10).cpu(100, 50).at_most(Pods(4), 60).added(3, 30),
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000; pods: 10 ready): asks for 20",
            "the metrics ask for 20",
            "no recent recommendation stands against 20",
            "limited from 20 to 11: 4 pods in 1m, which began at 7",
            "so the size changes from 10 to 11",
        ],
    );
    check(
        Fixture::of(10).cpu(5, 50).at_most(Percent(10), 90),
        &[
            "cpu is at 5% of requests, target 50% (ratio 0.100; pods: 10 ready): asks for 1",
            "the metrics ask for 1",
            "no recent recommendation stands against 1",
            "limited from 1 to 9: 10% in 1m30s, which began at 10",
            "so the size changes from 10 to 9",
        ],
    );
}

#[test]
fn memory_is_told_in_binary_units() {
    let mut fixture = Fixture::of(2).cpu(300, 0).limits(1, 10);
    let targets = Targets { average_value: Some(Milli((400 << 20) * 1000)), ..Targets::default() };
    let memory = Source::Resource { name: "memory".into() };
    fixture.autoscaler.metrics[0] = Metric::new(memory, &targets);
    if let Reading::PerPod(readings) = &mut fixture.readings[0] {
        readings.samples.iter_mut().flatten().for_each(|s| s.value = Milli(629_145_600_000));
    }
    check(
        fixture,
        &[
            "memory is at 600Mi per pod, target 400Mi (ratio 1.500; pods: 2 ready): asks for 3",
            "the metrics ask for 3",
            "no recent recommendation stands against 3",
            "so the size changes from 2 to 3",
        ],
    );
}

#[test]
fn work_that_waits_for_no_pods_is_told_without_a_ratio() {
    let mut fixture = Fixture::of(0).queue(50, 10).limits(0, 10);
    fixture.status.conditions.push(Condition {
        kind: Ok(ConditionKind::ScaledToZero),
        status: ConditionStatus::True,
        since: None,
        note: Note::ScaledToZero,
    });
    check(
        fixture,
        &[
            "queue has no pods to be shared among, target 10 each: asks for 5",
            "the metrics ask for 5",
            "no recent recommendation stands against 5",
            "capped from 5 to 4: at most double, or four, in one step",
            "so the size changes from 0 to 4",
        ],
    );
}

#[test]
fn outside_the_bounds_nothing_is_measured() {
    check(
        Fixture::of(12).cpu(50, 50).limits(2, 10),
        &[
            "that is more than the maximum of 10; metrics are not read",
            "so the size changes from 12 to 10",
        ],
    );
}

#[test]
fn zero_set_by_hand_is_left_alone() {
    check(
        Fixture::of(0).queue(50, 10).limits(0, 10),
        &[
            "somebody else set it to zero, so it is left alone until somebody sets another size",
            "so the size stays 0",
        ],
    );
}

#[test]
fn what_is_not_known_is_said() {
    let mut no_scale = Fixture::of(3).cpu(50, 50);
    no_scale.scale = Err(ScaleError::Unreadable("not found".into()));
    let snapshot = no_scale.snapshot();
    let lines = explain::lines(&decide(&snapshot).steps, snapshot.autoscaler, snapshot.now);
    assert_eq!(lines, ["the size of Deployment web is not known: not found"]);

    let mut no_selector = Fixture::of(3).cpu(50, 50);
    no_selector.pods = Selection::NoSelector;
    check(no_selector, &["its pods are not known: selector is required"]);
}
