//! Event sources that PodAutoscalers name.

use super::*;
use podscale_api::pod_autoscaler::PodAutoscaler;
use podscale_core::model::{Milli, Targets};
use std::time::Duration;

/// A trigger of redis with these fields, as the second metric of an object that is decided every minute.
fn own(change: Value) -> Triggered {
    let mut trigger = json!({"type": "redis", "metadata": {"address": "127.0.0.1:1",
        "listLength": "5", "listName": "jobs"}});
    for (field, value) in change.as_object().expect("fields") {
        trigger[field] = value.clone();
    }
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}});
    let object = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "syncPeriod": "1m", "metrics": [cpu, {"type": "Trigger", "trigger": trigger}]}});
    let object: PodAutoscaler = serde_json::from_value(object).expect("a PodAutoscaler");
    Triggered::from(&object)
}

/// What it measures, or what is wrong.
async fn found(triggers: &Triggers, change: Value) -> String {
    match triggers.resolve(&own(change), &Reads::default()).await.metrics {
        Ok(metrics) => match &metrics[..] {
            [TriggerMetric::External { name, source, targets }] => {
                let Targets { value, average_value, .. } = *targets;
                let number = |milli: Option<Milli>| milli.map(|Milli(milli)| milli / 1000);
                format!("{name} {} {:?} {:?}", source.key, number(value), number(average_value))
            }
            other => format!("{other:?}"),
        },
        Err(problem) => problem,
    }
}

#[tokio::test]
async fn an_event_source_is_asked_as_its_fields_say() {
    let (triggers, _) = started(everywhere());
    let metadata = |more: Value| {
        let mut all = json!({"address": "127.0.0.1:1", "listName": "mails", "listLength": "7"});
        for (field, value) in more.as_object().expect("fields") {
            all[field] = value.clone();
        }
        json!({"metadata": all})
    };
    let with = |mut one: Value, field: &str, value: Value| {
        one[field] = value;
        one
    };
    // A variable that only the second container has.
    let elsewhere = metadata(json!({"passwordFromEnv": "A"}));
    let of_it = "spec.metrics[1].trigger (redis)";
    for (change, expected) in [
        (json!({}), "s1-redis-jobs shop/web/pa-1 None Some(5)".to_owned()),
        (metadata(json!({})), "s1-redis-mails shop/web/pa-1 None Some(7)".to_owned()),
        (json!({"metricType": "Value"}), "s1-redis-jobs shop/web/pa-1 Some(5) None".to_owned()),
        (
            json!({"type": "crom"}),
            "spec.metrics[1].trigger (crom): no scaler found for type: crom".to_owned(),
        ),
        (
            json!({"authenticationRef": {"name": "secret"}}),
            "s1-redis-jobs shop/web/pa-1 None Some(5)".to_owned(),
        ),
        (
            json!({"authenticationRef": {"name": "no-secret"}}),
            format!(
                "error getting credentials of {of_it}: TriggerAuthentication \"no-secret\": Secret \"gone\" of \
                 namespace \"shop\" does not exist"
            ),
        ),
        (
            json!({"authenticationRef": {"name": "secret", "kind": "ClusterTriggerAuthentication"}}),
            format!(
                "error getting credentials of {of_it}: ClusterTriggerAuthentication \"secret\" does not exist"
            ),
        ),
        (elsewhere.clone(), "s1-redis-mails shop/web/pa-1 None Some(7)".to_owned()),
        (
            with(elsewhere, "envSourceContainerName", json!("third")),
            format!(
                "error getting credentials of {of_it}: Deployment \"web\" has no container \"third\""
            ),
        ),
    ] {
        assert_eq!(found(&triggers, change.clone()).await, expected, "{change}");
    }
    for (change, kept) in
        [(json!({}), None), (json!({"useCachedMetrics": true}), Some(Duration::from_secs(54)))]
    {
        let resolution = triggers.resolve(&own(change), &Reads::default()).await;
        assert_eq!(resolution.connections[0].1.kept(), kept);
    }
}

#[tokio::test]
async fn what_is_refused_is_outdated_for_its_kind_alone() {
    let (triggers, _) = started(everywhere());
    let object = own(json!({}));
    let resolution = triggers.resolve(&object, &Reads::default()).await;
    triggers.connect(&object.owner, resolution);
    let name = object.owner.clone();
    triggers.noticed(name.kind).note(|outdated| outdated.objects.extend([name]));
    assert_eq!(triggers.take_outdated(OwnerKind::ScaledObject), Outdated::default());
    assert_eq!(triggers.take_outdated(OwnerKind::PodAutoscaler).objects.len(), 1);
}
