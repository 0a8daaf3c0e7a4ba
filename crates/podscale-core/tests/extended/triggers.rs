//! Event sources: what their activity and their failures lead to, in the sequences that KEDA's operator
//! showed.

use super::fixture::{Fixture, NOW};
use super::generate::{amount, fixture};
use super::sequences::check as sequence;
use super::{check, desired};
use podscale_core::model::{
    Activation, Binary, Composite, EventSource, Extensions, Fact, Formula, Hold, Metric,
    MetricTarget, Milli, Part, Pause, ScaleToZero, Scope, Source, Stabilization, StandIn,
    StandInSize, Trigger, TriggerOf, Waking, Wording, ZeroedByOthers,
};
use podscale_core::snapshot::{Reading, Scale};
use podscale_core::{Span, decide, explain};
use proptest::prelude::*;

/// What one trigger says.
#[derive(Clone, Copy)]
enum Says {
    /// A value above, or not above, its activation threshold.
    Active(i64),
    Inactive(i64),
    /// Nothing: its server does not answer.
    Fails,
}
use Says::{Active, Fails, Inactive};

fn reading(says: Says) -> Reading {
    let trigger =
        |value, active| Reading::Trigger { value: Milli(value * 1000), active, taken: None };
    match says {
        Active(value) => trigger(value, true),
        Inactive(value) => trigger(value, false),
        Fails => Reading::Failed("connection refused".into()),
    }
}

fn metric(name: &str, of: TriggerOf, target: MetricTarget) -> Metric {
    let source = Source::Trigger(Trigger { name: name.into(), of });
    Metric { source: source.into(), target, title: name.into() }
}

fn event_source(kind: &str) -> EventSource {
    EventSource { kind: kind.into(), key: "0".into() }
}

/// So many replicas as KEDA scales them: triggers of 10 each, idle at zero after a minute, created long
/// ago.
fn scaled(replicas: i32, triggers: &[Says]) -> Fixture {
    let mut fixture = Fixture::of(replicas).settled().extend(|e| {
        e.scale_to_zero = Some(ScaleToZero { idle_replicas: 0, cooldown: Span::seconds(60) });
        let idle_from = Some(NOW.before(Span::seconds(3600)));
        let usual = Activation::default();
        e.activation = Activation { waking: Waking::ToMinimum, idle_from, ..usual };
        e.zeroed_by_others = ZeroedByOthers::Woken;
        e.stabilization = Stabilization::Off;
        e.wording = Wording::Keda;
    });
    for (place, says) in triggers.iter().enumerate() {
        let of = TriggerOf::Source(event_source("redis"));
        let target = MetricTarget::AverageValue(Milli(10_000));
        fixture.autoscaler.metrics.push(metric(&format!("s{place}-redis"), of, target));
        fixture.readings.push(reading(*says));
    }
    fixture
}

fn falls_back(size: StandInSize) -> Option<StandIn> {
    Some(StandIn { failures: 2, size })
}

/// Only one trigger, which says this from now on.
fn says(fixture: &mut Fixture, says: &Says) {
    fixture.readings = vec![reading(*says)];
    if let Ok(scale) = &mut fixture.scale {
        scale.status_replicas = scale.spec_replicas;
    }
}

#[test]
fn activity_leads_from_zero_to_one_to_many_and_back() {
    let rows = [
        // Never active, so there is nothing to cool down from.
        (Inactive(0), Some(0)),
        (Inactive(0), Some(0)),
        // First the minimum, or one, whatever the load; then as an HPA would.
        (Active(90), Some(1)),
        (Active(90), Some(4)),
        (Active(90), Some(8)),
        (Active(90), Some(9)),
        // The cool-down is only about the last step.
        (Inactive(0), Some(1)),
        (Inactive(0), Some(0)),
        (Fails, None),
        (Active(5), Some(1)),
        (Fails, None),
        (Inactive(0), Some(0)),
    ];
    sequence(scaled(3, &[Fails]), 30, &rows, says);
}

