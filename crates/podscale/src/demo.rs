//! The demonstration: a whole cluster in this process, with workloads under a changing load, the
//! controller that scales them, and the dashboard that shows it.

pub mod kubeconfig;
pub mod tell;

use crate::admin::door::{self, Limits};
use crate::admin::{self, Shown};
use crate::controller::observer::{Log, Observer};
use crate::controller::{self, Controller, Watchers};
use crate::dashboard::Hub;
use crate::dialect;
use crate::scenario::{ApplyError, Scenario, apply, is_autoscaler, namespaces};
use crate::telemetry::DecisionMetrics;
use axum::Router;
use axum::http::{HeaderValue, Request, header};
use axum::middleware::map_request;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kubeconfig::Kubeconfig;
use podscale_apiserver::serve::{CertificateError, ServeError};
use podscale_apiserver::{ApiServer, Certificates, Serving};
use podscale_client::call::{self, About};
use podscale_client::clock::Clock;
use podscale_client::discovery::RestMapper;
use podscale_client::instrument::RequestLayer;
use podscale_cluster::controllers;
use podscale_cluster::load::{self, LoadModel, WorkloadError};
use podscale_cluster::metrics::{self, Metrics};
use podscale_cluster::nodes::{self, Nodes, NodesConfig, NodesError};
use serde_json::Value;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tower::Layer;

/// How long the first metrics are waited for before the autoscalers are created; the clock's time.
const FIRST_METRICS: Duration = Duration::from_secs(90);
/// How often it is looked whether they are there; the clock's time.
const LOOK: Duration = Duration::from_secs(2);
/// How long parts may take to end; wall-clock time.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to show, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// What to show.
    pub scenario: Scenario,
    /// How many times as fast as real time.
    pub speed: f64,
    /// How many nodes.
    pub nodes: usize,
    /// The port of the dashboard on loopback; 0 takes any free one.
    pub port: u16,
    /// The port of the nodes' kubelets, each on an address of its own; 0 takes any free one.
    pub kubelet_port: u16,
    /// Where the kubeconfig is written; a new folder for temporary files if not said.
    pub kubeconfig: Option<PathBuf>,
}

impl Config {
    /// As the scenario says, on any free ports.
    #[must_use]
    pub fn of(scenario: Scenario) -> Config {
        Config {
            speed: scenario.speed,
            nodes: scenario.nodes,
            scenario,
            port: 0,
            kubelet_port: 0,
            kubeconfig: None,
        }
    }
}

