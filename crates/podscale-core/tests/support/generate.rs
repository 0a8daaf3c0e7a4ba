//! Autoscalers and their surroundings, sensible or not, for property tests.
#![allow(dead_code, missing_docs, unreachable_pub)]

use crate::fixture::{Fixture, NOW};
use podscale_core::history::{Recommendation, ScaleEvent};
use podscale_core::model::{
    Behavior, Milli, ObjectRef, Policy, PolicyAmount, PolicySelect, ScalingRules, Series, Source,
    TargetKind, Targets,
};
use podscale_core::pod::{Phase, Pod, Ready, ReadyStatus};
use podscale_core::snapshot::{
    PodReadings, Reading, Requests, Sample, Scale, Selection, UnmatchedSamples,
};
use podscale_core::status::{Condition, ConditionKind, ConditionStatus, Note};
use podscale_core::{History, Metric, Span, Time};
use proptest::prelude::*;

/// Mostly numbers of everyday, now and then the ends of the range.
pub fn amount() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..5_000i64, 2 => -100..1_000_000_000i64, 1 => any::<i64>()]
}

pub fn count() -> impl Strategy<Value = i32> {
    prop_oneof![8 => 0..30i32, 1 => any::<i32>()]
}

pub fn time() -> impl Strategy<Value = Time> {
    prop_oneof![9 => (0..4_000i64).prop_map(|s| NOW.before(Span::seconds(s))), 1 => any::<i64>().prop_map(Time)]
}

pub fn pod() -> impl Strategy<Value = Pod> {
    let phase = prop_oneof![
        8 => Just(Phase::Running),
        1 => Just(Phase::Pending),
        1 => Just(Phase::Failed),
        1 => Just(Phase::Succeeded),
    ];
    let status = prop_oneof![
        8 => Just(ReadyStatus::True),
        2 => Just(ReadyStatus::False),
        1 => Just(ReadyStatus::Unknown),
    ];
    let ready = (status, time()).prop_map(|(status, since)| Ready { status, since });
    (
        proptest::option::weighted(0.9, time()),
        proptest::option::weighted(0.9, ready),
        phase,
        proptest::bool::weighted(0.1),
    )
        .prop_map(|(started, ready, phase, deleting)| Pod { started, ready, phase, deleting })
}

pub fn sample() -> impl Strategy<Value = Sample> {
    (amount(), time(), 0..60i64).prop_map(|(value, taken, window)| Sample {
        value: Milli(value),
        taken,
        window: Span::seconds(window),
    })
}

pub fn per_pod(pods: usize) -> impl Strategy<Value = Reading> {
    (
        proptest::collection::vec(proptest::option::weighted(0.8, sample()), pods),
        proptest::collection::vec(amount().prop_map(Milli), pods),
        0..3usize,
        amount(),
    )
        .prop_map(|(samples, of_pods, count, total)| {
            Reading::PerPod(PodReadings {
                samples,
                unmatched: UnmatchedSamples {
                    count,
                    total: Milli(if count == 0 { 0 } else { total }),
                },
                requests: Requests { of_pods, missing: None },
            })
        })
}

