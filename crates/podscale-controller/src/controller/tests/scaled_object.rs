//! ScaledObjects, from their definition to their deletion.

mod beside;
mod many;
mod pod_autoscalers;
mod polled;
mod recorded;

use super::*;
use crate::dialect::IsManaged;
use crate::settings::TriggerMode;
use crate::triggers::{Limits, Triggers};
use podscale_api::crds::keda;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OBJECTS: &str = "/apis/keda.sh/v1alpha1/namespaces/default/scaledobjects";
const AUTHENTICATIONS: &str = "/apis/keda.sh/v1alpha1/namespaces/default/triggerauthentications";
const PODS: &str = "/api/v1/namespaces/default/pods";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
/// A moment in every year but its last minute.
const ALL_YEAR: [&str; 2] = ["0 0 1 1 *", "59 23 31 12 *"];

impl Cluster {
    /// One without any autoscaler, in which KEDA's kinds are defined.
    async fn with_keda() -> Cluster {
        let cluster = Cluster::with(json!({})).await;
        cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
        for definition in keda::definitions() {
            cluster.send("POST", CRDS, &definition).await;
        }
        let is_served = async |path: &str| {
            let about = About { resource: "", name: "" };
            call::get::<Value>(&cluster.client("tester"), path, about).await.is_ok()
        };
        until("the kinds are served", async || {
            is_served(OBJECTS).await && is_served(AUTHENTICATIONS).await
        })
        .await;
        cluster
    }

    /// A controller that polls triggers.
    fn control_triggers(&self, config: Config) -> Controller {
        self.watch_triggers(config, Watchers::default())
    }

    /// A controller that polls triggers and is observed.
    fn watch_triggers(&self, config: Config, watchers: Watchers) -> Controller {
        self.control_in(TriggerMode::Direct, config, watchers).0
    }

    /// A controller that leaves sizes to itself or to HPAs, and its triggers.
    fn control_in(
        &self,
        mode: TriggerMode,
        config: Config,
        watchers: Watchers,
    ) -> (Controller, Arc<Triggers>) {
        self.control_in_through(&self.client("podscale/0"), mode, config, watchers)
    }

    /// The same with another client.
    fn control_in_through(
        &self,
        client: &Client,
        mode: TriggerMode,
        config: Config,
        watchers: Watchers,
    ) -> (Controller, Arc<Triggers>) {
        let limits = Limits { own_namespace: "podscale".to_owned(), ..Limits::default() };
        let triggers = Arc::new(Triggers::new(client, self.clock, limits));
        let manage = config.manage.clone();
        let is_managed: IsManaged = Arc::new(move |object: &Managed| manage.manages(object));
        let dialects = dialect::with_triggers(dialect::built_in(), &triggers, &is_managed, mode);
        let shared = Some(Arc::clone(&triggers));
        let sources = MetricSources { triggers: shared, ..MetricSources::default() };
        let (clock, role) = (self.clock, Role::alone());
        let controller =
            Controller::start_with(client, clock, config, dialects, watchers, role, sources);
        (controller, triggers)
    }

    async fn object(&self, name: &str) -> Value {
        self.get(&format!("{OBJECTS}/{name}")).await
    }

    /// A condition's status and reason.
    async fn said(&self, name: &str, condition: &str) -> [String; 2] {
        let conditions = self.object(name).await["status"]["conditions"].take();
        let all = conditions.as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|c| c["type"] == condition).unwrap_or_default();
        ["status", "reason"].map(|field| found[field].as_str().unwrap_or_default().to_owned())
    }

    /// The messages of the events with a reason.
    async fn messages(&self, reason: &str) -> Vec<String> {
        let events = self.get("/api/v1/namespaces/default/events").await;
        let events = events["items"].as_array().cloned().unwrap_or_default();
        let of_reason = events.iter().filter(|event| event["reason"] == reason);
        of_reason.filter_map(|e| e["message"].as_str().map(str::to_owned)).collect()
    }

    async fn change(&self, name: &str, patch: Value) {
        self.send("PATCH", &format!("{OBJECTS}/{name}"), &patch).await;
    }
}

/// A ScaledObject of the Deployment with these triggers and fields.
fn object(triggers: Value, change: Value) -> Value {
    let mut spec = json!({"scaleTargetRef": {"name": "web"}, "triggers": triggers});
    for (field, value) in change.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": "web"}, "spec": spec})
}

fn cron([start, end]: [&str; 2], replicas: &str) -> Value {
    json!([{"type": "cron", "metadata": {"timezone": "Etc/UTC", "start": start, "end": end,
        "desiredReplicas": replicas}}])
}

fn never() -> [&'static str; 2] {
    let [start, end] = ALL_YEAR;
    [end, start]
}

