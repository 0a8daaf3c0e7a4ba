//! Random answers and samples, usual ones and odd ones.

use super::change::{Canned, Change, Samples};
use super::random::Random;
use super::workload::Target;
use serde_json::json;

/// What a Gadget answers: often as it should. Never a Status of success, which ends
/// kube-controller-manager with a panic.
pub fn random_answer(random: &mut Random, name: &str) -> Option<Canned> {
    let scale = |version: &str, kind: &str| {
        let scale = json!({"kind": kind, "apiVersion": version, "metadata": {"name": name},
            "spec": {"replicas": 2}, "status": {"replicas": 2, "selector": format!("app={name}")}});
        Canned::new(200, &scale.to_string())
    };
    let answers = [
        Canned::status(500, "InternalError", "it broke"),
        Canned::status(503, "ServiceUnavailable", "no backend"),
        Canned::status(409, "Conflict", "somebody else was first"),
        Canned::status(403, "Forbidden", "not for you"),
        Canned::new(200, "what?"),
        Canned::new(200, ""),
        Canned::new(200, "{}"),
        Canned::new(200, "[]"),
        Canned::new(200, r#"{"kind":"Scale"}"#),
        Canned::new(200, r#"{"kind":"Gadget","apiVersion":"gadgets.test.podscale.dev/v1"}"#),
        Canned::new(500, "broken"),
        scale("autoscaling/v1", "ConfigMap"),
        scale("autoscaling/v2", "Scale"),
        scale("v1", "Scale"),
        scale("extensions/v1beta1", "Scale"),
        scale("apps/v1beta2", "Scale"),
    ];
    (!random.percent(45)).then(|| random.pick(&answers))
}

/// What a metrics API answers when it does not work.
pub fn random_fault(random: &mut Random) -> Canned {
    random.pick(&[
        Canned::status(503, "ServiceUnavailable", "no backend"),
        Canned::status(500, "InternalError", "it broke"),
        Canned::status(403, "Forbidden", "not for you"),
        Canned::new(503, "unavailable"),
        Canned::new(500, ""),
        Canned::new(200, "what?"),
        Canned::new(200, "{}"),
        Canned::new(200, "<html></html>"),
        Canned::new(200, r#"{"kind":"ConfigMapList","apiVersion":"v1","items":[]}"#),
        Canned::new(200, r#"{"kind":"PodMetricsList","apiVersion":"metrics.k8s.io/v1beta1"}"#),
    ])
}

/// Usual samples often, odd ones sometimes.
pub fn samples(random: &mut Random, amounts: &[&str]) -> Samples {
    let mut samples = Samples::each(random.pick(amounts));
    match random.below(16) {
        0 => samples.each = None,
        1 => samples.partial = true,
        2 => samples.stale = true,
        3 => samples.first = Some("-40m".to_owned()),
        4 => samples.first = Some("2M".to_owned()),
        5 => samples.first = Some("many".to_owned()),
        6 => samples.first = Some(String::new()),
        7 => samples.each = Some("-10m".to_owned()),
        8 => samples.each = Some("lots".to_owned()),
        _ => {}
    }
    samples
}

pub fn external(metric: &str, amounts: &[&str]) -> Change {
    let amounts = amounts.iter().map(|amount| (*amount).to_owned()).collect();
    Change::External { metric: metric.to_owned(), amounts: Some(amounts) }
}

/// Metrics at their targets, of all kinds.
pub fn beginning_metrics(target: &Target) -> Vec<Change> {
    let usage = |metric: &str, amount: &str| Change::Usage {
        app: target.name.clone(),
        metric: metric.to_owned(),
        samples: Samples::each(amount),
    };
    let object = Change::Object {
        object: format!("services/{}", target.name),
        metric: "hits".to_owned(),
        amount: Some("10".to_owned()),
    };
    vec![
        usage("cpu", "50m"),
        usage("memory", "32Mi"),
        usage("rps", "10"),
        object,
        external(&format!("queue-{}", target.name), &["3"]),
    ]
}
