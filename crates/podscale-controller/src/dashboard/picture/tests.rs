use super::super::model::MetricState;
use super::*;
use crate::dialect::hpa::HPA;
use podscale_core::model::{Milli, Series, Source, TargetKind, TargetRef, Targets};
use podscale_core::snapshot::{
    PodReadings, Reading, Requests, Sample, Scale, ScaleError, Selection,
};
use podscale_core::{History, Metric, Pass, ScaleWrite, Settings, Span, Status, Withheld};

const NOW: Time = Time(1_000_000_000_000);

/// Two pods that request 100m and use so many percent, with a target of 50 %, and a queue beside.
fn decided(percent: i64, queue: Reading, write: &ScaleWrite) -> (AutoscalerView, DecisionView) {
    let picture = picture_of(2, percent, queue, write);
    let reason = picture.decision().reason;
    assert_eq!((picture.key(), picture.reason()), ("shop/web".to_owned(), reason));
    (picture.view(), picture.decision())
}

/// The same with so many pods; without any, only the queue is measured.
fn picture_of(pods: u8, percent: i64, queue: Reading, write: &ScaleWrite) -> Picture {
    let pod = podscale_core::pod::Pod {
        started: Some(NOW.before(Span::seconds(3600))),
        ready: Some(podscale_core::pod::Ready {
            status: podscale_core::pod::ReadyStatus::True,
            since: NOW.before(Span::seconds(3600)),
        }),
        phase: podscale_core::pod::Phase::Running,
        deleting: false,
    };
    let series = Series { name: "queue".into(), selector: None, query: None, selector_error: None };
    let autoscaler = Arc::new(Autoscaler {
        namespace: "shop".into(),
        name: "web".into(),
        generation: 1,
        target: TargetRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            name: "web".into(),
        },
        min_replicas: 1,
        max_replicas: 8,
        metrics: vec![
            Metric::new(
                Source::Resource { name: "cpu".into() },
                &Targets { average_utilization: Some(50), ..Targets::default() },
            ),
            Metric::new(
                Source::External(series),
                &Targets {
                    kind: TargetKind::AverageValue,
                    average_value: Some(Milli(10_000)),
                    ..Targets::default()
                },
            ),
        ],
        behavior: None,
        extensions: None,
    });
    let sample = Sample { value: Milli(percent), taken: NOW, window: Span::seconds(15) };
    let scale: Result<Scale, ScaleError> =
        Ok(Scale { spec_replicas: 2, status_replicas: pods.into() });
    let pods = usize::from(pods);
    let snapshot = Snapshot {
        now: NOW,
        settings: &Settings::default(),
        autoscaler: &autoscaler,
        status: &Status::default(),
        history: &History::default(),
        scale: &scale,
        pods: &Selection::Pods(vec![pod; pods]),
        readings: &[
            Reading::PerPod(PodReadings {
                samples: vec![Some(sample); pods],
                requests: Requests { of_pods: vec![Milli(100); pods], missing: None },
                ..PodReadings::default()
            }),
            queue,
        ],
    };
    let mut pass = Pass::begin(&snapshot);
    pass.scale_ended(write.clone(), NOW);
    let decision = pass.finish().decision;
    Picture::new(&HPA, &autoscaler, &snapshot, &decision)
}

fn messages(count: i64) -> Reading {
    Reading::Series { values: vec![Milli(count * 1000)], taken: None }
}

#[test]
fn a_rescale_is_shown_with_its_reason() {
    let (view, decision) = decided(100, messages(20), &ScaleWrite::Written);
    assert_eq!(view.key, "shop/web");
    assert_eq!(view.target, "Deployment/web");
    assert_eq!((view.current, view.desired, view.min, view.max), (2, 4, 1, 8));
    let cpu = &view.metrics[0];
    assert_eq!((&*cpu.name, &*cpu.current, &*cpu.target), ("cpu", "100%", "50%"));
    assert_eq!((cpu.value, cpu.goal, cpu.state), (Some(100.0), Some(50.0), MetricState::Above));
    let queue = &view.metrics[1];
    assert_eq!((&*queue.current, queue.state), ("10", MetricState::Near));
    assert_eq!((decision.from, decision.to, decision.outcome), (2, 4, OutcomeKind::Up));
    assert!(decision.rescaled);
    assert_eq!(decision.reason, "cpu resource utilization (percentage of request) above target");
    assert_eq!(decision.lines.last().unwrap(), "so the size changes from 2 to 4");
    let able = view.conditions.iter().find(|c| c.kind == "AbleToScale").unwrap();
    assert_eq!((&*able.status, &*able.reason), ("True", "SucceededRescale"));
}

