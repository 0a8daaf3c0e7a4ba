//! Sizes by what waits in a queue and by what arrives in it.

use super::fixture::Fixture;
use super::properties::{extended, holds};
use super::{check, desired, differs};
use podscale_core::model::{Milli, Queue};
use podscale_core::{Span, decide};
use proptest::prelude::*;

/// A pod gets through four in a second; what waits is to be served within half a minute.
const QUEUE: Queue =
    Queue { length: 0, arrivals: 1, per_pod: Milli(4000), within: Span::seconds(30) };

/// So much waits, and so much arrives in a second; the metrics themselves ask for one pod.
fn busy(waiting: i64, arrivals: i64) -> Fixture {
    Fixture::of(4).queue(waiting, 1000).queue(arrivals, 1000).settled()
}

#[test]
fn what_arrives_and_what_waits_is_served() {
    differs(busy(60, 20), |e| e.queue = Some(QUEUE), 1, 6);
    let served =
        |waiting, arrivals| desired(&busy(waiting, arrivals).extend(|e| e.queue = Some(QUEUE)));
    assert_eq!(served(0, 20), Some(5), "with nothing to catch up with");
    assert_eq!(served(600, 0), Some(5), "with nothing that comes after it");
    assert_eq!(served(0, 0), Some(1), "with nothing at all the metrics decide");
    assert_eq!(served(0, 17), Some(4), "what is close enough changes nothing");
}

#[test]
fn it_never_asks_for_less_than_the_metrics_and_says_what_it_does() {
    let fixture = Fixture::of(4).queue(60, 10).queue(20, 1000).settled();
    let fixture = fixture.extend(|e| e.queue = Some(QUEUE));
    assert_eq!(desired(&fixture), Some(6), "the first metric asks for as many");
    check(
        &busy(60, 20).extend(|e| e.queue = Some(QUEUE)),
        &[
            "queue is at 15 per pod, target 1000 (ratio 0.015): asks for 1",
            "queue is at 5 per pod, target 1000 (ratio 0.005): asks for 1",
            "queue asks for most: 1",
            "20 arrive in a second, and 60 that wait are to be served within 30s: 6 instead of 1",
            "no recent recommendation stands against 6",
            "so the size changes from 4 to 6",
        ],
    );
}

#[test]
fn without_one_of_its_metrics_it_is_silent() {
    let fixture = Fixture::of(4).queue(60, 10).broken().settled();
    let lines = |fixture: &Fixture| format!("{:?}", decide(&fixture.snapshot()).steps);
    let silent = fixture.clone().extend(|e| e.queue = Some(QUEUE));
    assert_eq!(desired(&silent), desired(&fixture));
    assert_eq!(lines(&silent), lines(&fixture.extend(|_| {})));
    for queue in [Queue { length: 7, ..QUEUE }, Queue { per_pod: Milli(0), ..QUEUE }] {
        assert_eq!(desired(&busy(60, 20).extend(|e| e.queue = Some(queue))), Some(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever waits, bounds, orders and windows hold, and no size is below that without the rule.
    #[test]
    fn it_only_ever_raises(
        fixture in extended(),
        (length, arrivals, per_pod, within) in (0..3u32, 0..3u32, any::<i64>(), any::<i64>()),
    ) {
        let without = decide(&fixture.snapshot());
        let queue = Queue { length, arrivals, per_pod: Milli(per_pod), within: Span(within) };
        let fixture = fixture.extend(|e| e.queue = Some(queue));
        let with = decide(&fixture.snapshot());
        holds(&fixture, &with)?;
        prop_assert_eq!(with.desired.is_some(), without.desired.is_some());
        prop_assert!(with.desired >= without.desired, "{:?} below {:?}", with.desired, without.desired);
    }
}
