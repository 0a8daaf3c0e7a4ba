use super::*;
use crate::controller::index::Index;
use crate::dialect::{chpa, hpa};
use podscale_client::clock::Clock;
use podscale_core::{Settings, Time};
use serde_json::{Value, json};
use std::time::Duration;

/// `kind name target created`, where a target may have a kind before a slash, and `managed: "false"` if a fifth word says so.
fn object(text: &str) -> Managed {
    let words: Vec<&str> = text.split(' ').collect();
    let (kind, name, target, created) = (words[0], words[1], words[2], words[3]);
    let mut annotations = json!({});
    if words.len() > 4 {
        annotations["podscale.dev/managed"] = "false".into();
    }
    let (target_kind, target) = target.split_once('/').unwrap_or(("Deployment", target));
    let metrics: Value = match kind {
        "broken" => json!([{"type": "Pods"}]),
        _ => json!([]),
    };
    let object = json!({
        "metadata": {"name": name, "namespace": "shop", "uid": format!("{kind}-{name}"),
            "resourceVersion": "1", "creationTimestamp": format!("2026-01-01T00:00:0{created}Z"),
            "annotations": annotations},
        "spec": {"maxReplicas": 3, "metrics": metrics, "scaleTargetRef":
            {"apiVersion": "apps/v1", "kind": target_kind, "name": target}}});
    match kind {
        "hpa" => hpa::managed(serde_json::from_value(object).expect("an HPA")),
        _ => chpa::managed(serde_json::from_value(object).expect("a CHPA")),
    }
}

fn index() -> Index {
    let (period, settings) = (Duration::from_secs(15), Settings::default());
    Index::new(Clock::wall(), period, settings, Manage::default(), false)
}

/// What stands before the object `b`, which is a CHPA with the target `web`.
fn check(what: &str, others: &[&str], expected: &str) {
    let index = index();
    let own = object("chpa b web 5");
    index.apply(own.key.kind, Change::Applied(own.clone()));
    for other in others {
        let other = object(other);
        index.apply(other.key.kind, Change::Applied(other));
    }
    let found = index.state.lock().precedent(&own.key);
    let found = found.map(|key| format!("{} {}", key.kind.name, key.name));
    assert_eq!(found.unwrap_or_default(), expected, "{what}");
}

#[test]
fn one_autoscaler_of_a_target_acts() {
    check("alone", &[], "");
    check("another target", &["hpa a other 1", "chpa a other 1"], "");
    check("an HPA, however young", &["hpa z web 9"], "HorizontalPodAutoscaler z");
    check("of a kind in lower case", &["hpa z deployment/web 9"], "HorizontalPodAutoscaler z");
    check("of another kind", &["hpa z StatefulSet/web 9"], "");
    check("an HPA that is not managed", &["hpa z web 9 no"], "HorizontalPodAutoscaler z");
    check("an older one", &["chpa z web 4"], "CHPA z");
    check("an older one that is not managed", &["chpa z web 4 no"], "CHPA z");
    check("a younger one", &["chpa a web 6"], "");
    check("of the same second", &["chpa a web 5"], "CHPA a");
    check("the first of several", &["chpa a web 4", "hpa z web 9"], "HorizontalPodAutoscaler z");
    check("an incorrect one", &["broken a web 1"], "");
    check("one that was corrected", &["broken a web 1", "chpa a web 1"], "CHPA a");
    check("one that became incorrect", &["chpa a web 1", "broken a web 1"], "");
    check("one that moved away", &["hpa a web 1", "hpa a other 1"], "");
    check(
        "one that is managed no more",
        &["hpa a web 1", "hpa a web 1 no"],
        "HorizontalPodAutoscaler a",
    );
}

