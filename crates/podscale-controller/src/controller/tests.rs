mod chpa;
mod kinds;
mod mutations;
mod pod_autoscaler;
mod recordings;
mod scaled_object;
mod seams;

use super::reconcile::WRITE_PERMITS;
use super::*;
use crate::dialect::{self, Key};
use crate::dialect::{CONFLICT_CONDITION, CONFLICT_REASON, TARGET_TAKEN};
use axum::body::Body;
use axum::http::{HeaderValue, Request, header};
use axum::middleware::{Next, from_fn, map_request};
use axum::routing::get;
use axum::{Json, Router};
use podscale_apiserver::ApiServer;
use podscale_client::call::{self, About};
use serde_json::{Value, json};

const HPA: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const SCALE: &str = "/apis/apps/v1/namespaces/default/deployments/web/scale";

/// An API server without any other controller; the target has one replica and should have three.
struct Cluster {
    server: ApiServer,
    clock: Clock,
}

impl Cluster {
    async fn with(annotations: Value) -> Cluster {
        let clock = Clock::wall();
        let server = ApiServer::new(podscale_apiserver::Config {
            clock: Arc::new(move || clock.now()),
            ..podscale_apiserver::Config::default()
        });
        let cluster = Cluster { server, clock };
        let template = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}});
        cluster.send("POST", "/apis/apps/v1/namespaces/default/deployments", &target).await;
        let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "annotations": annotations},
            "spec": {"minReplicas": 3, "maxReplicas": 9, "scaleTargetRef":
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
        cluster.send("POST", HPA, &hpa).await;
        cluster
    }

    /// A client that the server knows by this name.
    fn client(&self, agent: &'static str) -> Client {
        let identify = move |mut request: Request<Body>| {
            request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static(agent));
            std::future::ready(request)
        };
        let queue = async || {
            let value = json!({"metricName": "queue", "metricLabels": {}, "value": "100",
                "timestamp": "2026-01-01T00:00:00Z"});
            Json(json!({"kind": "ExternalMetricValueList", "metadata": {}, "items": [value]}))
        };
        let path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue";
        let router = Router::new().route(path, get(queue)).fallback_service(self.server.router());
        Client::new(router.layer(map_request(identify)), "default")
    }

    async fn send(&self, verb: &'static str, path: &str, object: &Value) -> Value {
        let about = About { resource: "", name: "" };
        call::send(&self.client("tester"), verb, path, object, about).await.expect("accepted")
    }

    async fn get(&self, path: &str) -> Value {
        let about = About { resource: "", name: "" };
        call::get(&self.client("tester"), path, about).await.expect("an answer")
    }

    /// How many replicas are asked for; API servers leave a zero out.
    async fn replicas(&self) -> Value {
        match self.get(SCALE).await["spec"]["replicas"].take() {
            Value::Null => json!(0),
            replicas => replicas,
        }
    }

    async fn resize(&self, replicas: i32) {
        self.send("PATCH", SCALE, &json!({"spec": {"replicas": replicas}})).await;
    }

    /// Writes a status as another controller would.
    async fn overwrite(&self, desired: i32) {
        let path = format!("{HPA}/web/status");
        let status = json!({"status": {"currentReplicas": 1, "desiredReplicas": desired}});
        let about = About { resource: "", name: "" };
        let client = self.client("other-controller");
        let written: Result<Value, _> = call::send(&client, "PATCH", &path, &status, about).await;
        written.expect("written");
    }

    async fn reasons(&self) -> Vec<String> {
        let events = self.get("/api/v1/namespaces/default/events").await;
        let events = events["items"].as_array().cloned().unwrap_or_default();
        events.iter().filter_map(|e| e["reason"].as_str().map(str::to_owned)).collect()
    }

    fn control(&self, config: Config, metrics: &Metrics, role: Role) -> Controller {
        self.control_through(&self.client("podscale/0"), config, metrics, role)
    }

    fn control_through(
        &self,
        client: &Client,
        config: Config,
        metrics: &Metrics,
        role: Role,
    ) -> Controller {
        let watchers = Watchers { metrics: metrics.clone(), ..Watchers::default() };
        Controller::start(client, self.clock, config, dialect::built_in(), watchers, role)
    }
}

