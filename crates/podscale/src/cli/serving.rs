//! The flags about serving the metrics APIs and the admission webhook, which `podscale serve` and `podscale run`
//! share, and starting the server from them.

mod check;
#[cfg(test)]
mod tests;

use super::pipeline::{self, PipelineError, Reading, Wanted};
use super::singlecloud;
use crate::install::metrics::{SERVICE, SERVING_PORT, SERVING_SECRET};
use clap::Args;
use kube::Client;
use podscale_client::clock::Clock;
use podscale_client::connect::{self, Cluster, ConnectError};
use podscale_client::instrument::Instruments;
use podscale_controller::controller::Watchers;
use podscale_controller::kubelets::Purpose;
use podscale_controller::metrics::Metrics;
use podscale_controller::readiness::Readiness;
use podscale_controller::serve::certificate::Files;
use podscale_controller::serve::providers::{RuledCustomMetrics, RuledExternalMetrics};
use podscale_controller::serve::resource_rules::RuledUsage;
use podscale_controller::serve::routes::{Routes, RoutesError};
use podscale_controller::serve::{CertificateSource, Config, Context, ServeError, Served, Server};
use podscale_controller::settings::{MetricsApi, ResourceMetrics, address, name, namespace};
use podscale_metrics::{custom, external, resource};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Flags about serving the metrics APIs.
#[derive(Clone, Debug, Args)]
#[group(id = "serving")]
#[command(next_help_heading = "Serving metrics")]
pub struct Arguments {
    /// Which metrics APIs to serve. If not given, resource; or none, if singlecloud's API or only the webhook is served.
    #[arg(long, value_enum, value_name = "API,...", value_delimiter = ',', env = "PODSCALE_SERVE")]
    serve: Vec<MetricsApi>,

    /// The address to serve on.
    #[arg(long, value_name = "IP", default_value = "0.0.0.0", env = "PODSCALE_BIND_ADDRESS")]
    bind_address: IpAddr,

    /// The port to serve on, with TLS.
    #[arg(long, value_name = "PORT", default_value_t = SERVING_PORT, env = "PODSCALE_SECURE_PORT")]
    secure_port: u16,

    /// The serving certificate, in PEM, with its chain up to the CA; it is re-read when it changes. Without it,
    /// one is generated, stored in a Secret and renewed.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_private_key_file",
        env = "PODSCALE_TLS_CERT_FILE"
    )]
    tls_cert_file: Option<PathBuf>,

    /// The key of that certificate, in PEM.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_cert_file",
        env = "PODSCALE_TLS_PRIVATE_KEY_FILE"
    )]
    tls_private_key_file: Option<PathBuf>,

    /// The Service in front of it: certificates are issued for its name, and APIServices and webhooks that name
    /// it get their caBundle.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = name,
        default_value = SERVICE,
        env = "PODSCALE_SERVICE_NAME"
    )]
    service_name: String,

    /// The namespace of that Service; if not given, the one it runs in, or kube-system outside a cluster.
    #[arg(long, value_name = "NAMESPACE", value_parser = namespace, env = "PODSCALE_SERVICE_NAMESPACE")]
    service_namespace: Option<String>,

    /// The Secret, in the Service's namespace, that holds the certificate of all replicas.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = name,
        default_value = SERVING_SECRET,
        env = "PODSCALE_SERVING_SECRET"
    )]
    serving_secret: String,

    /// Where to serve the usage of pods and nodes in plain numbers, without TLS and to everybody.
    #[arg(long, value_name = "ADDRESS", value_parser = address, env = "PODSCALE_PLAIN_ADDRESS")]
    plain_address: Option<SocketAddr>,

    /// A file that says which external metrics other servers provide.
    #[arg(long, value_name = "FILE", env = "PODSCALE_EXTERNAL_METRICS_ROUTES")]
    external_metrics_routes: Option<PathBuf>,

    /// Serve an admission webhook that rejects autoscalers with an invalid spec when they are written, at
    /// /validate on the same port. `podscale serve` then serves no metrics API, unless --serve is given.
    #[arg(long, env = "PODSCALE_WEBHOOK")]
    webhook: bool,

    #[command(flatten)]
    singlecloud: singlecloud::Arguments,
}

