//! The seams of the controller: another dialect beside the HPA, a source that announces its samples,
//! and a dry run that is recorded and replayed.

use super::*;
use crate::dialect::{Dialect, Key, Kind, NewStatus, WireObject};
use crate::record::{Limits, Recorder};
use crate::source::{Answer, MetricSource, Notifier, Question, Topic};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::meta::ObjectMeta;
use podscale_api::recording::RecordingReader;
use podscale_api::replay::Replayer;
use podscale_api::replay::difference::differences;
use podscale_client::watch::Watched;
use podscale_core::model::TargetRef;
use podscale_core::{Autoscaler, Status, Withheld};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A kind of autoscaler objects that keeps a Deployment at a size.
static PIN: Kind = Kind {
    name: "Pin",
    api_version: "test.podscale.dev/v1",
    plural: "pins",
    resource: "pins.test.podscale.dev",
    presence: Presence::Optional,
};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pin {
    metadata: ObjectMeta,
    spec: PinSpec,
    #[serde(default)]
    status: PinStatus,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct PinSpec {
    deployment: String,
    replicas: i32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct PinStatus {
    #[serde(default)]
    replicas: i32,
    #[serde(default)]
    conditions: Vec<String>,
}

struct Pins;

impl Watched for Pin {
    fn version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

impl Dialect for Pins {
    type Wire = Pin;

    const KIND: &'static Kind = &PIN;

    fn managed(pin: Pin) -> Managed {
        let (namespace, name) = (&*pin.metadata.namespace, &*pin.metadata.name);
        let model = Autoscaler {
            namespace: namespace.into(),
            name: name.into(),
            generation: pin.metadata.generation,
            target: TargetRef {
                api_version: "apps/v1".into(),
                kind: "Deployment".into(),
                name: (&*pin.spec.deployment).into(),
            },
            min_replicas: pin.spec.replicas,
            max_replicas: pin.spec.replicas,
            metrics: Vec::new(),
            behavior: None,
            extensions: None,
        };
        let key = Key { namespace: namespace.into(), name: name.into(), kind: &PIN };
        Managed { key, model: Arc::new(model), wire: Arc::new(pin) }
    }
}

impl WireObject for Pin {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn status(&self) -> Status {
        Status { current_replicas: self.status.replicas, ..Status::default() }
    }

    fn with_status(&self, status: NewStatus<'_>) -> Box<dyn WireObject> {
        let mut pin = self.clone();
        if let NewStatus::Decided { decision, snapshot } = status {
            let status = decision.status(snapshot);
            let reason = |c: &podscale_core::status::Condition| c.note.reason().to_owned();
            pin.status.replicas = status.desired_replicas;
            pin.status.conditions = status.conditions.iter().map(reason).collect();
        }
        Box::new(pin)
    }

    fn with_status_of(&self, _other: &dyn WireObject) -> Box<dyn WireObject> {
        Box::new(self.clone())
    }

    fn to_body(&self) -> serde_json::Result<Vec<u8>> {
        let mut body = serde_json::to_value(self)?;
        (body["kind"], body["apiVersion"]) = (PIN.name.into(), PIN.api_version.into());
        serde_json::to_vec(&body)
    }

    fn set_resource_version(&mut self, version: String) {
        self.metadata.resource_version = version;
    }

    fn as_hpa(&self) -> Cow<'_, HorizontalPodAutoscaler> {
        Cow::Owned(HorizontalPodAutoscaler::default())
    }
}

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PINS: &str = "/apis/test.podscale.dev/v1/namespaces/default/pins";

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": PIN.resource},
        "spec": {"group": "test.podscale.dev", "scope": "Namespaced",
            "names": {"kind": PIN.name, "plural": PIN.plural, "singular": "pin"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}})
}

#[tokio::test(start_paused = true)]
async fn another_dialect_comes_goes_and_collides_with_nothing() {
    let cluster = Cluster::with(json!({})).await;
    let mut target = cluster.get("/apis/apps/v1/namespaces/default/deployments/web").await;
    target["metadata"] = json!({"name": "other"});
    target["spec"]["selector"]["matchLabels"]["app"] = json!("other");
    target["spec"]["template"]["metadata"]["labels"]["app"] = json!("other");
    cluster.send("POST", "/apis/apps/v1/namespaces/default/deployments", &target).await;
    let other = "/apis/apps/v1/namespaces/default/deployments/other/scale";
    let dialects: Vec<Arc<dyn AnyDialect>> = vec![Arc::new(dialect::hpa::Hpa), Arc::new(Pins)];
    let heard = Arc::new(Heard::default());
    let readiness = Readiness::new();
    let (observers, metrics) = (vec![heard.clone() as Arc<dyn Observer>], Metrics::new());
    let watchers = Watchers { observers, metrics, readiness: readiness.clone() };
    let (client, config) = (cluster.client("podscale/0"), Config::default());
    let controller =
        Controller::start(&client, cluster.clock, config, dialects, watchers, Role::alone());
    // A definition that is missing holds up nothing.
    until("the HPA is decided", async || cluster.replicas().await == 3).await;
    until("it is ready", async || readiness.missing().is_empty()).await;
    // It comes later, with an object of the HPA's name.
    cluster.send("POST", CRDS, &definition()).await;
    let pin = json!({"apiVersion": PIN.api_version, "kind": PIN.name, "metadata": {"name": "web"},
        "spec": {"deployment": "other", "replicas": 5}});
    until("the kind is served", async || {
        let about = About { resource: "", name: "" };
        let made: Result<Value, _> =
            call::send(&cluster.client("tester"), "POST", PINS, &pin, about).await;
        made.is_ok()
    })
    .await;
    until("the pin is decided", async || cluster.get(other).await["spec"]["replicas"] == 5).await;
    until("its status is written in its own form", async || {
        let status = cluster.get(&format!("{PINS}/web")).await["status"].take();
        status["conditions"].as_array().is_some_and(|conditions| !conditions.is_empty())
    })
    .await;
    assert_eq!(cluster.replicas().await, 3, "the HPA of that name goes on");
    // It goes away, and only its own object with it.
    cluster.send("DELETE", &format!("{CRDS}/{}", PIN.resource), &json!({})).await;
    until("its object is gone", async || heard.0.lock().contains(&"gone")).await;
    cluster.resize(1).await;
    until("the HPA is still decided", async || cluster.replicas().await == 3).await;
    controller.stop().await;
    let events = cluster.get("/api/v1/namespaces/default/events").await;
    let events = events["items"].as_array().cloned().unwrap_or_default();
    assert!(events.iter().any(|event| event["involvedObject"]["kind"] == PIN.name), "{events:?}");
}

