use super::*;
use proptest::prelude::*;

const DAY: i64 = 86_400;
const HORIZON: Span = Span::seconds(300);

fn demand(seconds: i64, milli: i64) -> Demand {
    let at = Time(0).after(Span::seconds(seconds));
    Demand { replicas: Milli(milli), at, horizon: HORIZON }
}

/// Two replicas at night and twenty by day, with an hour between them.
fn working_day(seconds: i64) -> i64 {
    let minute = seconds.rem_euclid(DAY) / 60;
    let up = (minute - 6 * 60).clamp(0, 60);
    let down = (minute - 20 * 60).clamp(0, 60);
    2000 + (up - down) * 300
}

/// The same, but for two nights and days without any work in every seven.
fn working_week(seconds: i64) -> i64 {
    if seconds.div_euclid(DAY) % 7 >= 5 { 2000 } else { working_day(seconds) }
}

fn random(seconds: i64) -> i64 {
    let mut mixed = (seconds as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^= mixed >> 31;
    mixed = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    1000 + ((mixed >> 33) % 19_000) as i64
}

/// What was learned from a load, minute by minute, until a time.
fn learned(until: i64, load: fn(i64) -> i64) -> Forecaster {
    let mut forecaster = Forecaster::default();
    for seconds in (0..until).step_by(60) {
        forecaster.observe(demand(seconds, load(seconds)));
    }
    forecaster
}

#[test]
fn a_daily_rise_is_foretold_before_it_begins() {
    let before = 3 * DAY + 6 * 3600 - 120;
    let forecaster = learned(before, working_day);
    let forecast = forecaster.forecast(&demand(before, 2000), 50);
    assert_eq!((forecast.pattern, forecast.gate), (Pattern::Day, Gate::Open), "{forecast:?}");
    assert!((2500..3200).contains(&forecast.replicas.0), "{forecast:?}");
    assert!(forecast.error < forecast.error_of_last, "{forecast:?}");
    let peak = forecaster.peak(&demand(before, 2000), Span::seconds(1800));
    assert!(matches!(peak, Some((Pattern::Day, Milli(8000..13_000)))), "{peak:?}");
    let on_the_way = before + 32 * 60;
    let forecaster = learned(on_the_way, working_day);
    let forecast = forecaster.forecast(&demand(on_the_way, working_day(on_the_way)), 50);
    let truth = working_day(on_the_way + 300);
    assert!((forecast.replicas.0 - truth).abs() < 500, "{forecast:?} of {truth}");
    assert!(forecaster.lead(&demand(on_the_way, 11_000)).0 > 1000);
}

#[test]
fn in_the_first_day_nothing_of_a_season_is_known() {
    for until in [0, 3600, DAY - 60] {
        let forecaster = learned(until, working_day);
        let asked = demand(until, working_day(until));
        assert_eq!(forecaster.peak(&asked, HORIZON), None);
        let forecast = forecaster.forecast(&asked, 90);
        assert_ne!((forecast.pattern, forecast.gate), (Pattern::Day, Gate::Open));
    }
    let forecast = Forecaster::default().forecast(&demand(0, 4000), 99);
    assert_eq!((forecast.gate, forecast.replicas), (Gate::Learning, Milli(4000)));
}

#[test]
fn a_weekly_season_knows_days_without_work() {
    let free = 26 * DAY + 6 * 3600 - 120;
    let forecast = learned(free, working_week).forecast(&demand(free, 2000), 50);
    assert!(forecast.replicas.0 < 2300, "{forecast:?}");
    let work = 28 * DAY + 6 * 3600 - 120;
    let forecast = learned(work, working_week).forecast(&demand(work, 2000), 50);
    assert_eq!((forecast.pattern, forecast.gate), (Pattern::Week, Gate::Open), "{forecast:?}");
    assert!(forecast.replicas.0 > 2300, "{forecast:?}");
}

#[test]
fn where_there_is_no_pattern_nothing_is_foretold() {
    let mut forecaster = Forecaster::default();
    for seconds in (0..4 * DAY).step_by(60) {
        let now = demand(seconds, random(seconds));
        let forecast = forecaster.forecast(&now, 95);
        assert_ne!(forecast.gate, Gate::Open, "{forecast:?} at {seconds}");
        assert_eq!(forecast.replicas, now.replicas);
        forecaster.observe(now);
    }
}

#[test]
fn a_season_that_ends_closes_the_gate_within_hours() {
    let noon = 4 * DAY + 12 * 3600;
    let mut forecaster = learned(noon, working_day);
    // From now on it goes the other way round.
    for seconds in (noon..noon + 16 * 3600).step_by(60) {
        forecaster.observe(demand(seconds, 22_000 - working_day(seconds)));
    }
    let at = noon + 16 * 3600;
    assert_eq!(forecaster.peak(&demand(at, 20_000), Span::seconds(1800)), None);
}

#[test]
fn the_margin_grows_with_the_confidence() {
    let before = 3 * DAY + 6 * 3600 - 120;
    let mut forecaster = learned(before, working_day);
    for _ in 0..200 {
        forecaster.bursts.add(10.0, 14.0);
    }
    let [half, most] = [50, 95].map(|percent| forecaster.forecast(&demand(before, 2000), percent));
    assert_eq!((half.gate, half.margin), (Gate::Open, Milli(0)));
    let expected = most.replicas.0 - most.margin.0;
    assert_eq!(expected, half.replicas.0);
    assert_eq!(most.margin.0, (expected as f64 * 0.4) as i64);
}

#[test]
fn a_demand_counts_once_and_in_order() {
    let mut forecaster = learned(DAY, working_day);
    let before = forecaster.clone();
    for seconds in [DAY - 60, DAY - 3600, -DAY] {
        forecaster.observe(demand(seconds, 9_000_000));
    }
    assert_eq!(forecaster, before);
}

fn kept(forecaster: &Forecaster) -> Forecaster {
    let bytes = forecaster.to_bytes();
    assert!(bytes.len() < 6 * 1024, "{} bytes", bytes.len());
    Forecaster::from_bytes(&bytes).expect("what was written")
}

/// A demand at any time after the last one, of any size, with any horizon.
fn any_demand() -> impl Strategy<Value = (i64, i64, i64)> {
    let step = prop_oneof![8 => 1..900_000_000i64, 1 => any::<i64>()];
    let amount = prop_oneof![8 => 0..100_000i64, 1 => any::<i64>()];
    let horizon = prop_oneof![8 => 0..600_000_000i64, 1 => any::<i64>()];
    (step, amount, horizon)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever comes, forecasts are within bounds, memory is too, and a restart in between is not noticed.
    #[test]
    fn restarts_lose_nothing_and_memory_is_bounded(
        demands in proptest::collection::vec(any_demand(), 1..400),
        restart in 0..400usize,
    ) {
        let mut forecaster = Forecaster::default();
        let mut restarted = Forecaster::default();
        let mut at = 0i64;
        for (number, (step, amount, horizon)) in demands.into_iter().enumerate() {
            at = at.saturating_add(step);
            let demand = Demand { replicas: Milli(amount), at: Time(at), horizon: Span(horizon) };
            for percent in [0, 50, 99, 255] {
                let forecast = forecaster.forecast(&demand, percent);
                prop_assert!((0..=3 * MOST).contains(&forecast.replicas.0), "{:?}", forecast);
                prop_assert!(forecast.gate == Gate::Open || forecast.margin == Milli(0));
                prop_assert_eq!(forecast, restarted.forecast(&demand, percent));
            }
            prop_assert!((0..=100 * MOST).contains(&forecaster.lead(&demand).0));
            let peak = forecaster.peak(&demand, Span(horizon));
            prop_assert!(peak.is_none_or(|(_, peak)| (0..=MOST).contains(&peak.0)));
            forecaster.observe(demand);
            restarted.observe(demand);
            if number == restart {
                restarted = kept(&restarted);
            }
        }
        prop_assert!(forecaster.size_bytes() < 5 * 1024);
        prop_assert_eq!(&restarted, &forecaster);
        prop_assert_eq!(kept(&forecaster), forecaster);
    }

    /// Any bytes are a forecaster that works, or are refused.
    #[test]
    fn no_bytes_break_it(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), from in 0..6000usize) {
        let mut out = learned(2 * 3600, working_day).to_bytes();
        let from = from.min(out.len());
        out.truncate(from);
        out.append(&mut bytes);
        out.resize(out.len() + 4096, 0);
        if let Ok(mut forecaster) = Forecaster::read(&mut Reader::new(&out)) {
            for seconds in (0..7200).step_by(60) {
                let asked = demand(seconds, 5000);
                forecaster.observe(asked);
                prop_assert!(forecaster.forecast(&asked, 90).replicas.0 >= 0);
            }
        }
    }
}