#[test]
fn what_goes_leaves_nothing_behind() {
    let index = index();
    let own = object("chpa b web 5");
    index.apply(own.key.kind, Change::All(vec![own.clone()]));
    for unmanaged in ["", " no"] {
        let hpa = object(&format!("hpa a web 1{unmanaged}"));
        index.apply(hpa.key.kind, Change::All(vec![hpa.clone()]));
        assert!(index.state.lock().precedent(&own.key).is_some());
        assert_eq!(
            index.state.lock().precedent(&hpa.key),
            None,
            "a native one gives way to nobody"
        );
        index.apply(hpa.key.kind, Change::All(Vec::new()));
        assert_eq!(index.state.lock().precedent(&own.key), None);
    }
    index.apply(own.key.kind, Change::Deleted(own));
    let state = index.state.lock();
    assert!(state.claims.by_target.is_empty() && state.claims.unmanaged.is_empty());
}

#[test]
fn only_the_autoscalers_of_the_same_target_are_looked_at() {
    let index = index();
    let own = |number: usize| object(&format!("chpa own-{number} web-{number} 5"));
    for number in 0..1000 {
        let beside = object(&format!("hpa beside-{number} web-{number} 1 no"));
        for managed in [own(number), beside] {
            index.apply(managed.key.kind, Change::Applied(managed));
        }
    }
    let state = index.state.lock();
    for number in 0..1000 {
        let key = own(number).key;
        let target = state.entries[&key].target.expect("it has a target");
        assert_eq!(state.claims.of(target).len(), 2, "of 2000 autoscalers");
        let first = state.precedent(&key).expect("the HPA goes before it");
        assert_eq!(*first.name, *format!("beside-{number}"));
    }
}

#[test]
fn it_is_reported_once_for_each_other_autoscaler() {
    let index = index();
    let own = object("chpa b web 5");
    index.apply(own.key.kind, Change::Applied(own.clone()));
    let management = || {
        let state = index.reconcile_state(&own.key, own.uid(), Time(0)).expect("it is there");
        (state.management, state.precedent)
    };
    assert_eq!(management(), (Management::Active, None));
    for (other, name) in [("chpa a web 1", "a"), ("hpa z web 1", "z")] {
        let other = object(other);
        index.apply(other.key.kind, Change::Applied(other.clone()));
        let (found, precedent) = management();
        let precedent = precedent.expect("it stands before");
        assert_eq!((found, &*precedent.name), (Management::SteppingBack, name));
        let stored = super::super::StatusStored::SameTarget(precedent.clone());
        index.status_stored(own.clone(), stored);
        assert_eq!(management(), (Management::Ceded, Some(precedent)));
    }
    let hpa = object("hpa z web 1").key;
    for (behind, expected) in [
        (None, "HorizontalPodAutoscaler \"z\" scales Deployment \"web\" as well;"),
        (
            Some("ScaledObject \"jobs\""),
            "HorizontalPodAutoscaler \"z\" of ScaledObject \"jobs\" scales Deployment \"web\" as well;",
        ),
    ] {
        let message = same_target_message(&hpa, behind, &own.model.target);
        assert!(message.starts_with(expected), "{message}");
    }
}

#[test]
fn what_made_the_other_autoscaler_is_named() {
    for unmanaged in ["", " no"] {
        let index = index();
        let own = object("chpa b web 5");
        index.apply(own.key.kind, Change::Applied(own.clone()));
        let mut hpa = object(&format!("hpa keda-hpa-jobs web 1{unmanaged}"));
        let mut wire = hpa.wire.as_hpa().into_owned();
        wire.metadata.owner_references = serde_json::from_value(json!([{"apiVersion":
            "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "jobs", "uid": "s",
            "controller": true}]))
        .expect("owners");
        hpa = hpa::managed(wire);
        index.apply(hpa.key.kind, Change::Applied(hpa));
        let state = index.reconcile_state(&own.key, own.uid(), Time(0)).expect("it is there");
        assert_eq!(state.behind.as_deref(), Some("ScaledObject \"jobs\""));
    }
}
