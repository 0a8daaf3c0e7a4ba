use super::*;
use serde_json::json;

const MEMORY: Span = Span::seconds(60);

fn at(seconds: i64) -> Moment {
    Moment { now: Time(0).after(Span::seconds(seconds)), memory: MEMORY }
}

/// A value of the only metric, as a status shows it.
fn metrics(value: i32) -> Option<Vec<MetricStatus>> {
    let external = json!({"metric": {"name": "x"}, "current": {"value": value.to_string()}});
    serde_json::from_value(json!([{"type": "External", "external": external}])).ok()
}

/// What they wrote with a value of the metric, having found two replicas.
fn theirs(desired: i32, value: i32) -> Theirs {
    let (before, rescaled, existed) = (None, None, None);
    let (metrics, generation) = (metrics(value), Some(1));
    Theirs { before, found: 2, existed, desired, rescaled, metrics, generation }
}

/// What we chose with a value of the metric and some state of the pods.
fn look(chosen: i32, value: i32, pods: u64) -> Look {
    let (chosen, metrics) = (Some(chosen), metrics(value));
    Look { found: 2, existing: 2, chosen, metrics, pods, alike: false }
}

/// Holds a look of ours against a write of theirs.
fn judge(
    comparison: &mut Comparison,
    theirs: &Theirs,
    mut look: Look,
    seconds: i64,
) -> Option<Verdict> {
    look.alike = look.metrics == theirs.metrics;
    comparison.written(theirs, look, |_| false, at(seconds))
}

const AGREED: Option<Verdict> = Some(Verdict::Agreed);

fn unknown(reason: Reason) -> Option<Verdict> {
    Some(Verdict::Unknown(reason))
}

fn chose(theirs: i32, ours: i32) -> Option<Verdict> {
    Some(Verdict::Disagreed(Disagreement::Chose { theirs, ours }))
}

#[test]
fn a_choice_is_judged_only_on_the_same_values_pods_and_past() {
    let mut comparison = Comparison::default();
    for (what, seconds, theirs, ours, expected) in [
        ("the same", 0, theirs(4, 10), look(4, 10, 1), AGREED),
        ("on other values", 15, theirs(9, 30), look(5, 20, 1), unknown(Reason::Values)),
        ("as the look before", 30, theirs(5, 20), look(6, 25, 1), AGREED),
        ("it may remember", 70, theirs(9, 25), look(6, 25, 1), unknown(Reason::Past)),
        ("by now it does not", 80, theirs(9, 25), look(6, 25, 1), chose(9, 6)),
        ("pods came", 95, theirs(9, 25), look(6, 25, 2), unknown(Reason::Pods)),
        ("it may remember", 155, theirs(9, 25), look(6, 25, 2), unknown(Reason::Past)),
        ("by now it does not", 156, theirs(9, 25), look(6, 25, 2), chose(9, 6)),
    ] {
        assert_eq!(judge(&mut comparison, &theirs, ours, seconds), expected, "{what}");
    }
    let mut look = look(20, 25, 2);
    look.alike = true;
    let found = comparison.written(&theirs(12, 25), look, |ours| ours == 12, at(170));
    assert_eq!(found, AGREED, "a second earlier");
}

