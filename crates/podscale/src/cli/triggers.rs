//! The flags about triggers of event sources.

use clap::Args;
use kube::Client;
use podscale_client::clock::Clock;
use podscale_client::connect::Cluster;
use podscale_client::election::Term;
use podscale_client::instrument::Instruments;
use podscale_controller::controller::manage::Manage;
use podscale_controller::controller::observer::Observer;
use podscale_controller::controller::{Config, MetricSources};
use podscale_controller::dialect::{AnyDialect, IsManaged, Managed, with_triggers};
use podscale_controller::scaled_jobs::{self, ScaledJobs};
use podscale_controller::serve::Served;
use podscale_controller::serve::triggers::TriggerMetrics;
use podscale_controller::settings::{TriggerMode, namespace};
use podscale_controller::triggers::{Limits, Triggers};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// Flags about triggers of event sources.
#[derive(Clone, Debug, Args)]
#[group(id = "trigger-flags")]
#[command(next_help_heading = "Triggers")]
pub struct Arguments {
    /// Also manage KEDA's ScaledObjects and ScaledJobs, query the event sources that PodAutoscaler metrics
    /// name, and read the credentials that triggers refer to. KEDA must not manage these objects at the same
    /// time.
    #[arg(long, env = "PODSCALE_TRIGGERS")]
    triggers: bool,

    /// Read Secrets, ConfigMaps and tokens for triggers only in these namespaces and the controller's own; in
    /// all namespaces if not given.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = namespace,
        requires = "triggers",
        env = "PODSCALE_TRIGGER_NAMESPACES"
    )]
    trigger_namespaces: Vec<String>,

    /// The folder with the files that the filePath of ClusterTriggerAuthentications names.
    #[arg(long, value_name = "DIR", requires = "triggers", env = "PODSCALE_TRIGGER_FILES")]
    trigger_files: Option<PathBuf>,

    /// Who decides how many replicas an active target has. With hpa, each ScaledObject gets an HPA that reads its
    /// triggers as external metrics, which --serve-metrics --serve external serves.
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "MODE",
        requires = "triggers",
        env = "PODSCALE_TRIGGER_MODE"
    )]
    trigger_mode: TriggerMode,
}

impl Arguments {
    /// Whether HPAs read the triggers.
    #[must_use]
    pub fn are_read_by_hpas(&self) -> bool {
        self.triggers && self.trigger_mode == TriggerMode::Hpa
    }

    /// Puts the triggers before the external metrics that are served, if HPAs read them.
    pub fn serve(&self, sources: &MetricSources, served: &mut Served) {
        if let Some(triggers) = sources.triggers.clone().filter(|_| self.are_read_by_hpas()) {
            let (runtime, others) = (Handle::current(), served.external.take());
            served.external = Some(Arc::new(TriggerMetrics { triggers, runtime, others }));
        }
    }

    /// Adds what has triggers to what is managed, and triggers to what is read, if that is wanted.
    pub fn add(
        &self,
        cluster: &Cluster,
        own_namespace: &str,
        clock: Clock,
        manage: Manage,
        (mut dialects, mut sources): (Vec<Arc<dyn AnyDialect>>, MetricSources),
    ) -> (Vec<Arc<dyn AnyDialect>>, MetricSources) {
        if self.triggers {
            let limits = Limits {
                namespaces: self.trigger_namespaces.iter().cloned().collect(),
                own_namespace: own_namespace.to_owned(),
                files: self.trigger_files.clone(),
            };
            let triggers = Arc::new(Triggers::new(&cluster.client, clock, limits));
            let is_managed: IsManaged = Arc::new(move |object: &Managed| manage.manages(object));
            dialects = with_triggers(dialects, &triggers, &is_managed, self.trigger_mode);
            sources.triggers = Some(triggers);
        }
        (dialects, sources)
    }
}

/// Begins to create Jobs by triggers, if these are read.
pub(super) fn start_jobs(
    client: &Client,
    clock: Clock,
    sources: &MetricSources,
    config: &Config,
    leading: &watch::Receiver<Option<Term>>,
    observers: &[Arc<dyn Observer>],
    instruments: &Instruments,
) -> Option<ScaledJobs> {
    let triggers = Arc::clone(sources.triggers.as_ref()?);
    let config = scaled_jobs::Config {
        triggers,
        manage: config.manage.clone(),
        dry_run: config.dry_run,
        leading: leading.clone(),
        instruments: Arc::clone(instruments),
        observers: observers.to_vec(),
    };
    Some(ScaledJobs::start(client, clock, config))
}

/// Ends what creates Jobs.
pub(super) async fn stop_jobs(jobs: Option<ScaledJobs>) {
    if let Some(jobs) = jobs {
        jobs.stop().await;
    }
}
