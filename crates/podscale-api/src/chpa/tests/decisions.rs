//! What CHPAs decide: the examples of the original's README, its windows, conditions and texts.

use super::{chpa, spec};
use crate::chpa::translate::{autoscaler, stored_status};
use podscale_core::model::{Milli, Settings};
use podscale_core::pod::{Phase, Pod, Ready, ReadyStatus, Sample};
use podscale_core::snapshot::{PodReadings, Reading, Requests, Scale, Selection};
use podscale_core::status::ConditionKind;
use podscale_core::{Decision, History, Pass, ScaleWrite, Snapshot, Span, Time};
use serde_json::{Value, json};

/// Some moment; statuses have whole seconds.
const NOW: Time = Time(1_767_225_600_000_000);

/// What a CHPA is decided on.
struct Case {
    spec: Value,
    status: Value,
    scale: Scale,
    pods: Vec<Pod>,
    readings: Vec<Reading>,
}

/// A metric that asks for so many replicas, one for each unit.
fn asks_for(replicas: i64) -> Reading {
    asked_at(replicas, NOW)
}

fn asked_at(replicas: i64, taken: Time) -> Reading {
    Reading::Series { values: vec![Milli(replicas * 1000)], taken: Some(taken) }
}

fn queue() -> Value {
    json!({"type": "External", "external": {"metricName": "queue", "targetAverageValue": "1"}})
}

fn case(current: i32, fields: Value, readings: Vec<Reading>) -> Case {
    let metrics = vec![queue(); readings.len()];
    let mut spec = spec(json!({"maxReplicas": 1000, "metrics": metrics}));
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let scale = Scale { spec_replicas: current, status_replicas: current };
    Case { spec, status: Value::Null, scale, pods: Vec::new(), readings }
}

impl Case {
    /// What is decided, and the target is given its size.
    fn decide(self) -> Decision {
        let Case { spec, status, scale, pods, readings } = self;
        let object = chpa(spec, status);
        let (model, status) = (autoscaler(&object), stored_status(&object));
        let (settings, history) = (Settings::default(), History::default());
        let (scale, pods) = (Ok(scale), Selection::Pods(pods));
        let snapshot = Snapshot {
            now: NOW,
            settings: &settings,
            autoscaler: &model,
            status: &status,
            history: &history,
            scale: &scale,
            pods: &pods,
            readings: &readings,
        };
        let mut pass = Pass::begin(&snapshot);
        pass.scale_ended(ScaleWrite::Written, NOW);
        pass.finish().decision
    }
}

/// The size in the end, and the reasons of the conditions.
fn outcome(decision: &Decision) -> String {
    let reason = |kind| {
        let change = decision.conditions.get(kind)?;
        let podscale_core::status::Finding::Note(note) = &change.finding else {
            return Some("ValidMetricFound".to_owned());
        };
        Some(format!("{}{}", if change.holds { "" } else { "not " }, note.reason()))
    };
    let kinds =
        [ConditionKind::AbleToScale, ConditionKind::ScalingActive, ConditionKind::ScalingLimited];
    let reasons: Vec<String> = kinds.into_iter().filter_map(reason).collect();
    let replicas = decision.replicas().expect("the size is known");
    format!("{replicas}: {}", reasons.join(", "))
}

#[test]
fn the_examples_of_the_readme() {
    for (current, factor, minimum, wanted, expected) in
        [(1, 2, 4, 10, 4), (1, 2, 4, 3, 3), (10, 3, 4, 10, 10), (10, 3, 4, 40, 30)]
    {
        let fields = json!({"scaleUpLimitFactor": factor, "scaleUpLimitMinimum": minimum});
        let decision = case(current, fields, vec![asks_for(wanted)]).decide();
        let what = format!("{current} replicas, {factor} times, at least {minimum}: {wanted}");
        assert_eq!(decision.replicas(), Some(expected), "{what}");
    }
}

