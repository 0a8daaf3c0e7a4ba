//! The demonstration from start to end, in this process, on free ports.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
// Helpers of tests may fail as loudly as tests do.
#![allow(clippy::expect_used)]

#[path = "demo/jobs.rs"]
mod jobs;
#[path = "demo/kubelets.rs"]
mod kubelets;
#[path = "demo/own_triggers.rs"]
mod own_triggers;
#[path = "demo/ports.rs"]
mod ports;
#[path = "demo/prometheus.rs"]
mod prometheus;
#[path = "demo/triggers.rs"]
mod triggers;

use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config as ClientConfig};
use parking_lot::Mutex;
use podscale::demo::{Config, Demo};
use podscale::scenario::Scenario;
use podscale_cluster::nodes::KubeletPort;
use podscale_controller::controller::observer::{Decided, JobsDecided, Observer, rescale_line};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

/// How long anything may take before the test gives up: generous, since machines can be busy.
const TIMEOUT: Duration = Duration::from_secs(240);

/// One workload that gets more load than its pods should bear, and one that gets almost none.
const SCENARIO: &str = "
name: up-and-down
speed: 10
nodes: 2
workloads:
- name: busy
  model: {rpsPerPod: 50, cpuMsPerRequest: 5, baseMemoryBytes: 50000000}
  load: {constant: {rps: 120}}
- name: idle
  model: {rpsPerPod: 50, cpuMsPerRequest: 5, baseMemoryBytes: 50000000}
  load: {constant: {rps: 1}}
manifests:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: busy}
  spec:
    replicas: 2
    selector: {matchLabels: {app: busy}}
    template:
      metadata: {labels: {app: busy}}
      spec:
        containers:
        - {name: c, image: example.com/c, resources: {requests: {cpu: 100m}}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: idle}
  spec:
    replicas: 4
    selector: {matchLabels: {app: idle}}
    template:
      metadata: {labels: {app: idle}}
      spec:
        containers:
        - {name: c, image: example.com/c, resources: {requests: {cpu: 100m}}}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: busy}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: busy}
    minReplicas: 1
    maxReplicas: 8
    metrics:
    - type: Pods
      pods: {metric: {name: requests_per_second}, target: {type: AverageValue, averageValue: '20'}}
- apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata: {name: idle}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: idle}
    minReplicas: 1
    maxReplicas: 8
    metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
    behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
";

fn scenario(text: &str) -> Scenario {
    Scenario::read("test", text, None).expect("the scenario makes sense")
}

/// Keeps the lines of changes of size.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Observer for Lines {
    fn decided(&self, decided: &Decided<'_>) {
        self.0.lock().extend(rescale_line(decided));
    }

    fn jobs_decided(&self, decided: &JobsDecided<'_>) {
        if decided.created() > 0 {
            let (name, reason) = (&decided.key.name, decided.reason());
            self.0.lock().push(format!("{name}: +{}: {reason}", decided.created()));
        }
    }
}

