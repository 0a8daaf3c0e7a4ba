//! The metrics APIs over TLS, for the API server's aggregation and for whoever may ask directly:
//! `metrics.k8s.io`, `custom.metrics.k8s.io` and `external.metrics.k8s.io`; the admission webhook, on the same
//! port; and singlecloud's API for autoscalers, on a port of its own.
//!
//! Who asks is found out as Kubernetes' own aggregated servers do it ([`authenticate`]), and the API
//! server is asked whether they may ([`authorize`]).

pub mod attributes;
pub mod authenticate;
pub mod authorize;
pub mod ca_bundles;
pub mod certificate;
pub mod cluster_resources;
mod documents;
mod guard;
pub mod judge;
pub mod providers;
pub mod resource_rules;
pub mod reviews;
pub mod routes;
pub mod rule_reports;
pub mod rules;
pub mod singlecloud;
pub mod tls;
pub mod triggers;
pub mod trust;
pub mod user;
pub mod webhook;

use crate::connections::{self, Limits};
use crate::metrics::Metrics;
use crate::readiness::Readiness;
use authenticate::Authenticator;
use authorize::Authorizer;
use axum::Router;
use axum::middleware::from_fn_with_state;
use ca_bundles::CaBundles;
use certificate::{CertificateError, Files, Own};
use guard::{Guard, guard};
use kube::Client;
use podscale_client::clock::Clock;
use podscale_client::instrument::Instruments;
use podscale_metrics::{custom, external, plain, resource};
use routes::{NoMetrics, Routes};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tls::{Shown, Tls, TlsError};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use trust::Trusted;

/// Under which path the plain numbers are.
pub const PLAIN: &str = "/plain";
/// How long open requests may take to end; wall-clock.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How long is waited before a certificate is tried again; wall-clock.
const CERTIFICATE_RETRY: Duration = Duration::from_secs(5);
/// The API server multiplexes; others are few.
const LIMITS: Limits = Limits {
    connections: 1024,
    per_address: 512,
    request_timeout: Duration::from_secs(30),
    write_timeout: Duration::from_secs(30),
};
/// What must be known before anybody can be trusted.
const AUTHENTICATION: &str = "the ConfigMap kube-system/extension-apiserver-authentication";
/// Nothing can be said of what nodes and pods use before.
const SAMPLES: &str = "what a node uses";
/// How often it is checked whether there are any.
const SAMPLES_EVERY: Duration = Duration::from_secs(1);

/// What is served; what is none of it is not.
#[derive(Clone, Default)]
pub struct Served {
    /// `metrics.k8s.io`, and the plain numbers.
    pub resource: Option<resource::Source>,
    /// `custom.metrics.k8s.io`.
    pub custom: Option<custom::Provider>,
    /// `external.metrics.k8s.io`.
    pub external: Option<external::Provider>,
    /// Singlecloud's API for autoscalers.
    pub singlecloud: Option<singlecloud::Options>,
    /// Whether there is the admission webhook.
    pub webhook: bool,
}

/// Where the certificate comes from.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    /// From files.
    Files(Files),
    /// Made here, and kept in a Secret of this name beside the Service.
    Own {
        /// The name of the Secret.
        secret: String,
    },
}

/// How to serve.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where, with TLS.
    pub address: SocketAddr,
    /// Where plain numbers are served without TLS, to everybody who can reach it.
    pub plain_address: Option<SocketAddr>,
    /// The namespace and the name of the Service that leads here.
    pub service: (String, String),
    /// What is shown to clients.
    pub certificate: CertificateSource,
    /// Which external metrics others answer for.
    pub routes: Routes,
}

/// What the server works with.
#[derive(Clone)]
pub struct Context {
    /// The API server.
    pub client: Client,
    /// What time it is.
    pub clock: Clock,
    /// What is counted and measured.
    pub metrics: Metrics,
    /// What is missing before answers make sense.
    pub readiness: Readiness,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A port is taken or not allowed.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// The server, while it serves.
pub struct Server {
    address: SocketAddr,
    plain: Option<SocketAddr>,
    singlecloud: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    listeners: JoinSet<()>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Obtains a certificate, and serves. While the API server does not let it have a certificate of
    /// its own, it tries again.
    ///
    /// # Errors
    /// A port is taken, or the files of a certificate are of no use.
    pub async fn start(
        config: Config,
        served: Served,
        context: Context,
    ) -> Result<Server, ServeError> {
        let listener = listen(config.address).await?;
        let address = listener.local_addr().unwrap_or(config.address);
        let mut tasks = JoinSet::new();
        let (shown, authorities) = obtain(&config, &context, &mut tasks).await?;
        if let Some(authorities) = authorities {
            let registrations = served.registrations();
            let (client, service) = (context.client.clone(), config.service.clone());
            tasks.spawn(CaBundles { client, service, registrations }.follow(authorities));
        }
        let trusted = Trusted::default();
        if served.is_asked_by_users(&config.routes) {
            learn_whom_to_trust(&trusted, &context, &mut tasks);
        }
        if let Some(source) = served.resource.clone() {
            context.readiness.needs(SAMPLES);
            tasks.spawn(await_samples(source, context.readiness.clone()));
        }
        let (stop, stopped) = watch::channel(false);
        let mut listeners = JoinSet::new();
        let plain = serve_plain(&config, &served, &mut listeners, &stopped).await?;
        let tls = Tls::new(shown)?;
        let guards = (
            Authenticator::new(context.client.clone(), trusted),
            Authorizer::new(context.client.clone()),
        );
        let singlecloud = match served.singlecloud.clone() {
            Some(options) => {
                let listener = listen(options.address).await?;
                let bound = listener.local_addr().unwrap_or(options.address);
                let (client, metrics) = (context.client.clone(), context.metrics.clone());
                let router =
                    singlecloud::start(options, client, guards.clone(), metrics, &mut tasks);
                let (tls, stop) = (tls.clone(), until(stopped.clone()));
                listeners.spawn(connections::serve_with(listener, tls, router, LIMITS, stop));
                Some(bound)
            }
            None => None,
        };
        if !config.routes.is_empty() {
            tasks.spawn(config.routes.clone().follow(context.metrics.clone()));
        }
        let router = router(served, &config.routes, guards, context);
        listeners.spawn(connections::serve_with(listener, tls, router, LIMITS, until(stopped)));
        Ok(Server { address, plain, singlecloud, stop, listeners, _tasks: tasks })
    }

