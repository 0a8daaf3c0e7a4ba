//! Sequences of failed writes, and what the stored status says after each.
//!
//! Kubernetes sets AbleToScale to True as soon as it has read the target's scale, before it tries to
//! write a new size. So each failed write turns a condition that is already False to True and back:
//! its transition time moves, and the status is written although nothing else differs.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "support/fixture.rs"]
mod fixture;

use fixture::{Fixture, NOW};
use podscale_core::snapshot::ScaleError;
use podscale_core::status::{ConditionKind, ConditionStatus};
use podscale_core::{ScaleWrite, Span, StatusWrite, Time, Withheld};

/// How one pass of a sequence goes.
#[derive(Clone, Copy)]
enum Go {
    /// Every write succeeds.
    Well,
    /// The scale cannot be read.
    Unread,
    /// The scale cannot be written.
    NoScale(&'static str),
    /// The status cannot be written.
    NoStatus,
    /// Neither can be written.
    Neither(&'static str),
    /// Conflicts until the write of the scale is given up, which takes so many milliseconds.
    Conflicts(i64),
    /// A dry run.
    Dry,
}

use Go::{Conflicts, Dry, Neither, NoScale, NoStatus, Unread, Well};

const CONFLICT: &str = "the object has been modified";

/// One pass: its writes end as asked, `late` milliseconds after it began.
fn pass(fixture: &mut Fixture, go: Go) -> podscale_core::Outcome {
    let (mut scale, mut status, mut late) = (ScaleWrite::Written, StatusWrite::Written, 0);
    let readable = fixture.scale.clone();
    match go {
        Well => {}
        Unread => fixture.scale = Err(ScaleError::Unreadable("gone".into())),
        NoScale(error) => scale = ScaleWrite::Failed(error.into()),
        NoStatus => status = StatusWrite::Failed("no".into()),
        Neither(error) => {
            scale = ScaleWrite::Failed(error.into());
            status = StatusWrite::Failed("no".into());
        }
        Conflicts(milliseconds) => {
            scale = ScaleWrite::Failed(CONFLICT.into());
            late = milliseconds;
        }
        Dry => {
            scale = ScaleWrite::Withheld(Withheld::DryRun);
            status = StatusWrite::Withheld(Withheld::DryRun);
        }
    }
    let outcome = fixture.pass_at(scale, status, fixture.now.after(Span(late * 1000)));
    if let Unread = go {
        fixture.scale = readable;
    }
    outcome
}

/// The stored AbleToScale: its status, its reason, and how many milliseconds after the beginning it
/// got that status.
fn able(fixture: &Fixture) -> (bool, String, i64) {
    let condition = fixture.status.condition(ConditionKind::AbleToScale).expect("AbleToScale");
    let since: Time = condition.since.expect("a time");
    let reason = condition.note.reason().to_owned();
    (condition.status == ConditionStatus::True, reason, since.since(NOW).0 / 1000)
}

/// Runs passes 15 seconds apart. After each: whether the status was written, AbleToScale as it is
/// stored then (holds, reason, transition in milliseconds), and the event reasons of the pass.
#[track_caller]
fn check(mut fixture: Fixture, rows: &[(Go, bool, (bool, &str, i64), &[&str])]) {
    for (place, (go, written, (holds, reason, since), events)) in rows.iter().enumerate() {
        let outcome = pass(&mut fixture, *go);
        let seen: Vec<_> = outcome.decision.events.iter().map(|e| &*e.reason).collect();
        assert_eq!(outcome.is_status_written(), *written, "written in pass {place}");
        assert_eq!(able(&fixture), (*holds, (*reason).to_owned(), *since), "after pass {place}");
        assert_eq!(seen, *events, "events of pass {place}");
        fixture.now = fixture.now.after(Span::seconds(15));
    }
}

const READ: &[&str] = &["FailedGetScale"];
const RESCALE: &[&str] = &["FailedRescale"];
const BOTH: &[&str] = &["FailedRescale", "FailedUpdateStatus"];
const DONE: &[&str] = &["SuccessfulRescale"];

/// More replicas than the maximum: the bounds force a size, and no metric is read.
fn forced() -> Fixture {
    Fixture::of(20).limits(1, 10).cpu(50, 50)
}

/// Twice the load: the metrics ask for another size.
fn asked_for() -> Fixture {
    Fixture::of(4).limits(1, 10).cpu(100, 50)
}

#[test]
fn every_failed_write_of_a_scale_is_a_transition() {
    for fixture in [forced(), asked_for()] {
        check(
            fixture,
            &[
                (NoScale("no"), true, (false, "FailedUpdateScale", 0), RESCALE),
                (NoScale("no"), true, (false, "FailedUpdateScale", 15_000), RESCALE),
                (NoScale("no"), true, (false, "FailedUpdateScale", 30_000), RESCALE),
                (NoScale("never"), true, (false, "FailedUpdateScale", 45_000), RESCALE),
                // Read at that moment, rescaled at the same: True only once.
                (Well, true, (true, "SucceededRescale", 60_000), DONE),
            ],
        );
    }
}

#[test]
fn conflicts_in_a_row_move_the_transition_to_the_last_attempt() {
    for fixture in [forced(), asked_for()] {
        check(
            fixture,
            &[
                (Conflicts(40), true, (false, "FailedUpdateScale", 40), RESCALE),
                (Conflicts(40), true, (false, "FailedUpdateScale", 15_040), RESCALE),
                (Conflicts(20), true, (false, "FailedUpdateScale", 30_020), RESCALE),
            ],
        );
    }
}

#[test]
fn a_status_that_was_not_written_changes_nothing_for_the_next_pass() {
    for fixture in [forced(), asked_for()] {
        check(
            fixture,
            &[
                (NoScale("no"), true, (false, "FailedUpdateScale", 0), RESCALE),
                (Neither("no"), false, (false, "FailedUpdateScale", 0), BOTH),
                (Neither("no"), false, (false, "FailedUpdateScale", 0), BOTH),
                (NoScale("no"), true, (false, "FailedUpdateScale", 45_000), RESCALE),
                (Dry, false, (false, "FailedUpdateScale", 45_000), &[]),
                (NoScale("no"), true, (false, "FailedUpdateScale", 75_000), RESCALE),
            ],
        );
    }
}

#[test]
fn a_scale_that_cannot_be_read_passes_through_nothing() {
    for fixture in [forced(), asked_for()] {
        check(
            fixture,
            &[
                (Unread, true, (false, "FailedGetScale", 0), READ),
                (Unread, false, (false, "FailedGetScale", 0), READ),
                // Read, then not written: False since the write.
                (NoScale("no"), true, (false, "FailedUpdateScale", 30_000), RESCALE),
                // Not even read: it has been False ever since.
                (Unread, true, (false, "FailedGetScale", 30_000), READ),
                (Unread, false, (false, "FailedGetScale", 30_000), READ),
            ],
        );
    }
}

#[test]
fn a_rescale_whose_status_is_lost_is_not_repeated() {
    check(
        forced(),
        &[
            (NoScale("no"), true, (false, "FailedUpdateScale", 0), RESCALE),
            (
                NoStatus,
                false,
                (false, "FailedUpdateScale", 0),
                &["SuccessfulRescale", "FailedUpdateStatus"],
            ),
            // The size is right by now; the condition turns with this pass. The size that was found first
            // counts as a recommendation that only the maximum holds back.
            (Well, true, (true, "ScaleDownStabilized", 30_000), &[]),
            (Well, false, (true, "ScaleDownStabilized", 30_000), &[]),
        ],
    );
}

#[test]
fn a_target_without_trouble_is_written_once() {
    check(
        Fixture::of(4).cpu(50, 50),
        &[
            (Well, true, (true, "ReadyForNewScale", 0), &[]),
            (Well, false, (true, "ReadyForNewScale", 0), &[]),
            (NoScale("not tried"), false, (true, "ReadyForNewScale", 0), &[]),
        ],
    );
}

/// The other conditions are set at most once in a pass, so they keep their time while they fail.
#[test]
fn other_conditions_keep_their_time() {
    let mut fixture = asked_for();
    for _ in 0..3 {
        pass(&mut fixture, NoScale("no"));
        fixture.now = fixture.now.after(Span::seconds(15));
    }
    for kind in [ConditionKind::ScalingActive, ConditionKind::ScalingLimited] {
        let condition = fixture.status.condition(kind).expect("set");
        assert_eq!(condition.since, Some(NOW), "{kind:?}");
    }
    assert!(fixture.status.condition(ConditionKind::ScaledToZero).is_none());
}

/// What is learned from a scale write depends on that write alone, not on the status.
#[test]
fn history_learns_whatever_becomes_of_the_status() {
    let amount = podscale_core::model::PolicyAmount::Pods(4);
    for (go, ups) in [(Well, 1), (NoStatus, 1), (NoScale("no"), 0), (Dry, 0)] {
        let mut fixture = asked_for().at_most(amount, 60);
        pass(&mut fixture, go);
        assert_eq!(fixture.history.ups.len(), ups);
        // The target's first size, and what the metrics asked for.
        assert_eq!(fixture.history.recommendations.len(), 2);
    }
}