#[test]
fn windows_are_measured_from_the_last_change_to_the_time_of_the_metric() {
    let windows =
        json!({"upscaleForbiddenWindowSeconds": 60, "downscaleForbiddenWindowSeconds": 120});
    for (wanted, since_scale, sample_age, expected) in [
        (8, 60, 0, "4: not BackoffBoth, ValidMetricFound, not DesiredWithinRange"),
        (8, 61, 0, "8: SucceededRescale, ValidMetricFound, not DesiredWithinRange"),
        (8, 80, 25, "4: not BackoffBoth, ValidMetricFound, not DesiredWithinRange"),
        (2, 61, 0, "4: not BackoffDownscale, ValidMetricFound, not DesiredWithinRange"),
        (2, 120, 0, "4: not BackoffDownscale, ValidMetricFound, not DesiredWithinRange"),
        (2, 121, 0, "2: SucceededRescale, ValidMetricFound, not DesiredWithinRange"),
        (4, 121, 0, "4: ReadyForNewScale, ValidMetricFound, not DesiredWithinRange"),
        (4, 30, 0, "4: not BackoffBoth, ValidMetricFound, not DesiredWithinRange"),
    ] {
        let taken = NOW.before(Span::seconds(sample_age));
        let mut case = case(4, windows.clone(), vec![asked_at(wanted, taken)]);
        let last = crate::time::Timestamp(NOW.before(Span::seconds(since_scale)));
        case.status = json!({"currentReplicas": 4, "desiredReplicas": 4, "lastScaleTime": last});
        let what = format!("{wanted} wanted, {since_scale} s after, {sample_age} s old");
        assert_eq!(outcome(&case.decide()), expected, "{what}");
    }
    let swapped =
        json!({"upscaleForbiddenWindowSeconds": 120, "downscaleForbiddenWindowSeconds": 60});
    let mut case = case(4, swapped, vec![asks_for(8)]);
    let last = crate::time::Timestamp(NOW.before(Span::seconds(90)));
    case.status = json!({"currentReplicas": 4, "desiredReplicas": 4, "lastScaleTime": last});
    let expected = "4: not BackoffUpscale, ValidMetricFound, not DesiredWithinRange";
    assert_eq!(outcome(&case.decide()), expected);
}

#[test]
fn bounds_and_zero_are_corrected_without_metrics_and_windows() {
    let last = crate::time::Timestamp(NOW.before(Span::seconds(1)));
    let status = json!({"currentReplicas": 4, "desiredReplicas": 4, "lastScaleTime": last});
    for (spec_replicas, status_replicas, fields, expected, reason) in [
        (9, 9, json!({"maxReplicas": 5}), 5, "Current number of replicas above Spec.MaxReplicas"),
        (1, 1, json!({"minReplicas": 3}), 3, "Current number of replicas below Spec.MinReplicas"),
        (2, 0, json!({}), 1, "Current number of replicas must be greater than 0"),
        (0, 0, json!({"minReplicas": 3}), 0, ""),
    ] {
        let mut case = case(0, fields, vec![asks_for(4)]);
        (case.scale, case.status) = (Scale { spec_replicas, status_replicas }, status.clone());
        let decision = case.decide();
        let what = format!("{spec_replicas} wanted, {status_replicas} there");
        let set = decision.rescale.map_or(spec_replicas, |rescale| rescale.to);
        assert_eq!(set, expected, "{what}");
        let message = decision.events.first().map(|event| event.message.clone());
        let shown = match reason {
            "" => None,
            reason => Some(format!("New size: {expected}; reason: {reason}")),
        };
        assert_eq!(message, shown, "{what}");
    }
}

