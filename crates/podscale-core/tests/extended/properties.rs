//! What must hold for every autoscaler with extensions, sensible or not, after any sequence of inputs.

use super::fixture::{self, Fixture, NOW};
use super::generate::{amount, count, fixture as any_fixture, time};
use super::minutes::Minutes;
use podscale_core::decision::RescaleReason;
use podscale_core::history::{LastAnswer, MAX_LAST_ANSWERS, Memory};
use podscale_core::model::{
    Aggregate, Binary, Bounds, Combine, Control, Extensions, Fact, Fallback, ForbiddenWindows,
    Formula, Hold, MetricRules, Milli, Mode, NoMetrics, OnMissing, Pace, Part, Pause, PodRules,
    PodSelection, Readiness, ScaleToZero, Schedules, ShareOf, SizeFrom, Stabilization, Tolerance,
    Unary, Watermarks, Wording, ZeroedByOthers,
};
use podscale_core::pass::WriteOutcome;
use podscale_core::snapshot::{Reading, Scale};
use podscale_core::{
    Decision, History, ScaleWrite, Span, StatusWrite, Time, Withheld, decide, explain,
};
use proptest::prelude::*;

fn seconds() -> impl Strategy<Value = Span> {
    prop_oneof![9 => (0..600i64).prop_map(Span::seconds), 1 => any::<i64>().prop_map(Span)]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![8 => 0.0..5.0f64, 1 => proptest::num::f64::ANY]
}

fn rules() -> impl Strategy<Value = MetricRules> {
    let on_missing = prop_oneof![
        Just(OnMissing::Hold),
        Just(OnMissing::Ignore),
        Just(OnMissing::LastValue),
        count().prop_map(OnMissing::Replicas),
        Just(OnMissing::Abort),
    ];
    let aggregate = prop_oneof![
        Just(Aggregate::Average),
        Just(Aggregate::Max),
        any::<u8>().prop_map(Aggregate::Percentile)
    ];
    let share_of = prop_oneof![Just(ShareOf::Requests), Just(ShareOf::Limits)];
    let watermarks = (amount(), amount())
        .prop_map(|(low, high)| Watermarks { low: Milli(low), high: Milli(high) });
    (
        proptest::option::of(seconds()),
        on_missing,
        share_of,
        aggregate,
        proptest::option::of(amount().prop_map(Milli)),
        proptest::option::weighted(0.3, watermarks),
    )
        .prop_map(|(max_age, on_missing, share_of, aggregate, activation, watermarks)| {
            let rules = MetricRules { max_age, on_missing, share_of, ..MetricRules::DEFAULT };
            MetricRules { aggregate, activation, watermarks, ..rules }
        })
}

fn part() -> impl Strategy<Value = Part> {
    let fact = prop_oneof![Just(Fact::Replicas), Just(Fact::Value), Just(Fact::Ratio)];
    let leaf = prop_oneof![
        number().prop_map(Part::Number),
        Just(Part::CurrentReplicas),
        (0..5u32, fact).prop_map(|(metric, fact)| Part::Metric { metric, fact }),
        (0..5u32).prop_map(|metric| Part::Has { metric }),
    ];
    leaf.prop_recursive(4, 32, 3, |inner| {
        let unary = prop_oneof![
            Just(Unary::Negate),
            Just(Unary::Not),
            Just(Unary::Ceil),
            Just(Unary::Floor),
            Just(Unary::Round),
            Just(Unary::Abs)
        ];
        let binary = prop_oneof![
            Just(Binary::Add),
            Just(Binary::Subtract),
            Just(Binary::Multiply),
            Just(Binary::Divide),
            Just(Binary::Remainder),
            Just(Binary::Max),
            Just(Binary::Min),
            Just(Binary::Equal),
            Just(Binary::Less),
            Just(Binary::And),
            Just(Binary::Or)
        ];
        prop_oneof![
            (unary, inner.clone()).prop_map(|(f, a)| Part::Unary(f, a.into())),
            (binary, inner.clone(), inner.clone()).prop_map(|(f, a, b)| Part::Binary(
                f,
                a.into(),
                b.into()
            )),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| Part::If(
                a.into(),
                b.into(),
                c.into()
            )),
        ]
    })
}