    /// Where it serves with TLS.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves plain numbers without TLS, if it does.
    #[must_use]
    pub fn plain_address(&self) -> Option<SocketAddr> {
        self.plain
    }

    /// Where it serves singlecloud's API, if it does.
    #[must_use]
    pub fn singlecloud_address(&self) -> Option<SocketAddr> {
        self.singlecloud
    }

    /// Lets open requests finish for a moment, and stops.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let ended = async { while self.listeners.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_TIMEOUT, ended).await;
    }
}

/// Follows what the API server says of whom it trusts.
fn learn_whom_to_trust(trusted: &Trusted, context: &Context, tasks: &mut JoinSet<()>) {
    let instruments: Instruments = Arc::new(context.metrics.clone());
    let readiness = context.readiness.clone();
    readiness.needs(AUTHENTICATION);
    let read = move || readiness.has(AUTHENTICATION);
    tasks.spawn(trusted.clone().follow(context.client.clone(), instruments, read));
}

async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let fail = |source| ServeError::Listen { address, source };
    TcpListener::bind(address).await.map_err(fail)
}

/// Serves plain numbers, if that is wanted and there are any, and says where.
async fn serve_plain(
    config: &Config,
    served: &Served,
    listeners: &mut JoinSet<()>,
    stopped: &watch::Receiver<bool>,
) -> Result<Option<SocketAddr>, ServeError> {
    let (Some(address), Some(source)) = (config.plain_address, &served.resource) else {
        return Ok(None);
    };
    let listener = listen(address).await?;
    let bound = listener.local_addr().unwrap_or(address);
    let router = plain::server::router(source.clone());
    let stop = until(stopped.clone());
    listeners.spawn(connections::serve(listener, router, LIMITS, stop));
    Ok(Some(bound))
}

async fn until(mut stopped: watch::Receiver<bool>) {
    // Whoever could stop it is gone, if this fails.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// The certificate, which is kept current from now on; of an own one the authorities as well.
async fn obtain(
    config: &Config,
    context: &Context,
    tasks: &mut JoinSet<()>,
) -> Result<(Shown, Option<watch::Receiver<String>>), ServeError> {
    let (namespace, name) = &config.service;
    let secret = match &config.certificate {
        CertificateSource::Files(files) => {
            let shown = Shown::new(files.read().await?);
            tasks.spawn(files.clone().follow(shown.clone()));
            return Ok((shown, None));
        }
        CertificateSource::Own { secret } => secret,
    };
    let host = format!("{name}.{namespace}");
    let own = Own {
        client: context.client.clone(),
        clock: context.clock,
        namespace: namespace.clone(),
        name: secret.clone(),
        hosts: vec![format!("{host}.svc"), format!("{host}.svc.cluster.local"), host],
    };
    let kept = loop {
        match own.obtain().await {
            Ok(kept) => break kept,
            Err(error) => tracing::warn!(%error, "there is no serving certificate yet"),
        }
        tokio::time::sleep(CERTIFICATE_RETRY).await;
    };
    let shown = Shown::new(kept.certified()?);
    let (sender, authorities) = watch::channel(kept.authorities);
    tasks.spawn(own.follow(shown.clone(), sender));
    Ok((shown, Some(authorities)))
}

/// Everything that is served on the port of the metrics APIs: they behind the guard, the webhook for all.
fn router(
    served: Served,
    routes: &Routes,
    guards: (Authenticator, Authorizer),
    context: Context,
) -> Router {
    let webhook = served.webhook.then(|| webhook::router(context.metrics.clone()));
    let router = if served.is_asked_by_users(routes) {
        guarded(served, routes, guards, context)
    } else {
        // Nobody else has anything to ask, and it may not be allowed to find out who they are.
        documents::probes(served, context.readiness)
    };
    webhook.into_iter().fold(router, Router::merge)
}

fn guarded(
    mut served: Served,
    routes: &Routes,
    (authenticator, authorizer): (Authenticator, Authorizer),
    context: Context,
) -> Router {
    if !routes.is_empty() && served.external.is_none() {
        served.external = Some(Arc::new(NoMetrics));
    }
    let Context { metrics, readiness, .. } = context;
    let judge = Guard::new(authenticator, authorizer, metrics.clone());
    let mut router = documents::router(served.clone(), metrics, readiness);
    if let Some(source) = served.resource {
        let plain = plain::server::router(source.clone());
        router = router.merge(resource::router(source)).nest(PLAIN, plain);
    }
    if let Some(provider) = served.custom {
        router = router.merge(custom::router(provider));
    }
    if let Some(provider) = served.external {
        router = router.merge(routes.around(external::router(provider)));
    }
    router.layer(from_fn_with_state(judge, guard))
}

/// A pod that is ready before it can answer would make autoscalers lose their metrics.
async fn await_samples(source: resource::Source, readiness: Readiness) {
    while !source.can_answer().await {
        tokio::time::sleep(SAMPLES_EVERY).await;
    }
    readiness.has(SAMPLES);
}
