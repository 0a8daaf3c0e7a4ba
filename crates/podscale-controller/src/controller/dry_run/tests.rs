use super::attempt::depends_on_pods;
use super::*;
use crate::dialect::hpa;
use podscale_api::translate;
use serde_json::json;

/// A write of another controller that found two replicas and changed nothing.
pub(super) fn observed_write() -> ObservedWrite {
    ObservedWrite {
        before: object(json!({})).wire,
        found: 2,
        existed: None,
        desired: 2,
        rescaled: None,
        metrics: Vec::new(),
        generation: Some(1),
    }
}

fn object(status: serde_json::Value) -> Managed {
    let hpa = json!({"metadata": {"uid": "1"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"kind": "Deployment", "name": "web"}}, "status": status});
    hpa::managed(serde_json::from_value(hpa).expect("an autoscaler"))
}

#[test]
fn some_metrics_do_not_depend_on_pods() {
    for (metric, depends) in [
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
        let hpa = json!({"spec": {"maxReplicas": 3, "metrics": [metric],
            "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
        let hpa = serde_json::from_value(hpa).expect("an autoscaler");
        assert_eq!(depends_on_pods(&translate::autoscaler(&hpa)), depends, "{metric}");
    }
}

#[test]
fn a_write_is_seen_by_its_status() {
    let before = object(json!({"currentReplicas": 2, "desiredReplicas": 2}));
    let after = object(json!({"currentReplicas": 2, "desiredReplicas": 4,
        "lastScaleTime": "1970-01-01T00:00:07Z"}));
    let later = object(json!({"currentReplicas": 4, "desiredReplicas": 4,
        "lastScaleTime": "1970-01-01T00:00:07Z"}));
    assert!(ObservedWrite::between(&before, &before).is_none());
    let shown = |write: &ObservedWrite| {
        let ObservedWrite { found, desired, rescaled, .. } = write;
        format!("{found} {desired} {rescaled:?} after {}", write.before.status().desired_replicas)
    };
    let rescale = ObservedWrite::between(&before, &after).expect("a write");
    assert_eq!(shown(&rescale), "2 4 Some(Time(7000000)) after 2");
    let still = ObservedWrite::between(&after, &later).expect("a write");
    assert_eq!(shown(&still), "4 4 None after 4");
    assert_eq!(rescale.rewind(&later).wire.status().desired_replicas, 2, "the status before");
    let mut comparison = Comparison::default();
    comparison.observed(rescale);
    comparison.observed(still);
    let taken = comparison.take_observed().expect("a write");
    assert_eq!(shown(&taken), "2 4 Some(Time(7000000)) after 2", "the rescale is not lost");
    assert!(comparison.take_observed().is_none());
}

#[test]
fn pods_that_a_change_of_size_brought_are_left_out() {
    let pod = |start: serde_json::Value| -> Pod {
        serde_json::from_value(json!({"status": {"startTime": start}})).expect("a pod")
    };
    let rescale = ObservedWrite { rescaled: Some(Time(7_000_000)), ..observed_write() };
    for (start, met) in [
        (json!("1970-01-01T00:00:06Z"), true),
        (json!("1970-01-01T00:00:07Z"), false),
        (json!(null), false),
    ] {
        assert_eq!(rescale.existed_before(&pod(start.clone())), met, "{start}");
        assert!(observed_write().existed_before(&pod(start)), "no change of size");
    }
}
