//! Timelines of which each is about one thing that Podscale once did differently from upstream.

#[path = "answers.rs"]
mod answers;

use super::change::{Canned, Change, Samples, Step, Timeline};
use super::specs::{self, average, cpu, external};
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
        ("one_unparsable_sample", answers::one_unparsable_sample),
        ("another_kind_at_scale", answers::another_kind_at_scale),
        ("scale_of_an_older_version", answers::scale_of_an_older_version),
        ("undecodable_scale", answers::undecodable_scale),
        ("selectors_normalised", selectors_normalised),
        ("unknown_kind_of_an_object", answers::unknown_kind_of_an_object),
        ("undecodable_metrics", answers::undecodable_metrics),
        ("combined_events", combined_events),
        ("failed_scale_writes", answers::failed_scale_writes),
        ("unmappable_targets", answers::unmappable_targets),
    ];
    let timeline = |steps: Vec<Vec<Change>>| Timeline(steps.into_iter().map(Step::from).collect());
    timelines.into_iter().map(|(name, steps)| (name, timeline(steps()))).collect()
}

pub(super) fn create(target: &Target) -> Change {
    Change::CreateTarget(target.clone())
}

/// An autoscaler with the name of its target.
pub(super) fn scaled(target: &Target, metric: Value) -> Change {
    scaled_as(&format!("{}-hpa", target.name), specs::reference(target), (1, 8), metric)
}

pub(super) fn scaled_as(name: &str, reference: Value, range: (i32, i32), metric: Value) -> Change {
    Change::CreateAutoscaler(specs::autoscaler(name, reference, range, json!([metric])))
}

pub(super) fn usage(app: &str, metric: &str, amount: &str) -> Change {
    let samples = Samples::each(amount);
    Change::Usage { app: app.to_owned(), metric: metric.to_owned(), samples }
}

pub(super) fn load(metric: &str, amount: &str) -> Change {
    Change::External { metric: metric.to_owned(), amounts: Some(vec![amount.to_owned()]) }
}

pub(super) fn selector(target: &Target, text: &str) -> Change {
    Change::Selector { target: target.clone(), selector: Some(text.to_owned()) }
}

pub(super) fn answer_get(gadget: &Target, answer: Option<Canned>) -> Change {
    Change::AnswerGet { gadget: gadget.name.clone(), answer }
}

pub(super) fn answer_put(gadget: &Target, answer: Option<Canned>) -> Change {
    Change::AnswerPut { gadget: gadget.name.clone(), answer }
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

/// Two whose ranges are apart force the size and never need the selector, so that a third one is not
/// ambiguous. The Gadget accepts every size and keeps its own: otherwise they would never come to rest.
fn ranges_apart() -> Vec<Vec<Change>> {
    let gadget = Target::new(Kind::Gadget, "odd", 4);
    let reference = specs::reference(&gadget);
    let kept = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "odd"},
        "spec": {"replicas": 4}, "status": {"replicas": 4, "selector": "app=odd"}});
    vec![
        vec![
            create(&gadget),
            answer_put(&gadget, Some(Canned::new(200, &kept.to_string()))),
            usage("odd", "cpu", "50m"),
            scaled_as("low", reference.clone(), (1, 3), cpu(50)),
            scaled_as("high", reference.clone(), (5, 8), cpu(50)),
        ],
        vec![scaled_as("middle", reference, (1, 8), cpu(50))],
        vec![usage("odd", "cpu", "100m")],
    ]
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
        ],
        vec![scaled(&two, cpu(50))],
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
    let reference = specs::reference(&widget);
    let mut steps = vec![
        vec![
            create(&widget),
            usage("one", "cpu", "50m"),
            scaled_as("first", reference.clone(), (1, 8), cpu(50)),
        ],
        vec![scaled_as("second", reference, (1, 8), cpu(50))],
    ];
    steps.extend(texts.map(|text| vec![selector(&widget, text)]));
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
