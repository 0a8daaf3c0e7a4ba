//! A cluster to test in: the embedded API server without a socket, in time that passes when nobody
//! has anything to do, with the controllers under test and the simplest of kubelets. With
//! `PODSCALE_TEST_REAL_CLUSTER=1` and a `KUBECONFIG` the same tests run against a real API server.

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource};
use podscale_apiserver::{ApiServer, Config};
use podscale_client::clock::Clock;
use podscale_cluster::controllers::spawn_all;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The cluster of one test.
pub struct World {
    pub client: Client,
    pub clock: Clock,
    pub namespace: String,
    /// Nodes whose kubelets have fallen silent.
    pub silent: Arc<Mutex<BTreeSet<String>>>,
    nodes: Mutex<Vec<String>>,
    tasks: Mutex<JoinSet<()>>,
    _controllers: JoinSet<()>,
    _end: watch::Sender<bool>,
}

fn is_real() -> bool {
    std::env::var_os("PODSCALE_TEST_REAL_CLUSTER").is_some()
}

/// Runs a test in a cluster of its own.
pub fn run<F: Future<Output = ()>>(test: impl FnOnce(Arc<World>) -> F) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(!is_real()).build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(World::new().await);
        test(Arc::clone(&world)).await;
        for node in world.nodes.lock().unwrap().drain(..) {
            let nodes = Api::<Node>::all(world.client.clone());
            let _ = nodes.delete(&node, &DeleteParams::default()).await;
        }
    });
}

impl World {
    async fn new() -> World {
        let speed = if is_real() { 20.0 } else { 1.0 };
        let clock = Clock::fast(Timestamp::now(), speed);
        let client = if is_real() {
            Client::try_default().await.unwrap()
        } else {
            let time = Arc::new(move || clock.now());
            let server = ApiServer::new(Config { clock: time, seed: Some(7), ..Config::default() });
            Client::new(server.router(), "default")
        };
        let (end, shutdown) = watch::channel(false);
        let controllers = spawn_all(client.clone(), clock, shutdown);
        let namespace = format!("test-{:x}", Timestamp::now().as_nanosecond());
        let object: Namespace =
            serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        let namespaces = Api::<Namespace>::all(client.clone());
        namespaces.create(&PostParams::default(), &object).await.unwrap();
        let leases = json!({"metadata": {"name": "kube-node-lease"}});
        let leases: Namespace = serde_json::from_value(leases).unwrap();
        let _ = namespaces.create(&PostParams::default(), &leases).await;
        let world = World {
            client,
            clock,
            namespace,
            silent: Arc::default(),
            nodes: Mutex::default(),
            tasks: Mutex::default(),
            _controllers: controllers,
            _end: end,
        };
        let kubelet = kubelet(world.client.clone(), clock, Arc::clone(&world.silent));
        world.tasks.lock().unwrap().spawn(kubelet);
        world
    }

    /// Objects of a kind in the test's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Adds a node with a kubelet, that runs the pods and renews its lease.
    pub async fn node(&self, name: &str, cpu: &str) {
        let node = json!({"metadata": {"name": name}, "status": {
            "allocatable": {"cpu": cpu, "memory": "64Gi", "pods": "500"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}});
        let node: Node = serde_json::from_value(node).unwrap();
        let nodes = Api::<Node>::all(self.client.clone());
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let status = json!({"status": node.status});
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        self.nodes.lock().unwrap().push(name.to_owned());
        let (client, clock) = (self.client.clone(), self.clock);
        let (name, silent) = (name.to_owned(), Arc::clone(&self.silent));
        self.tasks.lock().unwrap().spawn(async move {
            let leases = Api::<Lease>::namespaced(client, "kube-node-lease");
            let lease = json!({"metadata": {"name": name}, "spec": {"holderIdentity": name}});
            let lease: Lease = serde_json::from_value(lease).unwrap();
            let _ = leases.create(&PostParams::default(), &lease).await;
            loop {
                if !silent.lock().unwrap().contains(&name) {
                    let params = PatchParams::default();
                    let patch = json!({"spec": {"renewTime": MicroTime(clock.now())}});
                    let _ = leases.patch(&name, &params, &Patch::Merge(&patch)).await;
                    let patch = json!({"status": {"conditions": [{"type": "Ready",
                        "status": "True", "reason": "KubeletReady"}]}});
                    let _ = nodes.patch_status(&name, &params, &Patch::Strategic(&patch)).await;
                }
                clock.sleep(Duration::from_secs(10)).await;
            }
        });
    }

    /// Creates an object from its JSON.
    pub async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    /// Changes an object by a merge patch.
    pub async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        self.api::<K>().patch(name, &params, &patch).await.unwrap();
    }

