mod decisions;

use super::*;
use crate::chpa::translate::{as_hpa, autoscaler, stored_status};
use podscale_core::model::{ForbiddenWindows, MetricTarget, Pace, Tolerance};
use podscale_core::{Span, Time};
use serde_json::json;

fn chpa(spec: Value, status: Value) -> Chpa {
    let object = json!({"metadata": {"name": "web", "namespace": "shop", "generation": 4,
        "resourceVersion": "7"}, "spec": spec, "status": status});
    serde_json::from_value(object).expect("any CHPA can be read")
}

fn spec(fields: Value) -> Value {
    let mut spec = json!({"maxReplicas": 9,
        "scaleTargetRef": {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "Resource", "resource":
            {"name": "cpu", "targetAverageUtilization": 80}}]});
    for (field, value) in fields.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    spec
}

#[test]
fn numbers_that_are_left_open_get_their_defaults() {
    let windows = |up, down| ForbiddenWindows {
        up: Some(Span::seconds(up)),
        down: Some(Span::seconds(down)),
    };
    let even = |tolerance| Some(Tolerance { up: Some(tolerance), down: Some(tolerance) });
    for (fields, expected) in [
        (json!({}), (windows(300, 300), 2.0, 4, even(0.1))),
        (
            json!({"tolerance": 0, "scaleUpLimitFactor": null, "scaleUpLimitMinimum": 0}),
            (windows(300, 300), 2.0, 4, even(0.1)),
        ),
        (
            json!({"upscaleForbiddenWindowSeconds": 10, "downscaleForbiddenWindowSeconds": 20,
                "scaleUpLimitFactor": 3.5, "scaleUpLimitMinimum": 5, "tolerance": 0.25}),
            (windows(10, 20), 3.5, 5, even(0.25)),
        ),
    ] {
        let model = autoscaler(&chpa(spec(fields), Value::Null));
        let extensions = model.extensions.as_deref().expect("it is no native one");
        let Pace::FactorAndMinimum { factor, minimum } = extensions.pace else {
            panic!("another pace: {:?}", extensions.pace);
        };
        let found = (extensions.forbidden_windows, factor, minimum, extensions.tolerance);
        assert_eq!(found, expected);
        assert_eq!((model.min_replicas, model.max_replicas), (1, 9));
        assert_eq!(&*model.target.api_version, "apps/v1", "Deployments are there now");
        assert_eq!(model.metrics.len(), 1);
        assert_eq!(model.metrics[0].target, MetricTarget::Utilization(80));
    }
    let none = autoscaler(&chpa(spec(json!({"metrics": []})), Value::Null));
    assert!(none.metrics.is_empty(), "no cpu metric is made up");
}

#[test]
fn what_is_wrong_is_said() {
    let metric = |metric: Value| json!({"metrics": [metric]});
    for (fields, expected) in [
        (
            json!({"scaleTargetRef": {"kind": "ReplicaSet", "name": "x"}}),
            "configurable chpa doesn't support ReplicaSet kind, use Deployment instead",
        ),
        (metric(json!({"type": "Pods"})), "metric.Pods is nil while metric.Type is 'Pods'"),
        (
            metric(json!({"type": "Resource", "pods": {"metricName": "x"}})),
            "metric.Resource is nil while metric.Type is 'Resource'",
        ),
        (metric(json!({"type": "Resources"})), "incorrect metric.Type: 'Resources'"),
        (metric(json!({})), "incorrect metric.Type: ''"),
        (
            json!({"maxReplicas": 0}),
            "spec.maxReplicas: Invalid value: 0: must be greater than or equal to 1",
        ),
        (
            json!({"minReplicas": 10}),
            "spec.maxReplicas: Invalid value: 9: must be greater than or equal to `minReplicas`",
        ),
        (
            json!({"minReplicas": 0}),
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
        ),
        (
            json!({"scaleUpLimitFactor": 0.5}),
            "spec.scaleUpLimitFactor: Invalid value: 0.5: must be greater than or equal to 1",
        ),
        (
            json!({"scaleTargetRef": {"kind": "Deployment"}}),
            "spec.scaleTargetRef.name: Required value",
        ),
        (
            metric(json!({"type": "Resource", "resource": {"targetAverageUtilization": 0}})),
            "spec.metrics[0].resource.targetAverageUtilization: Invalid value: 0: must be greater than 0",
        ),
        (
            metric(json!({"type": "Pods", "pods": {"metricName": "x"}})),
            "spec.metrics[0].pods.targetAverageValue: Invalid value: \"0\": must be positive",
        ),
        (
            metric(json!({"type": "Resource", "resource": {"targetAverageUtilization": "80"}})),
            "spec.metrics[0].resource.targetAverageUtilization: invalid type: string \"80\", expected i32",
        ),
    ] {
        let object = chpa(spec(fields), Value::Null);
        assert_eq!(object.checked().expect_err("it is wrong"), expected);
        let model = autoscaler(&object);
        assert_eq!(model.invalid().map(|why| &**why), Some(expected));
    }
    let nonsense = chpa(json!(["spec"]), json!({"conditions": 5}));
    assert_eq!(nonsense.checked().expect_err("no spec"), "spec: must be an object");
    assert_eq!(nonsense.status, None);
}

#[test]
fn a_status_is_read_and_written_in_the_form_of_v2beta1() {
    let status = json!({"lastScaleTime": "2026-01-01T00:00:00Z", "currentReplicas": 2,
        "desiredReplicas": 3, "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu",
            "currentAverageUtilization": 90, "currentAverageValue": "90m"}}],
        "conditions": [{"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale",
            "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    let object = chpa(spec(json!({})), status.clone());
    let stored = stored_status(&object);
    assert_eq!((stored.current_replicas, stored.desired_replicas), (2, 3));
    assert_eq!((stored.metrics.len(), stored.conditions.len()), (1, 1));
    assert_eq!(stored.last_scale, Some(Time(1_767_225_600_000_000)));
    let body = object.to_body(StatusStored::WithObject).expect("JSON");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!((&body["status"], &body["kind"]), (&status, &json!("CHPA")));
    assert_eq!(body["spec"], object.stored_spec);
    // A list, not null: definitions want one.
    let bare = chpa(spec(json!({})), json!({"currentReplicas": 1, "currentMetrics": null}));
    let body = bare.to_body(StatusStored::Apart).expect("JSON");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["status"]["currentMetrics"], json!([]));
    assert_eq!(body["status"]["conditions"], json!([]));
}

/// The model has one generation, since the status of an object of the original definition makes a new
/// one whenever it is stored.
#[test]
fn a_generation_counts_as_observed_unless_the_status_says_otherwise() {
    let observed = |status: Value| {
        let object = chpa(spec(json!({})), status);
        assert_eq!(as_hpa(&object).metadata.generation, autoscaler(&object).generation);
        stored_status(&object).observed_generation == Some(autoscaler(&object).generation)
    };
    assert!(!observed(Value::Null), "never decided");
    assert!(observed(json!({"currentReplicas": 1})), "stored with the object");
    assert!(observed(json!({"currentReplicas": 1, "observedGeneration": 4})));
    assert!(!observed(json!({"currentReplicas": 1, "observedGeneration": 3})));
}