#[tokio::test(start_paused = true)]
async fn a_window_of_time_takes_a_target_to_zero_and_back() {
    let cluster = Cluster::with_keda().await;
    let controller = cluster.control_triggers(Config::default());
    let quick = json!({"cooldownPeriod": 60});
    cluster.send("POST", OBJECTS, &object(cron(ALL_YEAR, "4"), quick)).await;
    until("it goes up", async || cluster.replicas().await == 4).await;
    until("it says so", async || {
        cluster.said("web", "Active").await == ["True", "ScalerActive"]
            && cluster.said("web", "Ready").await == ["True", "ScaledObjectReady"]
    })
    .await;
    let found = cluster.object("web").await;
    assert_eq!(found["metadata"]["finalizers"], json!(["finalizer.keda.sh"]));
    assert_eq!(found["metadata"]["labels"]["scaledobject.keda.sh/name"], "web");
    let status = &found["status"];
    assert_eq!(status["originalReplicaCount"], 1);
    assert_eq!(status["scaleTargetKind"], "apps/v1.Deployment");
    assert_eq!(status["triggersTypes"], "cron");
    let names = status["externalMetricNames"].as_array().expect("names");
    let is_cron = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("s0-cron-"));
    assert!(names.len() == 1 && is_cron(&names[0]), "{status}");
    cluster.change("web", json!({"spec": {"triggers": cron(never(), "4")}})).await;
    until("it cools down", async || {
        cluster.said("web", "Active").await == ["False", "ScalerCooldown"]
    })
    .await;
    assert_ne!(cluster.replicas().await, 0, "not yet");
    until("it is idle", async || cluster.replicas().await == 0).await;
    until("it says so", async || {
        cluster.said("web", "Active").await == ["False", "ScalerNotActive"]
    })
    .await;
    // Fewer than before would still be held by what was recommended then, as an HPA does it.
    cluster.change("web", json!({"spec": {"triggers": cron(ALL_YEAR, "5")}})).await;
    until("it is woken", async || cluster.replicas().await == 5).await;
    controller.stop().await;
    let activated = cluster.messages("KEDAScaleTargetActivated").await;
    let expected = "Scaled apps/v1.Deployment default/web from 0 to 1, triggered by s0-cron-";
    assert!(activated.iter().any(|message| message.starts_with(expected)), "{activated:?}");
    assert_eq!(cluster.messages("KEDAScaleTargetDeactivated").await.len(), 1);
    assert_eq!(cluster.messages("ScaledObjectReady").await, ["ScaledObject is ready for scaling"]);
}

