//! Timelines about answers that are not what they should be: of scales, of metrics APIs, of discovery.

use super::super::change::{Canned, Change, MetricsApi, Samples};
use super::super::specs::{self, average, cpu, external, object_metric, pods_metric, value};
use super::super::workload::{Kind, Target};
use super::{answer_get, answer_put, create, load, scaled, scaled_as, usage};
use serde_json::json;

/// One sample that is no quantity costs its own pod, and nobody else.
pub fn one_unparsable_sample() -> Vec<Vec<Change>> {
    let names = ["bad", "good"];
    let targets = names.map(|name| Target::new(Kind::Deployment, name, 3));
    let mut begin = Vec::new();
    for target in &targets {
        begin.extend([create(target), usage(&target.name, "cpu", "50m")]);
        begin.extend([usage(&target.name, "rps", "10"), usage(&target.name, "memory", "1Mi")]);
        begin.push(scaled(target, cpu(50)));
    }
    let odd = |metric: &str, amount: &str| Change::Usage {
        app: "bad".to_owned(),
        metric: metric.to_owned(),
        samples: Samples { first: Some(amount.to_owned()), ..Samples::each("100m") },
    };
    vec![
        begin,
        vec![odd("cpu", "many"), usage("good", "cpu", "100m")],
        vec![odd("cpu", ""), usage("good", "cpu", "80m")],
        vec![usage("bad", "cpu", "50m"), odd("memory", "1Zi")],
    ]
}

/// Not among them is a Status of success, which ends kube-controller-manager with a panic.
pub fn another_kind_at_scale() -> Vec<Vec<Change>> {
    let gadget = Target::new(Kind::Gadget, "odd", 2);
    let answers = [
        r#"{"kind":"Gadget","apiVersion":"gadgets.test.podscale.dev/v1","metadata":{"name":"odd"}}"#,
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"odd"},"data":{}}"#,
        r#"{"kind":"Scale","apiVersion":"gadgets.test.podscale.dev/v1","spec":{"replicas":2}}"#,
        r#"{"kind":"Deployment","apiVersion":"apps/v1","spec":{"replicas":2}}"#,
    ];
    let mut steps = vec![vec![
        create(&gadget),
        load("queue", "2"),
        scaled(&gadget, external("queue", average("1"))),
    ]];
    for answer in answers {
        steps.push(vec![answer_get(&gadget, Some(Canned::new(200, answer))), load("queue", "5")]);
    }
    steps.push(vec![answer_get(&gadget, None)]);
    steps
}

/// Scales of older groups are converted.
pub fn scale_of_an_older_version() -> Vec<Vec<Change>> {
    let gadget = Target::new(Kind::Gadget, "odd", 2);
    let mut steps =
        vec![vec![create(&gadget), usage("odd", "cpu", "50m"), scaled(&gadget, cpu(50))]];
    for version in ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"] {
        for status in [
            json!({"replicas": 2, "targetSelector": "app=odd"}),
            json!({"replicas": 2, "selector": {"app": "odd"}}),
        ] {
            let scale = json!({"kind": "Scale", "apiVersion": version, "metadata": {"name": "odd"},
                "spec": {"replicas": 2}, "status": status});
            steps.push(vec![answer_get(&gadget, Some(Canned::new(200, &scale.to_string())))]);
        }
    }
    steps
}

pub fn undecodable_scale() -> Vec<Vec<Change>> {
    let gadget = Target::new(Kind::Gadget, "odd", 2);
    let mut steps = vec![vec![
        create(&gadget),
        load("queue", "2"),
        scaled(&gadget, external("queue", average("1"))),
    ]];
    for body in ["what?", "", "{}", "[]", "null", r#"{"kind":"Scale"}"#, "<html></html>"] {
        steps.push(vec![answer_get(&gadget, Some(Canned::new(200, body)))]);
    }
    let number = r#"{"kind":"Scale","apiVersion":"autoscaling/v1","spec":{"replicas":"two"}}"#;
    steps.push(vec![answer_get(&gadget, Some(Canned::new(200, number)))]);
    steps.push(vec![answer_get(&gadget, Some(Canned::new(500, "broken")))]);
    steps.push(vec![answer_get(&gadget, Some(Canned::new(404, "")))]);
    steps
}

