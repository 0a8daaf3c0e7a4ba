//! Every lint speaks where it should, and is silent where it should.

use serde_json::{Value, json};

use super::*;
use crate::hpa::custom_metrics::as_written;

/// An autoscaler of version 2 with some fields of its spec changed.
fn hpa(spec: Value) -> Value {
    let mut object = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"minReplicas": 1, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    for (field, value) in spec.as_object().expect("fields") {
        object["spec"][field] = value.clone();
    }
    object
}

/// The same as a PodAutoscaler.
fn pa(spec: Value) -> Value {
    let mut object = hpa(spec);
    object["apiVersion"] = "podscale.dev/v1alpha1".into();
    object["kind"] = "PodAutoscaler".into();
    object
}

/// The same as a CHPA.
fn chpa(metrics: Value) -> Value {
    let mut object = hpa(json!({"metrics": metrics}));
    object["apiVersion"] = "autoscalers.postmates.com/v1beta1".into();
    object["kind"] = "CHPA".into();
    object
}

fn of_version(version: &str, annotations: Value) -> Value {
    let mut object = hpa(json!({}));
    object["apiVersion"] = format!("autoscaling/{version}").into();
    object["metadata"]["annotations"] = annotations;
    object
}

fn deployment(spec: Value, containers: Value) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": containers}}}});
    for (field, value) in spec.as_object().expect("fields") {
        object["spec"][field] = value.clone();
    }
    object
}

fn found(objects: &[Value]) -> Vec<String> {
    let read: Vec<(Value, HorizontalPodAutoscaler)> = objects
        .iter()
        .filter_map(|object| Some((object.clone(), Written::of(object)?.as_hpa(object)?)))
        .collect();
    let autoscalers: Vec<Autoscaler<'_>> =
        read.iter().map(|(object, hpa)| Autoscaler { object, hpa }).collect();
    let workloads: Vec<Workload> = objects.iter().filter_map(Workload::read).collect();
    let manifests = Manifests { autoscalers: &autoscalers, workloads: &workloads };
    let findings = check(&autoscalers[0], &manifests, &[]);
    findings.into_iter().map(|one| format!("{} {} {}", one.lint, one.field, one.problem)).collect()
}

fn resource(name: &str, percent: i32) -> Value {
    json!({"type": "Resource", "resource": {"name": name,
        "target": {"type": "Utilization", "averageUtilization": percent}}})
}

fn limits(percent: i32) -> Value {
    let mut metric = resource("cpu", percent);
    metric["utilizationOf"] = "Limits".into();
    metric
}

fn container(resources: Value) -> Value {
    json!([{"name": "app", "resources": resources}])
}

fn behavior(direction: &str, rules: Value) -> Value {
    hpa(json!({"behavior": {direction: rules}}))
}

