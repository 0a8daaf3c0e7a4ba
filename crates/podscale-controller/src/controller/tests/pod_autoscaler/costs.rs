//! Busy pods last: what becomes of the annotations of pods when their target shrinks.

use super::*;
use axum::response::IntoResponse;
use podscale_api::pod::{DELETION_COST, OWN_DELETION_COST};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// How busy each pod is.
pub(super) struct Sessions(pub(super) &'static [(&'static str, i64)]);

impl MetricSource for Sessions {
    fn ask<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Answer> {
        let value = |(name, sessions): &(&str, i64)| {
            json!({"describedObject": {"kind": "Pod", "namespace": "default", "name": name},
                "metric": {"name": "sessions", "selector": null},
                "timestamp": "2026-01-01T00:00:00Z", "value": sessions.to_string()})
        };
        let values: Value = self.0.iter().map(value).collect();
        let values: Vec<_> = serde_json::from_value(values).expect("values");
        async move { Answer::Custom(values.into()) }.boxed()
    }
}

static SESSIONS: [(&str, i64); 4] = [("a", 1), ("b", 9), ("c", 4), ("d", 7)];

impl Cluster {
    /// A Deployment of four pods that serve; somebody has said what deleting one of them costs.
    async fn with_pods() -> Cluster {
        let cluster = Cluster::with_definition().await;
        cluster.resize(4).await;
        for (name, _) in SESSIONS {
            let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "labels": {"app": "web"}},
                "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
            if name == "c" {
                pod["metadata"]["annotations"] = json!({DELETION_COST: "5"});
            }
            cluster.send("POST", PODS, &pod).await;
            let ready = json!({"type": "Ready", "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z"});
            let status = json!({"status": {"phase": "Running", "conditions": [ready],
                "startTime": "2026-01-01T00:00:00Z"}});
            cluster.send("PATCH", &format!("{PODS}/{name}/status"), &status).await;
        }
        cluster
    }

    /// A controller that knows the load, and how busy the pods are.
    fn control_sessions(&self, client: &Client, load: &Arc<Load>) -> Controller {
        self.control_custom(client, load, Arc::new(Sessions(&SESSIONS)))
    }

    /// A controller that knows the load, and these values of pods.
    pub(super) fn control_custom(
        &self,
        client: &Client,
        load: &Arc<Load>,
        custom: Arc<dyn MetricSource>,
    ) -> Controller {
        let mapper = RestMapper::new(client.clone(), self.clock);
        let metrics = Metrics::new();
        let mut sources = Sources::metrics_apis(client, self.clock, mapper.clone(), &metrics);
        sources.external = Arc::clone(load) as Arc<dyn MetricSource>;
        sources.custom = custom;
        let parts = Parts {
            config: Config::default(),
            dialects: dialect::built_in(),
            watchers: Watchers::default(),
            role: Role::alone(),
            mapper,
            pods: Arc::default(),
            sources,
            announcements: source::notifications().1,
        };
        Controller::assemble(client, self.clock, parts)
    }

    /// The costs of all pods, ours with a star: `b=1*`.
    async fn costs(&self) -> String {
        let list = self.get(PODS).await;
        let pods = list["items"].as_array().cloned().unwrap_or_default();
        let cost = |pod: &Value| {
            let annotations = &pod["metadata"]["annotations"];
            let cost = annotations[DELETION_COST].as_str()?;
            let ours = if annotations[OWN_DELETION_COST] == cost { "*" } else { "" };
            Some(format!("{}={cost}{ours}", pod["metadata"]["name"].as_str()?))
        };
        pods.iter().filter_map(cost).collect::<Vec<_>>().join(" ")
    }
}

/// By the load, and by the sessions of each pod, of which there are few.
fn busy(change: Value) -> Value {
    let mut spec = pa("web", json!({"podDeletionCost": {"metric": "sessions"}}));
    let sessions = json!({"type": "Pods", "name": "sessions", "pods": {"metric": {"name": "sessions"},
        "target": {"type": "AverageValue", "averageValue": "1k"}}});
    spec["spec"]["metrics"].as_array_mut().expect("metrics").push(sessions);
    for (field, value) in change.as_object().expect("fields") {
        spec["spec"][field] = value.clone();
    }
    spec
}

#[tokio::test(start_paused = true)]
async fn busy_pods_go_last() {
    let cluster = Cluster::with_pods().await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 4;
    let controller = cluster.control_sessions(&cluster.client("podscale/0"), &load);
    cluster.send("POST", PAS, &busy(json!({"mode": "DryRun"}))).await;
    let desired = async || cluster.pa("web").await["status"]["desiredReplicas"].take();
    until("it is decided", async || desired().await == 4).await;
    *load.replicas.lock() = 2;
    until("it would shrink", async || desired().await == 2).await;
    assert_eq!(cluster.costs().await, "c=5", "a dry run writes nothing");
    let change = async |spec: Value| {
        cluster.send("PATCH", &format!("{PAS}/web"), &json!({"spec": spec})).await;
    };
    change(json!({"mode": "Active"})).await;
    until("it shrinks", async || cluster.replicas().await == 2).await;
    // Two go: somebody else's stays by its cost, and so does the busiest of ours.
    assert_eq!(cluster.costs().await, "b=1* c=5");
    *load.replicas.lock() = 4;
    until("it grows", async || cluster.replicas().await == 4).await;
    assert_eq!(cluster.costs().await, "b=1* c=5", "to grow takes no costs");
    *load.replicas.lock() = 3;
    until("it shrinks by one", async || cluster.replicas().await == 3).await;
    assert_eq!(cluster.costs().await, "a=-1* b=1* c=5", "the idlest one goes");
    change(json!({"podDeletionCost": null})).await;
    until("they are taken away", async || cluster.costs().await == "c=5").await;
    *load.replicas.lock() = 2;
    until("it shrinks", async || cluster.replicas().await == 2).await;
    assert_eq!(cluster.costs().await, "c=5");
    controller.stop().await;
    assert!(!cluster.reasons().await.contains(&"FailedSetDeletionCost".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn who_may_not_set_costs_shrinks_all_the_same_and_says_so() {
    let cluster = Cluster::with_pods().await;
    let refuse = |request: Request<Body>, next: Next| async move {
        if request.method() == "PATCH" && request.uri().path().starts_with(PODS) {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "reason": "Forbidden", "code": 403, "message": "pods \"a\" is forbidden"});
            return (StatusCode::FORBIDDEN, Json(status)).into_response();
        }
        next.run(request).await
    };
    let client = Client::new(cluster.server.router().layer(from_fn(refuse)), "default");
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 3;
    let controller = cluster.control_sessions(&client, &load);
    cluster.send("POST", PAS, &busy(json!({}))).await;
    until("it shrinks", async || cluster.replicas().await == 3).await;
    assert_eq!(cluster.costs().await, "c=5");
    controller.stop().await;
    let events = cluster.get("/api/v1/namespaces/default/events").await;
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let told = events.iter().find(|event| event["reason"] == "FailedSetDeletionCost");
    let message = told.and_then(|event| event["message"].as_str()).unwrap_or_default();
    let expected =
        "the deletion costs of pods could not be set, so a scale-down may take busy ones: ";
    assert!(message.starts_with(expected) && message.contains("forbidden"), "{events:?}");
}