    /// The names of all objects of a kind.
    pub async fn names<K>(&self) -> Vec<String>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let list = self.api::<K>().list(&ListParams::default()).await.unwrap();
        list.iter().filter_map(|object| object.meta().name.clone()).collect()
    }

    /// The pods that are not being deleted.
    pub async fn pods(&self) -> Vec<Pod> {
        let list = self.api::<Pod>().list(&ListParams::default()).await.unwrap();
        let living = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
        list.items.into_iter().filter(living).collect()
    }

    /// The messages of events of a reason.
    pub async fn events(&self, reason: &str) -> Vec<String> {
        let list = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let events = list.items.into_iter();
        let events = events.filter(|event| event.reason.as_deref() == Some(reason));
        events.filter_map(|event| event.message).collect()
    }

    /// Waits until a question has the expected answer; it may take as long as it likes, within
    /// reason.
    pub async fn until<T: PartialEq + Debug>(
        &self,
        what: &str,
        expected: T,
        mut ask: impl AsyncFnMut() -> T,
    ) {
        let mut last = None;
        for _ in 0..3000 {
            let answer = ask().await;
            if answer == expected {
                return;
            }
            last = Some(answer);
            self.clock.sleep(Duration::from_millis(500)).await;
        }
        panic!("{what}: {last:?} instead of {expected:?}");
    }

    /// Waits until so many pods are ready and there are no others.
    pub async fn until_ready(&self, count: usize) {
        self.until("ready pods of all", (count, count), async || {
            let pods = self.api::<Pod>().list(&ListParams::default()).await.unwrap();
            (pods.iter().filter(|pod| is_ready(pod)).count(), pods.items.len())
        })
        .await;
    }
}

pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Starts pods that are placed and ends those that are deleted, after a moment each. A pod with the
/// annotation `test/start: never` stays pending.
async fn kubelet(client: Client, clock: Clock, silent: Arc<Mutex<BTreeSet<String>>>) {
    let pods = Api::<Pod>::all(client.clone());
    let mut events =
        Box::pin(watcher(pods, watcher::Config::default()).default_backoff().applied_objects());
    let mut tasks = JoinSet::new();
    while let Some(event) = events.next().await {
        let Ok(pod) = event else { continue };
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()) else {
            continue;
        };
        let silent = Arc::clone(&silent);
        let client = client.clone();
        tasks.spawn(async move {
            clock.sleep(Duration::from_secs(1)).await;
            if !silent.lock().unwrap().contains(&node) {
                tend(&client, clock, &pod).await;
            }
        });
        while tasks.try_join_next().is_some() {}
    }
}

async fn tend(client: &Client, clock: Clock, pod: &Pod) {
    let namespace = pod.metadata.namespace.clone().unwrap();
    let name = pod.metadata.name.clone().unwrap();
    let pods = Api::<Pod>::namespaced(client.clone(), &namespace);
    if pod.metadata.deletion_timestamp.is_some() {
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        let _ = pods.delete(&name, &now).await;
        return;
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let annotations = pod.metadata.annotations.clone().unwrap_or_default();
    if phase.unwrap_or("Pending") != "Pending" || annotations.contains_key("test/start") {
        return;
    }
    let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(clock.now());
    let address = name.bytes().fold(7_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
    let status = json!({"status": {"phase": "Running", "podIP": format!("10.1.0.{address}"),
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time}]}});
    let _ = pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(&status)).await;
}