/// Polls until there is something.
async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(Instant::now() < end, "no {what} within {TIMEOUT:?}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// A client as anybody has who is given the kubeconfig: over the socket, with TLS and token.
async fn outside(demo: &Demo) -> Client {
    let kubeconfig = Kubeconfig::read_from(demo.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = ClientConfig::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

async fn page(address: SocketAddr, path: &str) -> String {
    call(address, "GET", path, "").await
}

async fn call(address: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("a dashboard");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: \
         application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer
}

fn address(url: &str) -> SocketAddr {
    let (_, rest) = url.split_once("://").expect("a URL");
    rest.trim_end_matches('/').parse().expect("an address")
}

/// The size that was set last, once the status tells of a change of size in this direction.
fn scaled(hpa: &HorizontalPodAutoscaler, from: i32) -> Option<i32> {
    let status = hpa.status.as_ref()?;
    status.last_scale_time.as_ref()?;
    (status.desired_replicas != from).then_some(status.desired_replicas)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_goes_up_another_down_and_all_ends_well() {
    let heard = Arc::new(Lines::default());
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::clone(&heard) as _];
    let demo = Demo::start(Config::of(scenario(SCENARIO)), observers).await.expect("starts");
    let client = outside(&demo).await;
    let hpas: Api<HorizontalPodAutoscaler> = Api::default_namespaced(client.clone());

    for (name, from, up) in [("busy", 2, true), ("idle", 4, false)] {
        let poll = async || scaled(&hpas.get(name).await.expect("an autoscaler"), from);
        let to = until(&format!("change of size of {name}"), poll).await;
        assert_eq!(to > from, up, "{name} went from {from} to {to}");

        let hpa = hpas.get(name).await.expect("an autoscaler");
        let status = hpa.status.expect("a status");
        assert_eq!(status.observed_generation, Some(1));
        assert_eq!(status.current_metrics.map(|metrics| metrics.len()), Some(1));
        let conditions: Vec<String> = status
            .conditions
            .unwrap_or_default()
            .iter()
            .map(|condition| format!("{}={}", condition.type_, condition.status))
            .collect();
        for expected in ["AbleToScale=True", "ScalingActive=True"] {
            assert!(conditions.iter().any(|c| c == expected), "{name}: {conditions:?}");
        }
        assert!(conditions.iter().any(|c| c.starts_with("ScalingLimited=")), "{conditions:?}");

        let events: Api<Event> = Api::default_namespaced(client.clone());
        let about =
            format!("involvedObject.kind=HorizontalPodAutoscaler,involvedObject.name={name}");
        let told = until(&format!("event of {name}"), async || {
            let list = events.list(&ListParams::default().fields(&about)).await.expect("events");
            list.items.into_iter().find(|e| e.reason.as_deref() == Some("SuccessfulRescale"))
        })
        .await;
        let component = told.source.and_then(|source| source.component);
        assert_eq!(component.as_deref(), Some("horizontal-pod-autoscaler"));
        assert!(told.message.is_some_and(|m| m.starts_with("New size: ")));
        assert_eq!(told.involved_object.uid, hpa.metadata.uid);
    }

    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::default_namespaced(client.clone());
    until("ready pods of busy", async || {
        let status = deployments.get("busy").await.expect("a deployment").status?;
        (status.ready_replicas? > 2).then_some(())
    })
    .await;

    let lines = heard.0.lock().join("\n");
    assert!(lines.contains("Deployment busy: 2 → "), "{lines}");
    assert!(lines.contains("requests_per_second is at "), "{lines}");
    assert!(lines.contains("Deployment idle: 4 → "), "{lines}");

    let (dashboard, server) = (address(&demo.dashboard_url()), address(&demo.server_url()));
    let shown = page(dashboard, "/api/autoscalers").await;
    for name in ["busy", "idle"] {
        assert!(shown.contains(&format!("\"{name}\"")), "{shown}");
    }
    assert!(page(dashboard, "/").await.starts_with("HTTP/1.1 200"));
    assert!(page(dashboard, "/load").await.contains("offeredRps"));

    let kubeconfig = demo.kubeconfig().to_owned();
    assert!(kubeconfig.exists());
    drop(client);
    timeout(TIMEOUT, demo.stop()).await.expect("ends");
    assert!(!kubeconfig.exists(), "the kubeconfig is removed");
    for closed in [dashboard, server] {
        assert!(TcpStream::connect(closed).is_err(), "{closed} is closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_the_server_refuses_is_an_error_of_one_line() {
    let text = "
name: wrong
manifests:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, dataa: {a: b}}
";
    let start = Demo::start(Config::of(scenario(text)), Vec::new());
    let error = start.await.err().expect("the field is not known").to_string();
    assert!(error.starts_with("scenario wrong: cannot create ConfigMap x: "), "{error}");
    assert!(error.contains("unknown field \"dataa\""), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

/// Pods of the workload `busy`, and whether each is ready.
async fn busy_pods(pods: &Api<Pod>) -> Vec<(String, bool, i32)> {
    let list = pods.list(&ListParams::default().labels("app=busy")).await.expect("pods");
    let show = |pod: Pod| {
        let status = pod.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let ready = conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True");
        let containers = status.container_statuses.unwrap_or_default();
        let restarts = containers.iter().map(|container| container.restart_count).sum();
        (pod.metadata.name.unwrap_or_default(), ready, restarts)
    };
    list.items.into_iter().map(show).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn load_and_faults_are_set_by_calls() {
    let quiet = scenario(SCENARIO).without_load();
    let demo = Demo::start(Config::of(quiet), Vec::new()).await.expect("starts");
    let dashboard = address(&demo.dashboard_url());
    let pods: Api<Pod> = Api::default_namespaced(outside(&demo).await);
    assert!(page(dashboard, "/load/default/busy").await.contains("\"offeredRps\":0"));
    let answer = call(dashboard, "PUT", "/load/default/busy", "{\"rps\": 30}").await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    until("the load that was set", async || {
        let shown = page(dashboard, "/load/default/busy").await;
        shown.contains("\"offeredRps\":30").then_some(())
    })
    .await;
    for (path, body, code) in [
        ("/load/default/nobody", "{\"rps\": 1}", "404"),
        ("/load/default/busy", "{\"rps\": -1}", "422"),
        ("/load/default/busy", "{\"rsp\": 1}", "422"),
        ("/faults/default/nobody", "{\"fault\": \"crash\"}", "404"),
        ("/faults/default/nobody", "{\"fault\": \"boredom\"}", "422"),
        ("/nodes/nobody", "{\"running\": false}", "404"),
    ] {
        let answer = call(dashboard, "PUT", path, body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{path} {body}: {answer}");
    }

    let ready = async || busy_pods(&pods).await.into_iter().find(|(_, ready, _)| *ready);
    let (pod, _, _) = until("a ready pod", ready).await;
    let fault = format!("/faults/default/{pod}");
    let is_ready = async |wanted: bool| {
        let found = busy_pods(&pods).await.into_iter().find(|(name, ..)| *name == pod);
        found.filter(|(_, ready, _)| *ready == wanted)
    };
    call(dashboard, "PUT", &fault, "{\"fault\": \"unready\"}").await;
    until("a pod that is not ready", async || is_ready(false).await).await;
    call(dashboard, "DELETE", &fault, "").await;
    until("a pod that is ready again", async || is_ready(true).await).await;

    let measured = format!("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/{pod}");
    let metrics = async || {
        let request = axum::http::Request::get(&measured).body(Vec::new()).expect("a request");
        demo.client().request::<serde_json::Value>(request).await.is_ok()
    };
    until("metrics", async || metrics().await.then_some(())).await;

    let plain = page(dashboard, &format!("/plain/namespaces/default/pods/{pod}")).await;
    assert!(plain.contains(&format!("\"name\":\"{pod}\"")), "{plain}");
    let everywhere = page(dashboard, "/plain/namespaces/all-namespaces/pods").await;
    assert!(everywhere.contains(&pod), "{everywhere}");
    let nodes = page(dashboard, "/plain/nodes").await;
    assert!(nodes.contains("\"name\":\"node-1\""), "{nodes}");
    let none = page(dashboard, "/plain/namespaces/default/pods/nobody").await;
    assert!(none.starts_with("HTTP/1.1 404"), "{none}");
    let written = call(dashboard, "PUT", "/plain/nodes/node-1", "{}").await;
    assert!(written.starts_with("HTTP/1.1 405"), "{written}");
    call(dashboard, "PUT", &fault, "{\"fault\": \"no-metrics\"}").await;
    until("no metrics", async || (!metrics().await).then_some(())).await;
    call(dashboard, "PUT", &fault, "{\"fault\": \"crash\"}").await;
    until("a restart", async || {
        busy_pods(&pods).await.into_iter().find(|(name, _, restarts)| *name == pod && *restarts > 0)
    })
    .await;

    let answer = call(dashboard, "PUT", "/nodes/node-1", "{\"running\": false}").await;
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert!(page(dashboard, "/nodes").await.contains("\"running\":false"));

    // A clock that is ahead of the wall clock would make kubectl show no ages at all.
    assert!(demo.clock().now() < jiff::Timestamp::now());
    drop(pods);
    timeout(TIMEOUT, demo.stop()).await.expect("ends");
}

/// Runs the program, which must refuse in one line.
fn fails(arguments: &[&str], expected: &[&str]) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_podscale"))
        .arg("demo")
        .args(arguments)
        .output()
        .expect("the program starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
    assert_eq!(told.lines().count(), 1, "{arguments:?}: {told}");
    for part in expected {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
}

#[test]
fn the_program_refuses_in_one_line() {
    let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let folder = std::env::temp_dir().join(format!("podscale-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("bad.yaml");
    std::fs::write(&file, "name: bad\nmanifests: []\nspeeed: 3\n").expect("a file");
    let (bad, there) = (file.display().to_string(), file.display().to_string());
    // A file is no folder, whoever asks; folders without permission are no obstacle to root.
    let inside = file.join("kubeconfig").display().to_string();
    let free = ["--port", "0", "--kubelet-port", "0"];

    fails(&["--port", &port], &[&format!("127.0.0.1:{port}"), "in use"]);
    fails(&["--scenario", "/nowhere.yaml"], &["/nowhere.yaml", "No such file", "tour, queue"]);
    fails(&["--scenario", &bad], &["bad.yaml", "speeed: unknown field"]);
    for kubeconfig in [&inside, &there] {
        let arguments = [&free[..], &["--kubeconfig", kubeconfig]].concat();
        fails(&arguments, &["cannot write the kubeconfig", kubeconfig]);
    }
    assert!(file.exists(), "somebody's file is kept");
    std::fs::remove_dir_all(&folder).expect("removed");
}
