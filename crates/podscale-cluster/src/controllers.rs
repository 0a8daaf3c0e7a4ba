//! The controllers of the embedded cluster. Each is a client like any other: it sees the cluster
//! through watches and changes it through calls of the API server, so the same code would work on a
//! real cluster. What to do is decided by pure functions; the rest watches, asks them, and obeys.

pub mod accounts;
pub mod cache;
pub mod claim;
pub mod claim_protection;
pub mod deployment;
pub mod endpoints;
pub mod garbage;
pub mod jobs;
pub mod kinds;
pub mod namespaces;
pub mod node_lifecycle;
pub mod pod;
mod pod_writes;
pub mod queue;
pub mod replicas;
pub mod scheduler;
pub mod stateful;
pub mod written;

use cache::Cache;
use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    Endpoints, Namespace, Node, PersistentVolumeClaim, ReplicationController, Service,
    ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use pod::{Pod, controller_of};
use podscale_client::clock::Clock;
use podscale_client::events::{self, Recorder};
use queue::Shutdown;
use replicas::Replicas;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The pods' index by controller (its uid), or by namespace for those without one.
pub const BY_OWNER: usize = 0;
/// The pods' index by node.
pub const BY_NODE: usize = 1;
/// The pods' index by Job, of those that are to be counted.
pub const BY_JOB: usize = 2;

/// What every controller is given.
#[derive(Clone)]
pub struct Context {
    /// The way to the API server.
    pub client: Client,
    /// The cluster's clock.
    pub clock: Clock,
    /// What the watches show.
    pub caches: Arc<Caches>,
    /// Where events go.
    pub recorder: Recorder,
}

/// What the watches show, shared by all controllers.
pub struct Caches {
    /// All pods, by owner, by node and by Job.
    pub pods: Cache<Pod>,
    /// All replica sets, by controller.
    pub replica_sets: Cache<ReplicaSet>,
    /// All replication controllers.
    pub replication_controllers: Cache<ReplicationController>,
    /// All deployments.
    pub deployments: Cache<Deployment>,
    /// All stateful sets.
    pub stateful_sets: Cache<StatefulSet>,
    /// All Jobs.
    pub jobs: Cache<Job>,
    /// The leases of nodes.
    pub leases: Cache<Lease>,
    /// All namespaces.
    pub namespaces: Cache<Namespace>,
    /// All service accounts.
    pub accounts: Cache<ServiceAccount>,
    /// All claims on volumes.
    pub claims: Cache<PersistentVolumeClaim>,
    /// All services.
    pub services: Cache<Service>,
    /// All endpoints.
    pub endpoints: Cache<Endpoints>,
    /// All endpoint slices, by service.
    pub slices: Cache<EndpointSlice>,
    /// All nodes.
    pub nodes: Cache<Node>,
    /// All revisions of stateful sets, by controller.
    pub revisions: Cache<ControllerRevision>,
}

/// The value under which the pods' index by owner holds a namespace's pods without a controller.
#[must_use]
pub fn orphans(namespace: &str) -> String {
    format!("orphans in {namespace}")
}

fn by_owner<K: Resource>(object: &K) -> Option<String> {
    let meta = object.meta();
    Some(controller_of(meta).map_or_else(
        || orphans(meta.namespace.as_deref().unwrap_or_default()),
        |owner| owner.uid.clone(),
    ))
}

fn by_node(pod: &Pod) -> Option<String> {
    pod.node().map(str::to_owned)
}

/// Where kubelets renew their leases.
const LEASES: &str = "kube-node-lease";

impl Caches {
    fn new() -> Caches {
        Caches {
            pods: Cache::new(vec![by_owner, by_node, jobs::tracked_by]),
            replica_sets: Cache::new(vec![by_owner]),
            replication_controllers: Cache::new(vec![]),
            deployments: Cache::new(vec![]),
            stateful_sets: Cache::new(vec![]),
            jobs: Cache::new(vec![]),
            leases: Cache::new(vec![]),
            namespaces: Cache::new(vec![]),
            accounts: Cache::new(vec![]),
            claims: Cache::new(vec![]),
            services: Cache::new(vec![]),
            endpoints: Cache::new(vec![]),
            slices: Cache::new(vec![endpoints::service_of]),
            nodes: Cache::new(vec![]),
            revisions: Cache::new(vec![by_owner]),
        }
    }