fn combine() -> impl Strategy<Value = Combine> {
    let formula =
        part().prop_map(|part| Formula::new("f", part).map_or(Combine::Average, Combine::Formula));
    prop_oneof![3 => Just(Combine::Max), 1 => Just(Combine::Min), 1 => Just(Combine::Average), 2 => formula]
}

fn control() -> impl Strategy<Value = Control> {
    let until = || proptest::option::of((-300..300i64).prop_map(|s| NOW.after(Span::seconds(s))));
    let pause = move || proptest::option::weighted(0.2, until().prop_map(|until| Pause { until }));
    let hold = (count(), until()).prop_map(|(replicas, until)| Hold { replicas, until });
    let mode = prop_oneof![
        6 => Just(Mode::Active),
        1 => Just(Mode::DryRun),
        1 => Just(Mode::Paused),
    ];
    (mode, until(), pause(), pause(), proptest::option::weighted(0.2, hold)).prop_map(
        |(mode, mode_until, pause_up, pause_down, hold)| Control {
            mode,
            mode_until,
            pause_up,
            pause_down,
            hold,
            hold_beyond_bounds: false,
        },
    )
}

/// Where sizes come from and how pods are judged.
fn judged() -> impl Strategy<Value = Extensions> {
    let readiness = prop_oneof![2 => Just(Readiness::Started), 1 => Just(Readiness::Serving)];
    let size_from = prop_oneof![3 => Just(SizeFrom::Spec), 1 => Just(SizeFrom::Status)];
    let span = || proptest::option::of(seconds());
    (
        proptest::collection::vec(rules(), 0..4),
        combine(),
        (readiness, span(), span(), seconds()),
        size_from,
        any::<bool>(),
    )
        .prop_map(|(metrics, combine, (readiness, cpu, delay, warm_up), size_from, zero)| {
            Extensions {
                metrics,
                combine,
                no_metrics: if zero { NoMetrics::AskForZero } else { NoMetrics::Fail },
                pod_selection: if zero { PodSelection::Owned } else { PodSelection::Selector },
                pods: PodRules {
                    readiness,
                    cpu_initialization_period: cpu,
                    initial_readiness_delay: delay,
                    warm_up,
                },
                size_from,
                ..Extensions::default()
            }
        })
}

fn extensions() -> impl Strategy<Value = Extensions> {
    let pace = (number(), count())
        .prop_map(|(factor, minimum)| Pace::FactorAndMinimum { factor, minimum });
    let zeroed = prop_oneof![
        Just(ZeroedByOthers::LeftAlone),
        Just(ZeroedByOthers::Woken),
        Just(ZeroedByOthers::SetToOne)
    ];
    let zero = (0..3i32, seconds())
        .prop_map(|(idle_replicas, cooldown)| ScaleToZero { idle_replicas, cooldown });
    let window = || proptest::option::of(seconds());
    let bounds = (0..9i32, 0..30i32).prop_map(|(min, more)| Bounds { min, max: min + more });
    (
        judged(),
        control(),
        proptest::option::of((number(), number())),
        (window(), window(), any::<bool>()),
        prop_oneof![Just(Pace::Policies), pace],
        proptest::option::weighted(0.3, bounds),
        (proptest::option::weighted(0.3, zero), zeroed, any::<bool>()),
        proptest::option::weighted(0.3, (seconds(), count())),
    )
        .prop_map(|(judged, control, tolerance, windows, pace, bounds, zero, fallback)| {
            Extensions {
                control,
                tolerance: tolerance.map(|(up, down)| Tolerance { up: Some(up), down: Some(down) }),
                forbidden_windows: ForbiddenWindows { up: windows.0, down: windows.1 },
                stabilization: if windows.2 { Stabilization::Off } else { Stabilization::Recent },
                pace,
                schedules: bounds.map(|bounds| Schedules::new(Minutes(bounds))),
                scale_to_zero: zero.0,
                zeroed_by_others: zero.1,
                wording: if zero.2 { Wording::ConfigurableHpa } else { Wording::Kubernetes },
                fallback: fallback.map(|(after, replicas)| Fallback { after, replicas }),
                ..judged
            }
        })
}

