//! Timelines of which each is about one thing that Podscale once did differently from upstream.

use super::change::{Canned, Change, MetricsApi, Samples, Step, Timeline};
use super::specs::{self, average, cpu, external, object_metric, pods_metric, value};
use super::workload::{Kind, Selects, Target};
use serde_json::{Value, json};

/// All of them, by name.
pub fn all() -> Vec<(&'static str, Timeline)> {
    let timelines: [(&str, fn() -> Vec<Vec<Change>>); 16] = [
        ("empty_selector", empty_selector),
        ("selector_of_a_target_at_zero", selector_of_a_target_at_zero),
        ("ranges_apart", ranges_apart),
        ("selector_turns_bad", selector_turns_bad),
        ("lower_case_kinds", lower_case_kinds),
        ("unparsable_selectors", unparsable_selectors),
        ("one_unparsable_sample", one_unparsable_sample),
        ("another_kind_at_scale", another_kind_at_scale),
        ("scale_of_an_older_version", scale_of_an_older_version),
        ("undecodable_scale", undecodable_scale),
        ("selectors_normalised", selectors_normalised),
        ("unknown_kind_of_an_object", unknown_kind_of_an_object),
        ("undecodable_metrics", undecodable_metrics),
        ("combined_events", combined_events),
        ("failed_scale_writes", failed_scale_writes),
        ("unmappable_targets", unmappable_targets),
    ];
    let timeline = |steps: Vec<Vec<Change>>| Timeline(steps.into_iter().map(Step).collect());
    timelines.into_iter().map(|(name, steps)| (name, timeline(steps()))).collect()
}

fn create(target: &Target) -> Change {
    Change::CreateTarget(target.clone())
}

/// An autoscaler with the name of its target.
fn scaled(target: &Target, metric: Value) -> Change {
    scaled_as(&format!("{}-hpa", target.name), specs::reference(target), (1, 8), metric)
}

fn scaled_as(name: &str, reference: Value, range: (i32, i32), metric: Value) -> Change {
    Change::CreateAutoscaler(specs::autoscaler(name, reference, range, json!([metric])))
}

fn usage(app: &str, metric: &str, amount: &str) -> Change {
    let samples = Samples::each(amount);
    Change::Usage { app: app.to_owned(), metric: metric.to_owned(), samples }
}

fn load(metric: &str, amount: &str) -> Change {
    Change::External { metric: metric.to_owned(), amounts: Some(vec![amount.to_owned()]) }
}

fn selector(target: &Target, text: &str) -> Change {
    Change::Selector { target: target.clone(), selector: Some(text.to_owned()) }
}

fn answer_get(gadget: &Target, answer: Option<Canned>) -> Change {
    Change::AnswerGet { gadget: gadget.name.clone(), answer }
}

fn answer_put(gadget: &Target, answer: Option<Canned>) -> Change {
    Change::AnswerPut { gadget: gadget.name.clone(), answer }
}

fn fault(api: MetricsApi, answer: Canned) -> Change {
    Change::Fault { api, fault: Some(answer) }
}

/// A scale without a selector is refused before it can be in anybody's way.
fn empty_selector() -> Vec<Vec<Change>> {
    let (web, widget) =
        (Target::new(Kind::Deployment, "web", 2), Target::new(Kind::Widget, "odd", 2));
    vec![
        vec![
            create(&web),
            create(&widget),
            selector(&widget, ""),
            usage("web", "cpu", "50m"),
            scaled(&web, cpu(50)),
            scaled(&widget, cpu(50)),
        ],
        vec![usage("web", "cpu", "100m")],
        vec![selector(&widget, "app=odd"), usage("odd", "cpu", "100m")],
        vec![selector(&widget, ""), usage("web", "cpu", "50m")],
    ]
}

/// A target at zero does not count: its selector was never needed.
fn selector_of_a_target_at_zero() -> Vec<Vec<Change>> {
    let shared = |name: &str, replicas: i32, selects: Selects| Target {
        tier: "shared".to_owned(),
        selects,
        ..Target::new(Kind::Deployment, name, replicas)
    };
    let (idle, web) = (shared("idle", 0, Selects::Tier), shared("web", 2, Selects::App));
    vec![
        vec![
            create(&idle),
            create(&web),
            usage("web", "cpu", "100m"),
            usage("idle", "cpu", "50m"),
            scaled(&idle, cpu(50)),
            scaled(&web, cpu(50)),
        ],
        vec![Change::Scale { target: idle.clone(), replicas: 2 }],
        vec![Change::Scale { target: idle, replicas: 0 }],
    ]
}

/// Two that pull a target to and fro never need its selector.
fn ranges_apart() -> Vec<Vec<Change>> {
    let web = Target::new(Kind::Deployment, "web", 4);
    let reference = specs::reference(&web);
    vec![vec![
        create(&web),
        usage("web", "cpu", "50m"),
        scaled_as("low", reference.clone(), (1, 3), cpu(50)),
        scaled_as("high", reference, (5, 8), cpu(50)),
    ]]
}

