//! The demonstration: a whole cluster in this process, with workloads under a changing load, the
//! controller that scales them, and the dashboard that shows it.

mod admission;
mod deciding;
pub mod decision_log;
mod first_metrics;
pub mod kubeconfig;
mod kubelets;
mod objects;

use crate::scenario::{ApplyError, Scenario};
use axum::Router;
use axum::http::{HeaderValue, Request, header};
use axum::middleware::map_request;
use deciding::{Deciding, start_controller};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kubeconfig::Kubeconfig;
use podscale_apiserver::serve::{CertificateError, ServeError};
use podscale_apiserver::{ApiServer, Certificates, Serving};
use podscale_client::clock::Clock;
use podscale_cluster::call::CallError;
use podscale_cluster::controllers;
use podscale_cluster::load::{self, LoadModel, WorkloadError};
use podscale_cluster::metrics::{self, Metrics};
use podscale_cluster::nodes::{self, Identity, KubeletPort, Nodes, NodesConfig, NodesError};
use podscale_controller::admin;
use podscale_controller::connections::{self, Limits};
use podscale_controller::controller::ResourceSource;
use podscale_controller::controller::observer::Observer;
use podscale_controller::dashboard::Hub;
use podscale_controller::kubelets::{Kubelets, Reports};
use podscale_metrics::kubelet::tls::TlsError;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// Under which path of the dashboard's address the plain REST form of all metrics is.
pub const PLAIN: &str = "/plain";
/// How long parts may take to end; wall-clock.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// What to show, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// What to show.
    pub scenario: Scenario,
    /// How many times as fast as the wall clock.
    pub speed: f64,
    /// How many nodes.
    pub nodes: usize,
    /// The port of the dashboard on loopback; 0 takes any free one.
    pub port: u16,
    /// The port of the nodes' kubelets, each on an address of its own where there are such.
    pub kubelet_port: KubeletPort,
    /// Whether the controller reads the kubelets itself instead of `metrics.k8s.io`.
    pub read_kubelets: bool,
    /// Where the kubeconfig is written; in a new temporary folder if not given.
    pub kubeconfig: Option<PathBuf>,
    /// Whether autoscaling/v2beta1 and v2beta2 are served as well.
    pub removed_autoscaling_versions: bool,
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
            kubelet_port: KubeletPort::Required(0),
            read_kubelets: true,
            kubeconfig: None,
            removed_autoscaling_versions: false,
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
    /// The kubelets' certificates cannot be used.
    #[error("the kubelets cannot be trusted: {0}")]
    Trust(#[from] TlsError),
    /// The nodes cannot be started.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// The workloads make no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The metrics APIs cannot be announced.
    #[error(transparent)]
    Metrics(#[from] CallError),
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
    controller: Deciding,
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
        let (server, serving, kubeconfig, certificates) = serve(clock, &config).await?;
        let service = in_process(&server, kubeconfig.token());
        let client = Client::new(service.clone(), "default");
        let (stop, stopped) = watch::channel(false);
        let cluster = controllers::spawn_all(client.clone(), clock, stopped.clone());
        let way = kubelets::way(&certificates, kubeconfig.token())?;
        let identity = kubelets::identity(certificates, kubeconfig.token());
        let nodes = start_nodes(&client, clock, &config, identity).await?;
        let Scenario { workloads, traces, .. } = &config.scenario;
        let load = LoadModel::new(workloads, traces.clone(), nodes.table(), nodes.usage(), clock)?;
        let driver = load.spawn();
        let own = podscale_controller::metrics::Metrics::new();
        let reports = Arc::new(Reports::new(own.clone()));
        let metrics = Metrics::start(client.clone(), clock, way, Arc::clone(&reports) as _);
        let router = metrics::router(metrics.source(), load.clone());
        server.register_backend(metrics::SERVICE.0, metrics::SERVICE.1, router);
        metrics::announce(&client).await?;
        let hub = Hub::new(clock);
        let resource = if config.read_kubelets {
            let (store, directory) = (Arc::clone(&metrics.store), Arc::clone(&metrics.directory));
            let kubelets = Kubelets::scraped_elsewhere(store, directory, reports, &own, clock);
            ResourceSource::Kubelets(kubelets)
        } else {
            ResourceSource::Api
        };
        let (controller, shown) = start_controller(service, clock, &hub, observers, own, resource);
        let router = admin::router(shown)
            .merge(load::http::router(load.clone()))
            .merge(nodes::control::router(nodes.control()))
            .merge(metrics::prometheus::router(load.clone(), address))
            .nest(PLAIN, podscale_metrics::plain::server::router(metrics.source()));
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

    /// Says in one line where kubelets listen instead, if any could not listen where it was to.
    #[must_use]
    pub fn kubelet_notice(&self) -> Option<&str> {
        self.parts.nodes.notice()
    }

    /// The file with which kubectl finds the cluster.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        self.kubeconfig.path()
    }

    /// Shuts down gracefully and removes the kubeconfig.
    pub async fn stop(self) {
        self.hub.close();
        self.parts.stop().await;
        drop(self.kubeconfig);
    }
}

impl Parts {
    async fn stop(mut self) {
        self.controller.stop().await;
        self.driver.abort();
        self.stop.send_replace(true);
        let ended = async { while self.cluster.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_TIMEOUT, ended).await;
        self.cluster.shutdown().await;
        drop(self.metrics);
        self.nodes.shutdown().await;
        if tokio::time::timeout(STOP_TIMEOUT, &mut self.page).await.is_err() {
            self.page.abort();
        }
        self.serving.stop().await;
    }
}

/// When a clock of this speed starts: so many whole days ago that it is still behind the wall
/// clock after a day. Clients that work out ages by the wall clock cannot show what has yet to
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

async fn start_nodes(
    client: &Client,
    clock: Clock,
    config: &Config,
    identity: Identity,
) -> Result<Nodes, DemoError> {
    let (count, port, identity) = (config.nodes, config.kubelet_port, Some(identity));
    let config = NodesConfig { count, port, identity, ..NodesConfig::default() };
    Ok(Nodes::start(client.clone(), clock, &config).await?)
}

/// The API server, on a socket for everybody who has the kubeconfig.
async fn serve(
    clock: Clock,
    config: &Config,
) -> Result<(ApiServer, Serving, Kubeconfig, Certificates), DemoError> {
    let token = kubeconfig::token();
    let server = ApiServer::new(podscale_apiserver::Config {
        clock: Arc::new(move || clock.now()),
        token: Some(token.clone()),
        removed_autoscaling_versions: config.removed_autoscaling_versions,
        admission: Some(admission::admission()),
        ..podscale_apiserver::Config::default()
    });
    let certificates = Certificates::generate(&["localhost", "127.0.0.1"])?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let serving = server.serve(address, Some(&certificates)).await?;
    let authority = certificates.authority_data();
    let kubeconfig =
        Kubeconfig::write(config.kubeconfig.as_deref(), &serving.url(), &authority, token)
            .map_err(|(path, source)| DemoError::Kubeconfig { path, source })?;
    Ok((server, serving, kubeconfig, certificates))
}

/// The server as a service, without a socket.
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

/// Serves the admin pages, and the calls that set the load and break things, until stopped.
fn show(
    listener: TcpListener,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let stop = async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        connections::serve(listener, router, Limits::default(), stop).await;
    })
}
