//! What is remembered from one pass to the next.

use super::fixture::Fixture;
use podscale_core::Span;
use podscale_core::model::{
    Extensions, Fallback, ForbiddenWindows, NoMetrics, OnMissing, Pace, Readiness, ScaleToZero,
    SizeFrom, Stabilization, Tolerance, Wording, ZeroedByOthers,
};
use podscale_core::snapshot::{Reading, Scale};

/// Passes so many seconds apart, each after a change: the sizes that the target gets.
#[track_caller]
pub(super) fn check<C>(
    mut fixture: Fixture,
    seconds: i64,
    rows: &[(C, Option<i32>)],
    change: impl Fn(&mut Fixture, &C),
) {
    let sizes: Vec<Option<i32>> = rows
        .iter()
        .map(|(step, _)| {
            change(&mut fixture, step);
            // A history is stored between any two passes.
            let bytes = fixture.history.to_bytes();
            fixture.history = podscale_core::History::from_bytes(&bytes).expect("a history");
            let desired = fixture.pass().decision.desired;
            fixture.now = fixture.now.after(Span::seconds(seconds));
            desired
        })
        .collect();
    let expected: Vec<Option<i32>> = rows.iter().map(|(_, size)| *size).collect();
    assert_eq!(sizes, expected);
}

/// The only metric is a queue of this length; -1 cannot be read.
fn queue(fixture: &mut Fixture, length: &i64) {
    fixture.readings = match length {
        -1 => vec![Reading::Failed("no".into())],
        length => Fixture::of(0).queue(*length, 10).readings,
    };
    if let Ok(scale) = &mut fixture.scale {
        scale.status_replicas = scale.spec_replicas;
    }
}

fn without_stabilization(e: &mut Extensions) {
    e.stabilization = Stabilization::Off;
}

#[test]
fn a_cool_down_begins_with_the_end_of_activity() {
    let fixture = Fixture::of(2).queue(0, 10).limits(1, 9).extend(without_stabilization);
    let fixture = fixture.extend(|e| {
        let cooldown = Span::seconds(60);
        e.scale_to_zero = Some(ScaleToZero { idle_replicas: 0, cooldown });
    });
    check(
        fixture,
        30,
        &[
            (25, Some(3)),
            (0, Some(1)),
            // A minute after the activity was last seen.
            (0, Some(0)),
            (0, Some(0)),
            // It is known who set it to zero, so it wakes.
            (5, Some(1)),
            (0, Some(1)),
            // Activity in between begins it anew. What cannot be read changes nothing.
            (1, Some(1)),
            (0, Some(1)),
            (-1, None),
            (0, Some(0)),
            (-1, None),
            (30, Some(3)),
        ],
        queue,
    );
}

#[test]
fn an_idle_size_above_zero_is_held_below_the_minimum() {
    let fixture = Fixture::of(4).queue(0, 10).limits(3, 9).extend(without_stabilization);
    let fixture = fixture.extend(|e| {
        e.scale_to_zero = Some(ScaleToZero { idle_replicas: 1, cooldown: Span::seconds(30) });
    });
    let rows = [(0, Some(3)), (0, Some(1)), (0, Some(1)), (5, Some(3)), (0, Some(1))];
    check(fixture, 30, &rows, queue);
}

#[test]
fn a_fallback_ends_with_the_first_size_that_can_be_computed() {
    let fixture = Fixture::of(2).queue(0, 10).limits(1, 9).extend(without_stabilization);
    let fixture =
        fixture.extend(|e| e.fallback = Some(Fallback { after: Span::seconds(60), replicas: 5 }));
    check(
        fixture,
        30,
        &[
            (20, Some(2)),
            (-1, None),
            (-1, None),
            // At most double, or four, as for any other size.
            (-1, Some(4)),
            (-1, Some(5)),
            (20, Some(2)),
            (-1, None),
            (20, Some(2)),
            (-1, None),
            (-1, None),
            (-1, Some(4)),
        ],
        queue,
    );
}

#[test]
fn last_answers_survive_restarts() {
    let fixture = Fixture::of(2).queue(0, 10).limits(1, 9).extend(without_stabilization);
    let fixture = fixture.rule(0, |r| r.on_missing = OnMissing::LastValue);
    let rows =
        [(-1, None), (30, Some(3)), (-1, Some(3)), (-1, Some(3)), (10, Some(1)), (-1, Some(1))];
    check(fixture, 30, &rows, queue);
}