    /// Starts the watches; the controllers must listen before.
    fn feed(&self, tasks: &mut JoinSet<()>, client: &Client, shutdown: &Shutdown) {
        feed(tasks, &self.pods, client, shutdown);
        feed(tasks, &self.replica_sets, client, shutdown);
        feed(tasks, &self.replication_controllers, client, shutdown);
        feed(tasks, &self.deployments, client, shutdown);
        feed(tasks, &self.stateful_sets, client, shutdown);
        feed(tasks, &self.jobs, client, shutdown);
        feed(tasks, &self.namespaces, client, shutdown);
        feed(tasks, &self.accounts, client, shutdown);
        feed(tasks, &self.claims, client, shutdown);
        feed(tasks, &self.services, client, shutdown);
        feed(tasks, &self.endpoints, client, shutdown);
        feed(tasks, &self.slices, client, shutdown);
        feed(tasks, &self.nodes, client, shutdown);
        feed(tasks, &self.revisions, client, shutdown);
        let leases = Api::namespaced(client.clone(), LEASES);
        let config = watcher::Config::default();
        tasks.spawn(self.leases.clone().feed(leases, config, shutdown.clone()));
    }
}

fn feed<K>(tasks: &mut JoinSet<()>, cache: &Cache<K>, client: &Client, shutdown: &Shutdown)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let (api, config) = (Api::all(client.clone()), watcher::Config::default());
    tasks.spawn(cache.clone().feed(api, config, shutdown.clone()));
}

/// Starts all controllers of the embedded cluster. They end at the shutdown, or when the returned
/// tasks are dropped.
#[must_use]
pub fn spawn_all(client: Client, clock: Clock, shutdown: Shutdown) -> JoinSet<()> {
    let (recorder, pending) = events::channel("podscale");
    let context = Context { client, clock, caches: Arc::new(Caches::new()), recorder };
    let kinds = kinds::Kinds::default();
    let (caches, client) = (&context.caches, &context.client);
    let (sets, controllers) = (&caches.replica_sets, &caches.replication_controllers);
    let end = || shutdown.clone();
    let mut start = Starter { tasks: JoinSet::new(), shutdown: shutdown.clone() };
    start.spawn(events::write(client.clone(), clock, pending, end()));
    start.spawn(Replicas::start(context.clone(), sets.clone(), end()));
    start.spawn(Replicas::start(context.clone(), controllers.clone(), end()));
    start.spawn(deployment::Deployments::start(context.clone(), end()));
    start.spawn(stateful::StatefulSets::start(context.clone(), end()));
    start.spawn(jobs::Jobs::start(context.clone(), end()));
    start.spawn(scheduler::Scheduler::start(context.clone(), end()));
    start.spawn(node_lifecycle::NodeLifecycle::start(context.clone(), end()));
    start.spawn(endpoints::EndpointsController::start(context.clone(), end()));
    start.spawn(accounts::start(context.clone(), end()));
    start.spawn(claim_protection::start(context.clone(), end()));
    start.spawn(namespaces::start(context.clone(), kinds.clone(), end()));
    start.spawn(garbage::Collector::start(context.clone(), kinds.clone(), end()));
    start.spawn(kinds.run(client.clone(), clock, end()));
    let mut tasks = start.tasks;
    caches.feed(&mut tasks, client, &shutdown);
    tasks
}

/// Starts tasks that end at the shutdown even while they wait for their caches.
struct Starter {
    tasks: JoinSet<()>,
    shutdown: Shutdown,
}

impl Starter {
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let mut shutdown = self.shutdown.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = queue::ended(&mut shutdown) => {}
                () = task => {}
            }
        });
    }
}