/// What is checked, and what is found. Every lint is in it, in the order of names.
fn cases() -> Vec<(Vec<Value>, &'static str)> {
    let pods = |value: i32, seconds: i32| json!({"type": "Pods", "value": value, "periodSeconds": seconds});
    let mut other = hpa(json!({}));
    other["metadata"]["name"] = "other".into();
    let alpha = |name: &str| format!("autoscaling.alpha.kubernetes.io/{name}");
    let custom = "alpha/target.custom-metrics.podautoscaler.kubernetes.io";
    vec![
        (
            vec![of_version("v2", json!({alpha("behavior"): "{}"}))],
            "annotation-without-effect metadata.annotations[autoscaling.alpha.kubernetes.io/behavior] autoscaling/v2 drops this annotation",
        ),
        (
            vec![of_version(
                "v1",
                json!({custom: "{\"items\":[{\"name\":\"qps\",\"value\":\"10\"}]}"}),
            )],
            "custom-metrics-annotation metadata.annotations[alpha/target.custom-metrics.podautoscaler.kubernetes.io] no Kubernetes since 1.6 scales by this",
        ),
        (
            vec![behavior(
                "scaleDown",
                json!({"selectPolicy": "Disabled", "stabilizationWindowSeconds": 60}),
            )],
            "disabled-with-rules spec.behavior.scaleDown.stabilizationWindowSeconds scaleDown is Disabled, so this has no effect",
        ),
        (
            vec![hpa(
                json!({"metrics": [resource("cpu", 50), resource("memory", 50), resource("cpu", 60)]}),
            )],
            "duplicate-metric spec.metrics[2] the same metric as spec.metrics[0]",
        ),
        (
            vec![pa(json!({"modeUntil": "2026-01-01T00:00:00Z"}))],
            "field-without-effect spec.modeUntil the mode is Active before and after",
        ),
        (
            vec![of_version("v1", json!({alpha("metrics"): "[{"}))],
            "malformed-annotation metadata.annotations[autoscaling.alpha.kubernetes.io/metrics] this cannot be read and is ignored",
        ),
        (
            vec![hpa(json!({"minReplicas": 9}))],
            "min-equals-max spec.maxReplicas minReplicas and maxReplicas are both 9: nothing can be scaled",
        ),
        (
            vec![behavior("scaleDown", json!({"stabilizationWindowSeconds": 0}))],
            "no-downscale-window spec.behavior.scaleDown.stabilizationWindowSeconds a window of 0 s removes pods at every dip; the default is 300 s",
        ),
        (
            vec![
                pa(json!({"metrics": [limits(80)]})),
                deployment(json!({}), container(json!({"requests": {"cpu": "1"}}))),
            ],
            "no-limits spec.metrics[0].resource not all containers of Deployment web have a limit of cpu",
        ),
        (
            vec![chpa(json!([]))],
            "no-metrics spec.metrics without metrics the size is always minReplicas",
        ),
        (
            vec![
                hpa(json!({"metrics": [resource("cpu", 50)]})),
                deployment(json!({}), container(json!({"requests": {"memory": "1Gi"}}))),
            ],
            "no-requests spec.metrics[0].resource container \"app\" of Deployment web requests no cpu",
        ),
        (
            vec![pa(json!({"fallback": {"replicas": 12}}))],
            "outside-bounds spec.fallback.replicas 12 becomes 9, since the bounds are 1 and 9",
        ),
        (
            vec![behavior("scaleUp", json!({"policies": [pods(1, 60), pods(8, 60)]}))],
            "policy-without-effect spec.behavior.scaleUp.policies[1] Pods 8 allows to go from 1 to 9 in one period",
        ),
        (
            vec![hpa(
                json!({"scaleTargetRef": {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "web"}}),
            )],
            "removed-target-version spec.scaleTargetRef.apiVersion extensions/v1beta1 has no Deployment any more; say apps/v1",
        ),
        (
            vec![of_version("v2beta2", json!({}))],
            "removed-version apiVersion autoscaling/v2beta2 is gone since Kubernetes 1.26",
        ),
        (
            vec![
                hpa(json!({})),
                deployment(json!({"replicas": 3}), container(json!({"requests": {"cpu": "1"}}))),
            ],
            "replicas-in-manifest spec.scaleTargetRef the manifest of Deployment web sets spec.replicas to 3; leave it out",
        ),
        (
            vec![
                hpa(json!({"metrics": [resource("cpu", 150)]})),
                deployment(json!({}), container(json!({"limits": {"cpu": "1"}}))),
            ],
            "target-above-limit spec.metrics[0].resource.target.averageUtilization 150% of the requested cpu is more than the limits of Deployment web allow, which is 100%",
        ),
        (
            vec![hpa(
                json!({"metrics": [{"type": "Pods", "pods": {"metric": {"name": "qps"}, "target": {"type": "Value", "averageValue": "7"}}}]}),
            )],
            "target-type-mismatch spec.metrics[0].pods.target.type the type is Value, but averageValue is set",
        ),
        (
            vec![behavior("scaleDown", json!({"tolerance": "1"}))],
            "tolerance-too-wide spec.behavior.scaleDown.tolerance with a tolerance of 1 nothing is ever scaled down",
        ),
        (
            vec![hpa(json!({})), other],
            "two-autoscalers spec.scaleTargetRef HorizontalPodAutoscaler other scales Deployment web as well",
        ),
        (
            vec![of_version("v2", json!({IGNORE_ANNOTATION: "min-equal-max"}))],
            "unknown-lint metadata.annotations[podscale.dev/ignore-lints] there is no lint \"min-equal-max\"",
        ),
        (
            vec![hpa(
                json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web"}}),
            )],
            "unknown-target-kind spec.scaleTargetRef.kind Kubernetes has no kind \"DaemonSet\" that can be scaled",
        ),
        (
            vec![chpa(json!([{"type": "Resource", "resource": {"name": "cpu",
                "targetAverageUtilisation": 50, "targetAverageUtilization": 50}}]))],
            "unread-field spec.metrics[0].resource.targetAverageUtilisation nobody reads \"spec.metrics[0].resource.targetAverageUtilisation\"",
        ),
        (
            vec![behavior(
                "scaleUp",
                json!({"stabilizationWindowSeconds": 300, "policies": [pods(4, 15)]}),
            )],
            "window-outlasts-policies spec.behavior.scaleUp.stabilizationWindowSeconds the policies allow the whole range of 1 to 9 within 30 s, the window lasts 300 s",
        ),
    ]
}

#[test]
fn each_lint_finds_its_case_and_can_be_silenced() {
    let names: Vec<&str> = lints().iter().map(|lint| lint.name).collect();
    let cases = cases();
    let covered: Vec<&str> =
        cases.iter().filter_map(|(_, found)| found.split(' ').next()).collect();
    assert_eq!(covered, names, "every lint has a case");
    for ((mut objects, expected), name) in cases.into_iter().zip(names) {
        assert_eq!(found(&objects), [expected]);
        let annotations = &mut objects[0]["metadata"]["annotations"];
        let before = annotations[IGNORE_ANNOTATION].as_str().unwrap_or_default().to_owned();
        annotations[IGNORE_ANNOTATION] = format!("{before}, {name}").into();
        assert_eq!(found(&objects), [""; 0], "{name} is silenced");
    }
}