/// A source whose value changes when somebody says so.
struct Pushed {
    value: Mutex<i64>,
    asked: Mutex<u32>,
}

impl MetricSource for Pushed {
    fn ask<'a>(&'a self, _question: Question<'a>) -> BoxFuture<'a, Answer> {
        *self.asked.lock() += 1;
        let value = json!([{"metricName": "queue", "metricLabels": {}, "value": self.value.lock().to_string(),
            "timestamp": "2026-01-01T00:00:00Z"}]);
        let values: Vec<_> = serde_json::from_value(value).expect("values");
        async move { Answer::External(values.into()) }.boxed()
    }

    fn topic(&self, _question: &Question<'_>) -> Option<Topic> {
        Some(Topic("queue".into()))
    }
}

#[tokio::test(start_paused = true)]
async fn new_samples_are_decided_at_once_and_a_burst_of_them_only_once_a_second() {
    let cluster = Cluster::with(json!({})).await;
    let spec = json!({"spec": {"minReplicas": 1, "metrics": [{"type": "External", "external":
        {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "1"}}}]}});
    cluster.send("PATCH", &format!("{HPA}/web"), &spec).await;
    let source = Arc::new(Pushed { value: Mutex::new(1), asked: Mutex::new(0) });
    let client = cluster.client("podscale/0");
    let mapper = RestMapper::new(client.clone(), cluster.clock);
    let mut sources =
        Sources::metrics_apis(&client, cluster.clock, mapper.clone(), &Metrics::new());
    sources.external = source.clone();
    let (notifier, announcements): (Notifier, _) = source::notifications();
    let controller = Controller::assemble(
        &client,
        cluster.clock,
        Parts {
            config: Config::default(),
            dialects: dialect::built_in(),
            watchers: Watchers::default(),
            role: Role::alone(),
            mapper,
            pods: Arc::default(),
            sources,
            announcements,
        },
    );
    until("it was asked", async || *source.asked.lock() > 0).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let began = tokio::time::Instant::now();
    *source.value.lock() = 4;
    notifier.announce([Topic("queue".into())]);
    until("the new value is acted on", async || cluster.replicas().await == 4).await;
    assert!(began.elapsed() < Duration::from_secs(2), "not at the end of the period");
    let before = *source.asked.lock();
    for _ in 0..1000 {
        notifier.announce([Topic("queue".into())]);
        notifier.announce([Topic("something else".into())]);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = *source.asked.lock() - before;
    assert!((1..=3).contains(&asked), "{asked} times in two seconds");
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_recorded_live_and_replays() {
    let folder = std::env::temp_dir().join(format!("podscale-dry-run-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let cluster = Cluster::with(json!({})).await;
    let metrics = Metrics::new();
    let (recorder, writing) =
        Recorder::start(&folder, Limits::default(), metrics.clone()).expect("a folder");
    let config = Config { dry_run: true, ..Config::default() };
    let counting = crate::telemetry::DecisionMetrics(metrics.clone());
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(recorder), Arc::new(counting)];
    let watchers = Watchers { observers, metrics: metrics.clone(), ..Watchers::default() };
    let (client, dialects) = (cluster.client("podscale/0"), dialect::built_in());
    let controller =
        Controller::start(&client, cluster.clock, config, dialects, watchers, Role::alone());
    tokio::time::sleep(MINUTE).await;
    controller.stop().await;
    writing.finish();
    assert_eq!(cluster.replicas().await, 1, "nothing is written");
    let text = metrics.text();
    assert!(text.contains("podscale_decisions_total{outcome=\"withheld\","), "{text}");
    assert!(!text.contains("podscale_decisions_total{outcome=\"failed\","), "{text}");
    let mut steps = 0;
    for file in std::fs::read_dir(&folder).expect("a folder") {
        let file = std::fs::File::open(file.expect("a file").path()).expect("a file");
        for recording in RecordingReader::new(file).expect("lines") {
            let recording = recording.expect("a recording");
            let mut replayer = Replayer::new(&recording);
            for step in &recording.steps {
                assert_eq!(step.scale_withheld, Some(Withheld::DryRun));
                let wanted = step.expected().expect("a decision");
                let found = replayer.step(step, |replayed| differences(wanted, &replayed.outcome));
                assert!(found.is_empty(), "{found:?}");
                assert!(!wanted.rescaled && wanted.error.is_none() && wanted.events.is_empty());
                steps += 1;
            }
        }
    }
    std::fs::remove_dir_all(&folder).expect("removed");
    assert!(steps >= 4, "{steps} steps in a minute");
}
