//! The flags of the metrics pipeline, which `podscale run` and `podscale serve` share, and its start: what is
//! read from kubelets and Prometheus is read once, for those who decide and those who serve.

use super::kubelet::{self, KubeletError};
use super::prometheus::{self, PrometheusFailure};
use clap::Args;
use podscale_client::clock::Clock;
use podscale_client::connect::Cluster;
use podscale_client::events;
use podscale_controller::controller::{MetricSources, PrometheusServers, ResourceSource};
use podscale_controller::kubelets::{Kubelets, Purpose, Roster};
use podscale_controller::metrics::Metrics;
use podscale_controller::serve::cluster_resources::ClusterResources;
use podscale_controller::serve::rule_reports::{RuleReports, Subject};
use podscale_controller::serve::rules::{Location, RuleWatch};
use podscale_controller::settings::ResourceMetrics;
use podscale_metrics::rules::engine::{Discovered, Engine};
use podscale_metrics::rules::reload::Reloader;
use std::sync::Arc;
use std::time::Duration;
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

    /// A ConfigMap with prometheus-adapter's rules, instead of --metric-rules; it is watched.
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
    /// There are rules, but nothing says whom to ask by them.
    #[error("{0}: nothing says where Prometheus is; --prometheus-url does")]
    RulesWithoutPrometheus(&'static str),
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
    /// Whether nothing may be written, not even events about rules.
    pub dry_run: bool,
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
    /// How often what decisions are made by is read again.
    resolution: Duration,
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
            refresh: Some(self.resolution),
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
        if prometheus || self.has_prometheus() {
            self.prometheus.connection().check()?;
        }
        let from_file = self.prometheus.rules_file().map(|_| "--metric-rules");
        let from_map = self.metric_rules_configmap.as_ref().map(|_| "--metric-rules-configmap");
        match from_file.or(from_map).filter(|_| !self.has_prometheus()) {
            Some(flag) => Err(PipelineError::RulesWithoutPrometheus(flag)),
            None => Ok(()),
        }
    }

    /// Whether rules for metrics are given.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        self.prometheus.rules_file().is_some() || self.metric_rules_configmap.is_some()
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
            let resources = Arc::new(ClusterResources::default());
            let engine = self.prometheus.engine(Arc::clone(&resources) as _, metrics)?;
            let events = (!wanted.dry_run).then_some((clock, stopped));
            let reports = self.follow_rules(&engine, cluster, metrics, events, &mut following)?;
            let (client, rules) = (cluster.client.clone(), Arc::clone(&engine));
            following.spawn(resources.follow(client, rules, reports));
            Some(engine)
        } else {
            None
        };
        let servers = self.prometheus.connection().servers()?;
        let resolution = self.kubelet.resolution();
        Ok(Reading {
            kubelets,
            roster,
            engine,
            servers,
            resolution,
            _following: following,
            _stop: stop,
        })
    }

    fn follow_rules(
        &self,
        engine: &Arc<Engine>,
        cluster: &Cluster,
        metrics: &Metrics,
        events: Option<(Clock, watch::Receiver<bool>)>,
        following: &mut JoinSet<()>,
    ) -> Result<Arc<RuleReports>, PipelineError> {
        let reports = if let Some(location) = self.metric_rules_configmap.clone() {
            let client = cluster.client.clone();
            let recorder = events.map(|(clock, stopped)| {
                let (recorder, pending) = events::channel("podscale");
                following.spawn(events::write(client.clone(), clock, pending, stopped));
                recorder
            });
            let reports = Arc::new(RuleReports::new(metrics.clone(), recorder));
            let (metrics, heard) = (metrics.clone(), Arc::clone(&reports));
            let watch = RuleWatch { client, location, metrics, reports: heard };
            let reloader = Reloader::new(Arc::clone(engine));
            following.spawn(watch.follow(reloader));
            reports
        } else {
            Arc::new(RuleReports::new(metrics.clone(), None))
        };
        if let Some(file) = self.prometheus.open_rules(engine, &reports)? {
            following.spawn(file.follow());
        }
        // Rules may also follow from objects of the cluster. Without any nothing is looked up.
        following.spawn(follow_series(Arc::clone(engine), Arc::clone(&reports)));
        Ok(reports)
    }
}

async fn follow_series(engine: Arc<Engine>, reports: Arc<RuleReports>) {
    let rules = Arc::clone(&engine);
    let report = |discovered: &Discovered| {
        let rules = rules.rules();
        let wrong = discovered.refused().flat_map(|(query, error)| {
            let of_rule = move |rule| format!("{rule}.seriesQuery: {error}");
            rules.rules_of(query).into_iter().map(of_rule).collect::<Vec<_>>()
        });
        reports.found(Subject::Series, wrong.collect());
        for (query, error) in discovered.unanswered() {
            tracing::warn!(query, %error, "the series of a rule cannot be looked up");
        }
    };
    engine.refresh_forever(report).await;
}