#[test]
fn what_is_fine_is_left_alone() {
    let good = hpa(json!({"metrics": [resource("cpu", 80)], "behavior": {
        "scaleUp": {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 60}]},
        "scaleDown": {"stabilizationWindowSeconds": 300, "tolerance": "50m",
            "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}}));
    let app = deployment(
        json!({}),
        container(json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}})),
    );
    assert_eq!(found(&[good.clone(), app.clone()]), [""; 0]);
    // Another namespace, another kind, the same object twice.
    let mut elsewhere = app;
    elsewhere["spec"]["replicas"] = 3.into();
    elsewhere["metadata"]["namespace"] = "shop".into();
    assert_eq!(found(&[good.clone(), elsewhere, good]), [""; 0]);
    let custom = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"});
    assert_eq!(found(&[hpa(json!({"scaleTargetRef": custom}))]), [""; 0]);
    // An external metric or an amount needs no request.
    let amount = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "AverageValue", "averageValue": "1"}}}]);
    let bare = deployment(json!({}), container(json!({})));
    assert_eq!(found(&[hpa(json!({"metrics": amount})), bare.clone()]), [""; 0]);
    let missing = found(&[hpa(json!({})), bare]);
    assert_eq!(
        missing,
        [
            "no-requests spec.metrics[0].resource container \"app\" of Deployment web requests no cpu"
        ]
    );
}

#[test]
fn every_kind_is_looked_at() {
    let singlecloud = json!({"name": "front", "scaleTargetKind": "deployment", "scaleTargetName": "web",
        "minReplicas": 1, "maxReplicas": 9});
    let cpu =
        json!([{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 50}}]);
    let kinds = [
        ("HorizontalPodAutoscaler web", hpa(json!({}))),
        ("PodAutoscaler web", pa(json!({}))),
        ("CHPA web", chpa(cpu)),
        ("HorizontalPodAutoscaler front", singlecloud),
    ];
    for (at, (_, one)) in kinds.iter().enumerate() {
        let (name, other) = &kinds[(at + 1) % kinds.len()];
        let expected = format!(
            "two-autoscalers spec.scaleTargetRef {name} scales {} web as well",
            match at {
                3 => "deployment",
                _ => "Deployment",
            }
        );
        assert_eq!(found(&[one.clone(), other.clone()]), [expected]);
    }
    let app = deployment(json!({}), container(json!({})));
    for (_, one) in &kinds {
        let found = found(&[one.clone(), app.clone()]);
        let expected = "container \"app\" of Deployment web requests no cpu";
        assert!(found.len() == 1 && found[0].ends_with(expected), "{found:?}");
    }
}

#[test]
fn what_a_pod_autoscaler_has_beyond_an_hpa_counts() {
    let quiet = [
        json!({"minReplicas": 9, "schedules": [{"name": "day", "maxReplicas": 20}]}),
        json!({"minReplicas": 9, "scaleToZero": {}}),
        json!({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0, "forbiddenWindowSeconds": 60}}}),
        json!({"combine": "Average", "metrics": [resource("cpu", 50), resource("cpu", 60)]}),
        json!({"hold": {"replicas": 15}, "schedules": [{"name": "day", "maxReplicas": 20}]}),
        json!({"metrics": [limits(80)]}),
    ];
    for spec in quiet {
        assert_eq!(found(&[pa(spec.clone())]), [""; 0], "{spec}");
    }
    let query = |query: &str| json!({"type": "Prometheus", "prometheus": {"query": query, "target": {"type": "Value", "value": "1"}}});
    let object = pa(json!({"metrics": [query("a"), query("b"), query("a")]}));
    assert_eq!(
        found(&[object]),
        ["duplicate-metric spec.metrics[2] the same metric as spec.metrics[0]"]
    );
    let mut active = resource("cpu", 50);
    active["activation"] = "5".into();
    let object = pa(json!({"metrics": [active]}));
    let expected =
        "field-without-effect spec.metrics[0].activation this counts only with spec.scaleToZero";
    assert_eq!(found(&[object]), [expected]);
    let above = found(&[
        pa(json!({"metrics": [limits(120)]})),
        deployment(json!({}), container(json!({"limits": {"cpu": "1"}}))),
    ]);
    assert_eq!(
        above,
        [
            "target-above-limit spec.metrics[0].resource.target.averageUtilization pods cannot use 120% of their limits"
        ]
    );
}

#[test]
fn lints_can_be_ignored_from_outside() {
    let object = hpa(json!({"minReplicas": 9}));
    let read = as_written(&object).expect("an autoscaler");
    let autoscaler = Autoscaler { object: &object, hpa: &read };
    let ignored = ["min-equals-max".to_owned()];
    assert_eq!(check(&autoscaler, &Manifests::default(), &ignored), []);
    assert_eq!(check(&autoscaler, &Manifests::default(), &[]).len(), 1);
}
