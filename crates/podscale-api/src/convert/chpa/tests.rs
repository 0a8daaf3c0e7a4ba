use super::*;
use crate::convert::{convert, form};

fn object() -> Value {
    json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "web"},
        "spec": {"minReplicas": 1, "maxReplicas": 9, "tolerance": 0.25, "scaleUpLimitFactor": 1.5,
            "upscaleForbiddenWindowSeconds": 60,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource",
                "resource": {"name": "cpu", "targetAverageUtilization": 80}}]}})
}

/// An object in another form, and what is lost of it.
fn converted(object: &Value, to: &str) -> (Value, Vec<String>) {
    let written = convert(object, form(to).expect("a form")).expect("an autoscaler");
    let Written { object, losses } = written.expect("another form");
    (object, losses.iter().map(ToString::to_string).collect())
}

#[test]
fn a_pod_autoscaler_can_say_all_of_it() {
    let (pa, lost) = converted(&object(), "pa");
    assert_eq!(lost, [""; 0]);
    assert_eq!(
        pa["spec"]["behavior"],
        json!({"scaleDown": {"tolerance": "250m", "forbiddenWindowSeconds": 300,
                "stabilizationWindowSeconds": 0},
            "scaleUp": {"tolerance": "250m", "forbiddenWindowSeconds": 60,
                "limit": {"factor": "1.5", "minimum": 4},
                "policies": [{"type": "Pods", "value": 9, "periodSeconds": 15}]}})
    );
    let (back, lost) = converted(&pa, "chpa");
    assert_eq!(lost, [""; 0]);
    let mut expected = object();
    expected["spec"]["downscaleForbiddenWindowSeconds"] = 300.into();
    expected["spec"]["scaleUpLimitMinimum"] = 4.into();
    assert_eq!(back, expected);
}

#[test]
fn its_target_is_where_deployments_are_now() {
    for version in ["extensions/v1beta1", ""] {
        let mut chpa = object();
        chpa["spec"]["scaleTargetRef"]["apiVersion"] = version.into();
        let pa = convert(&chpa, form("pa").expect("a form")).expect("a CHPA").expect("another");
        assert_eq!(pa.object["spec"]["scaleTargetRef"]["apiVersion"], "apps/v1");
    }
}

#[test]
fn an_hpa_cannot_say_its_pace() {
    let pace = [
        "spec.downscaleForbiddenWindowSeconds: 300",
        "spec.upscaleForbiddenWindowSeconds: 60",
        "spec.scaleUpLimitFactor: 1.5",
        "spec.scaleUpLimitMinimum: 4",
    ];
    let (hpa, lost) = converted(&object(), "hpa.v2");
    // Those that it leaves open have their defaults.
    assert_eq!(lost, pace);
    assert_eq!(hpa["spec"]["behavior"]["scaleUp"]["tolerance"], "250m");
    assert_eq!(hpa["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"], 0);
    let (_, lost) = converted(&object(), "singlecloud");
    assert_eq!(lost[0], "spec.tolerance: 0.25");
    assert_eq!(lost[1..], pace);
    let mut idle = object();
    idle["spec"]["metrics"] = json!([]);
    let (_, lost) = converted(&idle, "hpa.v1");
    assert_eq!(lost[4], r#"spec.metrics: "none, which keeps the size at minReplicas""#);
}

#[test]
fn what_it_cannot_say_is_lost_or_refused() {
    let (hpa, _) = converted(&object(), "hpa.v2");
    let plain = |mut hpa: Value| {
        hpa["spec"]["behavior"] = Value::Null;
        hpa["spec"]["metrics"] = Value::Null;
        hpa
    };
    let (chpa, lost) = converted(&plain(hpa.clone()), "chpa");
    assert_eq!(lost, [r#"spec.behavior: "the default pace of an HPA""#]);
    assert_eq!(chpa["spec"]["metrics"], object()["spec"]["metrics"], "cpu, as an HPA");
    let mut slow = hpa.clone();
    slow["spec"]["behavior"]["scaleUp"]["selectPolicy"] = "Min".into();
    let (_, lost) = converted(&slow, "chpa");
    assert_eq!(lost, [r#"spec.behavior.scaleUp.selectPolicy: "Min""#]);
    for (kind, version, expected) in [
        ("StatefulSet", "apps/v1", "a CHPA cannot scale a StatefulSet"),
        ("Deployment", "a.b/v1", "a CHPA cannot scale a Deployment of \"a.b/v1\""),
    ] {
        let mut other = hpa.clone();
        other["spec"]["scaleTargetRef"]["kind"] = kind.into();
        other["spec"]["scaleTargetRef"]["apiVersion"] = version.into();
        let error = convert(&other, &Chpa).expect_err("not its target");
        assert_eq!(error.to_string(), expected);
    }
    let mut wrong = object();
    wrong["spec"]["tolerance"] = "much".into();
    assert!(convert(&wrong, form("pa").expect("a form")).is_err());
}

#[test]
fn numbers_beyond_its_ranges_are_lost() {
    let (pa, _) = converted(&object(), "pa");
    for (pointer, value, name, written, lost) in [
        (
            "/scaleUp/forbiddenWindowSeconds",
            json!(3600),
            "upscaleForbiddenWindowSeconds",
            json!(600),
            1,
        ),
        (
            "/scaleDown/forbiddenWindowSeconds",
            json!(600),
            "downscaleForbiddenWindowSeconds",
            json!(600),
            0,
        ),
        ("/scaleUp/limit/factor", json!("50"), "scaleUpLimitFactor", json!(10.0), 1),
        ("/scaleUp/limit/factor", json!("1500m"), "scaleUpLimitFactor", json!(1.5), 0),
        ("/scaleUp/limit/minimum", json!(21), "scaleUpLimitMinimum", json!(20), 1),
        // Not the same in both directions.
        ("/scaleUp/tolerance", json!("20m"), "tolerance", Value::Null, 2),
    ] {
        let mut changed = pa.clone();
        *changed["spec"]["behavior"].pointer_mut(pointer).expect("a field") = value.clone();
        let (chpa, losses) = converted(&changed, "chpa");
        assert_eq!(chpa["spec"][name], written, "{pointer} {value}");
        assert_eq!(losses.len(), lost, "{pointer} {value}: {losses:?}");
        let field = format!("spec.behavior{}: ", pointer.replace('/', "."));
        assert!(lost == 0 || losses.iter().any(|one| one.starts_with(&field)), "{losses:?}");
    }
    // What is the default is no loss.
    let mut usual = pa.clone();
    usual["spec"]["behavior"]["scaleUp"]["tolerance"] = "100m".into();
    usual["spec"]["behavior"]["scaleDown"]["tolerance"] = "0.1".into();
    usual["spec"]["behavior"]["scaleUp"]["selectPolicy"] = "Max".into();
    let (chpa, lost) = converted(&usual, "chpa");
    assert_eq!((&chpa["spec"]["tolerance"], lost), (&json!(0.1), vec![]));
}
