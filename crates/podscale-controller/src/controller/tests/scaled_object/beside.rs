//! ScaledObjects whose active targets are left to an HPA.

use super::*;
use podscale_core::model::Milli;

const HPAS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

impl Cluster {
    async fn hpas(&self) -> Vec<Value> {
        self.get(HPAS).await["items"].as_array().cloned().unwrap_or_default()
    }

    /// The only HPA.
    async fn hpa(&self) -> Value {
        let mut all = self.hpas().await;
        assert!(all.len() <= 1, "{all:?}");
        all.pop().unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_hpa_is_there_while_it_is_wanted_and_only_then() {
    let cluster = Cluster::with_keda().await;
    let (controller, triggers) =
        cluster.control_in(TriggerMode::Hpa, Config::default(), Watchers::default());
    cluster
        .send("POST", OBJECTS, &object(cron(ALL_YEAR, "4"), json!({"maxReplicaCount": 7})))
        .await;
    until("it has an HPA", async || cluster.hpa().await["spec"]["maxReplicas"] == 7).await;
    until("it says so", async || {
        cluster.object("web").await["status"]["hpaName"] == "keda-hpa-web"
            && cluster.said("web", "Ready").await == ["True", "ScaledObjectReady"]
    })
    .await;
    let hpa = cluster.hpa().await;
    let metadata = &hpa["metadata"];
    assert_eq!(metadata["ownerReferences"][0]["kind"], "ScaledObject");
    assert_eq!(metadata["labels"]["scaledobject.keda.sh/name"], "web");
    let metric = &hpa["spec"]["metrics"][0]["external"]["metric"];
    let name = metric["name"].as_str().expect("a name");
    assert!(name.starts_with("s0-cron-"), "{name}");
    let value =
        triggers.served_value("default", &name.to_uppercase(), |asked| asked == "web").await;
    assert_eq!(value.expect("a metric").expect("a value").value, Milli(4000));
    assert!(triggers.served_value("default", name, |asked| asked == "db").await.is_none());
    assert_eq!(cluster.replicas().await, 1, "the rest is the HPA's business");

    let path = format!("{HPAS}/keda-hpa-web");
    cluster.send("PATCH", &path, &json!({"spec": {"maxReplicas": 3}})).await;
    until("it is put right", async || cluster.hpa().await["spec"]["maxReplicas"] == 7).await;
    let named = json!({"spec": {"advanced": {"horizontalPodAutoscalerConfig": {"name": "other"}}}});
    cluster.change("web", named).await;
    until("it has another name", async || {
        let all = cluster.hpas().await;
        all.len() == 1 && all[0]["metadata"]["name"] == "other"
    })
    .await;
    let pause =
        |value: Value| json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused": value}}});
    cluster.change("web", pause(json!("true"))).await;
    until("it goes with a pause", async || cluster.hpas().await.is_empty()).await;
    cluster.change("web", pause(Value::Null)).await;
    until("it comes back", async || cluster.hpas().await.len() == 1).await;
    controller.stop().await;

    let controller = cluster.control_triggers(Config::default());
    until("it is in the way", async || {
        let said = cluster.said("web", "podscale.dev/Conflict").await;
        said == ["True", "TargetTaken"]
    })
    .await;
    cluster.send("DELETE", &format!("{HPAS}/other"), &json!({})).await;
    until("Podscale decides", async || cluster.replicas().await == 4).await;
    until("it says so", async || cluster.object("web").await["status"]["hpaName"].is_null()).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn activity_is_decided_here_and_an_hpa_of_somebody_else_is_left_alone() {
    let cluster = Cluster::with_keda().await;
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "keda-hpa-web", "annotations": {"podscale.dev/managed": "false"}},
        "spec": {"maxReplicas": 2, "scaleTargetRef":
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "db"}}});
    cluster.send("POST", HPAS, &hpa).await;
    let (controller, _) =
        cluster.control_in(TriggerMode::Hpa, Config::default(), Watchers::default());
    let quick = json!({"cooldownPeriod": 10});
    cluster.send("POST", OBJECTS, &object(cron(never(), "4"), quick)).await;
    until("it is refused", async || {
        cluster.said("web", "Ready").await == ["False", "ScaledObjectCheckFailed"]
    })
    .await;
    assert_eq!(cluster.hpa().await["spec"]["maxReplicas"], 2);
    until("it is idle", async || cluster.replicas().await == 0).await;
    let transfer = json!({"metadata": {"annotations":
        {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}}});
    cluster.change("web", transfer).await;
    until("it is taken over", async || cluster.hpa().await["spec"]["maxReplicas"] == 100).await;
    cluster.change("web", json!({"spec": {"triggers": cron(ALL_YEAR, "4")}})).await;
    until("it is woken", async || cluster.replicas().await == 1).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(cluster.replicas().await, 1);
    controller.stop().await;
}
