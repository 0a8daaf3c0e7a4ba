//! What is done before the demand is there: what it changes, what it never does, and that restarts are not
//! noticed.

use super::fixture::{Fixture, NOW};
use super::properties::{extended, holds};
use super::{check, desired, differs};
use podscale_core::model::{Ahead, Headroom, Lead, Milli, Predict};
use podscale_core::predict::{Demand, Forecaster};
use podscale_core::snapshot::Scale;
use podscale_core::{History, Span, Time, decide, explain};
use proptest::prelude::*;
use std::sync::LazyLock;

const DAY: i64 = 86_400;

fn demand(at: Time, milli: i64) -> Demand {
    Demand { replicas: Milli(milli), at, horizon: Span::seconds(300) }
}

/// Every day the demand goes from two replicas to twenty within the hour that begins two minutes from now,
/// and down again in the evening.
fn load(seconds_from_now: i64) -> i64 {
    let minute = seconds_from_now.rem_euclid(DAY) / 60;
    let (up, down) = ((minute - 2).clamp(0, 60), (minute - 14 * 60).clamp(0, 60));
    2000 + (up - down) * 300
}

/// What was learned of four such days.
static LEARNED: LazyLock<Forecaster> = LazyLock::new(|| {
    let mut forecaster = Forecaster::default();
    for seconds in (-4 * DAY..0).step_by(60) {
        forecaster.observe(demand(NOW.after(Span::seconds(seconds)), load(seconds)));
    }
    forecaster
});

fn knowing(mut fixture: Fixture, forecaster: &Forecaster) -> Fixture {
    fixture.history.forecaster = Some(Box::new(forecaster.clone()));
    fixture
}

fn predict(scale_in_guard_seconds: i64) -> Option<Predict> {
    let scale_in_guard = Span::seconds(scale_in_guard_seconds);
    Some(Predict { confidence_percent: 50, scale_in_guard })
}

#[test]
fn a_forecast_raises_the_size_before_the_demand_is_there() {
    let base = || knowing(Fixture::of(3).queue(30, 10).settled(), &LEARNED);
    let ahead = |seconds| Ahead {
        start_up: Some(Span::seconds(seconds)),
        predict: predict(0),
        ..Ahead::default()
    };
    differs(base(), |e| e.ahead = ahead(600), 3, 6);
    // A pod that is ready at once can wait for the demand.
    assert_eq!(desired(&base().extend(|e| e.ahead = ahead(15))), Some(3));
    let fixture = base().extend(|e| e.ahead = ahead(600));
    let snapshot = fixture.snapshot();
    let lines = explain::lines(&decide(&snapshot).steps, snapshot.autoscaler, snapshot.now);
    let line =
        lines.iter().find(|line| line.starts_with("by the time of the day")).expect("a line");
    assert!(
        line.contains("needed in 10m (lately ") && line.ends_with(": 6 instead of 3"),
        "{line}"
    );
}

#[test]
fn pods_that_are_needed_again_soon_are_kept() {
    let sizes = [0, 1800].map(|seconds| {
        let fixture = knowing(Fixture::of(10).queue(30, 10).settled(), &LEARNED);
        desired(&fixture.extend(|e| {
            e.ahead = Ahead {
                start_up: Some(Span::seconds(15)),
                predict: predict(seconds),
                ..Ahead::default()
            };
        }))
    });
    assert_eq!(sizes, [Some(3), Some(10)]);
}

#[test]
fn a_lead_follows_the_demand_as_long_as_pods_need() {
    let mut forecaster = Forecaster::default();
    for seconds in (-1200..0).step_by(15) {
        let milli = 2000 + (1200 + seconds) * 20 / 3;
        forecaster.observe(demand(NOW.after(Span::seconds(seconds)), milli));
    }
    let base = || knowing(Fixture::of(10).queue(100, 10).settled(), &forecaster);
    let ahead = |seconds, most_percent| Ahead {
        start_up: Some(Span::seconds(seconds)),
        lead: Some(Lead { most_percent }),
        ..Ahead::default()
    };
    differs(base(), |e| e.ahead = ahead(300, 50), 10, 12);
    assert_eq!(desired(&base().extend(|e| e.ahead = ahead(30, 50))), Some(10));
    assert_eq!(desired(&base().extend(|e| e.ahead = ahead(300, 5))), Some(10));
}