/// Why metrics cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no way to a cluster.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The server cannot start.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The routes make no sense.
    #[error("--external-metrics-routes: {0}")]
    Routes(#[from] RoutesError),
    /// Custom or external metrics are wanted, but nothing says where they come from.
    #[error("--serve {0}: nothing says where these metrics come from; --prometheus-url does")]
    NoSource(&'static str),
    /// Nothing says which custom or external metrics there are.
    #[error(
        "--serve {0}: nothing says which metrics there are; --metric-rules or \
         --metric-rules-configmap does"
    )]
    NoRules(&'static str),
    /// The certificate would be written.
    #[error(
        "--dry-run writes nothing, but a serving certificate of its own is kept in a Secret and in \
         APIServices; give one with --tls-cert-file and --tls-private-key-file"
    )]
    DryRun,
    /// A flag is about something that is not served.
    #[error("{flag} has no effect without {needs}")]
    NoEffect {
        /// The flag.
        flag: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// Kubelets or Prometheus cannot be read.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The system has no thread or memory for it.
    #[error("cannot start: {0}")]
    Runtime(#[from] std::io::Error),
}

impl Arguments {
    fn wants(&self, api: MetricsApi) -> bool {
        let usual = self.serve.is_empty() && !self.singlecloud.is_given();
        self.serve.contains(&api) || usual && api == MetricsApi::Resource
    }

    /// What must be read for what is served, if cpu and memory come from there: from the kubelets, unless
    /// it is Prometheus.
    #[must_use]
    pub fn wanted(&self, resource: ResourceMetrics) -> Wanted {
        let roster = self.wants(MetricsApi::Resource) && resource == ResourceMetrics::Prometheus;
        let kubelets = self.wants(MetricsApi::Resource) && !roster;
        let others = self.wants(MetricsApi::Custom) || self.wants(MetricsApi::External);
        Wanted {
            kubelets: kubelets.then_some(Purpose::Serving),
            prometheus: roster || others,
            roster,
            ..Wanted::default()
        }
    }

    /// Whether anything is served besides metrics: singlecloud's API, or the admission webhook.
    #[must_use]
    pub fn serves_besides_metrics(&self) -> bool {
        self.singlecloud.is_given() || self.webhook
    }

    /// Whether `podscale serve` is asked for the admission webhook and nothing else.
    fn serves_only_webhook(&self) -> bool {
        self.webhook && self.serve.is_empty()
    }

    /// What is served, from what is read.
    #[must_use]
    pub fn served(&self, reading: &Reading, client: &Client) -> Served {
        let engine = |api| reading.engine.clone().filter(|_| self.wants(api));
        Served {
            resource: self.wants(MetricsApi::Resource).then(|| usage(reading)).flatten(),
            custom: engine(MetricsApi::Custom).map(|engine| {
                let client = client.clone();
                Arc::new(RuledCustomMetrics { engine, client }) as custom::Provider
            }),
            external: engine(MetricsApi::External)
                .map(|engine| Arc::new(RuledExternalMetrics(engine)) as external::Provider),
            singlecloud: self.singlecloud.options(self.bind_address, engine(MetricsApi::Custom)),
            webhook: self.webhook,
        }
    }

    /// What is served where metrics are not.
    #[must_use]
    pub fn served_without_metrics(&self) -> Served {
        let singlecloud = self.singlecloud.options(self.bind_address, None);
        Served { singlecloud, webhook: self.webhook, ..Served::default() }
    }

    fn routes(&self) -> Result<Routes, RoutesError> {
        self.external_metrics_routes.as_deref().map_or_else(|| Ok(Routes::default()), Routes::read)
    }

    fn config(&self, cluster: &Cluster) -> Result<Config, Failure> {
        let namespace = self.service_namespace.as_ref().unwrap_or(&cluster.namespace);
        let certificate = match (&self.tls_cert_file, &self.tls_private_key_file) {
            (Some(certificate), Some(key)) => {
                let (certificate, key) = (certificate.clone(), key.clone());
                CertificateSource::Files(Files { certificate, key })
            }
            _ => CertificateSource::Own { secret: self.serving_secret.clone() },
        };
        Ok(Config {
            address: SocketAddr::new(self.bind_address, self.secure_port),
            plain_address: self.plain_address,
            service: (namespace.clone(), self.service_name.clone()),
            certificate,
            routes: self.routes()?,
        })
    }

    /// Serves, with a connection of its own to the cluster.
    ///
    /// # Errors
    /// There is no cluster, or nothing can be served.
    pub async fn start(
        &self,
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        pipeline: &pipeline::Arguments,
        resource: ResourceMetrics,
        metrics: Metrics,
    ) -> Result<Running, Failure> {
        let instruments: Instruments = Arc::new(metrics.clone());
        let cluster = connect::connect(kubeconfig, context, None, &instruments).await?;
        let only = self.serves_only_webhook();
        let mut wanted = if only { Wanted::default() } else { self.wanted(resource) };
        wanted.prometheus &= pipeline.has_prometheus();
        let reading = pipeline.start(&cluster, Clock::wall(), &metrics, wanted)?;
        let served = match only {
            true => self.served_without_metrics(),
            false => self.served(&reading, &cluster.client),
        };
        let server = self.serve(cluster, served, metrics, Readiness::new()).await?;
        Ok(Running { server, _reading: reading })
    }

    async fn serve(
        &self,
        cluster: Cluster,
        served: Served,
        metrics: Metrics,
        readiness: Readiness,
    ) -> Result<Server, Failure> {
        let (config, clock) = (self.config(&cluster)?, Clock::wall());
        let client = cluster.client;
        let server =
            Server::start(config, served, Context { client, clock, metrics, readiness }).await?;
        let (version, address) = (env!("CARGO_PKG_VERSION"), server.address());
        tracing::info!(version, server = %cluster.url, %address, webhook = self.webhook, "serving");
        if let Some(address) = server.singlecloud_address() {
            tracing::info!(%address, "serving singlecloud's API");
        }
        Ok(server)
    }

    /// Serves what somebody else reads, in a thread of its own, so that large answers hold nobody up. The
    /// process is ready only when the server is: a Service leads to ready pods.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub fn start_beside(
        &self,
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        served: Served,
        watchers: &Watchers,
    ) -> Result<Beside, Failure> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (arguments, metrics) = (self.clone(), watchers.metrics.clone());
        let readiness = watchers.readiness.clone();
        let (kubeconfig, context) = (kubeconfig.map(Path::to_owned), context.map(str::to_owned));
        let (stop, stopped) = oneshot::channel::<()>();
        let serve = async move {
            let starting = async {
                let instruments: Instruments = Arc::new(metrics.clone());
                let (kubeconfig, context) = (kubeconfig.as_deref(), context.as_deref());
                let cluster = connect::connect(kubeconfig, context, None, &instruments).await?;
                arguments.serve(cluster, served, metrics, readiness).await
            };
            let mut stopped = stopped;
            let server: Result<Server, Failure> = tokio::select! {
                biased;
                _ = &mut stopped => return,
                server = starting => server,
            };
            match server {
                Ok(server) => {
                    let _ = stopped.await;
                    server.stop().await;
                }
                Err(error) => tracing::error!(%error, "nothing is served"),
            }
        };
        let thread = std::thread::Builder::new().name("serve".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve))?;
        Ok(Beside { stop, thread })
    }
}

/// What answers for `metrics.k8s.io`, of what is read.
fn usage(reading: &Reading) -> Option<resource::Source> {
    let by_rules = || {
        let directory = Arc::clone(&reading.roster.as_ref()?.directory);
        let usage = Arc::new(RuledUsage::new(Arc::clone(reading.engine.as_ref()?)).ok()?);
        Some(resource::Source { usage, directory })
    };
    by_rules().or_else(|| reading.kubelets.as_ref().map(|kubelets| kubelets.serving()))
}

/// The server, and what is read for it.
pub struct Running {
    server: Server,
    _reading: Reading,
}

impl Running {
    /// Lets open requests finish for a moment, and stops.
    pub async fn stop(self) {
        self.server.stop().await;
    }
}

/// The server in its own thread.
pub struct Beside {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Beside {
    /// Lets open requests finish for a moment, and stops.
    pub fn stop(self) {
        let _ = self.stop.send(());
        // A panic in there was reported already.
        let _ = self.thread.join();
    }
}
