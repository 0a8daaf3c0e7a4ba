//! The end-to-end scenarios of the original CHPA controller on the embedded cluster: its controllers,
//! simulated nodes and a load that uses cpu.

// Helpers of tests may fail as loudly as tests do.
#![allow(clippy::expect_used)]

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config as ClientConfig};
use parking_lot::Mutex;
use podscale::demo::{Config, Demo};
use podscale::scenario::Scenario;
use podscale_api::chpa::{API_VERSION, Chpa, GROUP, KIND, PLURAL, RESOURCE, VERSION};
use podscale_api::crds;
use podscale_apiserver::ApiServer;
use podscale_controller::controller::observer::{Decided, Observer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};

/// How long anything may take before the test gives up: generous, since machines can be busy.
const TIMEOUT: Duration = Duration::from_secs(240);
const TARGETS: [&str; 5] = ["min", "max", "fast", "incorrect", "fixed"];
const LABEL: &str = "app=chpa-test";

/// Five Deployments of one replica, whose pods use up to ten times the cpu that they request.
fn scenario() -> Scenario {
    let workload = |name: &&str| {
        json!({"name": name, "model":
            {"rpsPerPod": 50, "cpuMsPerRequest": 5, "baseMemoryBytes": 50_000_000},
            "load": {"constant": {"rps": 0}}})
    };
    let deployment = |name: &&str| {
        let container = json!({"name": "c", "image": "example.com/c",
            "resources": {"requests": {"cpu": "25m"}}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "labels": {"app": "chpa-test"}},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"run": name}},
                "template": {"metadata": {"labels": {"run": name}},
                    "spec": {"containers": [container]}}}})
    };
    let workloads: Vec<Value> = TARGETS.iter().map(workload).collect();
    let manifests: Vec<Value> = TARGETS.iter().map(deployment).collect();
    let scenario = json!({"name": "chpa", "speed": 10, "nodes": 2, "workloads": workloads,
        "manifests": manifests});
    Scenario::read("chpa", &scenario.to_string(), None).expect("the scenario makes sense")
}

/// A CHPA as those tests have them: windows of ten seconds, 80 % of the requested cpu.
fn chpa(name: &str, target: &str, max: i32, spec: Value) -> DynamicObject {
    let mut object = json!({"apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": name, "labels": {"app": "chpa-test"}},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": target}, "maxReplicas": max,
            "downscaleForbiddenWindowSeconds": 10, "upscaleForbiddenWindowSeconds": 10,
            "scaleUpLimitFactor": 2, "scaleUpLimitMinimum": 4, "metrics": cpu()}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    serde_json::from_value(object).expect("an object")
}

fn cpu() -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 80}}])
}

/// A metric whose type is not that of its body.
fn incorrect() -> Value {
    json!([{"type": "Pods", "resource": {"name": "cpu", "targetAverageUtilization": 80}}])
}

/// Keeps the sizes that each CHPA has set.
#[derive(Default)]
struct Sizes(Mutex<BTreeMap<String, Vec<i32>>>);

impl Observer for Sizes {
    fn decided(&self, decided: &Decided<'_>) {
        let decision = decided.decision();
        if let (Some(rescale), Some(_)) = (decision.rescale, decision.rescaled_at) {
            let name = decided.key().name.to_string();
            self.0.lock().entry(name).or_default().push(rescale.to);
        }
    }
}