pub fn metric(pods: usize) -> impl Strategy<Value = (Metric, Reading)> {
    let series = || Series { name: "m".into(), selector: None, query: None, selector_error: None };
    let source = prop_oneof![
        Just(Source::Resource { name: "cpu".into() }),
        Just(Source::Resource { name: "memory".into() }),
        Just(Source::Pods(series())),
        Just(Source::External(series())),
        Just(Source::Object {
            series: series(),
            object: ObjectRef {
                api_version: "v1".into(),
                kind: "Service".into(),
                name: "s".into()
            },
        }),
    ];
    let kind = prop_oneof![
        Just(TargetKind::Value),
        Just(TargetKind::AverageValue),
        Just(TargetKind::Utilization)
    ];
    let reading = (per_pod(pods), amount(), proptest::collection::vec(amount(), 0..4), 0..10u8);
    (source, kind, amount(), prop_oneof![9 => 1..200i32, 1 => any::<i32>()], reading).prop_map(
        |(source, kind, amount, percent, (per_pod, total, series, luck))| {
            let targets = Targets {
                kind,
                value: (kind == TargetKind::Value).then_some(Milli(amount)),
                average_value: (kind == TargetKind::AverageValue).then_some(Milli(amount)),
                average_utilization: (kind == TargetKind::Utilization).then_some(percent),
            };
            let reading = match (&source, luck) {
                (_, 0) => Reading::Failed("no answer".into()),
                (_, 1) => Reading::Empty,
                (Source::External(_), _) => {
                    let values = series.into_iter().map(Milli).collect();
                    Reading::Series { values, taken: None }
                }
                (Source::Object { .. }, _) => Reading::Total { value: Milli(total), taken: None },
                _ => per_pod,
            };
            (Metric::new(source, &targets), reading)
        },
    )
}

pub fn rules() -> impl Strategy<Value = ScalingRules> {
    let policy = (any::<bool>(), count(), 1..1800i64).prop_map(|(pods, value, period)| Policy {
        amount: if pods { PolicyAmount::Pods(value) } else { PolicyAmount::Percent(value) },
        period: Span::seconds(period),
    });
    let select = prop_oneof![
        4 => Just(PolicySelect::Max),
        2 => Just(PolicySelect::Min),
        1 => Just(PolicySelect::Disabled)
    ];
    (
        proptest::option::of((0..3600i64).prop_map(Span::seconds)),
        select,
        proptest::collection::vec(policy, 0..3),
        proptest::option::of(0.0..1.0f64),
    )
        .prop_map(|(stabilization_window, select, policies, tolerance)| ScalingRules {
            stabilization_window,
            select,
            policies,
            tolerance,
        })
}

pub fn history() -> impl Strategy<Value = History> {
    let recommendation =
        (count(), time()).prop_map(|(replicas, at)| Recommendation { replicas, at });
    let event = || {
        (count(), time(), any::<bool>()).prop_map(|(change, at, outdated)| ScaleEvent {
            change,
            at,
            outdated,
        })
    };
    (
        proptest::collection::vec(recommendation, 0..20),
        proptest::collection::vec(event(), 0..5),
        proptest::collection::vec(event(), 0..5),
    )
        .prop_map(|(recommendations, ups, downs)| History {
            recommendations,
            ups,
            downs,
            memory: None,
            forecaster: None,
        })
}

pub fn fixture() -> impl Strategy<Value = Fixture> {
    (0..8usize).prop_flat_map(|pods| {
        (
            (count(), count()),
            (0..5i32, 1..40i32),
            proptest::collection::vec(pod(), pods),
            proptest::collection::vec(metric(pods), 0..4),
            proptest::option::of((rules(), rules())),
            history(),
            any::<bool>(),
        )
            .prop_map(
                |(
                    (spec_replicas, status_replicas),
                    (min, span),
                    pods,
                    metrics,
                    behavior,
                    history,
                    zeroed,
                )| {
                    let mut fixture = Fixture::of(0).limits(min, min.max(1) + span);
                    fixture.scale = Ok(Scale { spec_replicas, status_replicas });
                    fixture.pods = Selection::Pods(pods);
                    (fixture.autoscaler.metrics, fixture.readings) = metrics.into_iter().unzip();
                    fixture.autoscaler.behavior =
                        behavior.map(|(scale_up, scale_down)| Behavior { scale_up, scale_down });
                    fixture.history = history;
                    if zeroed {
                        fixture.status.conditions.push(Condition {
                            kind: Ok(ConditionKind::ScaledToZero),
                            status: ConditionStatus::True,
                            since: None,
                            note: Note::ScaledToZero,
                        });
                    }
                    fixture
                },
            )
    })
}