#[test]
fn other_values_again_and_again_are_told_once() {
    let mut comparison = Comparison::default();
    let told = [(); 7].map(|()| judge(&mut comparison, &theirs(4, 10), look(5, 20, 1), 0));
    let expected = [
        unknown(Reason::Values),
        unknown(Reason::Values),
        unknown(Reason::Values),
        unknown(Reason::Values),
        unknown(Reason::OtherValues),
        unknown(Reason::Values),
        unknown(Reason::Values),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_choice_that_stays_is_judged_after_three_looks() {
    let mut comparison = Comparison::default();
    let kept = Some(Verdict::Disagreed(Disagreement::Kept { theirs: 6, ours: 9 }));
    for (what, seconds, alike, ours, pods, expected) in [
        ("the same", 0, true, 6, 1, AGREED),
        ("apart once", 15, true, 8, 1, None),
        ("twice", 30, true, 8, 1, None),
        ("the pods change", 45, true, 8, 2, None),
        ("it may remember", 60, true, 8, 2, None),
        ("by now it does not", 106, true, 8, 2, None),
        ("other values do not count", 120, false, 8, 2, None),
        ("twice", 135, true, 8, 2, None),
        ("three times", 150, true, 9, 2, kept),
        ("said once", 165, true, 9, 2, None),
        ("together", 180, true, 6, 2, AGREED),
        ("apart", 195, true, 9, 2, None),
    ] {
        let ours = Look { alike, ..look(ours, 10, pods) };
        assert_eq!(comparison.unwritten(6, ours, at(seconds)), expected, "{what}");
    }
}

#[test]
fn some_metrics_do_not_ask_for_pods() {
    for (metric, asks) in [
        (
            json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue",
            "averageValue": "1"}}}),
            true,
        ),
        (
            json!({"type": "External", "external": {"metric": {"name": "x"}, "target":
            {"type": "AverageValue", "averageValue": "1"}}}),
            false,
        ),
        (
            json!({"type": "External", "external": {"metric": {"name": "x"}, "target":
            {"type": "Value", "value": "1"}}}),
            true,
        ),
    ] {
        let spec = serde_json::from_value(metric.clone()).expect("a metric");
        assert_eq!(asks_for_pods(&spec), asks, "{metric}");
    }
}

fn hpa(status: serde_json::Value) -> HorizontalPodAutoscaler {
    let hpa = json!({"metadata": {"uid": "1"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "web"}}, "status": status});
    serde_json::from_value(hpa).expect("an autoscaler")
}

#[test]
fn a_write_is_seen_by_its_status() {
    let before = hpa(json!({"currentReplicas": 2, "desiredReplicas": 2}));
    let after = hpa(json!({"currentReplicas": 2, "desiredReplicas": 4,
        "lastScaleTime": "1970-01-01T00:00:07Z"}));
    assert_eq!(Theirs::of(&before, &before), None);
    let rescaled = Some(Time(7_000_000));
    let theirs = Theirs {
        before: before.status.clone(),
        found: 2,
        existed: None,
        desired: 4,
        rescaled,
        metrics: None,
        generation: None,
    };
    assert_eq!(Theirs::of(&before, &after), Some(theirs.clone()));
    let later = hpa(json!({"currentReplicas": 4, "desiredReplicas": 4,
        "lastScaleTime": "1970-01-01T00:00:07Z"}));
    let (old, rescaled) = (after.status.clone(), None);
    let still = Theirs { before: old, found: 4, desired: 4, rescaled, ..theirs.clone() };
    assert_eq!(Theirs::of(&after, &later), Some(still.clone()));
    let (shadows, key) = (Shadows::default(), Key { namespace: "x".into(), name: "y".into() });
    shadows.note(&key, theirs.clone());
    shadows.note(&key, still);
    assert_eq!(shadows.take(&key), Some(theirs), "the rescale is not lost");
    assert_eq!(shadows.take(&key), None);
}

#[test]
fn pods_that_a_change_of_size_brought_are_left_out() {
    let pod = |start: serde_json::Value| -> Pod {
        serde_json::from_value(json!({"status": {"startTime": start}})).expect("a pod")
    };
    let rescale = Theirs { rescaled: Some(Time(7_000_000)), ..theirs(4, 10) };
    for (start, met) in [
        (json!("1970-01-01T00:00:06Z"), true),
        (json!("1970-01-01T00:00:07Z"), false),
        (json!(null), false),
    ] {
        assert_eq!(rescale.met(&pod(start.clone())), met, "{start}");
        assert!(theirs(4, 10).met(&pod(start)), "no change of size");
    }
}