#[test]
fn with_an_hpa_beside_it_only_activity_leads_anywhere() {
    let beside = |fixture: Fixture| fixture.extend(|e| e.activation.scope = Scope::Activation);
    let rows = [
        (Inactive(0), Some(0)),
        (Active(90), Some(1)),
        (Active(90), Some(1)),
        (Inactive(0), Some(1)),
        (Fails, Some(1)),
        (Inactive(0), Some(0)),
    ];
    sequence(beside(scaled(3, &[Fails])), 30, &rows, says);
    check(
        &beside(scaled(4, &[Active(90)])),
        &[
            "s0-redis is at 22.5 per pod, target 10 (ratio 2.250): asks for 9",
            "s0-redis is active",
            "the size is left to the HPA beside it",
            "so the size stays 4",
        ],
    );
}

#[test]
fn an_object_that_was_never_active_is_left_alone_for_a_time() {
    let fixture =
        scaled(3, &[Fails]).extend(|e| e.activation.idle_from = Some(NOW.after(Span::seconds(45))));
    let rows = [(Inactive(0), Some(1)), (Inactive(0), Some(1)), (Inactive(0), Some(0))];
    sequence(fixture, 30, &rows, says);
    // Somebody else's size is treated the same.
    assert_eq!(desired(&scaled(7, &[Inactive(0)])), Some(0));
    check(
        &scaled(7, &[Inactive(0)]),
        &[
            "s0-redis is at 0 per pod, target 10 (ratio 0.000): asks for 0",
            "nothing is active, so it is idle, with a size of 0",
            "so the size changes from 7 to 0",
        ],
    );
}

#[test]
fn a_minimum_and_an_idle_size_are_both_kept() {
    let rows = [
        (Inactive(0), Some(0)),
        (Active(1), Some(3)),
        (Active(70), Some(6)),
        (Inactive(0), Some(3)),
        (Inactive(0), Some(0)),
    ];
    sequence(scaled(5, &[Fails]).limits(3, 9), 30, &rows, says);
    // One that is not zero is stable as well, which it is not in KEDA.
    let one = scaled(5, &[Fails]).limits(3, 9).extend(|e| {
        e.scale_to_zero = Some(ScaleToZero { idle_replicas: 1, cooldown: Span::seconds(60) });
    });
    let rows = [(Inactive(0), Some(1)), (Inactive(0), Some(1)), (Active(1), Some(3))];
    sequence(one, 30, &rows, says);
}

#[test]
fn without_an_idle_size_activity_is_only_shown() {
    let usual = |says| scaled(2, &[says]).limits(2, 9).extend(|e| e.scale_to_zero = None);
    for (says, size, line) in [
        (Active(30), Some(3), "s0-redis is active"),
        (Inactive(0), Some(2), "nothing is active"),
        (Fails, None, "whether s0-redis is active is not known"),
    ] {
        let fixture = usual(says);
        assert_eq!(desired(&fixture), size, "{line}");
        let snapshot = fixture.snapshot();
        let steps = &decide(&snapshot).steps;
        let lines = explain::lines(steps, snapshot.autoscaler, snapshot.now);
        assert!(lines.iter().any(|found| found == line), "{line}: {lines:?}");
    }
    // From zero it gets its minimum, whatever triggers say.
    let mut zero = usual(Fails);
    zero.scale = Ok(Scale { spec_replicas: 0, status_replicas: 0 });
    assert_eq!(desired(&zero), Some(2));
}

#[test]
fn a_broken_trigger_neither_wakes_nor_lowers() {
    for (replicas, triggers, size) in [
        (0, [Fails, Inactive(0)], None),
        (0, [Fails, Active(50)], Some(1)),
        (4, [Fails, Inactive(0)], None),
        (4, [Fails, Active(10)], None),
        (4, [Fails, Active(70)], Some(7)),
        (4, [Active(10), Inactive(0)], Some(1)),
    ] {
        assert_eq!(desired(&scaled(replicas, &triggers)), size, "{replicas}, {size:?}");
    }
    let decision = decide(&scaled(4, &[Fails]).snapshot()).events;
    let event = decision.first().expect("an event");
    assert_eq!((&*event.reason, &*event.message), ("KEDAScalerFailed", "connection refused"));
}

