//! Nodes, load and metrics together, against the API server in this process.

use super::*;
use crate::load::{LoadModel, WorkloadConfig};
use crate::metrics;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use podscale_apiserver::{ApiServer, Certificates, Config};
use podscale_metrics::kubelet::{self, Access, Form, KubeletReader, Scheme, Target, Token, tls};
use podscale_metrics::scraper::address::Addressing;
use podscale_metrics::scraper::{Failed, Observer, Scraped};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

/// How much faster than the wall clock the clock runs.
const SPEED: f64 = 50.0;
/// How long (wall-clock) something may take before it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(60);

struct Cluster {
    server: ApiServer,
    client: Client,
    clock: Clock,
    nodes: Nodes,
    authority: String,
}

/// What kubelets must be shown.
const TOKEN: &str = "kubelet-token";

/// Hears of no scrape.
struct Nobody;

impl Observer for Nobody {
    fn scraped(&self, _: &Arc<str>, _: &Scraped<'_>) {}
    fn failed(&self, _: &Arc<str>, _: &Failed<'_>) {}
}

/// Over TLS, with the token.
fn way(cluster: &Cluster) -> metrics::Way {
    let access = Access {
        tls: tls::trusting(cluster.authority.as_bytes()).unwrap(),
        token: Token::fixed(TOKEN).unwrap(),
        timeout: kubelet::REQUEST_TIMEOUT,
    };
    let (reader, addressing) = (KubeletReader::new(access), Addressing::default());
    metrics::Way { reader, addressing, limits: metrics::LIMITS }
}

async fn cluster(count: usize) -> Cluster {
    let clock = Clock::fast("2030-01-01T00:00:00Z".parse::<Timestamp>().unwrap(), SPEED);
    let server =
        ApiServer::new(Config { clock: Arc::new(move || clock.now()), ..Config::default() });
    let client = Client::new(server.router(), "default");
    let certificates = Certificates::generate(&["localhost"]).unwrap();
    let authority = certificates.authority_pem().to_owned();
    let certify = move |name: &str, address: &str| {
        certificates.sign(name, &[name, address]).map_err(Into::into)
    };
    let config = NodesConfig {
        count,
        port: KubeletPort::Required(0),
        identity: Some(Identity::new(certify, TOKEN)),
        ..NodesConfig::default()
    };
    let nodes = Nodes::start(client.clone(), clock, &config).await.unwrap();
    Cluster { server, client, clock, nodes, authority }
}

impl Cluster {
    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    async fn create(&self, name: &str, node: &str, annotations: Value) {
        let pod = serde_json::from_value(json!({
            "metadata": {"name": name, "labels": {"app": "web"}, "annotations": annotations},
            "spec": {"nodeName": node, "containers": [{"name": "app", "image": "app:1",
                "resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "400m"}}}]},
        }))
        .unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    /// The pod, once it is as wanted.
    async fn pod(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        eventually(name, async || {
            let pod = self.pods().get(name).await.unwrap();
            let pod = serde_json::to_value(pod).unwrap();
            wanted(&pod).then_some(pod)
        })
        .await
    }

    async fn raw(&self, path: &str) -> Result<Value, kube::Error> {
        self.client.request(axum::http::Request::get(path).body(Vec::new()).unwrap()).await
    }
}

/// What a question gives once it gives something.
async fn eventually<T>(what: &str, question: impl AsyncFn() -> Option<T>) -> T {
    let answer = async {
        loop {
            if let Some(answer) = question().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, answer).await.unwrap_or_else(|_| panic!("never: {what}"))
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut found = conditions.into_iter().flatten().filter(|condition| condition["type"] == kind);
    found.next().unwrap_or(&Value::Null)
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready")["status"] == "True"
}

#[tokio::test]
async fn nodes_register_themselves_and_stay_alive() {
    let cluster = cluster(2).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), "kube-node-lease");
    let node = serde_json::to_value(nodes.get("node-2").await.unwrap()).unwrap();
    assert!(is_ready(&node), "{node}");
    assert_eq!(
        node["status"]["addresses"][0],
        json!({"type": "InternalIP", "address": "127.0.1.2"})
    );
    assert_eq!(node["status"]["capacity"]["pods"], "110");
    assert_eq!(node["spec"]["podCIDR"], "10.0.16.0/20");

    let renewed = async |name: &str| {
        let lease = leases.get(name).await.ok()?;
        Some(lease.spec?.renew_time?.0)
    };
    let first = eventually("a lease", async || renewed("node-1").await).await;
    eventually("a renewal", async || renewed("node-1").await.filter(|later| *later > first)).await;

    let control = cluster.nodes.control();
    control.set_running("node-1", false).await.unwrap();
    // A round of heartbeats that had begun may still end.
    cluster.clock.sleep(register::HEARTBEAT).await;
    let stopped = renewed("node-1").await;
    let other = renewed("node-2").await.unwrap();
    eventually("a further renewal", async || {
        renewed("node-2").await.filter(|later| *later > other)
    })
    .await;
    assert_eq!(renewed("node-1").await, stopped, "a stopped node sends no heartbeats");

    let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let params = PatchParams::default();
    nodes.patch_status("node-1", &params, &Patch::Strategic(patch)).await.unwrap();
    control.set_running("node-1", true).await.unwrap();
    eventually("the node is ready again", async || {
        let node = serde_json::to_value(nodes.get("node-1").await.unwrap()).unwrap();
        is_ready(&node).then_some(())
    })
    .await;
    assert!(control.set_running("node-9", true).await.is_err());
}

#[tokio::test]
async fn a_pod_lives_and_ends() {
    let cluster = cluster(1).await;
    cluster.create("web", "node-1", json!({})).await;
    let pod = cluster.pod("web", is_ready).await;
    let status = &pod["status"];
    assert_eq!((&status["phase"], &status["podIP"]), (&json!("Running"), &json!("10.0.0.1")));
    assert_eq!(status["hostIP"], "127.0.1.1");
    let container = &status["containerStatuses"][0];
    assert_eq!((&container["ready"], &container["restartCount"]), (&json!(true), &json!(0)));
    let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let (taken, started, ready) = (
        time(&status["startTime"]),
        time(&container["state"]["running"]["startedAt"]),
        time(&condition(&pod, "Ready")["lastTransitionTime"]),
    );
    assert!(taken < started && started < ready, "{taken} {started} {ready}");
    assert!(condition(&pod, "Ready").get("reason").is_none(), "the reason for unreadiness is gone");

    cluster.pods().delete("web", &DeleteParams::default()).await.unwrap();
    let pod = cluster.pods().get_opt("web").await.unwrap();
    assert!(pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    eventually("the pod ends", async || match cluster.pods().get_opt("web").await.unwrap() {
        None => Some(()),
        Some(_) => None,
    })
    .await;
    let events: Api<Event> = Api::default_namespaced(cluster.client.clone());
    eventually("the events", async || {
        let events = events.list(&ListParams::default()).await.unwrap();
        let has = |reason: &str| events.iter().any(|event| event.reason.as_deref() == Some(reason));
        (has("Started") && has("Killing")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn faults() {
    let cluster = cluster(1).await;
    cluster.create("crashing", "node-1", json!({pod::FAULT: "crash"})).await;
    cluster.create("hanging", "node-1", json!({pod::FAULT: "unready"})).await;
    cluster.create("commanded", "node-1", json!({})).await;
    let crashed = |pod: &Value| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    };
    cluster.pod("crashing", crashed).await;
    let restarted = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"] == 1;
    let pod = cluster.pod("crashing", restarted).await;
    let last = &pod["status"]["containerStatuses"][0]["lastState"]["terminated"];
    assert_eq!(last["exitCode"], 1, "{pod}");

    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    let pod = cluster.pod("hanging", running).await;
    assert_eq!(condition(&pod, "Ready")["message"], "containers with unready status: [app]");
    cluster.pod("commanded", is_ready).await;
    let control = cluster.nodes.control();
    control.set_fault("default", "commanded", Some(Fault::Unready)).await.unwrap();
    cluster.pod("commanded", |pod| !is_ready(pod)).await;
    control.set_fault("default", "commanded", None).await.unwrap();
    cluster.pod("commanded", is_ready).await;
    assert!(!is_ready(&cluster.pod("hanging", running).await), "it still hangs");
    assert!(control.set_fault("default", "nobody", None).await.is_err());
}

#[tokio::test]
async fn pods_of_an_earlier_process_go_on() {
    let cluster = cluster(1).await;
    cluster.create("web", "node-1", json!({})).await;
    let before = cluster.pod("web", is_ready).await;
    cluster.nodes.shutdown().await;
    let config = NodesConfig { count: 1, port: KubeletPort::Required(0), ..NodesConfig::default() };
    let nodes = Nodes::start(cluster.client.clone(), cluster.clock, &config).await.unwrap();
    let view =
        eventually("the pod is known", async || nodes.table().pod("node-1", "default", "web"))
            .await;
    assert!(view.life.ready());
    assert_eq!(view.ip.to_string(), before["status"]["podIP"]);
    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let after = serde_json::to_value(pods.get("web").await.unwrap()).unwrap();
    assert_eq!(after["status"], before["status"], "nothing happened to it");
}

#[tokio::test]
async fn kubelets_want_the_token_except_for_plain_numbers() {
    let cluster = cluster(1).await;
    let control = cluster.nodes.control();
    let address = control.nodes()[0].kubelet;
    let (host, port): (Box<str>, u16) = (address.ip().to_string().into(), address.port());
    let refused = "answered 401 Unauthorized";
    for (scheme, form, token, expected) in [
        (Scheme::Https, Form::Exposition, Some(TOKEN), "read"),
        (Scheme::Https, Form::Plain, Some(TOKEN), "read"),
        (Scheme::Https, Form::Exposition, Some("another"), refused),
        (Scheme::Https, Form::Exposition, None, refused),
        (Scheme::Https, Form::Plain, None, refused),
        (Scheme::Http, Form::Exposition, None, refused),
        (Scheme::Http, Form::Plain, None, "read"),
    ] {
        let reader = KubeletReader::new(Access {
            tls: tls::trusting(cluster.authority.as_bytes()).unwrap(),
            token: token.and_then(Token::fixed).unwrap_or_else(Token::none),
            timeout: kubelet::REQUEST_TIMEOUT,
        });
        let target = Target { scheme, host: host.clone(), port };
        let read = reader.read(&target, form).await;
        let said = read.map_or_else(|error| error.to_string(), |_| "read".to_owned());
        assert_eq!(said, expected, "{scheme:?} {form:?} {token:?}");
    }
}

#[tokio::test]
async fn metrics_are_scraped_from_kubelets_and_served_by_the_api_server() {
    let cluster = cluster(2).await;
    for (pod, node) in [("web-1", "node-1"), ("web-2", "node-2"), ("mute", "node-2")] {
        let fault = if pod == "mute" { json!({pod::FAULT: "no-metrics"}) } else { json!({}) };
        cluster.create(pod, node, fault).await;
        cluster.pod(pod, is_ready).await;
    }
    let workload: WorkloadConfig = serde_json::from_value(json!({
        "name": "web", "selector": {"app": "web"},
        "model": {"rpsPerPod": 100, "cpuMsPerRequest": 10, "baseMemoryBytes": 50_000_000},
        "load": {"constant": {"rps": 60}},
    }))
    .unwrap();
    let (table, usage) = (cluster.nodes.table(), cluster.nodes.usage());
    let load = LoadModel::new(&[workload], HashMap::new(), table, usage, cluster.clock).unwrap();
    let ticks = load.spawn();
    let way = way(&cluster);
    let scraped =
        metrics::Metrics::start(cluster.client.clone(), cluster.clock, way, Arc::new(Nobody));
    let router = metrics::router(scraped.source(), load.clone());
    let (namespace, service) = metrics::SERVICE;
    cluster.server.register_backend(namespace, service, router);
    metrics::announce(&cluster.client).await.unwrap();

    let path = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods?labelSelector=app%3Dweb";
    // 60 requests per second of 10 ms over three pods: a fifth of a core each. The first sample
    // may count time before the load began, so later ones are waited for.
    let pods = eventually("pod metrics", async || {
        let list = cluster.raw(path).await.ok()?;
        let cpu = list["items"][0]["containers"][0]["usage"]["cpu"].as_str()?;
        let cpu = podscale_api::Quantity::parse(cpu).ok()?.milli_value();
        let all = list["items"].as_array()?.len() == 2;
        (all && (190..=210).contains(&cpu)).then_some(list)
    })
    .await;
    let items = pods["items"].as_array().unwrap().iter();
    let names: Vec<&str> = items.filter_map(|pod| pod["metadata"]["name"].as_str()).collect();
    assert_eq!(names, ["web-1", "web-2"], "the mute one is missing");
    let used = &pods["items"][0]["containers"][0]["usage"];
    assert_eq!(used["memory"], "50000000", "the base and nothing else");

    let node = eventually("node metrics", async || {
        cluster.raw("/apis/metrics.k8s.io/v1beta1/nodes/node-1").await.ok()
    })
    .await;
    assert_eq!(node["kind"], "NodeMetrics");
    let custom = cluster
        .raw("/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/requests_per_second")
        .await
        .unwrap();
    assert_eq!(custom["items"].as_array().unwrap().len(), 3);
    let external = cluster
        .raw("/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue_length")
        .await
        .unwrap();
    assert_eq!(external["items"][0]["value"], "0");

    cluster.nodes.control().set_running("node-2", false).await.unwrap();
    eventually("metrics of a stopped node vanish", async || {
        let list = cluster.raw(path).await.ok()?;
        (list["items"].as_array()?.len() == 1).then_some(())
    })
    .await;
    ticks.abort();
}

#[tokio::test]
async fn a_burst_of_pods_becomes_ready_and_goes() {
    const PODS: usize = 300;
    let cluster = cluster(3).await;
    for index in 0..PODS {
        cluster
            .create(&format!("web-{index}"), &format!("node-{}", 1 + index % 3), json!({}))
            .await;
    }
    eventually("all are ready", async || {
        let list = cluster.pods().list(&ListParams::default()).await.unwrap();
        let ready = list.iter().filter(|pod| is_ready(&serde_json::to_value(pod).unwrap())).count();
        (ready == PODS).then_some(())
    })
    .await;
    let pods = cluster.nodes.table().all();
    let addresses: std::collections::HashSet<std::net::IpAddr> =
        pods.iter().map(|pod| pod.ip).collect();
    assert_eq!(addresses.len(), PODS, "each has an address of its own");
    cluster
        .pods()
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .unwrap();
    eventually("all are gone", async || {
        let list = cluster.pods().list(&ListParams::default()).await.unwrap();
        (list.items.is_empty() && cluster.nodes.table().all().is_empty()).then_some(())
    })
    .await;
}
