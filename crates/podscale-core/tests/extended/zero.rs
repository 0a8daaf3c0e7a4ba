//! Zero and other idle sizes, who set them, and the size while metrics are gone.

use super::fixture::Fixture;
use super::{check, desired, differs};
use podscale_core::model::{
    Extensions, Fallback, Milli, PolicyAmount, ScaleToZero, SizeFrom, ZeroedByOthers,
};
use podscale_core::snapshot::Scale;
use podscale_core::status::{Condition, ConditionKind, ConditionStatus, Note};
use podscale_core::{Span, decide};

fn held_at_zero(mut fixture: Fixture) -> Fixture {
    fixture.status.conditions.push(Condition {
        kind: Ok(ConditionKind::ScaledToZero),
        status: ConditionStatus::True,
        since: None,
        note: Note::ScaledToZero,
    });
    fixture
}

#[test]
fn a_target_zeroed_by_others_may_be_woken() {
    let woken = |e: &mut Extensions| e.zeroed_by_others = ZeroedByOthers::Woken;
    differs(Fixture::of(0).limits(2, 9).cpu(0, 50), woken, 0, 2);
    differs(Fixture::of(0).limits(0, 9).queue(30, 10), woken, 0, 3);
    let mut none = Fixture::of(0).limits(0, 9).cpu(0, 50);
    none.scale = Ok(Scale { spec_replicas: 2, status_replicas: 0 });
    let one = |e: &mut Extensions| {
        e.zeroed_by_others = ZeroedByOthers::SetToOne;
        e.size_from = SizeFrom::Status;
    };
    differs(none, one, None, 1);
    // Zero that the spec asks for is left alone then.
    assert_eq!(desired(&Fixture::of(0).limits(1, 9).cpu(0, 50).extend(one)), Some(0));
}

/// Pods may still be there while the spec asks for none, and more of them than there may be.
#[test]
fn a_woken_target_is_limited_to_its_maximum_and_that_is_said() {
    let mut above = Fixture::of(0).limits(0, 9).queue(300, 10).extend(|e| {
        e.zeroed_by_others = ZeroedByOthers::Woken;
        e.size_from = SizeFrom::Status;
    });
    above.scale = Ok(Scale { spec_replicas: 0, status_replicas: 30 });
    let snapshot = above.snapshot();
    let decision = decide(&snapshot);
    assert_eq!(decision.desired, Some(9));
    let conditions = decision.status(&snapshot).conditions;
    let limited = conditions.iter().find(|c| c.kind == Ok(ConditionKind::ScalingLimited));
    let limited = limited.map(|limited| (limited.status.clone(), limited.note.reason().to_owned()));
    assert_eq!(limited, Some((ConditionStatus::True, "TooManyReplicas".to_owned())));
}

fn idles(cooldown: i64) -> impl FnOnce(&mut Extensions) {
    move |e| {
        let cooldown = Span::seconds(cooldown);
        e.scale_to_zero = Some(ScaleToZero { idle_replicas: 0, cooldown });
    }
}

#[test]
fn idle_targets_go_to_their_idle_size() {
    let idle = || Fixture::of(4).queue(0, 10).limits(2, 9).settled();
    differs(idle(), idles(0), 2, 0);
    // Within the cool-down the metrics decide as usual.
    assert_eq!(desired(&idle().extend(idles(1))), Some(2));
    let one = |e: &mut Extensions| {
        e.scale_to_zero = Some(ScaleToZero { idle_replicas: 1, cooldown: Span(0) });
    };
    differs(idle(), one, 2, 1);
    // A threshold keeps a little work from being activity.
    let little = || Fixture::of(4).queue(3, 10).limits(2, 9).settled().extend(idles(0));
    assert_eq!(desired(&little()), Some(2));
    let quiet = little().rule(0, |r| r.activation = Some(Milli(3000)));
    assert_eq!(desired(&quiet), Some(0));
    // A metric of pods counts only if it has a threshold.
    let busy = || Fixture::of(4).queue(0, 10).cpu(50, 50).limits(2, 9).settled().extend(idles(0));
    assert_eq!(desired(&busy()), Some(0));
    let kept = busy().rule(1, |r| r.activation = Some(Milli(49_000)));
    assert_eq!(desired(&kept), Some(4));
    check(
        &idle().extend(idles(0)),
        &[
            "queue is at 0 per pod, target 10 (ratio 0.000): asks for 0",
            "nothing is active, so it is idle, with a size of 0",
            "so the size changes from 4 to 0",
        ],
    );
}

#[test]
fn activity_wakes_an_idle_target() {
    let asleep = |fixture: Fixture| held_at_zero(fixture.limits(2, 9)).extend(idles(60));
    // Pods cannot be measured where there are none, which is no failure.
    let queue = asleep(Fixture::of(0).cpu(0, 50).queue(1, 10));
    assert_eq!(desired(&queue), Some(2));
    assert!(decide(&queue.snapshot()).events.is_empty());
    assert_eq!(desired(&asleep(Fixture::of(0).queue(35, 10))), Some(4));
    assert_eq!(desired(&asleep(Fixture::of(0).queue(0, 10))), Some(0));
    // What cannot be read neither wakes a target nor puts it to sleep.
    assert_eq!(desired(&asleep(Fixture::of(0).broken())), None);
    let awake = Fixture::of(4).broken().limits(2, 9).extend(idles(0));
    assert_eq!(desired(&awake), None);
    check(
        &asleep(Fixture::of(0).queue(1, 10)),
        &[
            "queue has no pods to be shared among, target 10 each: asks for 1",
            "queue is active",
            "the metrics ask for 1",
            "no recent recommendation stands against 1",
            "raised from 1 to the minimum of 2",
            "so the size changes from 0 to 2",
        ],
    );
    // A rate does not keep it from its minimum.
    let slow = Fixture::of(0).queue(35, 10).at_most(PolicyAmount::Pods(1), 60);
    check(
        &asleep(slow),
        &[
            "queue has no pods to be shared among, target 10 each: asks for 4",
            "queue is active",
            "the metrics ask for 4",
            "no recent recommendation stands against 4",
            "limited from 4 to 1: 1 pod in 1m, which began at 0",
            "it was idle, and gets at least 2 now",
            "so the size changes from 0 to 2",
        ],
    );
}

#[test]
fn a_fallback_is_asked_for_after_a_while() {
    let fallback = |after, replicas| {
        move |e: &mut Extensions| {
            e.fallback = Some(Fallback { after: Span::seconds(after), replicas })
        }
    };
    differs(Fixture::of(4).broken(), fallback(0, 6), None, 6);
    differs(Fixture::of(4).broken().limits(1, 5), fallback(0, 6), None, 5);
    assert_eq!(desired(&Fixture::of(4).broken().extend(fallback(1, 6))), None);
    check(
        &Fixture::of(4).broken().extend(fallback(0, 6)),
        &[
            "queue is broken: unable to get external metric default/queue/nil: unable to fetch \
             metrics from external metrics API: connection refused",
            "no metric works, so the size stays as it is",
            "metrics have been gone for 0s: the fallback asks for 6",
            "no recent recommendation stands against 6",
            "so the size changes from 4 to 6",
        ],
    );
}