/// Why a demonstration cannot be shown; its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The dashboard's port is taken or not allowed.
    #[error("cannot listen on {address} for the dashboard: {source}")]
    Dashboard {
        /// Which address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The API server cannot be started.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// No certificate could be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The nodes cannot be started.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// The workloads make no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The metrics APIs cannot be announced.
    #[error(transparent)]
    Metrics(#[from] nodes::CallError),
    /// The kubeconfig cannot be written.
    #[error("cannot write the kubeconfig {}: {source}", path.display())]
    Kubeconfig {
        /// Where to.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// An object of the scenario was refused.
    #[error("scenario {scenario}: {source}")]
    Apply {
        /// Which scenario.
        scenario: String,
        /// What was refused, and why.
        source: ApplyError,
    },
}

/// A running demonstration.
pub struct Demo {
    client: Client,
    clock: Clock,
    load: LoadModel,
    hub: Hub,
    address: SocketAddr,
    kubeconfig: Kubeconfig,
    parts: Parts,
}

/// Everything that runs; dropping it ends it at once, [`Parts::stop`] gracefully.
struct Parts {
    controller: Controller,
    cluster: JoinSet<()>,
    driver: JoinHandle<()>,
    metrics: Metrics,
    nodes: Nodes,
    page: JoinHandle<()>,
    serving: Serving,
    stop: watch::Sender<bool>,
}

impl Demo {
    /// Starts everything and creates the scenario's objects.
    ///
    /// # Errors
    /// Says in one line what is in the way.
    pub async fn start(
        config: Config,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Result<Demo, DemoError> {
        let clock = Clock::fast(epoch(Timestamp::now(), config.speed), config.speed);
        let listener = listen(config.port).await?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, config.port));
        let address = listener.local_addr().unwrap_or(address);
        let (server, serving, kubeconfig) = serve(clock, config.kubeconfig.as_deref()).await?;
        let way = in_process(&server, kubeconfig.token());
        let client = Client::new(way.clone(), "default");
        let (stop, stopped) = watch::channel(false);
        let cluster = controllers::spawn_all(client.clone(), clock, stopped.clone());
        let nodes_config = NodesConfig {
            count: config.nodes,
            port: config.kubelet_port,
            ..NodesConfig::default()
        };
        let nodes = Nodes::start(client.clone(), clock, &nodes_config).await?;
        let Scenario { workloads, traces, .. } = &config.scenario;
        let load = LoadModel::new(workloads, traces.clone(), nodes.table(), nodes.usage(), clock)?;
        let driver = load.spawn();
        let metrics = Metrics::start(client.clone(), clock, metrics::RESOLUTION);
        let router = metrics::router(metrics.source(), load.clone());
        server.register_backend(metrics::SERVICE.0, metrics::SERVICE.1, router);
        metrics::announce(&client).await?;
        let hub = Hub::new(clock);
        let own_metrics = crate::metrics::Metrics::new();
        let counting = DecisionMetrics(own_metrics.clone());
        let mut all: Vec<Arc<dyn Observer>> =
            vec![Arc::new(hub.clone()), Arc::new(Log), Arc::new(counting)];
        all.extend(observers);
        let watchers = Watchers { observers: all, metrics: own_metrics, ..Watchers::default() };
        let (own_metrics, readiness) = (watchers.metrics.clone(), watchers.readiness.clone());
        let requests = RequestLayer::new(Arc::new(own_metrics.clone()));
        let counted = Client::new(requests.layer(way), "default");
        let defaults = controller::Config::default();
        let (dialects, role) = (dialect::built_in(), controller::Role::alone());
        let controller = Controller::start(&counted, clock, defaults, dialects, watchers, role);
        let shown = Shown { hub: hub.clone(), metrics: own_metrics, readiness };
        let router = admin::router(shown)
            .merge(load::http::router(load.clone()))
            .merge(nodes::control::router(nodes.control()));
        let page = show(listener, router, stopped);
        let parts = Parts { controller, cluster, driver, metrics, nodes, page, serving, stop };
        let demo = Demo { client, clock, load, hub, address, kubeconfig, parts };
        match demo.create(&config.scenario).await {
            Ok(()) => Ok(demo),
            Err(source) => {
                demo.stop().await;
                Err(DemoError::Apply { scenario: config.scenario.name, source })
            }
        }
    }

    /// A client of the cluster.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The clock of everything.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The load that the workloads get.
    #[must_use]
    pub fn load(&self) -> &LoadModel {
        &self.load
    }

    /// Where the dashboard is.
    #[must_use]
    pub fn dashboard_url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Where the API server is.
    #[must_use]
    pub fn server_url(&self) -> String {
        self.parts.serving.url()
    }

    /// The file with which kubectl finds the cluster.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    /// Shuts everything down gracefully and removes the kubeconfig.
    pub async fn stop(self) {
        self.hub.close();
        self.parts.stop().await;
        drop(self.kubeconfig);
    }

    /// Creates the objects, the autoscalers last, once there are metrics for them to look at.
    async fn create(&self, scenario: &Scenario) -> Result<(), ApplyError> {
        let kinds = RestMapper::new(self.client.clone(), self.clock);
        let (last, first): (Vec<&Value>, Vec<&Value>) =
            scenario.manifests.iter().partition(|manifest| is_autoscaler(manifest));
        for manifest in first {
            apply(&self.client, &kinds, manifest).await?;
        }
        self.await_metrics(&last).await;
        for manifest in last {
            apply(&self.client, &kinds, manifest).await?;
        }
        Ok(())
    }

    /// Waits until pods are measured where autoscalers will be, or for long enough.
    async fn await_metrics(&self, autoscalers: &[&Value]) {
        let measured = async {
            for namespace in namespaces(autoscalers.iter().copied()) {
                let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods");
                let about = About { resource: "pods.metrics.k8s.io", name: "" };
                loop {
                    let list: Result<Value, _> = call::get(&self.client, &path, about).await;
                    let items = list.as_ref().ok().and_then(|list| list.get("items"));
                    if items.and_then(Value::as_array).is_some_and(|items| !items.is_empty()) {
                        break;
                    }
                    self.clock.sleep(LOOK).await;
                }
            }
        };
        let _ = tokio::time::timeout(self.clock.to_wall(FIRST_METRICS), measured).await;
    }
}

impl Parts {
    async fn stop(mut self) {
        self.controller.stop().await;
        self.driver.abort();
        self.stop.send_replace(true);
        let ended = async { while self.cluster.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(PATIENCE, ended).await;
        self.cluster.shutdown().await;
        drop(self.metrics);
        self.nodes.shutdown().await;
        if tokio::time::timeout(PATIENCE, &mut self.page).await.is_err() {
            self.page.abort();
        }
        self.serving.stop().await;
    }
}

/// When a clock of this speed starts: so many whole days ago that it is still behind real
/// time after a day. Clients that work out ages by their own clock cannot show what has yet to
/// come.
fn epoch(now: Timestamp, speed: f64) -> Timestamp {
    // At most the fastest speed, so nothing is lost.
    let days = (speed - 1.0).max(0.0).ceil() as i64;
    now.checked_sub(SignedDuration::from_hours(days.saturating_mul(24))).unwrap_or(now)
}

async fn listen(port: u16) -> Result<TcpListener, DemoError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let fail = |source| DemoError::Dashboard { address, source };
    TcpListener::bind(address).await.map_err(fail)
}

/// The API server, on a socket for everybody who has the kubeconfig.
async fn serve(
    clock: Clock,
    file: Option<&Path>,
) -> Result<(ApiServer, Serving, Kubeconfig), DemoError> {
    let token = kubeconfig::token();
    let server = ApiServer::new(podscale_apiserver::Config {
        clock: Arc::new(move || clock.now()),
        token: Some(token.clone()),
        ..podscale_apiserver::Config::default()
    });
    let certificates = Certificates::generate(&["localhost", "127.0.0.1"])?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = server.serve(address, Some(&certificates)).await?;
    let authority = certificates.authority_data();
    let kubeconfig = Kubeconfig::write(file, &serving.url(), &authority, token)
        .map_err(|(path, source)| DemoError::Kubeconfig { path, source })?;
    Ok((server, serving, kubeconfig))
}

/// A way to the server without a socket.
fn in_process(server: &ApiServer, token: &str) -> Router {
    let bearer = HeaderValue::try_from(format!("Bearer {token}")).ok();
    let identify = move |mut request: Request<axum::body::Body>| {
        if let Some(bearer) = &bearer {
            request.headers_mut().insert(header::AUTHORIZATION, bearer.clone());
        }
        let agent = HeaderValue::from_static("podscale");
        request.headers_mut().entry(header::USER_AGENT).or_insert(agent);
        std::future::ready(request)
    };
    server.router().layer(map_request(identify))
}

/// Serves the admin pages, and the calls that set the load and break things, until told to stop.
fn show(
    listener: TcpListener,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let stop = async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        door::serve(listener, router, Limits::default(), stop).await;
    })
}
