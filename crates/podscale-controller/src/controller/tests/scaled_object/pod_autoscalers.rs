//! PodAutoscalers with metrics that event sources give.

use super::polled::{Answers, serve};
use super::recorded::sizes_of;
use super::*;
use podscale_api::pod_autoscaler::crd;
use tokio::task::JoinSet;

const OWN: &str = "/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers";

impl Cluster {
    /// One without any autoscaler, in which KEDA's kinds and PodAutoscalers are defined.
    async fn with_both() -> Cluster {
        let cluster = Cluster::with_keda().await;
        cluster.send("POST", CRDS, &crd::definition()).await;
        let about = About { resource: "", name: "" };
        until("they are served", async || {
            call::get::<Value>(&cluster.client("tester"), OWN, about).await.is_ok()
        })
        .await;
        cluster
    }

    async fn own(&self) -> Value {
        self.get(&format!("{OWN}/web")).await
    }

    /// The status, the reason and the message of a condition.
    async fn own_condition(&self, name: &str) -> [String; 3] {
        let conditions = self.own().await["status"]["conditions"].take();
        let all = conditions.as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|c| c["type"] == name).unwrap_or_default();
        ["status", "reason", "message"]
            .map(|field| found[field].as_str().unwrap_or_default().to_owned())
    }
}

/// A PodAutoscaler of the Deployment with this event source and fields.
fn own(trigger: Value, change: Value) -> Value {
    let metric = json!({"type": "Trigger", "name": "jobs", "trigger": trigger});
    let mut spec = json!({"maxReplicas": 9, "metrics": [metric],
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
    for (field, value) in change.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "PodAutoscaler",
        "metadata": {"name": "web"}, "spec": spec})
}