/// The rules of the configurable HPA, with windows of so many seconds.
fn configurable(factor: f64, minimum: i32, up: i64, down: i64) -> impl FnOnce(&mut Extensions) {
    move |e| {
        e.size_from = SizeFrom::Status;
        e.no_metrics = NoMetrics::AskForZero;
        e.pods.readiness = Readiness::Serving;
        e.tolerance = Some(Tolerance { up: Some(0.1), down: Some(0.1) });
        e.stabilization = Stabilization::Off;
        e.forbidden_windows =
            ForbiddenWindows { up: Some(Span::seconds(up)), down: Some(Span::seconds(down)) };
        e.pace = Pace::FactorAndMinimum { factor, minimum };
        e.zeroed_by_others = ZeroedByOthers::SetToOne;
        e.wording = Wording::ConfigurableHpa;
    }
}

/// All pods together use so many percent of one pod's request, now.
fn load(fixture: &mut Fixture, percent: &i64) {
    let size = fixture.scale.as_ref().map_or(0, |scale| scale.spec_replicas);
    let metrics = std::mem::take(&mut fixture.autoscaler.metrics);
    let mut measured = Fixture::of(size);
    measured.now = fixture.now;
    let measured = measured.cpu(percent / i64::from(size.max(1)), 80);
    fixture.scale = Ok(Scale { spec_replicas: size, status_replicas: size });
    fixture.pods = measured.pods.clone();
    fixture.readings = measured.readings.clone();
    fixture.autoscaler.metrics =
        if metrics.is_empty() { measured.autoscaler.metrics } else { metrics };
}

#[test]
fn the_configurable_hpa_raises_to_its_maximum_and_back() {
    for (factor, rows) in [
        // Its own end-to-end tests: factor 2 goes to 4 and then to 8, factor 10 to 8 at once.
        (
            2.0,
            &[(2000, Some(4)), (2000, Some(8)), (2000, Some(8)), (10, Some(1)), (10, Some(1))][..],
        ),
        (10.0, &[(2000, Some(8)), (2000, Some(8)), (10, Some(1))][..]),
    ] {
        let fixture = Fixture::of(1).limits(1, 8).extend(configurable(factor, 4, 10, 10));
        check(fixture, 15, rows, load);
    }
}

#[test]
fn the_windows_of_the_configurable_hpa_hold_both_directions() {
    let fixture = Fixture::of(1).limits(1, 8).extend(configurable(2.0, 4, 40, 70));
    check(
        fixture,
        15,
        &[
            (2000, Some(4)),
            (2000, Some(4)),
            (2000, Some(4)),
            (2000, Some(8)),
            (10, Some(8)),
            (10, Some(8)),
            (10, Some(8)),
            (10, Some(8)),
            (10, Some(1)),
        ],
        load,
    );
}

#[test]
fn the_configurable_hpa_needs_no_metrics_to_be_within_its_bounds() {
    let rules = || configurable(2.0, 4, 300, 300);
    let mut below = Fixture::of(1).limits(2, 8).extend(rules());
    load(&mut below, &50);
    below.status.last_scale = Some(below.now);
    assert_eq!(below.pass().decision.desired, Some(2));
    let mut without = Fixture::of(4).limits(2, 8).extend(rules());
    assert_eq!(without.pass().decision.desired, Some(2));
    // Nothing was measured, so windows end now.
    for (seconds, size) in [(300, 4), (301, 2)] {
        let mut again = Fixture::of(4).limits(2, 8).extend(rules());
        again.status.last_scale = Some(again.now.before(Span::seconds(seconds)));
        assert_eq!(again.pass().decision.desired, Some(size), "{seconds}");
    }
    // What the target has been asked for already is not asked for again.
    let mut asked = Fixture::of(1).limits(3, 8).extend(rules());
    asked.scale = Ok(Scale { spec_replicas: 3, status_replicas: 1 });
    let decision = asked.pass().decision;
    assert_eq!((decision.desired, decision.rescale), (Some(3), None));
    let mut zero = Fixture::of(0).limits(1, 8).extend(rules());
    assert_eq!(zero.pass().decision.desired, Some(0));
}