#[test]
fn the_largest_proposal_wins_and_one_failure_ends_the_pass() {
    let both = case(2, json!({}), vec![asks_for(3), asks_for(4)]).decide();
    assert_eq!(both.replicas(), Some(4));
    let message = &both.events[0].message;
    assert_eq!(message, "New size: 4; reason: external metric queue(nil) above target");
    let failed = || Reading::Failed("gone".into());
    for readings in [vec![asks_for(4), failed()], vec![failed(), asks_for(4)]] {
        let decision = case(2, json!({}), readings).decide();
        assert_eq!(decision.replicas(), Some(2), "even upwards");
        let active = decision.conditions.get(ConditionKind::ScalingActive).expect("it is set");
        assert!(!active.holds);
        let reasons: Vec<&str> = decision.events.iter().map(|event| &*event.reason).collect();
        assert_eq!(reasons, ["FailedGetExternalMetric", "FailedComputeMetricsReplicas"]);
    }
    let none = case(5, json!({"minReplicas": 2}), Vec::new()).decide();
    assert_eq!(none.replicas(), Some(2), "nothing asks for anything");
    let limited = none.conditions.get(ConditionKind::ScalingLimited).expect("it is set");
    assert!(limited.holds, "the minimum holds");
}

/// A pod that runs, and is ready or not.
fn pod(is_ready: bool) -> Pod {
    let status = if is_ready { ReadyStatus::True } else { ReadyStatus::False };
    let started = NOW.before(Span::seconds(5));
    let ready = Some(Ready { status, since: started });
    Pod { started: Some(started), ready, phase: Phase::Running, deleting: false }
}

/// Each pod requests 100m and uses so many thousandths, if that is known.
fn cpu(uses: &[Option<i64>]) -> Reading {
    let sample = |value: i64| Sample { value: Milli(value), taken: NOW, window: Span::seconds(30) };
    Reading::PerPod(PodReadings {
        samples: uses.iter().map(|used| used.map(sample)).collect(),
        requests: Requests { of_pods: vec![Milli(100); uses.len()], missing: None },
        ..PodReadings::default()
    })
}

#[test]
fn tolerance_and_the_readiness_of_its_time() {
    let target = json!([{"type": "Resource", "resource":
        {"name": "cpu", "targetAverageUtilization": 80}}]);
    for (what, fields, pods, expected) in [
        ("above the default tolerance", json!({}), vec![(true, Some(96)); 4], 5),
        ("within a tolerance of its own", json!({"tolerance": 0.25}), vec![(true, Some(96)); 4], 4),
        (
            "below a tolerance of its own",
            json!({"tolerance": 0.05}),
            vec![(true, Some(75)); 20],
            19,
        ),
        ("pods of five seconds count", json!({}), vec![(true, Some(160)); 2], 4),
        (
            "one that is not ready is idle on the way up",
            json!({}),
            vec![(true, Some(160)), (true, Some(160)), (false, Some(900))],
            4,
        ),
        (
            "one without a sample is idle on the way up",
            json!({}),
            vec![(true, Some(200)), (true, Some(200)), (true, None)],
            5,
        ),
        (
            "one without a sample uses what it requests on the way down",
            json!({}),
            vec![(true, Some(10)), (true, Some(10)), (true, None)],
            2,
        ),
    ] {
        let uses: Vec<Option<i64>> = pods.iter().map(|(_, used)| *used).collect();
        let current = i32::try_from(pods.len()).expect("few");
        let mut case = case(current, fields, vec![cpu(&uses)]);
        case.spec["metrics"] = target.clone();
        case.pods = pods.iter().map(|(is_ready, _)| pod(*is_ready)).collect();
        assert_eq!(case.decide().replicas(), Some(expected), "{what}");
    }
}

/// As Kubernetes 1.10 had it: times the current size, not times the pods that serve.
#[test]
fn a_value_of_an_object_scales_the_current_size() {
    let object = json!([{"type": "Object", "object": {"metricName": "hits", "targetValue": "100",
        "target": {"kind": "Service", "name": "front"}}}]);
    for (value, expected) in [(200, 6), (105, 3), (30, 1)] {
        let reading = Reading::Total { value: Milli(value * 1000), taken: Some(NOW) };
        let mut case = case(3, json!({}), vec![reading]);
        case.spec["metrics"] = object.clone();
        case.pods = vec![pod(true), pod(false), pod(false)];
        assert_eq!(case.decide().replicas(), Some(expected), "{value}");
    }
}