#[tokio::test(start_paused = true)]
async fn metadata_without_effect_is_named_as_long_as_it_is_there() {
    let cluster = Cluster::with_keda().await;
    let controller = cluster.control_triggers(Config::default());
    let mut triggers = cron(ALL_YEAR, "2");
    triggers[0]["metadata"]["timezon"] = "UTC".into();
    cluster.send("POST", OBJECTS, &object(triggers, json!({}))).await;
    until("it is named", async || {
        cluster.said("web", "podscale.dev/Warning").await == ["True", "MetadataIgnored"]
    })
    .await;
    let status = cluster.object("web").await["status"].to_string();
    let expected =
        "trigger 0 (cron): metadata \\\"timezon\\\" is not known to triggers of type cron";
    assert!(status.contains(expected) && status.contains("ScaledObjectReady"), "{status}");
    cluster.change("web", json!({"spec": {"triggers": cron(ALL_YEAR, "2")}})).await;
    until("it is named no more", async || {
        !cluster.object("web").await["status"].to_string().contains("podscale.dev/Warning")
    })
    .await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn pods_of_another_workload_are_counted() {
    let cluster = Cluster::with_keda().await;
    for number in 0..6 {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("job-{number}"), "labels": {"job": "yes"}},
            "spec": {"nodeName": format!("n{}", number % 2),
                "containers": [{"name": "c", "image": "i"}]}});
        cluster.send("POST", PODS, &pod).await;
    }
    let controller = cluster.control_triggers(Config::default());
    let workload = |by_node: &str| {
        json!([{"type": "kubernetes-workload", "metadata":
            {"podSelector": "job=yes", "value": "2", "groupByNode": by_node}}])
    };
    let quick = json!({"advanced": {"horizontalPodAutoscalerConfig": {"behavior":
        {"scaleDown": {"stabilizationWindowSeconds": 0}}}}});
    cluster.send("POST", OBJECTS, &object(workload("false"), quick)).await;
    until("two pods take a replica", async || cluster.replicas().await == 3).await;
    cluster.change("web", json!({"spec": {"triggers": workload("true")}})).await;
    until("two nodes take a replica", async || cluster.replicas().await == 1).await;
    let status = json!({"status": {"phase": "Succeeded"}});
    for number in 0..6 {
        cluster.send("PATCH", &format!("{PODS}/job-{number}/status"), &status).await;
    }
    until("finished pods do not count", async || cluster.said("web", "Active").await[0] == "False")
        .await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn resources_alone_have_a_minimum_and_names() {
    let cluster = Cluster::with_keda().await;
    let controller = cluster.control_triggers(Config::default());
    let cpu = json!([{"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}]);
    cluster.send("POST", OBJECTS, &object(cpu, json!({"minReplicaCount": 2}))).await;
    until("it has the minimum", async || cluster.replicas().await == 2).await;
    until("it says what it reads", async || {
        cluster.object("web").await["status"]["resourceMetricNames"] == json!(["cpu"])
    })
    .await;
    assert_eq!(cluster.said("web", "Ready").await, ["True", "ScaledObjectReady"]);
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_used_is_named_until_it_can() {
    let cluster = Cluster::with_keda().await;
    let controller = cluster.control_triggers(Config::default());
    let message = async || {
        let found = cluster.object("web").await["status"]["conditions"].take();
        let all = found.as_array().cloned().unwrap_or_default();
        let ready = all.into_iter().find(|c| c["type"] == "Ready").unwrap_or_default();
        ready["message"].as_str().unwrap_or_default().to_owned()
    };
    let unknown = json!([{"type": "crom", "metadata": {}}]);
    cluster.send("POST", OBJECTS, &object(unknown, json!({}))).await;
    let step = "failed to ensure HPA is correctly created for ScaledObject: ";
    until("an unknown type is named", async || {
        message().await == format!("{step}no scaler found for type: crom")
    })
    .await;
    let ready = cluster.said("web", "Ready").await;
    assert_eq!(ready, ["False", "ScaledObjectCheckFailed"]);
    let mut waits = cron(ALL_YEAR, "2");
    waits[0]["authenticationRef"] = json!({"name": "keys"});
    cluster.change("web", json!({"spec": {"triggers": waits}})).await;
    until("a missing authentication is named", async || {
        message().await.ends_with("(cron): TriggerAuthentication \"keys\" does not exist")
    })
    .await;
    assert_eq!(cluster.replicas().await, 1);
    let keys = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
        "metadata": {"name": "keys"}, "spec": {"secretTargetRef":
            [{"parameter": "password", "name": "s", "key": "k"}]}});
    cluster.send("POST", AUTHENTICATIONS, &keys).await;
    until("a missing Secret is named", async || {
        message().await.ends_with("Secret \"s\" of namespace \"default\" does not exist")
    })
    .await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"k": "aHVudGVyMg=="}});
    cluster.send("POST", SECRETS, &secret).await;
    until("everything is there", async || cluster.replicas().await == 2).await;
    until("it says so", async || cluster.said("web", "Ready").await[0] == "True").await;
    controller.stop().await;
    let events = cluster.get("/api/v1/namespaces/default/events").await.to_string();
    let object = cluster.object("web").await.to_string();
    for planted in ["hunter2", "aHVudGVyMg"] {
        assert!(!events.contains(planted) && !object.contains(planted));
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_one_gives_the_size_back_and_others_leave_it() {
    for (restore, left) in [(true, 1), (false, 4)] {
        let cluster = Cluster::with_keda().await;
        let controller = cluster.control_triggers(Config::default());
        let advanced = json!({"advanced": {"restoreToOriginalReplicaCount": restore}});
        cluster.send("POST", OBJECTS, &object(cron(ALL_YEAR, "4"), advanced)).await;
        until("it goes up", async || cluster.replicas().await == 4).await;
        until("it says so", async || {
            cluster.object("web").await["status"]["originalReplicaCount"] == 1
        })
        .await;
        cluster.send("DELETE", &format!("{OBJECTS}/web"), &json!({})).await;
        until("it is gone", async || {
            cluster.get(OBJECTS).await["items"].as_array().is_some_and(Vec::is_empty)
        })
        .await;
        assert_eq!(cluster.replicas().await, left, "restore: {restore}");
        controller.stop().await;
        assert_eq!(cluster.messages("ScaledObjectDeleted").await, ["ScaledObject was deleted"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_and_a_dry_run_writes_nothing() {
    let cluster = Cluster::with_keda().await;
    let config = Config { dry_run: true, ..Config::default() };
    let dry = cluster.control_triggers(config);
    cluster.send("POST", OBJECTS, &object(cron(ALL_YEAR, "4"), json!({}))).await;
    tokio::time::sleep(MINUTE).await;
    let found = cluster.object("web").await;
    assert_eq!((&found["status"], &found["metadata"]["finalizers"]), (&Value::Null, &Value::Null));
    assert_eq!(cluster.replicas().await, 1);
    dry.stop().await;
    let pause = json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": "2"}}});
    cluster.change("web", pause).await;
    let controller = cluster.control_triggers(Config::default());
    until("it has the size of the pause", async || cluster.replicas().await == 2).await;
    until("it says so", async || {
        cluster.said("web", "Paused").await == ["True", "ScaledObjectPaused"]
            && cluster.object("web").await["status"]["pausedReplicaCount"] == 2
    })
    .await;
    let resume =
        json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": null}}});
    cluster.change("web", resume).await;
    until("it goes on", async || cluster.replicas().await == 4).await;
    controller.stop().await;
}