/// The last selector that was good stays in the way of others.
fn selector_turns_bad() -> Vec<Vec<Change>> {
    let (one, two) = (Target::new(Kind::Widget, "one", 2), Target::new(Kind::Widget, "two", 2));
    vec![
        vec![
            create(&one),
            create(&two),
            selector(&two, "app=one"),
            usage("one", "cpu", "50m"),
            usage("two", "cpu", "50m"),
            scaled(&one, cpu(50)),
            scaled(&two, cpu(50)),
        ],
        vec![selector(&two, "!!bad")],
        vec![selector(&two, "")],
        vec![Change::DeleteTarget { target: two.clone(), with_pods: false }],
        vec![create(&two)],
    ]
}

fn lower_case_kinds() -> Vec<Vec<Change>> {
    let kinds = [
        Kind::Deployment,
        Kind::StatefulSet,
        Kind::ReplicaSet,
        Kind::ReplicationController,
        Kind::Widget,
        Kind::Gadget,
    ];
    let mut changes = Vec::new();
    for kind in kinds {
        let target = Target::new(kind, &kind.name().to_lowercase(), 2);
        let mut reference = specs::reference(&target);
        reference["kind"] = json!(kind.name().to_lowercase());
        changes.push(create(&target));
        changes.push(scaled_as(&target.name, reference, (1, 8), external("queue", average("1"))));
    }
    let web = Target::new(Kind::Deployment, "web", 2);
    let mut upper = specs::reference(&web);
    upper["kind"] = json!("DEPLOYMENT");
    changes.extend([create(&web), scaled_as("upper", upper, (1, 8), cpu(50)), load("queue", "3")]);
    let missing = json!({"apiVersion": "apps/v1", "kind": "deployment", "name": "missing"});
    changes.push(scaled_as("missing", missing, (1, 8), cpu(50)));
    vec![changes, vec![load("queue", "5")]]
}

fn unparsable_selectors() -> Vec<Vec<Change>> {
    let widget = Target::new(Kind::Widget, "odd", 2);
    let gadget = Target::new(Kind::Gadget, "odder", 2);
    let mut steps = vec![vec![
        create(&widget),
        create(&gadget),
        usage("odd", "cpu", "50m"),
        usage("odder", "cpu", "50m"),
        scaled(&widget, cpu(50)),
        scaled(&gadget, cpu(50)),
    ]];
    for text in ["!!bad", "app in (", "a b", "x>y", "app=a=b", "-bad-=x"] {
        steps.push(vec![selector(&widget, text), selector(&gadget, text)]);
    }
    steps
}

/// One sample that is no quantity costs its own pod, and nobody else.
fn one_unparsable_sample() -> Vec<Vec<Change>> {
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

fn another_kind_at_scale() -> Vec<Vec<Change>> {
    let gadget = Target::new(Kind::Gadget, "odd", 2);
    let answers = [
        r#"{"kind":"Gadget","apiVersion":"gadgets.test.podscale.dev/v1","metadata":{"name":"odd"}}"#,
        r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"odd"},"data":{}}"#,
        r#"{"kind":"Scale","apiVersion":"gadgets.test.podscale.dev/v1","spec":{"replicas":2}}"#,
        r#"{"kind":"Deployment","apiVersion":"apps/v1","spec":{"replicas":2}}"#,
        r#"{"kind":"Status","apiVersion":"v1","status":"Success"}"#,
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
fn scale_of_an_older_version() -> Vec<Vec<Change>> {
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

fn undecodable_scale() -> Vec<Vec<Change>> {
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

/// Texts show the selector as upstream's conversion leaves it.
fn selectors_normalised() -> Vec<Vec<Change>> {
    let widget = Target::new(Kind::Widget, "one", 2);
    let texts = [
        "tier notin (b,a),app in (one)",
        "tier=one-tier , app in (one)",
        "app==one,!gone",
        "app in (one),tier!=x",
        "app in (one,two),tier",
        "app in (one),size>3",
        "app=one,app in (one,two)",
    ];
    let mut steps = vec![vec![
        create(&widget),
        usage("one", "cpu", "50m"),
        scaled_as("first", specs::reference(&widget), (1, 8), cpu(50)),
        scaled_as("second", specs::reference(&widget), (1, 8), cpu(50)),
    ]];
    steps.extend(texts.map(|text| vec![selector(&widget, text)]));
    steps
}

fn unknown_kind_of_an_object() -> Vec<Vec<Change>> {
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
fn undecodable_metrics() -> Vec<Vec<Change>> {
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

/// More different messages than the recorder keeps apart.
fn combined_events() -> Vec<Vec<Change>> {
    let web = Target::new(Kind::Deployment, "web", 1);
    let metric = external("queue", average("1"));
    let mut steps = vec![vec![
        create(&web),
        load("queue", "1"),
        scaled_as("web", specs::reference(&web), (1, 100), metric),
    ]];
    for size in 2..=14 {
        steps.push(vec![load("queue", &size.to_string())]);
    }
    steps
}

/// A condition that passes through another value moves its time in every pass.
fn failed_scale_writes() -> Vec<Vec<Change>> {
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
fn unmappable_targets() -> Vec<Vec<Change>> {
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