#[test]
fn outcomes_say_what_happened() {
    let check = |percent, queue, write: &ScaleWrite, outcome, reason: &str| {
        let (_, decision) = decided(percent, queue, write);
        assert_eq!(decision.outcome, outcome);
        assert!(decision.reason.contains(reason), "{reason:?} is not in {:?}", decision.reason);
    };
    let done = &ScaleWrite::Written;
    let refused = &ScaleWrite::Failed("no room".into());
    let broken = || Reading::Failed("connection refused".into());
    check(50, messages(20), done, OutcomeKind::Steady, "near their targets");
    check(25, messages(20), done, OutcomeKind::Steady, "what the metrics ask for");
    check(25, messages(5), done, OutcomeKind::Held, "held at 2, not 1");
    check(100, messages(5), refused, OutcomeKind::Failed, "no room");
    check(25, broken(), done, OutcomeKind::Failed, "connection refused");
    check(100, broken(), done, OutcomeKind::Up, "above target");
    let (view, _) = decided(25, broken(), done);
    assert_eq!(view.desired, 2, "what is there, since nothing was ever decided");
}

#[test]
fn an_average_over_no_pods_is_no_number() {
    let picture = picture_of(0, 50, messages(20), &ScaleWrite::Written);
    let view = picture.view();
    let queue = &view.metrics[1];
    assert_eq!((queue.value, &*queue.current, &*queue.target), (None, "no pods", "10"));
    assert_eq!((queue.state, queue.ratio), (MetricState::NoPods, None));
    let values: Vec<Value> = picture.values().into_iter().map(|(value, _)| value).collect();
    assert_eq!(values, [Value::Unread, Value::NoPods]);
    let lines = picture.decision().lines.join("\n");
    assert!(lines.contains("queue has no pods to be shared among, target 10 each"), "{lines}");
}

#[test]
fn a_withheld_size_is_no_failure() {
    let (view, decision) = decided(100, messages(5), &ScaleWrite::Withheld(Withheld::DryRun));
    assert_eq!((decision.outcome, decision.rescaled), (OutcomeKind::Withheld, false));
    assert_eq!((view.current, decision.from, decision.to), (2, 2, 4));
    assert!(decision.reason.contains("above target"), "{}", decision.reason);
    let lines = decision.lines.join("\n");
    assert!(lines.contains("dry run") && !lines.contains("failed"), "{lines}");
}

#[test]
fn a_failed_write_is_a_line_of_its_own() {
    let (_, decision) = decided(100, messages(5), &ScaleWrite::Failed("no room".into()));
    assert!(!decision.rescaled);
    assert!(decision.lines.last().unwrap().starts_with("but that failed: "));
}

#[test]
fn numbers_are_short() {
    let rows = [
        (Unit::Percent, 61.6, "62%"),
        (Unit::Cores, 0.25, "250m"),
        (Unit::Cores, 2.5, "2.5"),
        (Unit::Bytes, 268_435_456.0, "256Mi"),
        (Unit::Bytes, 1_610_612_736.0, "1.5Gi"),
        (Unit::Count, 0.0, "0"),
        (Unit::Count, 0.5, "500m"),
        (Unit::Count, 33.091, "33.1"),
        (Unit::Count, 9999.0, "9999"),
        (Unit::Count, 12_000.0, "12k"),
        (Unit::Count, 1e30, "1000000000000000000T"),
    ];
    for (unit, number, expected) in rows {
        assert_eq!(unit.text(number), expected, "{unit:?} {number}");
    }
}