fn memory() -> impl Strategy<Value = Option<Box<Memory>>> {
    let answer = (any::<u32>(), count(), time()).prop_map(|(metric, replicas, at)| LastAnswer {
        metric,
        replicas,
        at,
    });
    let memory = (
        proptest::option::of(time()),
        proptest::option::of(time()),
        proptest::collection::vec(answer, 0..4),
    )
        .prop_map(|(last_active, metrics_gone_since, last_answers)| {
            let empty = Memory::default();
            Box::new(Memory { last_active, metrics_gone_since, last_answers, ..empty })
        });
    proptest::option::of(memory)
}

pub(super) fn extended() -> impl Strategy<Value = Fixture> {
    (any_fixture(), extensions(), memory(), proptest::option::of(time())).prop_map(
        |(mut fixture, extensions, memory, last_scale)| {
            fixture.autoscaler.extensions = Some(Box::new(extensions));
            fixture.history.memory = memory;
            fixture.status.last_scale = last_scale;
            fixture
        },
    )
}

/// The bounds at the fixture's time.
fn bounds(fixture: &Fixture) -> Bounds {
    let base = fixture.autoscaler.bounds();
    let extensions = fixture.autoscaler.extensions.as_deref().expect("extensions");
    let scheduled = extensions.schedules.as_ref().and_then(|s| s.at(fixture.now, base));
    scheduled.map_or(base, |scheduled| scheduled.bounds)
}

/// When the oldest value of any metric was measured; `None` if nothing has a time.
fn newest(fixture: &Fixture) -> Option<Time> {
    let times = fixture.readings.iter().filter_map(|reading| match reading {
        Reading::PerPod(readings) => readings.samples.iter().flatten().map(|s| s.taken).max(),
        Reading::Total { taken, .. } | Reading::Series { taken, .. } => *taken,
        _ => None,
    });
    times.max()
}

