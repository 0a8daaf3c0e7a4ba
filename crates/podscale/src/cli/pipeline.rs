//! The flags of the metrics pipeline, which `podscale run` and `podscale serve` share, and its start: what is
//! read from kubelets and Prometheus is read once, for those who decide and those who serve.

use super::kubelet::{self, KubeletError};
use super::prometheus::{self, PrometheusFailure};
use crate::controller::{MetricSources, PrometheusServers, ResourceSource};
use crate::kubelets::{Kubelets, Purpose, Roster};
use crate::metrics::Metrics;
use crate::rules_file;
use crate::serve::rules::{Location, RuleWatch};
use crate::settings::ResourceMetrics;
use clap::Args;
use podscale_client::clock::Clock;
use podscale_client::connect::Cluster;
use podscale_client::events;
use podscale_metrics::rules::engine::{Discovered, Engine};
use podscale_metrics::rules::reload::Reloader;
use podscale_metrics::rules::{KnownResources, RuleError, RuleSet};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Flags about where metrics come from.
#[derive(Clone, Debug, Args)]
#[group(id = "pipeline")]
pub struct Arguments {
    #[command(flatten)]
    kubelet: kubelet::Arguments,

    #[command(flatten)]
    prometheus: prometheus::Arguments,

    /// A ConfigMap with prometheus-adapter's rules, instead of --metric-rules; it is followed.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME[/KEY]",
        conflicts_with = "metric_rules",
        help_heading = "Prometheus",
        env = "PODSCALE_METRIC_RULES_CONFIGMAP"
    )]
    metric_rules_configmap: Option<Location>,
}

/// Why metrics cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// Kubelets cannot be scraped.
    #[error(transparent)]
    Kubelet(#[from] KubeletError),
    /// Prometheus cannot be asked.
    #[error(transparent)]
    Prometheus(#[from] PrometheusFailure),
}

/// What is to be read.
#[derive(Default)]
pub struct Wanted {
    /// Why kubelets are scraped, if they are.
    pub kubelets: Option<Purpose>,
    /// Whether Prometheus is asked.
    pub prometheus: bool,
    /// Whether labels of pods and nodes are followed although no kubelets are scraped.
    pub roster: bool,
}

/// What is read, while this lives.
pub struct Reading {
    /// The kubelets, if they are scraped.
    pub kubelets: Option<Arc<Kubelets>>,
    /// The pods and nodes, if no kubelets are scraped to serve what these use.
    pub roster: Option<Roster>,
    /// Prometheus and the rules by which it is asked, if it is.
    pub engine: Option<Arc<Engine>>,
    /// The Prometheus servers that specs may ask.
    pub servers: Arc<PrometheusServers>,
    _following: JoinSet<()>,
    _stop: watch::Sender<bool>,
}

impl Reading {
    /// What decisions are made by; the APIs where nothing else was started.
    #[must_use]
    pub fn sources(&self, wanted: ResourceMetrics) -> MetricSources {
        let kubelets = || self.kubelets.clone().map(ResourceSource::Kubelets);
        let prometheus = || self.engine.clone().map(ResourceSource::Prometheus);
        let found = match wanted {
            ResourceMetrics::Api => None,
            ResourceMetrics::Kubelet => kubelets(),
            ResourceMetrics::Prometheus => prometheus(),
        };
        MetricSources {
            resource: found.unwrap_or_default(),
            prometheus: Arc::clone(&self.servers),
            triggers: None,
        }
    }
}

impl Arguments {
    /// Whether the flags make sense together, with those of Prometheus if it is asked.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self, prometheus: bool) -> Result<(), PipelineError> {
        self.kubelet.check()?;
        if prometheus {
            self.prometheus.connection().check()?;
        }
        Ok(())
    }

    /// Whether it is said where Prometheus is.
    #[must_use]
    pub fn has_prometheus(&self) -> bool {
        self.prometheus.connection().is_given()
    }

    /// Begins to scrape kubelets, and to follow rules and series, as far as it is wanted.
    ///
    /// # Errors
    /// Says which file or flag makes no sense.
    pub fn start(
        &self,
        cluster: &Cluster,
        clock: Clock,
        metrics: &Metrics,
        wanted: Wanted,
    ) -> Result<Reading, PipelineError> {
        let kubelets = match wanted.kubelets {
            Some(purpose) => {
                let config = self.kubelet.config(cluster)?;
                Some(Kubelets::start(&cluster.client, clock, config, metrics, purpose))
            }
            None => None,
        };
        let (stop, stopped) = watch::channel(false);
        let mut following = JoinSet::new();
        let roster = wanted.roster.then(|| Roster::start(&cluster.client, metrics));
        let engine = if wanted.prometheus {
            let engine = self.prometheus.engine(Arc::new(KnownResources::everyday()), metrics)?;
            self.follow_rules(&engine, cluster, clock, metrics, stopped, &mut following);
            Some(engine)
        } else {
            None
        };
        let servers = self.prometheus.connection().servers()?;
        Ok(Reading { kubelets, roster, engine, servers, _following: following, _stop: stop })
    }

    fn follow_rules(
        &self,
        engine: &Arc<Engine>,
        cluster: &Cluster,
        clock: Clock,
        metrics: &Metrics,
        stopped: watch::Receiver<bool>,
        following: &mut JoinSet<()>,
    ) {
        let file = self.prometheus.rules_file();
        if let Some(file) = file {
            let reloader = Arc::new(Reloader::new(Arc::clone(engine)));
            following.spawn(rules_file::follow(file.to_owned(), reloader, metrics.clone()));
        }
        if let Some(location) = self.metric_rules_configmap.clone() {
            let (recorder, pending) = events::channel("podscale");
            let client = cluster.client.clone();
            following.spawn(events::write(client.clone(), clock, pending, stopped));
            let watch = RuleWatch { client, location, metrics: metrics.clone(), recorder };
            following.spawn(follow_config_map(watch, Arc::clone(engine)));
        }
        // Rules may also follow from objects of the cluster. Without any nothing is looked up.
        following.spawn(follow_series(Arc::clone(engine)));
    }
}

async fn follow_config_map(watch: RuleWatch, engine: Arc<Engine>) {
    let texts = |errors: Vec<RuleError>| errors.iter().map(ToString::to_string).collect();
    let parse = |text: &str| RuleSet::parse(text).map_err(texts);
    watch.follow(parse, |rules| engine.replace(rules)).await;
}

async fn follow_series(engine: Arc<Engine>) {
    let report = |discovered: &Discovered| {
        for (query, error) in &discovered.failures {
            tracing::warn!(%query, %error, "the series of a rule cannot be looked up");
        }
    };
    engine.refresh_forever(report).await;
}
