//! Rules of the autoscaler as a whole, one decision each.

use super::fixture::Fixture;
use super::{check, desired, differs};
use podscale_core::model::{
    Bounds, Calendar, Control, Extensions, ForbiddenWindows, Hold, MetricRules, Mode, NoMetrics,
    OnMissing, Pace, Pause, PolicyAmount, Readiness, Scheduled, Schedules, SizeFrom, Source,
    Stabilization, Targets, Wording,
};
use podscale_core::pod::{Phase, ReadyStatus};
use podscale_core::snapshot::{Reading, Scale, ScaleError};
use podscale_core::status::{ConditionKind, ConditionStatus};
use podscale_core::{Metric, Settings, Span, Step, Time, decide, explain};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A calendar with one answer.
struct Always(Bounds);

impl Calendar for Always {
    fn at(&self, now: Time, _: Bounds) -> Option<Scheduled> {
        let since = now.before(Span::seconds(90));
        let (schedule, ramp_percent) = ("office".into(), 40);
        Some(Scheduled { bounds: self.0, schedule, since, or_longer: true, ramp_percent })
    }

    fn text(&self) -> &str {
        "always"
    }
}

fn scheduled(min: i32, max: i32) -> impl FnOnce(&mut Extensions) {
    move |e| e.schedules = Some(Schedules::new(Always(Bounds { min, max })))
}

#[test]
fn schedules_replace_the_bounds() {
    let steady = || Fixture::of(4).cpu(50, 50);
    differs(steady(), scheduled(6, 20), 4, 6);
    differs(steady(), scheduled(1, 3), 4, 3);
    differs(Fixture::of(4).cpu(75, 50), scheduled(1, 5), 6, 5);
    differs(Fixture::of(4).cpu(10, 50).settled(), scheduled(2, 5), 1, 2);
    // Outside the spec's own bounds, the schedule's apply.
    differs(Fixture::of(12).limits(1, 10).cpu(50, 50), scheduled(1, 20), 10, 12);
    check(
        &steady().extend(scheduled(6, 20)),
        &[
            "schedule office has been in force for at least 1m30s, 40% of the way there: 6 to 20 replicas",
            "that is less than the minimum of 6; metrics are not read",
            "so the size changes from 4 to 6",
        ],
    );
}

/// Counts how often it is asked.
#[derive(Clone, Default)]
struct Counted(Arc<AtomicU32>);

impl Calendar for Counted {
    fn at(&self, now: Time, base: Bounds) -> Option<Scheduled> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Always(base).at(now, base)
    }

    fn text(&self) -> &str {
        "counted"
    }
}

#[test]
fn a_calendar_is_asked_once_for_a_decision() {
    let four = Scale { spec_replicas: 4, status_replicas: 4 };
    for scale in [Ok(four), Err(ScaleError::Unreadable("down".into()))] {
        let counted = Counted::default();
        let schedules = Schedules::new(counted.clone());
        let mut fixture = Fixture::of(4).cpu(50, 50).extend(|e| e.schedules = Some(schedules));
        fixture.scale = scale;
        let snapshot = fixture.snapshot();
        let decision = decide(&snapshot);
        let scheduled = decision.scheduled(&snapshot).expect("it is in force");
        assert_eq!((&*scheduled.schedule, counted.0.load(Ordering::Relaxed)), ("office", 1));
    }
}

fn control(change: impl FnOnce(&mut Control)) -> impl FnOnce(&mut Extensions) {
    |e| change(&mut e.control)
}

#[test]
fn orders_are_followed_until_they_run_out() {
    let busy = || Fixture::of(4).cpu(100, 50).settled();
    let now = busy().now;
    let (later, over) = (Some(now.after(Span::seconds(60))), Some(now));
    for until in [None, later] {
        differs(busy(), control(|c| (c.mode, c.mode_until) = (Mode::Paused, until)), 8, 4);
        differs(busy(), control(|c| c.hold = Some(Hold { replicas: 3, until })), 8, 3);
        differs(busy(), control(|c| c.pause_up = Some(Pause { until })), 8, 4);
        let idle = Fixture::of(4).cpu(25, 50).settled();
        differs(idle, control(|c| c.pause_down = Some(Pause { until })), 2, 4);
    }
    for order in [
        Control { mode: Mode::Paused, mode_until: over, ..Control::default() },
        Control { hold: Some(Hold { replicas: 3, until: over }), ..Control::default() },
        Control { pause_up: Some(Pause { until: over }), ..Control::default() },
        Control { pause_down: Some(Pause { until: None }), ..Control::default() },
    ] {
        assert_eq!(desired(&busy().extend(|e| e.control = order)), Some(8), "{order:?}");
    }
}

