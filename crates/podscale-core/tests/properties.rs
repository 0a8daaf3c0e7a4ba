//! What must hold for every snapshot, sensible or not.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/generate.rs"]
mod generate;

use fixture::Fixture;
use generate::{fixture, history};
use podscale_core::history::MAX_ENTRIES;
use podscale_core::pass::WriteOutcome;
use podscale_core::{
    History, ScaleWrite, Settings, Span, StatusWrite, Step, Withheld, Write, decide, explain,
};
use proptest::prelude::*;

fn withheld() -> impl Strategy<Value = Withheld> {
    prop_oneof![
        Just(Withheld::DryRun),
        Just(Withheld::OtherController),
        Just(Withheld::TargetTaken),
        Just(Withheld::Deferred),
        Just(Withheld::Gone)
    ]
}

fn scale_write() -> impl Strategy<Value = ScaleWrite> {
    prop_oneof![
        Just(ScaleWrite::Written),
        Just(ScaleWrite::Failed("no".into())),
        withheld().prop_map(ScaleWrite::Withheld)
    ]
}

fn status_write() -> impl Strategy<Value = StatusWrite> {
    prop_oneof![
        Just(StatusWrite::Written),
        Just(StatusWrite::Failed("no".into())),
        withheld().prop_map(StatusWrite::Withheld)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No input makes it panic, and every input gets the same answer twice.
    #[test]
    fn total_and_deterministic(fixture in fixture(), scale in scale_write(), status in status_write()) {
        let snapshot = fixture.snapshot();
        let answer = || {
            let (outcome, status) = fixture::run(&snapshot, scale.clone(), status.clone());
            let lines =
                explain::lines(&outcome.decision.steps, snapshot.autoscaler, snapshot.now);
            format!("{outcome:?} {status:?} {lines:?}")
        };
        prop_assert_eq!(answer(), answer());
    }

    /// A withheld rescale changes nothing but what is said of it: it is no failure, and no change of
    /// size is learned.
    #[test]
    fn a_withheld_rescale_is_no_failure(fixture in fixture()) {
        let snapshot = fixture.snapshot();
        let withheld = ScaleWrite::Withheld(Withheld::DryRun);
        let (outcome, _) = fixture::run(&snapshot, withheld, StatusWrite::Written);
        let decided = decide(&snapshot);
        prop_assert_eq!(outcome.scale_withheld().is_some(), decided.rescale.is_some());
        prop_assert_eq!(&outcome.decision.learned, &decided.learned);
        prop_assert_eq!(outcome.decision.replicas(), decided.found);
        prop_assert_eq!(outcome.decision.desired, decided.desired);
        prop_assert_eq!(outcome.decision.error, decided.error);
        prop_assert_eq!(outcome.decision.events, decided.events);
        let reason = Withheld::DryRun;
        let said = outcome.decision.steps.iter().last() == Some(Step::Withheld { reason });
        prop_assert_eq!(said, decided.rescale.is_some());
    }

    /// Results that were not asked for leave no trace.
    #[test]
    fn unasked_results_are_ignored(fixture in fixture()) {
        let snapshot = fixture.snapshot();
        let failed = || StatusWrite::Failed("no".into());
        let (expected, _) = fixture::run(&snapshot, ScaleWrite::Written, StatusWrite::Written);
        let mut pass = podscale_core::Pass::begin(&snapshot);
        pass.status_ended(failed());
        if let Write::Scale(_) = pass.next_write() {
            pass.scale_ended(ScaleWrite::Written, snapshot.now);
        }
        pass.scale_ended(ScaleWrite::Failed("no".into()), snapshot.now);
        if let Write::Status(_) = pass.next_write() {
            pass.status_ended(StatusWrite::Written);
        }
        pass.status_ended(failed());
        prop_assert_eq!(pass.next_write(), Write::Nothing);
        prop_assert_eq!(format!("{:?}", pass.finish()), format!("{expected:?}"));
    }

    /// Whatever the metrics say, a new size is inside the bounds.
    #[test]
    fn bounds_are_never_left(fixture in fixture()) {
        let decision = decide(&fixture.snapshot());
        if let Some(rescale) = &decision.rescale {
            let autoscaler = &fixture.autoscaler;
            prop_assert!((autoscaler.min_replicas..=autoscaler.max_replicas).contains(&rescale.to));
            prop_assert_ne!(rescale.from, rescale.to);
        }
    }

    /// The last step says what is done, unless something was in the way.
    #[test]
    fn steps_end_with_the_outcome(fixture in fixture()) {
        let decision = decide(&fixture.snapshot());
        match decision.steps.iter().last() {
            Some(Step::Rescale { from, to }) => {
                let rescale = decision.rescale.as_ref().expect("a rescale");
                prop_assert_eq!((rescale.from, rescale.to), (from, to));
            }
            Some(Step::Keep { replicas }) => prop_assert_eq!(decision.desired, Some(replicas)),
            Some(Step::Blocked { .. } | Step::ScaleUnknown { .. } | Step::NoPods { .. }) => {
                prop_assert!(decision.error.is_some() && decision.desired.is_none());
            }
            other => prop_assert!(false, "ends with {other:?}"),
        }
    }

    /// A pass that keeps the size leaves nothing to do for a second one over the same world.
    #[test]
    fn an_unchanged_world_is_left_alone(mut fixture in fixture()) {
        if fixture.pass().decision.rescale.is_some() {
            return Ok(());
        }
        let again = fixture.pass();
        prop_assert_eq!(again.scale, WriteOutcome::Unchanged);
        prop_assert_eq!(again.status, WriteOutcome::Unchanged);
    }

    /// More load never gives fewer replicas, where every pod can be judged.
    #[test]
    fn more_load_never_gives_fewer(
        replicas in 1..60i32, low in 0..2_000i64, more in 0..2_000i64, target in 1..200i32,
        queue in 0..5_000i64, history in history(),
    ) {
        let with = |percent, queue| {
            let mut fixture = Fixture::of(replicas).cpu(percent, target).queue(queue, 20);
            fixture.history = history.clone();
            decide(&fixture.snapshot()).desired
        };
        prop_assert!(with(low, queue) <= with(low + more, queue));
        prop_assert!(with(low, queue) <= with(low, queue + more));
    }

    /// Pods that cannot be judged never make a change larger than without them.
    #[test]
    fn doubt_never_enlarges_a_change(
        replicas in 2..40i32, percent in 0..400i64, target in 10..150i32, doubtful in 1..10usize,
    ) {
        let doubtful = doubtful.min(replicas as usize - 1);
        let sure = decide(&Fixture::of(replicas).cpu(percent, target).snapshot()).desired;
        let unsure = decide(&Fixture::of(replicas).cpu(percent, target).without_samples(doubtful).snapshot()).desired;
        let distance = |desired: Option<i32>| desired.map(|d| (d - replicas).abs());
        prop_assert!(distance(unsure) <= distance(sure), "{unsure:?} {sure:?}");
    }

    /// The history keeps what its windows need and not much more.
    #[test]
    fn history_does_not_grow(loads in proptest::collection::vec(0..300i64, 120), window in 0..600i64) {
        let mut fixture = Fixture::of(5).cpu(50, 50);
        fixture.settings = Settings { downscale_stabilization: Span::seconds(window), ..Settings::default() };
        for load in loads {
            fixture.readings.clear();
            fixture.autoscaler.metrics.clear();
            fixture = fixture.cpu(load, 50);
            fixture.pass();
            fixture.now = fixture.now.after(Span::seconds(15));
        }
        prop_assert!(fixture.history.recommendations.len() as i64 <= window / 15 + 2);
        prop_assert!(fixture.history.recommendations.len() <= MAX_ENTRIES);
    }

    /// A history survives its compact form.
    #[test]
    fn history_round_trips(history in history()) {
        prop_assert_eq!(History::from_bytes(&history.to_bytes()), Ok(history));
    }

    /// No bytes make reading a history panic or grow.
    #[test]
    fn any_bytes_can_be_tried(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let _ = History::from_bytes(&bytes);
    }
}