pub fn unknown_kind_of_an_object() -> Vec<Vec<Change>> {
    let mut changes = Vec::new();
    for (number, kind) in ["Unicorn", "service", "Pod", "Namespace", "pods"].iter().enumerate() {
        let web = Target::new(Kind::Deployment, &format!("web-{number}"), 2);
        let target = if number % 2 == 0 { value("10") } else { average("5") };
        changes.extend([create(&web), scaled(&web, object_metric(kind, "front", target))]);
    }
    for object in ["services/front", "pods/front", "metrics"] {
        let (object, metric) = (object.to_owned(), "hits".to_owned());
        changes.push(Change::Object { object, metric, amount: Some("10".to_owned()) });
    }
    let mut odd = object_metric("Widget", "front", value("10"));
    odd["object"]["describedObject"]["apiVersion"] = json!("nowhere.test/v1");
    let web = Target::new(Kind::Deployment, "odd", 2);
    changes.extend([create(&web), scaled(&web, odd)]);
    vec![changes]
}

/// Answers of the metrics APIs that are no lists of metrics.
pub fn undecodable_metrics() -> Vec<Vec<Change>> {
    let names = ["by-cpu", "by-rps", "by-queue", "by-hits"];
    let targets = names.map(|name| Target::new(Kind::Deployment, name, 2));
    let metrics = [
        cpu(50),
        pods_metric("rps", "10"),
        external("queue", average("1")),
        object_metric("Service", "front", value("10")),
    ];
    let mut begin = vec![
        usage("by-cpu", "cpu", "50m"),
        usage("by-rps", "rps", "10"),
        load("queue", "2"),
        Change::Object {
            object: "services/front".to_owned(),
            metric: "hits".to_owned(),
            amount: Some("10".to_owned()),
        },
    ];
    for (target, metric) in targets.iter().zip(metrics) {
        begin.extend([create(target), scaled(target, metric)]);
    }
    let apis = [MetricsApi::Resource, MetricsApi::Custom, MetricsApi::External];
    let mut steps = vec![begin];
    for answer in [
        Canned::new(200, "what?"),
        Canned::new(200, ""),
        Canned::new(200, "{}"),
        Canned::new(200, "<html></html>"),
        Canned::new(200, r#"{"kind":"ConfigMapList","apiVersion":"v1","items":[]}"#),
        Canned::new(503, "unavailable"),
        Canned::status(500, "InternalError", "it broke"),
    ] {
        steps.push(apis.map(|api| fault(api, answer.clone())).to_vec());
    }
    steps.push(apis.map(|api| Change::Fault { api, fault: None }).to_vec());
    steps
}

/// A condition that passes through another value moves its time in every pass.
pub fn failed_scale_writes() -> Vec<Vec<Change>> {
    let gadget = Target::new(Kind::Gadget, "odd", 9);
    let scale = |target: &Target| Change::Scale { target: target.clone(), replicas: 9 };
    let answers = [
        Canned::status(500, "InternalError", "it broke"),
        Canned::status(403, "Forbidden", "not for you"),
        Canned::status(409, "Conflict", "somebody else was first"),
        Canned::new(200, "what?"),
        Canned::new(500, ""),
        Canned::new(200, r#"{"kind":"ConfigMap","apiVersion":"v1"}"#),
    ];
    let mut steps = vec![vec![
        create(&gadget),
        load("queue", "2"),
        answer_put(&gadget, Some(answers[0].clone())),
        scaled_as("odd", specs::reference(&gadget), (1, 5), external("queue", average("1"))),
    ]];
    // Once forced by the bounds, once by a metric.
    steps.extend(answers.iter().map(|answer| vec![answer_put(&gadget, Some(answer.clone()))]));
    steps.push(vec![answer_put(&gadget, None)]);
    for answer in answers {
        steps.push(vec![answer_put(&gadget, Some(answer)), load("queue", "4")]);
    }
    steps.push(vec![answer_put(&gadget, None), scale(&gadget)]);
    steps
}

/// References that lead nowhere, each in its own way.
pub fn unmappable_targets() -> Vec<Vec<Change>> {
    let references = [
        ("apps/v1", "Unicorn", "x"),
        ("test.podscale.dev/v1", "Unicorn", "x"),
        ("v1", "ConfigMap", "x"),
        ("v1", "Deployment", "x"),
        ("apps/v1", "DaemonSet", "x"),
        ("apps", "Deployment", "x"),
        ("apps/v9", "Deployment", "x"),
        ("widgets.test.podscale.dev/v1", "Widget", "x"),
        ("gadgets.test.podscale.dev/v1", "gadget", "x"),
        ("v1", "namespace", "default"),
    ];
    let changes = references.iter().enumerate().map(|(number, (version, kind, name))| {
        let reference = json!({"apiVersion": version, "kind": kind, "name": name});
        scaled_as(&format!("a{number}"), reference, (1, 8), cpu(50))
    });
    vec![changes.collect()]
}

fn fault(api: MetricsApi, answer: Canned) -> Change {
    Change::Fault { api, fault: Some(answer) }
}
