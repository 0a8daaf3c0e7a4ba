//! PodAutoscalers, from their definition to their columns.

mod adopted;
mod costs;
mod named;
mod objects;
mod recorded;
mod shown;

use super::*;
use crate::dialect::{CONFLICT_CONDITION, TARGET_TAKEN};
use crate::source::{Answer, MetricSource, Question};
use axum::http::StatusCode;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use podscale_api::pod_autoscaler::{API_VERSION, KIND, RESOURCE, crd};
use tower::ServiceExt;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PAS: &str = "/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers";

/// Says how many replicas the load needs.
#[derive(Default)]
struct Load {
    replicas: Mutex<i64>,
    asked: Mutex<u32>,
}

impl MetricSource for Load {
    fn ask<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Answer> {
        *self.asked.lock() += 1;
        let value = json!([{"metricName": "load", "metricLabels": {},
            "value": self.replicas.lock().to_string(), "timestamp": "2026-01-01T00:00:00Z"}]);
        let values: Vec<_> = serde_json::from_value(value).expect("values");
        async move { Answer::External(values.into()) }.boxed()
    }
}

impl Cluster {
    /// One without any autoscaler, in which PodAutoscalers are defined.
    async fn with_definition() -> Cluster {
        let cluster = Cluster::with(json!({})).await;
        cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
        cluster.send("POST", CRDS, &crd::definition()).await;
        cluster
    }

    /// A controller that knows the load.
    fn control_by(&self, load: &Arc<Load>) -> Controller {
        self.control_observed(load, Vec::new())
    }

    fn control_observed(&self, load: &Arc<Load>, observers: Vec<Arc<dyn Observer>>) -> Controller {
        let load = Arc::clone(load) as Arc<dyn MetricSource>;
        self.control_set(load, Config::default(), observers)
    }

    fn control_set(
        &self,
        external: Arc<dyn MetricSource>,
        config: Config,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Controller {
        let client = self.client("podscale/0");
        let mapper = RestMapper::new(client.clone(), self.clock);
        let metrics = Metrics::new();
        let mut sources = Sources::metrics_apis(&client, self.clock, mapper.clone(), &metrics);
        sources.external = external;
        let announcements = source::notifications().1;
        let parts = Parts {
            config,
            dialects: dialect::built_in(),
            watchers: Watchers { observers, ..Watchers::default() },
            role: Role::alone(),
            mapper,
            pods: Arc::default(),
            sources,
            announcements,
        };
        Controller::assemble(&client, self.clock, parts)
    }

    async fn pa(&self, name: &str) -> Value {
        self.get(&format!("{PAS}/{name}")).await
    }

    /// A condition's status, reason and message.
    async fn condition(&self, name: &str, condition: &str) -> Option<[String; 3]> {
        let conditions = self.pa(name).await["status"]["conditions"].take();
        let all = conditions.as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|c| c["type"] == condition)?;
        Some(["status", "reason", "message"].map(|f| found[f].as_str().unwrap_or_default().into()))
    }

    /// What `kubectl get pa -o wide` shows: headings and cells.
    async fn table(&self) -> (Vec<String>, Vec<Value>) {
        let (names, rows) = self.whole_table().await;
        (names, rows.into_iter().next().unwrap_or_default())
    }

    /// The headings, and the cells of each object.
    async fn whole_table(&self) -> (Vec<String>, Vec<Vec<Value>>) {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        let request = Request::builder().uri(PAS).header(header::ACCEPT, accept);
        let request = request.body(Body::empty()).expect("a request");
        let answer = self.server.router().oneshot(request).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        let table: Value = serde_json::from_slice(&body).expect("JSON");
        let columns = table["columnDefinitions"].as_array().expect("columns");
        let names = columns.iter().map(|c| c["name"].as_str().unwrap_or_default().to_owned());
        let rows = table["rows"].as_array().cloned().unwrap_or_default();
        let cells = |row: Value| row["cells"].as_array().cloned().unwrap_or_default();
        (names.collect(), rows.into_iter().map(cells).collect())
    }
}