/// Polls until something holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !holds().await {
        assert!(Instant::now() < end, "not within {TIMEOUT:?}: {what}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// Sets the load of a workload.
async fn set_load(demo: &Demo, name: &str, rps: u32) {
    let url = demo.dashboard_url();
    let (_, rest) = url.split_once("://").expect("a URL");
    let address: SocketAddr = rest.trim_end_matches('/').parse().expect("an address");
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("a dashboard");
    let body = json!({"rps": rps}).to_string();
    let request = format!(
        "PUT /load/default/{name} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
}

async fn client(demo: &Demo) -> Client {
    let kubeconfig = Kubeconfig::read_from(demo.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = ClientConfig::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.expect("a usable kubeconfig")).expect("a client")
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: format!("{group}/{version}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// Our definition, and the objects of its kind.
async fn define(client: &Client) -> Api<DynamicObject> {
    let (group, kind) = ("apiextensions.k8s.io", "CustomResourceDefinition");
    let definitions = resource(group, "v1", kind, "customresourcedefinitions");
    let definitions: Api<DynamicObject> = Api::all_with(client.clone(), &definitions);
    let params = PatchParams::apply("test").force();
    let definition = crds::chpa::definition();
    definitions.patch(RESOURCE, &params, &Patch::Apply(&definition)).await.expect("it is taken");
    let chpas = resource(GROUP, VERSION, KIND, PLURAL);
    let chpas = Api::default_namespaced_with(client.clone(), &chpas);
    until("CHPAs are served", async || chpas.list(&ListParams::default()).await.is_ok()).await;
    chpas
}

/// The reason of the first condition.
async fn reason(chpas: &Api<DynamicObject>, name: &str) -> String {
    let object = chpas.get(name).await.expect("a CHPA");
    let reason = &object.data["status"]["conditions"][0]["reason"];
    reason.as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scenarios_of_the_original_pass() {
    let sizes = Arc::new(Sizes::default());
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::clone(&sizes) as _];
    let demo = Demo::start(Config::of(scenario()), observers).await.expect("starts");
    let client = client(&demo).await;
    let chpas = define(&client).await;
    for object in [
        chpa("min", "min", 3, json!({"minReplicas": 2})),
        chpa("max", "max", 8, json!({})),
        chpa("fast", "fast", 8, json!({"scaleUpLimitFactor": 10})),
        // An incorrect one does not block a correct one, even of the same Deployment.
        chpa("incorrect", "incorrect", 4, json!({"metrics": incorrect()})),
        chpa("correct", "incorrect", 4, json!({})),
        chpa("fixed", "fixed", 4, json!({"metrics": incorrect()})),
    ] {
        chpas.create(&PostParams::default(), &object).await.expect("it is taken");
    }
    for target in ["max", "fast", "incorrect", "fixed"] {
        set_load(&demo, target, 1000).await;
    }
    for name in ["incorrect", "fixed"] {
        until(name, async || reason(&chpas, name).await == "FailedSpecCheck").await;
    }
    let fix = json!({"spec": {"metrics": cpu()}});
    chpas.patch("fixed", &PatchParams::default(), &Patch::Merge(&fix)).await.expect("it is taken");
    let set = |expected: &[(&str, &[i32])]| {
        let sizes = sizes.0.lock();
        expected.iter().all(|(name, all)| sizes.get(*name).is_some_and(|found| found == all))
    };
    let up: [(&str, &[i32]); 5] =
        [("min", &[2]), ("max", &[4, 8]), ("fast", &[8]), ("correct", &[4]), ("fixed", &[4])];
    until("all go up", async || set(&up)).await;
    for target in ["max", "fast", "incorrect", "fixed"] {
        set_load(&demo, target, 0).await;
    }
    // A sample that was taken while the load went leads to a size in between.
    let down = || {
        let sizes = sizes.0.lock();
        up.iter().all(|(name, up)| {
            let after = sizes.get(*name).and_then(|found| found.strip_prefix(*up));
            let after = after.unwrap_or_default();
            let ends = if *name == "min" { after.is_empty() } else { after.last() == Some(&1) };
            ends && after.is_sorted_by(|one, next| one > next)
        })
    };
    until("all go down", async || down()).await;
    assert!(!sizes.0.lock().contains_key("incorrect"));
    clean_up(&client, &chpas).await;
    demo.stop().await;
}

/// By label. The Deployments outlive their CHPAs.
async fn clean_up(client: &Client, chpas: &Api<DynamicObject>) {
    let (all, delete) = (ListParams::default().labels(LABEL), DeleteParams::background());
    chpas.delete_collection(&delete, &all).await.expect("deleted");
    until("the CHPAs are gone", async || {
        chpas.list(&all).await.is_ok_and(|list| list.items.is_empty())
    })
    .await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let left = deployments.list(&all).await.expect("a list").items;
    assert_eq!(left.len(), TARGETS.len());
    assert!(left.iter().all(|d| d.metadata.owner_references.is_none()), "nobody owns them");
    deployments.delete_collection(&delete, &all).await.expect("deleted");
    until("the Deployments are gone", async || {
        deployments.list(&all).await.is_ok_and(|list| list.items.is_empty())
    })
    .await;
}

/// What docs/chpa.md shows can be applied, and makes sense.
#[tokio::test]
async fn the_examples_of_the_documentation_are_sound() {
    let page = include_str!("../../../docs/chpa.md");
    let server = ApiServer::new(podscale_apiserver::Config::default());
    let client = Client::new(server.router(), "default");
    let chpas = define(&client).await;
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).collect();
    assert!(!blocks.is_empty(), "there are examples");
    for block in blocks {
        let text = block.split("```").next().unwrap_or_default();
        let object: Value = serde_saphyr::from_str(text).expect("YAML");
        let stored = serde_json::from_value(object).expect("an object");
        let stored = chpas.create(&PostParams::default(), &stored).await.expect("it is taken");
        let stored = serde_json::to_value(&stored).expect("JSON");
        let chpa: Chpa = serde_json::from_value(stored).expect("a CHPA");
        chpa.checked().expect("it makes sense");
    }
}