#[test]
fn there_is_room_for_what_the_demand_usually_gains() {
    let mut forecaster = Forecaster::default();
    // In one of four horizons it gains four tenths, which are gone in the next one.
    for step in 0..400i64 {
        let at = NOW.after(Span::seconds((step - 400) * 300));
        forecaster.observe(demand(at, if step % 4 == 0 { 14_000 } else { 10_000 }));
    }
    let base = || knowing(Fixture::of(10).queue(100, 10).settled(), &forecaster);
    let ahead = |confidence_percent, most_percent| Ahead {
        start_up: Some(Span::seconds(300)),
        headroom: Some(Headroom { confidence_percent, most_percent, overload_permille: None }),
        ..Ahead::default()
    };
    differs(base(), |e| e.ahead = ahead(90, 100), 10, 14);
    assert_eq!(desired(&base().extend(|e| e.ahead = ahead(90, 20))), Some(12));
    assert_eq!(desired(&base().extend(|e| e.ahead = ahead(50, 100))), Some(10));
}

/// Ten pods under a demand, once a second; the size that is asked for after each.
fn learning(fixture: &mut Fixture, seconds: i64) -> Option<i32> {
    let mut last = None;
    for _ in 0..seconds {
        fixture.now = fixture.now.after(Span::seconds(1));
        let snapshot = fixture.snapshot();
        let decision = decide(&snapshot);
        last = decision.rescale.map(|rescale| rescale.to);
        // Sizes are not set, so that only what is learned changes.
        let learned = decision.learned.memory.clone();
        fixture.history.memory = learned.or(fixture.history.memory.take());
    }
    last
}

#[test]
fn room_is_learned_by_how_often_it_was_too_little() {
    let ahead = |overload_permille, most_percent| Ahead {
        headroom: Some(Headroom {
            confidence_percent: 90,
            most_percent,
            overload_permille: Some(overload_permille),
        }),
        ..Ahead::default()
    };
    let of = |queue, ahead| Fixture::of(10).queue(queue, 10).settled().extend(|e| e.ahead = ahead);
    let part = |fixture: &Fixture| {
        fixture.history.memory.as_ref().and_then(|m| m.room).map_or(0, |room| room.part)
    };
    // Pods that are enough leave no room.
    let mut enough = of(100, ahead(10, 100));
    assert_eq!((learning(&mut enough, 600), part(&enough)), (None, 0));
    // Every second in which they are too few adds a hundredth, less what is allowed.
    let mut short = of(120, ahead(10, 100));
    assert_eq!((learning(&mut short, 21), part(&short)), (Some(15), 20 * 9_900));
    // What was learned is not lost in a restart, and shrinks slowly while the pods are enough.
    let kept = History::from_bytes(&short.history.to_bytes()).expect("a history");
    assert_eq!(kept.memory, short.history.memory);
    let mut calm = Fixture { history: kept, ..of(50, ahead(10, 100)) };
    calm.now = short.now;
    learning(&mut calm, 1000);
    assert_eq!(part(&calm), 20 * 9_900 - 1000 * 100);
    // It has a limit, and does not grow where more pods may not be.
    let mut limited = of(120, ahead(1, 25));
    assert_eq!((learning(&mut limited, 500), part(&limited)), (Some(15), 250_000));
    let mut full = of(120, ahead(1, 100));
    full.autoscaler.max_replicas = 10;
    learning(&mut full, 500);
    assert_eq!(part(&full), 0);
    // Without the rule nothing is kept.
    let mut without = limited.extend(|e| e.ahead = Ahead::default());
    learning(&mut without, 1);
    assert_eq!(part(&without), 0);
}

#[test]
fn the_time_that_pods_need_is_measured_on_them() {
    // Each of the fixture's pods became ready the moment it started; that leaves the time to react.
    let ahead = Ahead { predict: predict(0), ..Ahead::default() };
    let mut fixture = Fixture::of(4).queue(40, 10).settled().extend(|e| e.ahead = ahead);
    let horizon = |fixture: &mut Fixture| {
        fixture.pass();
        fixture.now = fixture.now.after(Span::seconds(15));
        let memory = fixture.history.memory.as_ref().expect("a memory");
        memory.demand.expect("a demand").horizon
    };
    assert_eq!(horizon(&mut fixture), Span::seconds(30));
    for pod in fixture.pods_mut().iter_mut().take(3) {
        pod.started = pod.started.map(|started| started.before(Span::seconds(90)));
    }
    assert_eq!(horizon(&mut fixture), Span::seconds(120));
    fixture.pods_mut().clear();
    assert_eq!(horizon(&mut fixture), Span::seconds(120), "as it was known last");
}

