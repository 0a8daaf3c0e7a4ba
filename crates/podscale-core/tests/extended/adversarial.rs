//! What holds whatever a forecaster has learned and whatever the load does: bounds, rate policies and the
//! memory of an object.

use super::fixture::Fixture;
use podscale_core::model::{
    Ahead, Headroom, Lead, Milli, PolicyAmount, Predict, Queue, Tolerance, Window,
};
use podscale_core::predict::{Demand, Forecaster};
use podscale_core::snapshot::Reading;
use podscale_core::{History, Span, Time};
use proptest::prelude::*;

/// At most so many pods more or fewer in so many seconds.
const MOST: i32 = 3;
const PERIOD_SECONDS: i64 = 60;
const MIN: i32 = 2;
const MAX: i32 = 40;
/// No history of an object is larger as bytes, however long it is decided on.
const LARGEST_HISTORY: usize = 12 * 1024;

fn any_number() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..2_000_000i64, 1 => any::<i64>(), 1 => Just(i64::MAX), 1 => Just(i64::MIN)]
}

fn any_span() -> impl Strategy<Value = Span> {
    prop_oneof![8 => (0..1800i64).prop_map(Span::seconds), 1 => any::<i64>().prop_map(Span)]
}

/// What was learned from demands of any size at any times.
fn any_forecaster() -> impl Strategy<Value = Forecaster> {
    let demand = (1..4_000i64, any_number(), any_span());
    let demands = proptest::collection::vec(demand, 0..200);
    // A pattern that has come true for days opens gates; then come demands without any order.
    (any::<bool>(), demands).prop_map(|(patterned, demands)| {
        let mut forecaster = Forecaster::default();
        let mut at = super::fixture::NOW.before(Span::seconds(6 * 86_400));
        let days = if patterned { 4 * 86_400 } else { 0 };
        for seconds in (0..days).step_by(300) {
            let replicas = Milli(2000 + (seconds % 86_400) / 3);
            let horizon = Span::seconds(300);
            forecaster.observe(Demand { replicas, at, horizon });
            at = at.after(Span::seconds(300));
        }
        for (step, amount, horizon) in demands {
            at = at.after(Span::seconds(step));
            forecaster.observe(Demand { replicas: Milli(amount), at, horizon });
        }
        forecaster
    })
}

/// Everything that makes other sizes of a demand than the metrics ask for.
type Rules = (Ahead, Option<Window>, Option<Queue>, Option<Tolerance>);

fn any_rules() -> impl Strategy<Value = Rules> {
    let predict = (any::<u8>(), any_span()).prop_map(|(confidence_percent, scale_in_guard)| {
        Predict { confidence_percent, scale_in_guard }
    });
    let lead = any::<u32>().prop_map(|most_percent| Lead { most_percent });
    let headroom = (any::<u8>(), any::<u32>(), any::<Option<u16>>()).prop_map(
        |(confidence_percent, most_percent, overload_permille)| Headroom {
            confidence_percent,
            most_percent,
            overload_permille,
        },
    );
    let ahead = (proptest::option::of(any_span()), predict, lead, headroom).prop_map(
        |(start_up, predict, lead, headroom)| Ahead {
            start_up,
            predict: Some(predict),
            lead: Some(lead),
            headroom: Some(headroom),
        },
    );
    let window = (any_span(), any_span(), any::<u32>())
        .prop_map(|(stable, panic, panic_percent)| Window { stable, panic, panic_percent });
    let queue = (0..3u32, 0..3u32, any_number(), any_span()).prop_map(
        |(length, arrivals, per_pod, within)| Queue {
            length,
            arrivals,
            per_pod: Milli(per_pod),
            within,
        },
    );
    let number = || prop_oneof![4 => 0.0..1.0f64, 1 => proptest::num::f64::ANY];
    let tolerance =
        (number(), number()).prop_map(|(up, down)| Tolerance { up: Some(up), down: Some(down) });
    (
        ahead,
        proptest::option::of(window),
        proptest::option::of(queue),
        proptest::option::weighted(0.3, tolerance),
    )
}

/// A reading of a queue, and of cpu with and without requests to divide by.
fn readings(fixture: &Fixture, queue: i64, cpu: i64, requested: bool) -> Vec<Reading> {
    let mut readings = fixture.readings.clone();
    readings[0] = Reading::Series { values: vec![Milli(queue)], taken: None };
    if let Reading::PerPod(of_pods) = &mut readings[1] {
        for sample in of_pods.samples.iter_mut().flatten() {
            (sample.value, sample.taken) = (Milli(cpu), fixture.now);
        }
        let request = if requested { Milli(100) } else { Milli(0) };
        of_pods.requests.of_pods.iter_mut().for_each(|of_pod| *of_pod = request);
    }
    readings
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_and_rates_hold_and_memory_is_bounded(
        forecaster in any_forecaster(),
        (ahead, window, queue, tolerance) in any_rules(),
        steps in proptest::collection::vec((any_number(), any_number(), any::<bool>(), 1..90i64), 1..120),
    ) {
        let base = Fixture::of(4).queue(40, 10).cpu(50, 50).limits(MIN, MAX);
        let mut fixture = base.at_most(PolicyAmount::Pods(MOST), PERIOD_SECONDS).extend(|e| {
            (e.ahead, e.window, e.queue, e.tolerance) = (ahead, window, queue, tolerance);
        });
        fixture.history.forecaster = Some(Box::new(forecaster));
        // When which size was there before a pass.
        let mut sizes: Vec<(Time, i32)> = Vec::new();
        for (queue, cpu, requested, seconds) in steps {
            let size = |fixture: &Fixture| fixture.scale.as_ref().map_or(0, |s| s.spec_replicas);
            fixture.readings = readings(&fixture, queue, cpu, requested);
            let found = size(&fixture);
            sizes.push((fixture.now, found));
            fixture.pass();
            let (now, after) = (fixture.now, size(&fixture));
            prop_assert!((MIN..=MAX).contains(&after), "{} is out of bounds", after);
            let from = now.before(Span::seconds(PERIOD_SECONDS));
            let before = sizes.iter().find(|(at, _)| *at > from).map_or(after, |(_, size)| *size);
            // Whoever changes the size may go so far from where it was when the period began.
            let changed = if after > found { after - before } else { before - after };
            prop_assert!(after == found || changed <= MOST, "from {} to {}", before, after);
            let bytes = fixture.history.to_bytes();
            prop_assert!(bytes.len() <= LARGEST_HISTORY, "{} bytes", bytes.len());
            let read = History::from_bytes(&bytes);
            prop_assert_eq!(read.as_ref(), Ok(&fixture.history));
            fixture.now = now.after(Span::seconds(seconds));
        }
        let learned = fixture.history.forecaster.as_deref().map_or(0, Forecaster::size_bytes);
        prop_assert!(learned > 0 && learned < 5 * 1024, "{} bytes", learned);
    }
}
