//! Without a jump of the size: what an HPA did lately counts for the PodAutoscaler that takes its place, and
//! the other way round.

use super::*;
use axum::routing::get;
use axum::{Json, Router};
use jiff::SignedDuration;
use podscale_client::clock::Clock;
use podscale_controller::controller::{Config as Controlled, Controller, Role, Watchers};
use podscale_controller::dialect;
use std::time::Duration;

const HPA_PATH: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/web/scale";
const MINUTE: Duration = Duration::from_secs(60);

/// An API server, a metric that asks for a hundred replicas, and an HPA that may add two in ten minutes.
struct Cluster {
    client: Client,
    clock: Clock,
}

impl Cluster {
    async fn new(replicas: i32) -> Cluster {
        let clock = Clock::wall();
        let server =
            ApiServer::new(Config { clock: Arc::new(move || clock.now()), ..Config::default() });
        let queue = async || {
            let value = json!({"metricName": "queue", "metricLabels": {}, "value": "100",
                "timestamp": "2026-01-01T00:00:00Z"});
            Json(json!({"kind": "ExternalMetricValueList", "metadata": {}, "items": [value]}))
        };
        let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue";
        let router = Router::new().route(path, get(queue)).fallback_service(server.router());
        let cluster = Cluster { client: Client::new(router, "default"), clock };
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        cluster.send("POST", definitions, &crd::definition()).await;
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
                "template": template}});
        cluster.send("POST", "/apis/apps/v1/namespaces/default/deployments", &target).await;
        let policy = json!({"type": "Pods", "value": 2, "periodSeconds": 600});
        let hpa = json!({"apiVersion": HPA_VERSION, "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"}, "spec": {"maxReplicas": 50,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "behavior": {"scaleUp": {"policies": [policy]}},
                "metrics": [{"type": "External", "external": {"metric": {"name": "queue"},
                    "target": {"type": "AverageValue", "averageValue": "1"}}}]}});
        cluster.send("POST", HPA_PATH, &hpa).await;
        cluster
    }

    async fn send(&self, verb: &'static str, path: &str, object: &Value) -> Value {
        let about = About { resource: "", name: "" };
        call::send(&self.client, verb, path, object, about).await.expect("accepted")
    }

    async fn get(&self, path: &str) -> Value {
        let about = About { resource: "", name: "" };
        call::get(&self.client, path, about).await.expect("an answer")
    }

    async fn replicas(&self) -> i64 {
        self.get(SCALE).await["spec"]["replicas"].as_i64().expect("a size")
    }

    async fn until_replicas(&self, replicas: i64) {
        for _ in 0..2000 {
            if self.replicas().await == replicas {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        panic!("never {replicas}");
    }

    fn control(&self) -> Controller {
        let (config, watchers) = (Controlled::default(), Watchers::default());
        let (dialects, role) = (dialect::built_in(), Role::alone());
        Controller::start(&self.client, self.clock, config, dialects, watchers, role)
    }

    async fn run(&self, line: &str) {
        let arguments = arguments(line).expect("flags");
        replace_all(&self.client, &arguments, &mut |_: &str| {}).await.expect("done");
    }

    /// What is left of a change of so long ago, as another controller reports it.
    async fn report(&self, uid: &Value, message: &str, reason: &str, ago: Duration) {
        let ago = SignedDuration::try_from(ago).expect("a span");
        let at =
            jiff::Timestamp::from_second((self.clock.now() - ago).as_second()).expect("a time");
        let hpa = reason == "SuccessfulRescale";
        let kind = if hpa { "HorizontalPodAutoscaler" } else { "Deployment" };
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "e-"},
            "involvedObject": {"kind": kind, "namespace": "default", "name": "web", "uid": uid},
            "reason": reason, "message": message, "type": "Normal", "count": 1,
            "firstTimestamp": at.to_string(), "lastTimestamp": at.to_string()});
        self.send("POST", "/api/v1/namespaces/default/events", &event).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_podscale_did_as_the_hpa_counts_there_and_back() {
    let cluster = Cluster::new(1).await;
    let controller = cluster.control();
    cluster.until_replicas(3).await;
    tokio::time::sleep(2 * MINUTE).await;
    cluster.run("default/web").await;
    assert_eq!(names(&cluster.client).await, " | web");
    tokio::time::sleep(6 * MINUTE).await;
    assert_eq!(cluster.replicas().await, 3, "two more were all for ten minutes");
    cluster.until_replicas(5).await;
    tokio::time::sleep(MINUTE).await;
    cluster.run("--all --undo").await;
    tokio::time::sleep(7 * MINUTE).await;
    assert_eq!(cluster.replicas().await, 5, "and these were the PodAutoscaler's");
    cluster.until_replicas(7).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_another_controller_did_counts_as_far_as_events_tell() {
    for podscale_runs in [false, true] {
        let cluster = Cluster::new(5).await;
        let annotated = json!({"metadata": {"annotations": {"podscale.dev/managed": "false"}}});
        let hpa = cluster.send("PATCH", &format!("{HPA_PATH}/web"), &annotated).await;
        let uid = &hpa["metadata"]["uid"];
        let rescaled = "New size: 3; reason: external metric queue(nil) above target";
        cluster.report(uid, rescaled, "SuccessfulRescale", 12 * MINUTE).await;
        let scaled = "Scaled up replica set web-1 from 1 to 3";
        cluster.report(&json!("d"), scaled, "ScalingReplicaSet", 12 * MINUTE).await;
        let rescaled = "New size: 5; reason: external metric queue(nil) above target";
        cluster.report(uid, rescaled, "SuccessfulRescale", 3 * MINUTE).await;
        // The controller may have stored a status of the PodAutoscaler before the command does.
        let early = if podscale_runs { Some(cluster.control()) } else { None };
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster.run("default/web").await;
        let pa = cluster.get("/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers/web");
        let decisions = pa.await["status"]["decisions"].take();
        let change =
            |place: usize| (decisions[place]["from"].clone(), decisions[place]["to"].clone());
        assert_eq!((change(0), change(1)), ((json!(3), json!(5)), (json!(1), json!(3))));
        let controller = early.unwrap_or_else(|| cluster.control());
        tokio::time::sleep(6 * MINUTE).await;
        assert_eq!(cluster.replicas().await, 5, "no jump");
        cluster.until_replicas(7).await;
        controller.stop().await;
    }
}