#[test]
fn a_size_stands_in_for_a_trigger_that_failed_too_often() {
    let fixture =
        scaled(2, &[Fails]).rule(0, |r| r.stand_in = falls_back(StandInSize::Replicas(6)));
    let rows = [
        (Fails, None),
        (Fails, None),
        // At most double, or four, as for any other size.
        (Fails, Some(4)),
        (Fails, Some(6)),
        (Active(20), Some(2)),
        // It is counted from the beginning.
        (Fails, None),
        (Fails, None),
        // It was last active a minute and a half ago.
        (Inactive(0), Some(0)),
        (Inactive(0), Some(0)),
        (Fails, None),
        (Fails, None),
        // It counts as active.
        (Fails, Some(1)),
        (Fails, Some(4)),
        (Fails, Some(6)),
    ];
    sequence(fixture.clone(), 30, &rows, says);
    // Nothing of it is left when there is nothing to stand in any more.
    let mut edited = fixture;
    (0..3).for_each(|_| drop(edited.pass()));
    let mut edited = edited.rule(0, |r| r.stand_in = None);
    edited.pass();
    let memory = edited.history.memory.expect("a memory");
    assert!(memory.failures.is_empty());
}

/// A fixture whose trigger has failed so often that something stands in for it.
fn fallen(replicas: i32, size: StandInSize) -> Fixture {
    let mut fixture = scaled(replicas, &[Fails]).rule(0, |r| r.stand_in = falls_back(size));
    (0..2).for_each(|_| drop(fixture.pass()));
    fixture
}

#[test]
fn the_size_that_stands_in_depends_on_the_current_one() {
    use StandInSize::{Current, CurrentIfHigher, CurrentIfLower, Replicas};
    for (size, at_2, at_8) in [
        (Replicas(4), 4, 4),
        (Current, 2, 8),
        (CurrentIfHigher(4), 4, 8),
        (CurrentIfLower(4), 2, 4),
        // It is asked for as a value, so the tolerance applies.
        (Replicas(0), 1, 1),
    ] {
        assert_eq!(desired(&fallen(2, size)), Some(at_2), "{size:?}");
        assert_eq!(desired(&fallen(8, size)), Some(at_8), "{size:?}");
    }
    assert_eq!(desired(&fallen(11, Replicas(10))), Some(11));
    // A target for the whole is shared by the pods that are ready.
    let whole = |unready| {
        let mut fixture = fallen(4, Replicas(6)).unready(unready);
        fixture.autoscaler.metrics[0].target = MetricTarget::Value(Milli(10_000));
        desired(&fixture)
    };
    assert_eq!((whole(0), whole(1), whole(4)), (Some(6), Some(6), None));
    check(
        &fallen(2, Replicas(4)),
        &[
            "s0-redis is at 20 per pod, target 10 (ratio 2.000): asks for 4",
            "s0-redis counts with 4 instead",
            "s0-redis is active",
            "the metrics ask for 4",
            "so the size changes from 2 to 4",
        ],
    );
}

/// The sum of two triggers, or of what stands in for the first, to be shared by tens; active above 5.
fn summed(replicas: i32, inputs: [Says; 2], size: Option<StandInSize>) -> Fixture {
    let total = |metric| Box::new(Part::Metric { metric, fact: Fact::Total });
    let first = Part::If(Part::Has { metric: 0 }.into(), total(0), Part::Number(50.0).into());
    let sum = Part::Binary(Binary::Add, first.into(), total(1));
    let composite = Composite {
        formula: Formula::new("(a ?? 50) + b", sum).expect("a formula"),
        inputs: ["s0-redis", "s1-redis"].map(|n| (n.into(), event_source("redis"))).into(),
    };
    let mut fixture = scaled(replicas, &[]);
    let target = MetricTarget::AverageValue(Milli(10_000));
    let of = TriggerOf::Formula(composite.into());
    fixture.autoscaler.metrics.push(metric("composite-metric", of, target));
    fixture.readings.push(Reading::Inputs(inputs.map(reading).into()));
    fixture.rule(0, |r| {
        r.activation = Some(Milli(5000));
        r.stand_in = size.and_then(falls_back);
    })
}

