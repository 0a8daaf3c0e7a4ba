//! What is lost is said, and nothing else is lost, over generated autoscalers.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::hpa::convert::{Version, as_written};

fn check(given: Value, to: &str, expected: &[&str]) -> Value {
    let written = convert(&given, form(to).expect("a form")).expect("an autoscaler");
    let written = written.expect("another form");
    let losses: Vec<String> = written.losses.iter().map(ToString::to_string).collect();
    assert_eq!(losses, expected, "{given} to {to}");
    written.object
}

fn object(version: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": format!("autoscaling/{version}"),
        "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    for (field, value) in spec.as_object().expect("fields") {
        object["spec"][field] = value.clone();
    }
    object
}

fn cpu(percent: i32) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": percent}}})
}

#[test]
fn nothing_is_filled_in() {
    let v1 = object("v1", json!({"targetCPUUtilizationPercentage": 50}));
    let v2 = object("v2", json!({"metrics": [cpu(50)]}));
    assert_eq!(check(v1.clone(), "hpa.v2", &[]), v2);
    assert_eq!(check(v2, "hpa.v1", &[]), v1);
    let bare = object("v1", json!({}));
    assert_eq!(check(bare, "hpa.v2", &[]), object("v2", json!({})));
    let rules = json!({"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}});
    assert_eq!(check(object("v2", rules.clone()), "hpa.v2beta2", &[]), object("v2beta2", rules));
}

#[test]
fn other_documents_are_left_alone() {
    let v2 = object("v2", json!({}));
    let to = form("hpa.v2").expect("a form");
    assert_eq!(convert(&v2, to).expect("an autoscaler"), None);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    assert_eq!(convert(&deployment, to).expect("nothing to do"), None);
    assert!(form("hpa.v3").is_none());
    let wrong = object("v1", json!({"maxReplicas": "many"}));
    assert!(convert(&wrong, to).is_err());
}

#[test]
fn losses_are_named() {
    let two = object("v2", json!({"metrics": [cpu(50), cpu(60)]}));
    check(
        two,
        "hpa.v1",
        &[
            r#"spec.metrics[1]: {"resource":{"name":"cpu","target":{"averageUtilization":60,"type":"Utilization"}},"type":"Resource"}"#,
        ],
    );
    let odd = json!({"type": "Pods", "pods": {"metric": {"name": "qps"},
        "target": {"type": "Value", "value": "5", "averageValue": "7"}}});
    let odd = object("v2", json!({"metrics": [odd]}));
    let lost = [
        r#"spec.metrics[0].pods.target.type: "Value""#,
        r#"spec.metrics[0].pods.target.value: "5""#,
    ];
    for to in ["hpa.v1", "hpa.v2alpha1", "hpa.v2beta1"] {
        check(odd.clone(), to, &lost);
    }
    check(odd, "hpa.v2beta2", &[]);
}

#[test]
fn what_a_version_has_no_room_for_is_in_annotations() {
    let queue = json!({"type": "External", "external": {"metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": "30"}}});
    let rules = json!({"scaleUp": {"tolerance": "50m", "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}});
    let v2 = object("v2", json!({"metrics": [queue, cpu(50)], "behavior": rules}));
    let alpha = check(v2.clone(), "hpa.v2alpha1", &[]);
    assert_eq!(
        alpha["spec"]["metrics"],
        json!([{"type": "Resource",
        "resource": {"name": "cpu", "targetAverageUtilization": 50}}])
    );
    let annotations = alpha["metadata"]["annotations"].as_object().expect("annotations");
    let names: Vec<&String> = annotations.keys().collect();
    assert_eq!(
        names,
        ["autoscaling.alpha.kubernetes.io/behavior", "autoscaling.alpha.kubernetes.io/metrics"]
    );
    let beta2 = check(v2.clone(), "hpa.v2beta2", &[]);
    assert_eq!(
        beta2["metadata"]["annotations"],
        json!({"autoscaling.alpha.kubernetes.io/scale-up-tolerance": "50m"})
    );
    assert_eq!(check(beta2, "hpa.v2", &[]), v2);
}

#[test]
fn annotations_of_before_1_6_become_metrics() {
    let mut old = object("v1", json!({}));
    old["metadata"]["annotations"] = json!({"alpha/target.custom-metrics.podautoscaler.kubernetes.io": "{\"items\":[{\"name\":\"qps\",\"value\":\"10\"}]}"});
    let qps = json!({"type": "Pods", "pods": {"metric": {"name": "qps"},
        "target": {"type": "AverageValue", "averageValue": "10"}}});
    let v2 = check(old.clone(), "hpa.v2", &[]);
    assert_eq!(v2, object("v2", json!({"metrics": [qps]})));
    assert_eq!(check(v2, "hpa.v1-before-1.6", &[]), old);
    // Also to the version that it seems to have already.
    let today = check(old, "hpa.v1", &[]);
    assert!(
        today["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"].is_string()
    );
}

#[test]
fn annotations_that_cannot_be_read_are_reported() {
    let metrics = "autoscaling.alpha.kubernetes.io/metrics";
    let behavior = "autoscaling.alpha.kubernetes.io/behavior";
    let custom = "alpha/target.custom-metrics.podautoscaler.kubernetes.io";
    for (version, annotation, text, to, is_lost) in [
        ("v1", metrics, "[{", "hpa.v2", true),
        ("v1", behavior, "fast", "pa", true),
        ("v2beta1", behavior, "7", "hpa.v2beta2", true),
        ("v1", custom, "{", "hpa.v2", true),
        ("v1", metrics, "[]", "hpa.v2", false),
        ("v1", "example.com/metrics", "[{", "hpa.v2", false),
    ] {
        let mut hpa = object(version, json!({}));
        hpa["metadata"]["annotations"] = json!({annotation: text});
        let expected = format!(
            "metadata.annotations[{annotation}]: {}",
            json!(format!("cannot be read: {text}"))
        );
        let expected: &[&str] = if is_lost { &[&expected] } else { &[] };
        check(hpa, to, expected);
    }
}

#[test]
fn losses_are_named_by_the_fields_of_the_object() {
    let queue = r#"[{"type":"External","external":{"metricName":"queue","targetValue":"3"}}]"#;
    let mut v1 = object("v1", json!({}));
    v1["metadata"]["annotations"] = json!({"autoscaling.alpha.kubernetes.io/metrics": queue});
    let expected =
        format!("metadata.annotations[autoscaling.alpha.kubernetes.io/metrics]: {}", json!(queue));
    check(v1, "singlecloud", &[&expected]);
    let external =
        json!({"type": "External", "external": {"metricName": "queue", "targetValue": "3"}});
    let beta = object("v2beta1", json!({"metrics": [external]}));
    check(beta, "singlecloud", &[&format!("spec.metrics[0]: {external}")]);
}

prop_compose! {
    fn target()(kind in 0..3, amount in 1..10_000_i64, percent in 1..200_i32, odd in prop::bool::weighted(0.1), other in 0..3)
        -> Value {
        let mut target = json!({});
        for kind in std::iter::once(kind).chain(odd.then_some(other)) {
            match kind {
                0 => { target["type"] = "Utilization".into(); target["averageUtilization"] = percent.into(); }
                1 => { target["type"] = "Value".into(); target["value"] = format!("{amount}m").into(); }
                _ => { target["type"] = "AverageValue".into(); target["averageValue"] = amount.to_string().into(); }
            }
        }
        target
    }
}

prop_compose! {
    fn metric()(kind in 0..5, name in "[a-c]{1,2}", target in target(), selects in any::<bool>()) -> Value {
        let mut identifier = json!({"name": name});
        if selects {
            identifier["selector"] = json!({"matchLabels": {"app": "x"}});
        }
        match kind {
            0 => json!({"type": "Resource", "resource": {"name": if selects { "cpu" } else { "memory" }, "target": target}}),
            1 => json!({"type": "Pods", "pods": {"metric": identifier, "target": target}}),
            2 => json!({"type": "Object", "object": {"metric": identifier, "target": target,
                "describedObject": {"kind": "Service", "name": "web", "apiVersion": "v1"}}}),
            3 => json!({"type": "External", "external": {"metric": identifier, "target": target}}),
            _ => json!({"type": "ContainerResource",
                "containerResource": {"name": "cpu", "container": "app", "target": target}}),
        }
    }
}

prop_compose! {
    fn rules()(window in prop::option::of(0..3600_i32), select in prop::option::of("Max|Min|Disabled"),
        policies in prop::option::of(prop::collection::vec((any::<bool>(), 1..100_i32, 1..1800_i32), 1..3)),
        tolerance in prop::option::of(0..900)) -> Value {
        let mut rules = json!({});
        if let Some(window) = window { rules["stabilizationWindowSeconds"] = window.into(); }
        if let Some(select) = select { rules["selectPolicy"] = select.into(); }
        if let Some(policies) = policies {
            rules["policies"] = policies.into_iter().map(|(pods, value, seconds)| {
                json!({"type": if pods { "Pods" } else { "Percent" }, "value": value, "periodSeconds": seconds})
            }).collect();
        }
        if let Some(tolerance) = tolerance { rules["tolerance"] = format!("{tolerance}m").into(); }
        rules
    }
}

prop_compose! {
    fn autoscaler()(min in prop::option::of(1..5_i32), metrics in prop::collection::vec(metric(), 0..4),
        up in prop::option::of(rules()), down in prop::option::of(rules()), replicas in prop::option::of(0..9_i32)) -> Value {
        let mut hpa = object("v2", json!({}));
        if let Some(min) = min { hpa["spec"]["minReplicas"] = min.into(); }
        if !metrics.is_empty() { hpa["spec"]["metrics"] = metrics.into(); }
        for (name, rules) in [("scaleUp", up), ("scaleDown", down)] {
            if let Some(rules) = rules { hpa["spec"]["behavior"][name] = rules; }
        }
        if let Some(replicas) = replicas {
            hpa["status"] = json!({"currentReplicas": replicas, "desiredReplicas": 3, "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "100m", "averageUtilization": 7}}},
                {"type": "External", "external": {"metric": {"name": "queue"}, "current": {"value": "3"}}}],
                "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
                    "reason": "ReadyForNewScale", "message": "<ready> & \"able\""}]});
        }
        hpa
    }
}

/// An autoscaler whose targets say what they are by which of their values is set, and nothing twice.
fn is_plain(hpa: &Value) -> bool {
    let metrics = hpa["spec"]["metrics"].as_array().cloned().unwrap_or_default();
    let is_cpu = |metric: &&Value| {
        metric["resource"]["name"] == "cpu"
            && metric["resource"]["target"]["averageUtilization"].is_number()
    };
    metrics.iter().filter(is_cpu).count() < 2
        && metrics.iter().all(|metric| {
            let (kind, source) = metric
                .as_object()
                .expect("fields")
                .iter()
                .find(|(_, v)| v.is_object())
                .expect("a source");
            let target = source["target"].as_object().expect("fields");
            let allowed: &[&str] = match kind.as_str() {
                "resource" | "containerResource" => &["Utilization", "AverageValue"],
                "pods" => &["AverageValue"],
                _ => &["Value", "AverageValue"],
            };
            target.len() == 2 && allowed.contains(&target["type"].as_str().expect("a type"))
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Through every version and back nothing changes but what was said to be lost.
    #[test]
    fn round_trips_lose_only_what_is_said(given in autoscaler()) {
        let whole = as_written(&given).expect("an autoscaler");
        let v2 = form("hpa.v2").expect("a form");
        // A ScaledObject has no place for metrics of other sources, and none for no metrics at all.
        for to in FORMS.into_iter().filter(|form| !["hpa.v2", "so"].contains(&form.name())) {
            let mut before = whole.clone();
            // Another kind gets another status.
            before.status = before.status.filter(|_| to.name().starts_with("hpa."));
            if to.name() == "singlecloud" {
                // It has no word for a bound that is left open, and says in a label what it is for.
                before.spec.min_replicas.get_or_insert(1);
                before.metadata.labels.insert("deployment", "web");
            }
            let written = convert(&given, to).expect("an autoscaler").expect("another form");
            let back = match convert(&written.object, v2).expect("an autoscaler") {
                Some(back) => back.object,
                None => written.object.clone(),
            };
            let after = as_written(&back).expect("an autoscaler");
            if written.losses.is_empty() {
                prop_assert_eq!(losses_in_meaning(&before, &after), vec![], "{}", to.name());
                prop_assert_eq!(losses_in_meaning(&after, &before), vec![], "{} adds", to.name());
            }
            // A CHPA has no behavior but its own, and singlecloud none.
            if is_plain(&given) && !["chpa", "singlecloud"].contains(&to.name()) {
                prop_assert_eq!(&written.losses, &vec![], "{}", to.name());
            }
        }
    }

    /// No version is read differently from how it was written, by whichever way it came.
    #[test]
    fn versions_agree_with_each_other(given in autoscaler()) {
        prop_assume!(is_plain(&given));
        let direct = as_written(&given).expect("an autoscaler");
        let mut object = given;
        for version in Version::ALL.into_iter().chain(Version::ALL.into_iter().rev()) {
            let hpa = as_written(&object).expect("an autoscaler");
            object = crate::hpa::convert::write(&hpa, version).expect("JSON");
            prop_assert_eq!(&object["apiVersion"], version.api_version());
        }
        let mut after = as_written(&object).expect("an autoscaler");
        if direct.status.is_none() {
            after.status = None;
        }
        prop_assert_eq!(losses(&direct, &after), vec![]);
        prop_assert_eq!(losses(&after, &direct), vec![]);
    }
}