#[test]
fn stronger_orders_win() {
    let busy = || Fixture::of(4).cpu(100, 50).settled();
    let hold = Some(Hold { replicas: 6, until: None });
    let pause = Some(Pause::default());
    for (order, size) in [
        (Control { hold, pause_up: pause, ..Control::default() }, 4),
        (Control { hold, pause_down: pause, ..Control::default() }, 6),
        (Control { hold, mode: Mode::Paused, ..Control::default() }, 4),
    ] {
        assert_eq!(desired(&busy().extend(|e| e.control = order)), Some(size), "{order:?}");
    }
    // A hold stays within the bounds; a pause leaves a size outside of them alone.
    let outside = || Fixture::of(4).limits(5, 10).cpu(50, 50);
    differs(outside(), control(|c| c.hold = Some(Hold { replicas: 99, until: None })), 5, 10);
    differs(outside(), control(|c| c.pause_up = pause), 5, 4);
    differs(outside(), control(|c| c.mode = Mode::Paused), 5, 4);
    check(
        &busy().extend(control(|c| {
            c.pause_up = Some(Pause { until: Some(busy().now.after(Span::seconds(90))) })
        })),
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000; pods: 4 ready): asks for 8",
            "the metrics ask for 8",
            "no recent recommendation stands against 8",
            "kept at 4, not 8: going up is paused for another 1m30s",
            "so the size stays 4",
        ],
    );
    check(
        &busy().extend(control(|c| c.hold = hold)),
        &["it is held at 6; metrics are not read", "so the size changes from 4 to 6"],
    );
}

#[test]
fn lengths_of_time_are_told_in_their_largest_units() {
    for (seconds, expected) in [
        (0, "0s"),
        (45, "45s"),
        (90, "1m30s"),
        (3600, "1h"),
        (5400, "1h30m"),
        (86_400 + 59, "1d"),
        (2 * 86_400 + 3 * 3600 + 61, "2d3h"),
    ] {
        let now = Time(1_000_000_000_000);
        let until = Some(now.after(Span::seconds(seconds)));
        let fixture = Fixture::of(4);
        let step = Step::Held { replicas: 6, until };
        let line = explain::line(&step, &fixture.autoscaler, now);
        assert_eq!(line, format!("it is held at 6 for another {expected}; metrics are not read"));
    }
}

#[test]
fn metrics_are_called_as_the_spec_calls_them() {
    let named = |e: &mut Extensions| {
        e.metrics = vec![MetricRules { name: Some("work".into()), ..MetricRules::DEFAULT }];
    };
    let fixture = Fixture::of(4).cpu(50, 50).extend(named);
    let snapshot = fixture.snapshot();
    let lines = explain::lines(&decide(&snapshot).steps, snapshot.autoscaler, snapshot.now);
    assert!(lines[1].starts_with("work is at 50% of requests"), "{lines:?}");
}

#[test]
fn a_dry_run_is_shown_and_not_written() {
    let mut fixture = Fixture::of(4).cpu(100, 50).extend(control(|c| c.mode = Mode::DryRun));
    let outcome = fixture.pass();
    assert_eq!(outcome.scale_withheld(), Some(podscale_core::Withheld::DryRun));
    assert_eq!((outcome.decision.desired, outcome.decision.replicas()), (Some(8), Some(4)));
    assert!(outcome.is_status_written() && outcome.decision.events.is_empty());
    assert_eq!((fixture.status.desired_replicas, fixture.status.last_scale), (8, None));
    check(
        &fixture,
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000; pods: 4 ready): asks for 8",
            "the metrics ask for 8",
            "no recent recommendation stands against 8",
            "so the size changes from 4 to 8",
        ],
    );
}

#[test]
fn stabilization_can_be_off() {
    let held = Fixture::of(8).cpu(25, 50).recommended(8, 30);
    differs(held, |e| e.stabilization = Stabilization::Off, 8, 4);
    let learned =
        decide(&Fixture::of(8).extend(|e| e.stabilization = Stabilization::Off).snapshot());
    assert_eq!(learned.learned.first, None);
}

