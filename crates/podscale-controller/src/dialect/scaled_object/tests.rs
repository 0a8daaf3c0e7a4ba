mod again;
mod slow;

use super::*;
use podscale_core::Time;
use serde_json::Value;

fn object(change: Value) -> Arc<ScaledObject> {
    let mut object = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u",
        "resourceVersion": "7", "generation": 3}, "spec": {"scaleTargetRef": {"name": "web"},
            "triggers": [{"type": "cron", "metadata": {}}]}});
    for (part, fields) in change.as_object().expect("parts") {
        for (name, value) in fields.as_object().expect("fields") {
            object[part][name] = value.clone();
        }
    }
    Arc::new(serde_json::from_value(object).expect("a ScaledObject"))
}

fn resolved(change: Value) -> Managed {
    managed(&object(change), &Ok(Vec::new()), Mode::Direct)
}

fn condition(kind: &str, reason: &str) -> Value {
    json!([{"type": kind, "status": "False", "reason": reason}])
}

#[test]
fn an_object_that_rests_is_polled_at_its_interval_and_others_like_an_hpa() {
    let rests = || json!({"conditions": condition("Active", "ScalerNotActive")});
    let cools = || json!({"conditions": condition("Active", "ScalerCooldown")});
    for (change, seconds) in [
        (json!({}), None),
        (json!({"spec": {"pollingInterval": 5}}), Some(5)),
        (json!({"spec": {"pollingInterval": 60}}), None),
        (json!({"spec": {"pollingInterval": 60}, "status": rests()}), Some(60)),
        (json!({"status": rests()}), Some(30)),
        (json!({"spec": {"minReplicaCount": 1}, "status": rests()}), None),
        (json!({"status": cools()}), None),
    ] {
        let period = resolved(change.clone()).wire.sync_period();
        assert_eq!(period, seconds.map(Duration::from_secs), "{change}");
    }
}

#[test]
fn it_gets_a_label_and_a_finalizer_and_keeps_those_of_others() {
    let plain = resolved(json!({"metadata": {"finalizers": ["other"]}}));
    let Some(Upkeep::Prepare { patch, object }) = plain.wire.upkeep() else {
        panic!("it has neither");
    };
    let expected = json!({"metadata": {"resourceVersion": "7",
        "finalizers": ["other", "finalizer.keda.sh"],
        "labels": {"scaledobject.keda.sh/name": "web"}}});
    assert_eq!(patch, expected);
    assert!(object.upkeep().is_none(), "then it has both");
}

#[test]
fn a_deleted_one_gives_the_size_back_if_asked_and_is_let_go() {
    let deleted = |restore: bool, known: bool| {
        let target = json!({"group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments"});
        let status = json!({"originalReplicaCount": 4,
            "scaleTargetGVKR": if known { target } else { Value::Null }});
        resolved(json!({"status": status,
            "spec": {"advanced": {"restoreToOriginalReplicaCount": restore}},
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
                "finalizers": ["finalizer.keda.sh", "other"]}}))
    };
    for (restores, known, expected) in
        [(true, true, Some(4)), (false, true, None), (true, false, None)]
    {
        let deleted = deleted(restores, known);
        assert_eq!(deleted.model.invalid().map(|why| &**why), Some(DELETED));
        let Some(Upkeep::Release { restore, patch, events }) = deleted.wire.upkeep() else {
            panic!("it is being deleted");
        };
        let patched = json!({"metadata": {"resourceVersion": "7", "finalizers": ["other"]}});
        assert_eq!((restore, patch), (expected, Some(patched)));
        let reasons: Vec<&str> = events.iter().map(|event| &*event.reason).collect();
        assert_eq!(reasons, ["KEDAScalersStopped", "ScaledObjectDeleted"]);
    }
    let foreign = resolved(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    let upkeep = foreign.wire.upkeep();
    assert!(matches!(upkeep, Some(Upkeep::Release { restore: None, patch: None, .. })));
}

#[test]
fn of_a_status_only_the_last_activity_may_wait() {
    let status = |change: Value| -> ScaledObjectStatus {
        let mut status =
            json!({"lastActiveTime": "2026-01-01T00:00:00Z", "originalReplicaCount": 1});
        for (name, value) in change.as_object().expect("fields") {
            status[name] = value.clone();
        }
        serde_json::from_value(status).expect("a status")
    };
    let stored = status(json!({}));
    let never = status(json!({"lastActiveTime": null}));
    let later = json!({"lastActiveTime": "2026-01-01T00:00:30Z"});
    assert_eq!(change(None, &stored), StatusChange::Matters);
    assert_eq!(change(Some(&stored), &stored), StatusChange::None);
    assert_eq!(change(Some(&stored), &status(later.clone())), StatusChange::Values);
    assert_eq!(change(Some(&never), &status(later)), StatusChange::Matters);
    let other = status(json!({"conditions": condition("Ready", "TriggerError")}));
    assert_eq!(change(Some(&stored), &other), StatusChange::Matters);
}

#[test]
fn a_conflict_is_a_condition_and_the_last_activity_is_all_that_rules_see() {
    let object = resolved(json!({"status": {"lastActiveTime": "1970-01-01T00:00:05Z",
        "conditions": condition("Ready", "ScaledObjectReady")}}));
    assert_eq!(object.wire.status().last_active, Some(Time(5_000_000)));
    assert!(object.wire.status().conditions.is_empty());
    let conflict =
        NewStatus::Conflict { reason: "TargetTaken", message: "why", replicas: None, now: Time(0) };
    let said = object.wire.with_status(conflict).with_status(conflict);
    let body: Value = serde_json::from_slice(&said.to_body().expect("JSON")).expect("JSON");
    let last = json!({"type": CONFLICT_CONDITION, "status": "True", "reason": "TargetTaken",
        "message": "why"});
    let conditions = body["status"]["conditions"].as_array().expect("conditions");
    assert_eq!((conditions.len(), &conditions[1]), (2, &last));
    assert_eq!((&body["kind"], &body["apiVersion"]), (&json!(KIND), &json!(API_VERSION)));
    assert_eq!(said.status().conditions.len(), 1);
    assert_eq!(said.as_hpa().spec.max_replicas, 100);
}

#[test]
fn versions_that_mean_the_same_share_it() {
    let (metrics, warnings) = (Ok(Vec::new()), "".into());
    let of = |change, before: Option<&Managed>| {
        let before = before.map(|before| &before.model);
        managed_with(&object(change), &metrics, &warnings, Mode::Direct, before)
    };
    let first = of(json!({}), None);
    let again = of(json!({"status": {"hpaName": "x"}}), Some(&first));
    assert!(Arc::ptr_eq(&first.model, &again.model), "another status");
    let other = of(json!({"spec": {"maxReplicaCount": 77}}), Some(&first));
    assert_eq!(other.model.max_replicas, 77);
}