/// Waits until something holds; time is virtual, so this is long in vain only.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..2000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn only_the_leader_acts() {
    let cluster = Cluster::with(json!({})).await;
    let (elect, leading) = watch::channel(None);
    let role = Role { leading, histories: None };
    let controller = cluster.control(Config::default(), &Metrics::new(), role);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(cluster.replicas().await, 1, "a standby");
    elect.send_replace(Some(Term::Elected(1)));
    until("the leader acts", async || cluster.replicas().await == 3).await;
    elect.send_replace(None);
    tokio::time::sleep(Duration::from_secs(1)).await;
    cluster.resize(1).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(cluster.replicas().await, 1, "the lease is lost");
    elect.send_replace(Some(Term::Elected(3)));
    until("it leads again", async || cluster.replicas().await == 3).await;
    controller.stop().await;
    assert!(cluster.reasons().await.contains(&"SuccessfulRescale".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing_and_reports_disagreements() {
    let cluster = Cluster::with(json!({"podscale.dev/tolerance": "much"})).await;
    let (config, metrics) = (Config { dry_run: true, ..Config::default() }, Metrics::new());
    let controller = cluster.control(config, &metrics, Role::alone());
    let reported = |count: u32| {
        let text = metrics.text();
        text.contains(&format!("\npodscale_disagreements_total {count}\n"))
    };
    // As long as the longest window.
    tokio::time::sleep(MINUTE * 6).await;
    assert!(reported(0), "nobody else has chosen anything");
    cluster.overwrite(3).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(reported(0), "the same choice");
    cluster.overwrite(5).await;
    until("another choice", async || reported(1)).await;
    let hpa = cluster.get(&format!("{HPA}/web")).await;
    assert_eq!(
        hpa["status"],
        json!({"currentReplicas": 1, "desiredReplicas": 5, "currentMetrics": null})
    );
    assert_eq!(cluster.replicas().await, 1);
    controller.stop().await;
    assert_eq!(cluster.reasons().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn steps_back_from_an_object_that_another_controller_manages() {
    let cluster = Cluster::with(json!({})).await;
    let controller = cluster.control(Config::default(), &Metrics::new(), Role::alone());
    let path = format!("{HPA}/web");
    let condition = async || {
        let hpa = cluster.get(&path).await;
        let conditions = hpa["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|c| c["type"] == CONFLICT_CONDITION)
    };
    for desired in [7, 8, 7] {
        until("Podscale writes", async || {
            let hpa = cluster.get(&path).await;
            hpa["status"]["desiredReplicas"] == 3 || condition().await.is_some()
        })
        .await;
        cluster.overwrite(desired).await;
        cluster.resize(1).await;
    }
    until("it says so", async || condition().await.is_some()).await;
    let said = condition().await.unwrap_or_default();
    assert_eq!((&said["status"], &said["reason"]), (&json!("True"), &json!(CONFLICT_REASON)));
    let message = said["message"].as_str().unwrap_or_default();
    let advice = "Exclude it from one of them, for instance with the annotation \
                  podscale.dev/managed: \"false\"";
    assert!(message.ends_with(advice), "{message}");
    cluster.resize(1).await;
    let before = cluster.get(&path).await;
    tokio::time::sleep(MINUTE * 4).await;
    assert_eq!(cluster.replicas().await, 1);
    assert_eq!(cluster.get(&path).await, before);
    // Nobody else has written for a while.
    until("it tries again", async || cluster.replicas().await == 3).await;
    until("it says so", async || condition().await.is_none()).await;
    controller.stop().await;
    assert!(cluster.reasons().await.contains(&CONFLICT_REASON.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn says_which_annotation_makes_no_sense_and_how_to_write_it() {
    let cluster = Cluster::with(json!({"podscale.dev/sync-period": "often"})).await;
    let controller = cluster.control(Config::default(), &Metrics::new(), Role::alone());
    until("it acts all the same", async || cluster.replicas().await == 3).await;
    controller.stop().await;
    let reasons = cluster.reasons().await;
    let count = reasons.iter().filter(|reason| *reason == "InvalidAnnotation").count();
    assert_eq!(count, 1, "{reasons:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rate_policy_holds_from_one_leader_to_the_next() {
    let cluster = Cluster::with(json!({})).await;
    let policy = json!({"type": "Pods", "value": 2, "periodSeconds": 600});
    let spec = json!({"spec": {"minReplicas": 1, "behavior": {"scaleUp": {"policies": [policy]}},
        "metrics": [{"type": "External", "external": {"metric": {"name": "queue"},
            "target": {"type": "AverageValue", "averageValue": "1"}}}]}});
    cluster.send("PATCH", &format!("{HPA}/web"), &spec).await;
    let histories = || {
        let (namespace, name) = ("default".to_owned(), "podscale".to_owned());
        Some(history_store::Config { namespace, name })
    };
    let role = |term| {
        let leading = watch::channel(Some(Term::Elected(term))).1;
        Role { leading, histories: histories() }
    };
    let first = cluster.control(Config::default(), &Metrics::new(), role(1));
    until("two more", async || cluster.replicas().await == 3).await;
    first.stop().await;
    let second = cluster.control(Config::default(), &Metrics::new(), role(2));
    tokio::time::sleep(MINUTE * 8).await;
    assert_eq!(cluster.replicas().await, 3, "two more were all for ten minutes");
    until("two more after that", async || {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cluster.replicas().await == 5
    })
    .await;
    second.stop().await;
}

#[tokio::test(start_paused = true)]
async fn is_not_ready_before_the_targets_that_autoscalers_name_are_listed() {
    readiness_when_the_list(true).await;
}

#[tokio::test(start_paused = true)]
async fn targets_that_cannot_be_listed_are_not_waited_for_long() {
    readiness_when_the_list(false).await;
}

async fn readiness_when_the_list(comes: bool) {
    let began = tokio::time::Instant::now();
    let cluster = Cluster::with(json!({})).await;
    let (open, opened) = watch::channel(false);
    let wait = move |request: Request<Body>| {
        let mut opened = opened.clone();
        async move {
            if request.uri().path() == "/apis/apps/v1/deployments" {
                let _ = opened.wait_for(|open| *open).await;
            }
            request
        }
    };
    let router = Router::new().fallback_service(cluster.server.router());
    let client = Client::new(router.layer(map_request(wait)), "default");
    let readiness = Readiness::new();
    let watchers = Watchers { readiness: readiness.clone(), ..Watchers::default() };
    let (config, role) = (Config::default(), Role::alone());
    let dialects = dialect::built_in();
    let controller = Controller::start(&client, cluster.clock, config, dialects, watchers, role);
    until("the rest is known", async || readiness.missing() == ["the list of deployments"]).await;
    if comes {
        open.send_replace(true);
        until("it is ready", async || readiness.missing().is_empty()).await;
        assert!(began.elapsed() < Duration::from_secs(5), "as soon as the list is there");
    }
    until("it decides", async || cluster.replicas().await == 3).await;
    until("it is ready", async || readiness.missing().is_empty()).await;
    controller.stop().await;
}

/// What an observer hears, in order.
#[derive(Default)]
struct Heard(parking_lot::Mutex<Vec<&'static str>>);

impl Observer for Heard {
    fn decided(&self, _decided: &observer::Decided<'_>) {
        self.0.lock().push("decided");
    }

    fn gone(&self, _key: &Key) {
        self.0.lock().push("gone");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_during_a_reconcile_leaves_nothing_behind() {
    let cluster = Cluster::with(json!({})).await;
    let (open, opened) = watch::channel(false);
    let (begin, mut begun) = watch::channel(false);
    let slow = move |request: Request<Body>| {
        let (mut opened, begin) = (opened.clone(), begin.clone());
        async move {
            if request.uri().path().ends_with("/status") {
                begin.send_replace(true);
                let _ = opened.wait_for(|open| *open).await;
            }
            request
        }
    };
    let router = Router::new().fallback_service(cluster.server.router());
    let client = Client::new(router.layer(map_request(slow)), "default");
    let heard = Arc::new(Heard::default());
    let watchers = Watchers { observers: vec![heard.clone()], ..Watchers::default() };
    let (config, role) = (Config::default(), Role::alone());
    let dialects = dialect::built_in();
    let controller = Controller::start(&client, cluster.clock, config, dialects, watchers, role);
    begun.wait_for(|begun| *begun).await.expect("a status is being written");
    cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
    until("it is gone", async || heard.0.lock().last() == Some(&"gone")).await;
    open.send_replace(true);
    until("the reconcile ends", async || heard.0.lock().contains(&"decided")).await;
    until("nothing is left", async || heard.0.lock().last() == Some(&"gone")).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn many_observe_at_once_and_fewer_write() {
    let cluster = Cluster::with(json!({})).await;
    let mut hpa = cluster.get(&format!("{HPA}/web")).await;
    for number in 0..WRITE_PERMITS + 50 {
        hpa["metadata"] = json!({"name": format!("web-{number}")});
        cluster.send("POST", HPA, &hpa).await;
    }
    // A server that takes its time with statuses, and how many it was sent at most at once, and in all.
    let sent = Arc::new(parking_lot::Mutex::new((0, 0, 0)));
    let counted = Arc::clone(&sent);
    let slow = move |request: Request<Body>, next: Next| {
        let counted = Arc::clone(&counted);
        async move {
            let is_status = request.uri().path().ends_with("/status");
            if is_status {
                let (now, most, all) = &mut *counted.lock();
                *now += 1;
                *all += 1;
                *most = (*most).max(*now);
            }
            tokio::time::sleep(Duration::from_millis(if is_status { 500 } else { 0 })).await;
            let answer = next.run(request).await;
            counted.lock().0 -= i32::from(is_status);
            answer
        }
    };
    let client = Client::new(cluster.server.router().layer(from_fn(slow)), "default");
    let role = Role::alone();
    let controller = cluster.control_through(&client, Config::default(), &Metrics::new(), role);
    until("all were written", async || sent.lock().2 > WRITE_PERMITS + 50).await;
    controller.stop().await;
    assert_eq!(sent.lock().1, i32::try_from(WRITE_PERMITS).expect("a small number"));
}