#[test]
fn pace_is_a_factor_and_a_minimum() {
    let pace = |factor, minimum| {
        move |e: &mut Extensions| e.pace = Pace::FactorAndMinimum { factor, minimum }
    };
    let busy = |size| Fixture::of(size).cpu(500, 50);
    differs(busy(10), pace(1.5, 4), 20, 15);
    differs(busy(10), pace(3.0, 4), 20, 30);
    differs(busy(1), pace(2.0, 6), 4, 6);
    differs(busy(1), pace(1.5, 1), 4, 1);
    // Beside policies, the stricter one holds.
    let with_policies = || busy(10).at_most(PolicyAmount::Pods(3), 60);
    differs(with_policies(), pace(1.2, 1), 13, 12);
    assert_eq!(desired(&with_policies().extend(pace(5.0, 1))), Some(13));
    check(
        &busy(10).extend(pace(1.5, 4)),
        &[
            "cpu is at 500% of requests, target 50% (ratio 10.000; pods: 10 ready): asks for 100",
            "the metrics ask for 100",
            "no recent recommendation stands against 100",
            "capped from 100 to 15: at most 1.5 times as many, or 4, in one step",
            "so the size changes from 10 to 15",
        ],
    );
}

/// The last change was so long ago; the samples are of now.
fn scaled(mut fixture: Fixture, seconds_ago: i64) -> Fixture {
    fixture.status.last_scale = Some(fixture.now.before(Span::seconds(seconds_ago)));
    fixture
}

#[test]
fn windows_forbid_a_change_too_soon() {
    let windows = |up, down| {
        move |e: &mut Extensions| {
            let span = |s: Option<i64>| s.map(Span::seconds);
            e.forbidden_windows = ForbiddenWindows { up: span(up), down: span(down) };
        }
    };
    let up = || Fixture::of(4).cpu(100, 50).settled();
    let down = || Fixture::of(4).cpu(25, 50).settled();
    differs(scaled(up(), 60), windows(Some(60), None), 8, 4);
    differs(scaled(down(), 60), windows(None, Some(60)), 2, 4);
    // After the window, in the other direction, and if there never was a change, nothing is held.
    assert_eq!(desired(&scaled(up(), 61).extend(windows(Some(60), None))), Some(8));
    assert_eq!(desired(&scaled(up(), 60).extend(windows(None, Some(60)))), Some(8));
    assert_eq!(desired(&up().extend(windows(Some(60), Some(60)))), Some(8));
    // The time of the samples counts, not that of the decision.
    let old = Fixture::of(4).prometheus(20, 10, 30);
    differs(scaled(old, 70), windows(Some(60), None), 8, 4);
    // The bounds are not for the windows to hold.
    let outside = scaled(Fixture::of(4).limits(5, 9).cpu(50, 50), 1);
    assert_eq!(desired(&outside.extend(windows(Some(60), Some(60)))), Some(5));
    check(
        &scaled(up(), 30).extend(windows(Some(60), None)),
        &[
            "cpu is at 100% of requests, target 50% (ratio 2.000; pods: 4 ready): asks for 8",
            "the metrics ask for 8",
            "no recent recommendation stands against 8",
            "kept at 4, not 8: going up is forbidden for 1m after a change, and the last one was 30s \
             ago",
            "so the size stays 4",
        ],
    );
}

#[test]
fn pods_are_judged_by_the_objects_own_rules() {
    // One pod of four started a minute ago; twice the load.
    let young = || {
        let mut fixture = Fixture::of(4).cpu_of_pods(&[100, 100, 100, 400], 50).settled();
        let now = fixture.now;
        fixture.pods_mut()[3].started = Some(now.before(Span::seconds(60)));
        fixture.settings = Settings { cpu_initialization_period: Span(0), ..Settings::default() };
        fixture
    };
    differs(young().limits(1, 100), |e| e.pods.warm_up = Span::seconds(61), 8, 6);
    assert_eq!(desired(&young().extend(|e| e.pods.warm_up = Span::seconds(60))), Some(8));
    // Unready for a moment within its own initialization period.
    let unready = || {
        let mut fixture = Fixture::of(4).cpu(100, 50).settled();
        let now = fixture.now;
        let pod = &mut fixture.pods_mut()[0];
        pod.started = Some(now.before(Span::seconds(120)));
        if let Some(ready) = &mut pod.ready {
            (ready.status, ready.since) = (ReadyStatus::False, now);
        }
        fixture.settings.cpu_initialization_period = Span(0);
        fixture
    };
    let period = Some(Span::seconds(300));
    differs(unready(), |e| e.pods.cpu_initialization_period = period, 8, 6);
    differs(unready(), |e| e.pods.initial_readiness_delay = period, 8, 6);
}