#[test]
fn a_silent_forecast_says_why() {
    let ahead = Ahead { predict: predict(600), ..Ahead::default() };
    let fixture = Fixture::of(4).queue(40, 10).settled().extend(|e| e.ahead = ahead);
    check(
        &knowing(fixture, &Forecaster::default()),
        &[
            "queue is at 10 per pod, target 10 (ratio 1.000): close enough, stay at 4",
            "the metrics ask for 4",
            "no forecast is used: too few forecasts could be judged so far",
            "no recent recommendation stands against 4",
            "so the size stays 4",
        ],
    );
}

#[test]
fn what_was_learned_is_forgotten_with_the_rule() {
    let ahead = Ahead { predict: predict(0), ..Ahead::default() };
    let mut fixture = Fixture::of(4).queue(40, 10).settled().extend(|e| e.ahead = ahead);
    fixture.pass();
    assert!(fixture.history.forecaster.is_some());
    let bytes = fixture.history.to_bytes();
    assert_eq!(History::from_bytes(&bytes).as_ref(), Ok(&fixture.history));
    let mut fixture = fixture.extend(|e| e.ahead = Ahead::default());
    fixture.now = fixture.now.after(Span::seconds(15));
    fixture.pass();
    assert_eq!((fixture.history.forecaster, fixture.history.memory), (None, None));
}

fn any_ahead() -> impl Strategy<Value = Ahead> {
    let span =
        || prop_oneof![8 => (0..1800i64).prop_map(Span::seconds), 1 => any::<i64>().prop_map(Span)];
    let predict = (any::<u8>(), span()).prop_map(|(confidence_percent, scale_in_guard)| Predict {
        confidence_percent,
        scale_in_guard,
    });
    let lead = any::<u32>().prop_map(|most_percent| Lead { most_percent });
    let headroom = (any::<u8>(), any::<u32>(), any::<Option<u16>>()).prop_map(
        |(confidence_percent, most_percent, overload_permille)| Headroom {
            confidence_percent,
            most_percent,
            overload_permille,
        },
    );
    let rules = (
        proptest::option::of(span()),
        proptest::option::of(predict),
        proptest::option::of(lead),
        proptest::option::of(headroom),
    );
    rules.prop_map(|(start_up, predict, lead, headroom)| Ahead {
        start_up,
        predict,
        lead,
        headroom,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is expected, bounds, orders and windows hold, and no size is below that without it.
    #[test]
    fn it_only_ever_raises(fixture in extended(), ahead in any_ahead(), later in 0..DAY) {
        let mut fixture = knowing(fixture, &LEARNED);
        fixture.now = fixture.now.after(Span::seconds(later));
        let without = decide(&fixture.snapshot());
        let fixture = fixture.extend(|e| e.ahead = ahead);
        let with = decide(&fixture.snapshot());
        holds(&fixture, &with)?;
        prop_assert_eq!(with.desired.is_some(), without.desired.is_some());
        prop_assert!(with.desired >= without.desired, "{:?} below {:?}", with.desired, without.desired);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// A history that goes through its compact form between any two passes leads to the same sizes.
    #[test]
    fn restarts_are_not_noticed(
        ahead in any_ahead(),
        steps in proptest::collection::vec((0..2000i64, 1..900i64), 1..60),
    ) {
        let base = knowing(Fixture::of(3).queue(30, 10).settled(), &LEARNED);
        let mut steady = base.extend(|e| e.ahead = ahead);
        let mut restarted = steady.clone();
        for (queue, seconds) in steps {
            for fixture in [&mut steady, &mut restarted] {
                fixture.readings = Fixture::of(0).queue(queue, 10).readings;
                fixture.now = fixture.now.after(Span::seconds(seconds));
            }
            let bytes = restarted.history.to_bytes();
            prop_assert!(bytes.len() < 8 * 1024, "{} bytes", bytes.len());
            restarted.history = History::from_bytes(&bytes).expect("a history");
            let (one, other) = (steady.pass(), restarted.pass());
            prop_assert_eq!(one.decision.desired, other.decision.desired);
            prop_assert_eq!(&steady.history, &restarted.history);
            let size = steady.scale.as_ref().map_or(0, |scale: &Scale| scale.spec_replicas);
            prop_assert!((1..=100).contains(&size), "{size}");
        }
    }
}