/// A PodAutoscaler of the Deployment, with the spec of an HPA and these fields.
fn pa(name: &str, change: Value) -> Value {
    let mut spec = json!({"minReplicas": 1, "maxReplicas": 9,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metrics": [{"type": "External", "external": {"metric": {"name": "load"},
            "target": {"type": "AverageValue", "averageValue": "1"}}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}});
    for (field, value) in change.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec})
}

#[tokio::test(start_paused = true)]
async fn drives_a_deployment_up_and_down_and_tells_the_story() {
    let cluster = Cluster::with_definition().await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 4;
    let controller = cluster.control_by(&load);
    cluster.send("POST", PAS, &pa("web", json!({}))).await;
    until("it goes up", async || cluster.replicas().await == 4).await;
    *load.replicas.lock() = 2;
    until("it goes down", async || cluster.replicas().await == 2).await;
    until("its status says so", async || cluster.pa("web").await["status"]["desiredReplicas"] == 2)
        .await;
    let pa = cluster.pa("web").await;
    assert_eq!(pa["spec"]["podSelection"], "Owned", "defaults are stored");
    assert_eq!(pa["spec"]["behavior"]["scaleUp"]["policies"][0]["value"], 4);
    let status = &pa["status"];
    assert_eq!(status["observedGeneration"], pa["metadata"]["generation"]);
    let steps: Vec<(i64, i64)> = status["decisions"]
        .as_array()
        .expect("decisions")
        .iter()
        .filter_map(|decision| Some((decision["from"].as_i64()?, decision["to"].as_i64()?)))
        .collect();
    assert_eq!(steps, [(4, 2), (1, 4)], "the newest first");
    for condition in status["conditions"].as_array().expect("conditions") {
        for field in ["type", "status", "reason", "message", "lastTransitionTime"] {
            assert!(condition[field].as_str().is_some_and(|text| !text.is_empty()), "{condition}");
        }
    }
    let valid = cluster.condition("web", "Valid").await.expect("a condition");
    assert_eq!(valid[..2], ["True", "Accepted"]);
    let (names, cells) = cluster.table().await;
    let expected = "Name,Reference,Targets,Min,Max,Replicas,Mode,Reason,Age,Desired,Active,Schedule,\
                    Last-Scale,From,To,Why";
    assert_eq!(names.join(","), expected);
    let cell = |name: &str| {
        let place = names.iter().position(|known| known == name).expect("a column");
        cells[place].clone()
    };
    assert_eq!(cell("Reference"), "Deployment/web");
    assert_eq!((cell("Min"), cell("Max"), cell("Mode")), (json!(1), json!(9), json!("Active")));
    assert!(cell("Targets").as_str().is_some_and(|t| t.starts_with("load: ")), "{cells:?}");
    assert_eq!((cell("From"), cell("To"), cell("Active")), (json!(4), json!(2), json!("True")));
    assert_eq!(
        (cell("Reason"), cell("Why")),
        (json!("SucceededRescale"), json!("All metrics below target"))
    );
    controller.stop().await;
    let events = cluster.get("/api/v1/namespaces/default/events").await;
    let events = events["items"].as_array().cloned().unwrap_or_default();
    let rescaled = |event: &&Value| {
        event["reason"] == "SuccessfulRescale" && event["involvedObject"]["kind"] == KIND
    };
    assert_eq!(events.iter().filter(rescaled).count(), 2, "{events:?}");
    for event in events.iter().filter(rescaled) {
        assert_eq!(event["source"]["component"], "pod-autoscaler", "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn orders_of_the_spec_hold_until_their_time() {
    let cluster = Cluster::with_definition().await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 4;
    let controller = cluster.control_by(&load);
    let later = |minutes: i64| {
        let time = cluster.clock.now() + jiff::SignedDuration::from_mins(minutes);
        jiff::Timestamp::from_second(time.as_second()).expect("a time").to_string()
    };
    let paused = json!({"mode": "Paused", "modeUntil": later(2)});
    cluster.send("POST", PAS, &pa("web", paused)).await;
    until("it says that it is paused", async || {
        cluster.pa("web").await["status"]["mode"] == "Paused"
    })
    .await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(cluster.replicas().await, 1);
    until("the pause has run out", async || cluster.replicas().await == 4).await;
    until("it is active", async || cluster.pa("web").await["status"]["mode"] == "Active").await;
    let change = async |spec: Value| {
        cluster.send("PATCH", &format!("{PAS}/web"), &json!({"spec": spec})).await;
    };
    change(json!({"mode": "Active", "modeUntil": null, "hold": {"replicas": 7}})).await;
    until("it is held", async || cluster.replicas().await == 7).await;
    until("it says so", async || cluster.pa("web").await["status"]["mode"] == "Hold(7)").await;
    change(json!({"hold": null, "pause": {"scaleDown": {}}})).await;
    until("it says so", async || cluster.pa("web").await["status"]["mode"] == "NoScaleDown").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(cluster.replicas().await, 7);
    change(json!({"pause": null, "mode": "DryRun"})).await;
    until("it says what it would do", async || {
        let status = cluster.pa("web").await["status"].take();
        status["mode"] == "DryRun" && status["desiredReplicas"] == 4
    })
    .await;
    assert_eq!(cluster.replicas().await, 7);
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn schedules_change_the_bounds_and_a_sync_period_of_its_own_counts() {
    let cluster = Cluster::with_definition().await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 1;
    let controller = cluster.control_by(&load);
    let always =
        json!({"name": "always", "start": "* * * * *", "duration": "2m", "minReplicas": 3});
    let spec = json!({"schedules": [always], "syncPeriod": "1s"});
    cluster.send("POST", PAS, &pa("web", spec)).await;
    until("the schedule is in force", async || cluster.replicas().await == 3).await;
    until("its status says so", async || {
        let status = cluster.pa("web").await["status"].take();
        status["activeSchedule"] == "always" && status["minReplicas"] == 3
    })
    .await;
    let before = *load.asked.lock();
    tokio::time::sleep(MINUTE).await;
    let asked = *load.asked.lock() - before;
    assert!((50..=70).contains(&asked), "{asked} times in a minute");
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn leaves_a_target_to_the_hpa_that_scales_it_and_takes_over_when_that_goes() {
    let cluster = Cluster::with(json!({})).await;
    cluster.send("POST", CRDS, &crd::definition()).await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 5;
    cluster.send("POST", PAS, &pa("mine", json!({}))).await;
    let controller = cluster.control_by(&load);
    until("it is reported", async || {
        let found = cluster.condition("mine", CONFLICT_CONDITION).await;
        found.is_some_and(|[status, reason, message]| {
            (&*status, &*reason) == ("True", TARGET_TAKEN)
                && message.starts_with(
                    "HorizontalPodAutoscaler \"web\" scales Deployment \"web\" as well",
                )
        })
    })
    .await;
    until("the HPA is decided", async || cluster.replicas().await == 3).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(cluster.replicas().await, 3);
    cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
    until("it takes over", async || cluster.replicas().await == 5).await;
    until("nothing is reported any more", async || {
        cluster.condition("mine", CONFLICT_CONDITION).await.is_none()
    })
    .await;
    // Of two of this kind, the older one goes on.
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.send("POST", PAS, &pa("another", json!({"minReplicas": 8}))).await;
    until("it is reported", async || {
        let found = cluster.condition("another", CONFLICT_CONDITION).await;
        found.is_some_and(|[_, _, message]| message.starts_with("PodAutoscaler \"mine\" scales"))
    })
    .await;
    assert_eq!(cluster.replicas().await, 5);
    controller.stop().await;
    assert!(cluster.reasons().await.contains(&TARGET_TAKEN.to_owned()));
}