#[test]
fn only_serving_pods_count_where_the_rules_say_so() {
    let serving = |e: &mut Extensions| e.pods.readiness = Readiness::Serving;
    // For memory as well: an unready pod counts as idle on the way up.
    let mut memory = Fixture::of(4).cpu(75, 50).unready(1).settled();
    let targets = Targets { average_utilization: Some(50), ..Targets::default() };
    let source = Source::Resource { name: "memory".into() };
    memory.autoscaler.metrics[0] = Metric::new(source, &targets);
    differs(memory, serving, 6, 5);
    // A failed pod is unready, not gone.
    let mut failed = Fixture::of(4).cpu(70, 50).settled();
    failed.pods_mut()[0].phase = Phase::Failed;
    differs(failed, serving, 5, 4);
    // A missing pod uses what it requests, even if the target is more.
    let missing = Fixture::of(4).cpu(60, 200).without_samples(2).settled();
    differs(missing, serving, 3, 2);
}

#[test]
fn the_size_may_be_that_of_the_status() {
    let mut lagging = Fixture::of(4).cpu(50, 50);
    lagging.scale = Ok(Scale { spec_replicas: 6, status_replicas: 4 });
    differs(lagging.limits(5, 10), |e| e.size_from = SizeFrom::Status, 6, 5);
}

#[test]
fn no_metrics_may_ask_for_nothing() {
    differs(
        Fixture::of(4).limits(2, 9).settled(),
        |e| e.no_metrics = NoMetrics::AskForZero,
        None,
        2,
    );
}

#[test]
fn the_configurable_hpa_has_words_of_its_own() {
    let condition = |fixture: &Fixture, kind| {
        let decision = decide(&fixture.snapshot());
        let status = decision.status(&fixture.snapshot());
        let condition = status.condition(kind).expect("a condition").clone();
        let holds = condition.status == ConditionStatus::True;
        (holds, condition.note.reason().to_owned(), condition.note.message().into_owned())
    };
    let words = |fixture: Fixture| {
        fixture.settled().extend(|e| {
            e.wording = Wording::ConfigurableHpa;
            e.pace = Pace::FactorAndMinimum { factor: 2.0, minimum: 4 };
            e.forbidden_windows =
                ForbiddenWindows { up: Some(Span::seconds(60)), down: Some(Span::seconds(120)) };
        })
    };
    let able = |seconds| {
        let fixture = scaled(Fixture::of(4).cpu(50, 50), seconds);
        let (holds, reason, message) = condition(&words(fixture), ConditionKind::AbleToScale);
        (holds, reason, message.ends_with("forbidden windows"))
    };
    assert_eq!(able(30), (false, "BackoffBoth".into(), true));
    assert_eq!(able(90), (false, "BackoffDownscale".into(), false));
    assert_eq!(able(121), (true, "ReadyForNewScale".into(), false));
    let few = words(Fixture::of(4).cpu(1, 50).limits(2, 100));
    let expected = "the desired replica count is increasing faster than the maximum scale rate";
    assert_eq!(
        condition(&few, ConditionKind::ScalingLimited),
        (true, "TooFewReplicas".into(), expected.into())
    );
    let expected = "the desired replica count is more than the maximum replica count";
    let few = words(Fixture::of(4).cpu(1, 50).limits(2, 6));
    assert_eq!(condition(&few, ConditionKind::ScalingLimited).2, expected);
    // It knows no condition of having scaled to zero.
    let mut up = words(Fixture::of(4).cpu(100, 50));
    up.pass();
    assert!(up.status.condition(ConditionKind::ScaledToZero).is_none());
    let mut native = Fixture::of(4).cpu(100, 50);
    native.pass();
    assert!(native.status.condition(ConditionKind::ScaledToZero).is_some());
}

#[test]
fn a_failure_that_ends_it_all_is_not_counted() {
    let abort = |mut fixture: Fixture| {
        fixture.readings[0] = Reading::Failed("no answer".into());
        let abort = OnMissing::Abort;
        fixture.rule(0, |r| r.on_missing = abort)
    };
    let decision = decide(&abort(Fixture::of(4).cpu(50, 50).queue(90, 10)).snapshot());
    let reasons: Vec<&str> = decision.events.iter().map(|e| &*e.reason).collect();
    assert_eq!(reasons, ["FailedGetResourceMetric", "FailedComputeMetricsReplicas"]);
    assert!(decision.events[1].message.starts_with("failed to get cpu resource metric value: "));
    assert_eq!(decision.read_metrics().len(), 1);
}