#[test]
fn a_formula_makes_one_metric_of_several() {
    let now = |replicas, inputs| desired(&summed(replicas, inputs, None));
    assert_eq!(now(4, [Active(30), Inactive(30)]), Some(6));
    // Whether its inputs are active does not matter.
    assert_eq!(now(0, [Active(3), Active(2)]), Some(0));
    assert_eq!(now(0, [Inactive(3), Inactive(3)]), Some(1));
    // A broken one breaks it, even if the formula could do without.
    assert_eq!(now(4, [Fails, Active(30)]), None);
    assert_eq!(now(4, [Active(70), Fails]), None);

    let later = |inputs, size| {
        let mut fixture = summed(4, inputs, Some(size));
        (0..2).for_each(|_| drop(fixture.pass()));
        desired(&fixture)
    };
    // One that failed too often is replaced by the fallback, or left out, if the formula can.
    assert_eq!(later([Fails, Active(30)], StandInSize::Replicas(3)), Some(3));
    assert_eq!(later([Fails, Active(30)], StandInSize::Formula(3)), Some(8));
    assert_eq!(later([Active(70), Fails], StandInSize::Formula(3)), Some(3));
}

#[test]
fn orders_go_before_triggers() {
    let ordered = |replicas, says, order: fn(&mut Extensions)| {
        desired(&scaled(replicas, &[says]).limits(1, 9).extend(order))
    };
    let forever = || Some(Pause { until: None });
    assert_eq!(ordered(0, Inactive(0), |e| e.activation.forced = true), Some(1));
    assert_eq!(ordered(0, Fails, |e| e.activation.forced = true), Some(1));
    assert_eq!(ordered(3, Inactive(0), |e| e.activation.forced = true), Some(1));
    let held = |replicas, e: &mut Extensions| {
        e.control.hold = Some(Hold { replicas, until: None });
        e.control.hold_beyond_bounds = true;
    };
    assert_eq!(desired(&scaled(3, &[Active(50)]).limits(1, 9).extend(|e| held(0, e))), Some(0));
    assert_eq!(desired(&scaled(3, &[Fails]).limits(1, 9).extend(|e| held(20, e))), Some(20));
    for (replicas, says, size) in [(3, Inactive(0), 3), (3, Active(50), 5), (0, Active(1), 1)] {
        let fixture = scaled(replicas, &[says]).extend(|e| e.control.pause_down = forever());
        assert_eq!(desired(&fixture), Some(size));
    }
    for (replicas, says, size) in [(3, Inactive(0), 0), (3, Active(50), 3), (0, Active(1), 0)] {
        let fixture = scaled(replicas, &[says]).extend(|e| e.control.pause_up = forever());
        assert_eq!(desired(&fixture), Some(size));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever triggers say, for however long, the size stays within bounds or is the idle one, and what
    /// is remembered stays small.
    #[test]
    fn no_trigger_leads_out_of_bounds(
        any in fixture(),
        values in proptest::collection::vec((amount(), 0..3u8), 1..4),
        failures in 0..3u32,
        replicas in 0..20i32,
    ) {
        let triggers: Vec<Says> = vec![Fails; values.len()];
        let mut world = scaled(3, &triggers).limits(2, 9);
        (world.history, world.pods, world.scale) = (any.history, any.pods, any.scale);
        for place in 0..values.len() {
            let size = StandInSize::CurrentIfHigher(replicas);
            world = world.rule(place, |r| r.stand_in = Some(StandIn { failures, size }));
        }
        for _ in 0..4 {
            world.readings = values.iter().map(|(value, luck)| match luck {
                0 => reading(Fails),
                luck => {
                    let active = *luck == 1;
                    Reading::Trigger { value: Milli(*value), active, taken: None }
                }
            }).collect();
            let decision = world.pass().decision;
            if let Some(rescale) = decision.rescale {
                prop_assert!(rescale.to == 0 || (2..=9).contains(&rescale.to), "{rescale:?}");
            }
            let snapshot = world.snapshot();
            let lines = explain::lines(&decision.steps, snapshot.autoscaler, snapshot.now);
            prop_assert!(lines.iter().all(|line| !line.is_empty()), "{lines:?}");
            let remembered = world.history.memory.as_ref().map_or(0, |memory| memory.failures.len());
            prop_assert!(remembered <= values.len());
        }
    }
}