/// What no decision may do, whatever it is made on.
pub(super) fn holds(fixture: &Fixture, decision: &Decision) -> Result<(), TestCaseError> {
    let extensions = fixture.autoscaler.extensions.as_deref().expect("extensions");
    let (control, now) = (&extensions.control, fixture.now);
    let Some(rescale) = decision.rescale else {
        return Ok(());
    };
    prop_assert_ne!(rescale.from, rescale.to);
    prop_assert_ne!(control.mode_at(now), Mode::Paused);
    let up = rescale.to > rescale.from;
    let paused = if up { control.pause_up_at(now) } else { control.pause_down_at(now) };
    prop_assert_eq!(paused, None);
    let Bounds { min, max } = bounds(fixture);
    let idle = extensions.scale_to_zero.map(|zero| zero.idle_replicas);
    let allowed = (min.min(max)..=max).contains(&rescale.to)
        || (rescale.reason == RescaleReason::Idle && rescale.to <= max)
        || (rescale.reason == RescaleReason::Zero && rescale.to == 1);
    prop_assert!(allowed, "{rescale:?} leaves {min}..{max}, idle {idle:?}");
    if let Some(hold) = control.hold_at(now) {
        prop_assert_eq!(rescale.to, Bounds { min, max }.clamp(hold.replicas));
    }
    let by_metrics = !matches!(
        rescale.reason,
        RescaleReason::AboveMax
            | RescaleReason::BelowMin
            | RescaleReason::Held
            | RescaleReason::Zero
    );
    let windows = extensions.forbidden_windows;
    let window = if up { windows.up } else { windows.down };
    if let (true, Some(window), Some(last)) = (by_metrics, window, fixture.status.last_scale) {
        let newest = newest(fixture).map_or(now, |newest| newest.max(now));
        prop_assert!(last.after(window) < newest, "{rescale:?} within {window:?} of {last:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// An extension that asks for nothing changes nothing.
    #[test]
    fn default_extensions_are_those_of_a_native_autoscaler(fixture in any_fixture()) {
        let answer = |fixture: &Fixture| {
            let snapshot = fixture.snapshot();
            let (mut outcome, status) =
                fixture::run(&snapshot, ScaleWrite::Written, StatusWrite::Written);
            outcome.decision.learned.memory = None;
            let lines = explain::lines(&outcome.decision.steps, snapshot.autoscaler, snapshot.now);
            format!("{outcome:?} {status:?} {lines:?}")
        };
        let native = answer(&fixture);
        prop_assert_eq!(answer(&fixture.extend(|_| {})), native);
    }

    /// No input makes it panic, and every input gets the same answer twice.
    #[test]
    fn total_and_deterministic(fixture in extended()) {
        let snapshot = fixture.snapshot();
        let answer = || {
            let (outcome, status) =
                fixture::run(&snapshot, ScaleWrite::Written, StatusWrite::Written);
            let lines =
                explain::lines(&outcome.decision.steps, snapshot.autoscaler, snapshot.now);
            prop_assert!(lines.iter().all(|line| !line.is_empty()), "{lines:?}");
            let steps = serde_json::to_string(&outcome.decision.steps).expect("JSON");
            Ok(format!("{outcome:?} {status:?} {lines:?} {steps}"))
        };
        prop_assert_eq!(answer()?, answer()?);
    }

    /// Bounds, orders and windows hold for any single decision.
    #[test]
    fn bounds_orders_and_windows_hold(fixture in extended()) {
        holds(&fixture, &decide(&fixture.snapshot()))?;
    }

    /// A dry run writes no size and learns of no change.
    #[test]
    fn a_dry_run_writes_nothing(fixture in extended()) {
        let fixture = fixture.extend(|e| {
            e.control.mode = Mode::DryRun;
            e.control.mode_until = None;
        });
        let snapshot = fixture.snapshot();
        let (outcome, _) = fixture::run(&snapshot, ScaleWrite::Written, StatusWrite::Written);
        let withheld = WriteOutcome::Ended(ScaleWrite::Withheld(Withheld::DryRun));
        prop_assert!(outcome.scale == withheld || outcome.scale == WriteOutcome::Unchanged);
        prop_assert_eq!(outcome.decision.rescaled_at, None);
        prop_assert_eq!(outcome.decision.learned.scaled, None);
    }

    /// A history with a memory survives its compact form, and stays bounded.
    #[test]
    fn memories_round_trip(mut fixture in extended()) {
        fixture.pass();
        let history = &fixture.history;
        let read = History::from_bytes(&history.to_bytes());
        prop_assert_eq!(read.as_ref(), Ok(history));
        let answers = history.memory.as_ref().map_or(0, |memory| memory.last_answers.len());
        prop_assert!(answers <= MAX_LAST_ANSWERS);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Bounds, orders and windows hold through any sequence of loads, failures and foreign changes.
    #[test]
    fn sequences_keep_to_the_rules(
        mut fixture in extended(),
        steps in proptest::collection::vec((0..400i64, 0..200i64, 0..20u8, 1..90i64), 30),
    ) {
        fixture.scale = Ok(Scale { spec_replicas: 3, status_replicas: 3 });
        for (load, queue, luck, seconds) in steps {
            let size = match (luck, &fixture.scale) {
                (0, _) => 0,
                (1, _) => 25,
                (_, Ok(scale)) => scale.spec_replicas.clamp(0, 40),
                _ => 3,
            };
            let mut world = Fixture::of(size);
            world.now = fixture.now;
            let mut world = world.cpu(load, 50).queue(queue, 10);
            if luck > 15 {
                world.readings[usize::from(luck % 2)] = Reading::Failed("no".into());
            }
            (fixture.scale, fixture.pods) = (world.scale, world.pods);
            fixture.autoscaler.metrics = world.autoscaler.metrics;
            fixture.readings = world.readings;
            let before = fixture.clone();
            let outcome = fixture.pass();
            holds(&before, &outcome.decision)?;
            fixture.now = fixture.now.after(Span::seconds(seconds));
        }
    }
}