#[tokio::test]
async fn an_event_source_with_a_token_takes_a_target_to_zero_and_back() {
    let cluster = Cluster::with_both().await;
    let (answers, mut running) = (Arc::new(Answers::default()), JoinSet::new());
    let address = serve(&answers, &mut running).await;
    *answers.token.lock() = "hunter2";
    *answers.value.lock() = 30;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tokens"},
        "data": {"old": "aHVudGVyMg==", "new": "aHVudGVyMw=="}});
    cluster.send("POST", SECRETS, &secret).await;
    let keys = |key: &str| {
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
            "metadata": {"name": "keys"}, "spec": {"secretTargetRef":
                [{"parameter": "bearerToken", "name": "tokens", "key": key}]}})
    };
    cluster.send("POST", AUTHENTICATIONS, &keys("old")).await;
    let query = json!({"type": "prometheus", "authenticationRef": {"name": "keys"}, "metadata":
        {"serverAddress": address, "query": "sum(jobs)", "threshold": "10", "activationThreshold": "5",
            "authModes": "bearer"}});
    let quick = json!({"syncPeriod": "1s", "scaleToZero": {"coolDown": "0s", "zeroByOthers": "Wake"},
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}});
    let controller = cluster.control_triggers(Config::default());
    cluster.send("POST", OWN, &own(query, quick)).await;
    until("the source is asked", async || cluster.replicas().await == 3).await;
    until("it is shown", async || {
        let targets = cluster.own().await["status"]["targets"].take();
        targets.as_str().is_some_and(|it| it.starts_with("jobs: ") && it.ends_with("/10 (avg)"))
    })
    .await;
    let status = cluster.own().await["status"].take();
    let shown = &status["currentMetrics"][0];
    assert_eq!((&shown["type"], &shown["name"]), (&json!("Trigger"), &json!("jobs")), "{status}");
    let trigger = &shown["trigger"];
    assert_eq!([&trigger["type"], &trigger["metric"]], ["prometheus", "s0-prometheus"], "{status}");
    assert!(trigger["current"]["averageValue"].is_string(), "{status}");
    // Not above what the metadata say.
    *answers.value.lock() = 5;
    until("it is idle", async || cluster.replicas().await == 0).await;
    *answers.value.lock() = 40;
    until("it is woken", async || cluster.replicas().await == 4).await;
    *answers.token.lock() = "hunter3";
    until("the old token is refused", async || {
        let [status, reason, _] = cluster.own_condition("ScalingActive").await;
        [&*status, &*reason] == ["False", "FailedGetTriggerMetric"]
    })
    .await;
    cluster.send("PATCH", &format!("{AUTHENTICATIONS}/keys"), &keys("new")).await;
    *answers.value.lock() = 60;
    until("the new token is used", async || cluster.replicas().await == 6).await;
    controller.stop().await;
    for text in [cluster.own().await, cluster.get("/api/v1/namespaces/default/events").await] {
        assert!(!text.to_string().contains("hunter"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_an_event_source_is_said_until_it_is_right() {
    let cluster = Cluster::with_both().await;
    let controller = cluster.control_triggers(Config::default());
    let mut cron = cron(ALL_YEAR, "2")[0].take();
    cluster.send("POST", OWN, &own(json!({"type": "crom", "metadata": {}}), json!({}))).await;
    until("it is refused", async || {
        let [status, _, message] = cluster.own_condition("Valid").await;
        let expected = "spec.metrics[0].trigger (crom): no scaler found for type: crom";
        status == "False" && message.starts_with(expected)
    })
    .await;
    assert_eq!(cluster.own().await["status"]["targets"], "jobs: <unknown>/<unknown>");
    cron["metadata"]["timezon"] = "UTC".into();
    cluster.send("PATCH", &format!("{OWN}/web"), &own(cron.clone(), json!({}))).await;
    until("it is understood", async || cluster.own_condition("Valid").await[0] == "True").await;
    until("what has no effect is named", async || {
        let [status, reason, message] = cluster.own_condition("podscale.dev/Warning").await;
        [&*status, &*reason] == ["True", "MetadataIgnored"]
            && message.starts_with("spec.metrics[0].trigger (cron): metadata \"timezon\"")
    })
    .await;
    until("it scales", async || cluster.replicas().await == 2).await;
    let gone = json!({"spec": {"metrics": [{"type": "Trigger", "name": "jobs", "trigger":
        {"type": "redis", "metadata": {"address": "127.0.0.1:1", "listName": "l"},
            "authenticationRef": {"name": "gone"}}}]}});
    cluster.send("PATCH", &format!("{OWN}/web"), &gone).await;
    until("what is missing is named", async || {
        let message = cluster.own_condition("Valid").await[2].clone();
        message == "error getting credentials of spec.metrics[0].trigger (redis): TriggerAuthentication \"gone\" does not exist"
    })
    .await;
    assert_eq!(cluster.own_condition("podscale.dev/Warning").await[0], "");
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_triggers_it_is_said_how_to_have_them() {
    let cluster = Cluster::with_both().await;
    let controller = cluster.control(Config::default(), &Metrics::new(), Role::alone());
    cluster.send("POST", OWN, &own(cron(ALL_YEAR, "2")[0].take(), json!({}))).await;
    until("it is said", async || {
        let [status, reason, message] = cluster.own_condition("Valid").await;
        [&*status, &*reason] == ["False", "Invalid"] && message.contains("run it with --triggers")
    })
    .await;
    assert_eq!(cluster.replicas().await, 1);
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_event_sources_say_replays() {
    let cluster = Cluster::with_both().await;
    let good = own(cron(ALL_YEAR, "4")[0].take(), json!({"scaleToZero": {}}));
    let found = sizes_of("pa-trigger", &cluster, (OWN, &good), 4).await;
    assert!(found.len() >= 3 && found.contains(&4), "{found:?}");
    let cluster = Cluster::with_both().await;
    let bad = own(json!({"type": "crom", "metadata": {}}), json!({}));
    let found = sizes_of("pa-unknown", &cluster, (OWN, &bad), 1).await;
    assert!(!found.is_empty() && found.iter().all(|size| *size == 1), "{found:?}");
}
