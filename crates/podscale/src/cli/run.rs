//! `podscale run`: the controller on a real cluster.

mod failure;
mod reading;

use super::{conclude, leader, logs, pipeline, print_error, recording, serving, signal, triggers};
use clap::Args;
use failure::Failure;
use podscale_client::clock::Clock;
use podscale_client::connect;
use podscale_client::instrument::Instruments;
use podscale_client::rate_limit::Rate;
use podscale_controller::admin::{Admin, Shown};
use podscale_controller::controller::manage::{Manage, Which};
use podscale_controller::controller::observer::{Log, Observer};
use podscale_controller::controller::refresh::RefreshRate;
use podscale_controller::controller::{Config, Controller, Watchers};
use podscale_controller::dashboard::Hub;
use podscale_controller::metrics::Metrics;
use podscale_controller::readiness::Readiness;
use podscale_controller::settings::{
    ResourceMetrics, address, amount, duration, namespace, span, sync_period,
};
use podscale_controller::telemetry::{self, DecisionMetrics, Telemetry};
use podscale_core::Settings;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Run the controller on a cluster.
///
/// Watches HorizontalPodAutoscalers, PodAutoscalers and CHPAs (with --triggers also KEDA's ScaledObjects and
/// ScaledJobs) in the cluster of the kubeconfig, or in the one it runs in, and scales their targets: those of
/// HorizontalPodAutoscalers as the Kubernetes controller does. The other kinds may be defined at any
/// time (podscale install --crds). Flags that kube-controller-manager also has use its names, and most of them
/// its defaults; some have a short alias. Durations are written as in Go (15s, 1m30s). SIGTERM and Ctrl-C shut
/// it down gracefully.
///
/// Exit codes: 0 after a graceful shutdown, 1 if it could not start, 2 for a usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The kubeconfig; if not given, $KUBECONFIG, ~/.kube/config or the cluster it runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig context; the current one if not given.
    #[arg(long, value_name = "NAME", env = "PODSCALE_CONTEXT")]
    context: Option<String>,

    /// Which autoscalers to manage. The annotation or label podscale.dev/managed: "false" always
    /// excludes one.
    #[arg(long, value_enum, default_value_t, env = "PODSCALE_MANAGE")]
    manage: Which,

    /// Manage only autoscalers in these namespaces.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = namespace,
        env = "PODSCALE_NAMESPACES"
    )]
    namespaces: Vec<String>,

    /// Manage no autoscalers in these namespaces.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = namespace,
        env = "PODSCALE_EXCLUDE_NAMESPACES"
    )]
    exclude_namespaces: Vec<String>,

    /// Decide and report, but write nothing: no scale, status, event, lease or ConfigMap. Beside another
    /// controller, report where the two disagree.
    #[arg(long, env = "PODSCALE_DRY_RUN")]
    dry_run: bool,

    /// Where to read the cpu and memory usage of pods.
    #[arg(long, value_enum, default_value_t, env = "PODSCALE_RESOURCE_METRICS")]
    resource_metrics: ResourceMetrics,

    /// How often each autoscaler is reconciled.
    #[arg(
        long = "horizontal-pod-autoscaler-sync-period",
        visible_alias = "sync-period",
        value_name = "DURATION",
        value_parser = sync_period,
        allow_hyphen_values = true,
        default_value = "15s",
        env = "PODSCALE_SYNC_PERIOD"
    )]
    sync_period: Duration,

    /// How far the ratio of a metric to its target may deviate from 1 before the size changes.
    #[arg(
        long = "horizontal-pod-autoscaler-tolerance",
        visible_alias = "tolerance",
        value_name = "NUMBER",
        value_parser = amount,
        allow_negative_numbers = true,
        default_value = "0.1",
        env = "PODSCALE_TOLERANCE"
    )]
    tolerance: f64,

    /// How far back recommendations can hold up a scale-down.
    #[arg(
        long = "horizontal-pod-autoscaler-downscale-stabilization",
        visible_alias = "downscale-stabilization",
        value_name = "DURATION",
        value_parser = duration,
        allow_hyphen_values = true,
        default_value = "5m",
        env = "PODSCALE_DOWNSCALE_STABILIZATION"
    )]
    downscale_stabilization: Duration,

    /// How long after a pod's start its cpu samples may be due to initialization.
    #[arg(
        long = "horizontal-pod-autoscaler-cpu-initialization-period",
        visible_alias = "cpu-initialization-period",
        value_name = "DURATION",
        value_parser = duration,
        allow_hyphen_values = true,
        default_value = "5m",
        env = "PODSCALE_CPU_INITIALIZATION_PERIOD"
    )]
    cpu_initialization_period: Duration,

    /// How long after its start an unready pod may count as never having been ready.
    #[arg(
        long = "horizontal-pod-autoscaler-initial-readiness-delay",
        visible_alias = "initial-readiness-delay",
        value_name = "DURATION",
        value_parser = duration,
        allow_hyphen_values = true,
        default_value = "30s",
        env = "PODSCALE_INITIAL_READINESS_DELAY"
    )]
    initial_readiness_delay: Duration,

    /// How many autoscalers are reconciled concurrently; one that waits for a metric source holds a slot, but
    /// uses no CPU.
    #[arg(
        long = "concurrent-horizontal-pod-autoscaler-syncs",
        visible_alias = "concurrency",
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..),
        allow_negative_numbers = true,
        default_value_t = 4096,
        env = "PODSCALE_CONCURRENCY"
    )]
    concurrency: u16,

    /// How many statuses per second are written when only measured values have changed; everything else is
    /// written at once.
    #[arg(
        long,
        value_name = "N",
        value_parser = amount,
        allow_negative_numbers = true,
        default_value = "20",
        env = "PODSCALE_STATUS_REFRESHES_PER_SECOND"
    )]
    status_refreshes_per_second: f64,

    /// The maximum rate of requests per second to the API server, not counting watches and leases; 0 is no
    /// limit.
    #[arg(
        long,
        value_name = "N",
        value_parser = amount,
        allow_negative_numbers = true,
        default_value = "0",
        env = "PODSCALE_KUBE_API_QPS"
    )]
    kube_api_qps: f64,

    /// How many requests may be sent at once after an idle period, if --kube-api-qps sets a limit.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        allow_negative_numbers = true,
        default_value_t = 30,
        env = "PODSCALE_KUBE_API_BURST"
    )]
    kube_api_burst: u32,

    #[command(flatten)]
    election: leader::Arguments,

    /// Where to serve metrics, health and the dashboard.
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = address,
        default_value = "127.0.0.1:9090",
        env = "PODSCALE_ADMIN_ADDRESS"
    )]
    admin_address: SocketAddr,

    /// Also serve the metrics APIs, as `podscale serve` does.
    #[arg(long, env = "PODSCALE_SERVE_METRICS")]
    serve_metrics: bool,

    #[command(flatten)]
    serving: serving::Arguments,

    #[command(flatten)]
    pipeline: pipeline::Arguments,

    #[command(flatten)]
    triggers: triggers::Arguments,

    #[command(flatten)]
    log: logs::Arguments,

    #[command(flatten)]
    telemetry: telemetry::Arguments,

    #[command(flatten)]
    recording: recording::Arguments,
}

impl Arguments {
    fn settings(&self) -> Settings {
        Settings {
            tolerance: self.tolerance,
            downscale_stabilization: span(self.downscale_stabilization),
            cpu_initialization_period: span(self.cpu_initialization_period),
            initial_readiness_delay: span(self.initial_readiness_delay),
        }
    }

    /// The limit of calls, if there is one.
    fn rate(&self) -> Option<Rate> {
        let (per_second, burst) = (self.kube_api_qps, self.kube_api_burst);
        (per_second > 0.0).then_some(Rate { per_second, burst })
    }

    /// Running reconciles share the request rate. With about as many as requests are allowed in a second,
    /// what one has read is still fresh when it writes.
    fn concurrency(&self) -> usize {
        let most = usize::from(self.concurrency);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts saturate, and the limit is above zero"
        )]
        let allowed = self.rate().map(|rate| rate.per_second.ceil() as usize);
        allowed.map_or(most, |allowed| allowed.clamp(1, most))
    }

    fn config(&self) -> Config {
        Config {
            period: self.sync_period,
            concurrency: self.concurrency(),
            settings: self.settings(),
            manage: Manage {
                which: self.manage,
                namespaces: self.namespaces.iter().cloned().collect(),
                excluded: self.exclude_namespaces.iter().cloned().collect(),
            },
            dry_run: self.dry_run,
            refresh_rate: RefreshRate(self.status_refreshes_per_second),
        }
    }

    /// Whether the flags make sense together.
    ///
    /// # Errors
    /// Those of the election do not, the collector cannot be sent to, Prometheus cannot be asked, or no
    /// namespace is left.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.election.check()?;
        self.telemetry.check()?;
        self.pipeline.check(self.resource_metrics == ResourceMetrics::Prometheus)?;
        self.serving.check_beside(
            &self.pipeline,
            self.serve_metrics,
            self.dry_run,
            self.triggers.are_read_by_hpas(),
        )?;
        let left = |name: &String| !self.exclude_namespaces.contains(name);
        if self.namespaces.is_empty() || self.namespaces.iter().any(left) {
            return Ok(());
        }
        Err(Failure::NoNamespace)
    }
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    if let Err(wrong) = arguments.check() {
        print_error(wrong);
        return ExitCode::from(2);
    }
    conclude(start(arguments))
}

fn start(arguments: &Arguments) -> Result<(), Failure> {
    let metrics = Metrics::new();
    let telemetry = Telemetry::start(&arguments.telemetry, &metrics)?;
    arguments.log.start(&telemetry)?;
    // One thread decides for tens of thousands: waking a second one costs more than it does for them.
    // Large answers are read elsewhere meanwhile.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let observer = telemetry.observer();
    let done = runtime.map_err(Failure::Runtime)?.block_on(control(arguments, metrics, observer));
    // Another replica leads by now, so this may take a moment.
    telemetry.finish();
    done
}

async fn control(
    arguments: &Arguments,
    metrics: Metrics,
    tracing: Option<Arc<dyn Observer>>,
) -> Result<(), Failure> {
    let end = signal::end();
    tokio::pin!(end);
    let (clock, readiness) = (Clock::wall(), Readiness::new());
    let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
    let instruments: Instruments = Arc::new(metrics.clone());
    // Asked to end while it starts, it ends as well.
    let cluster = tokio::select! {
        biased;
        () = &mut end => return Ok(()),
        cluster = connect::connect(kubeconfig, context, arguments.rate(), &instruments) => cluster?,
    };
    let hub = Hub::new(clock);
    let shown = Shown { hub: hub.clone(), metrics: metrics.clone(), readiness: readiness.clone() };
    let recording = arguments.recording.start(&metrics)?;
    let admin = Admin::start(arguments.admin_address, shown).await?;
    announce(arguments, &cluster, admin.address());
    let counting = DecisionMetrics(metrics.clone());
    let mut observers: Vec<Arc<dyn Observer>> =
        vec![Arc::new(hub), Arc::new(Log), Arc::new(counting)];
    observers.extend(tracing);
    let recording = recording.map(|(recorder, writing)| {
        observers.push(Arc::new(recorder));
        writing
    });
    let watchers = Watchers { observers, metrics, readiness };
    let (elections, role) =
        arguments.election.elect(&cluster, clock, &watchers.metrics, arguments.dry_run);
    let (client, config) = (&cluster.client, arguments.config());
    let reading = arguments.read(&cluster, clock, &watchers.metrics, &role)?;
    let (dialects, sources) = arguments.decides_by(&cluster, clock, &reading);
    let served = match (arguments.serve_metrics, arguments.serving.serves_besides_metrics()) {
        (true, _) => Some(arguments.served(&reading, client, &sources)),
        (false, true) => Some(arguments.serving.served_without_metrics()),
        (false, false) => None,
    };
    let start = |served| arguments.serving.start_beside(kubeconfig, context, served, &watchers);
    let serving = served.map(start).transpose()?;
    let (leading, told) = (&role.leading, &watchers.observers);
    let jobs = triggers::start_jobs(client, clock, &sources, &config, leading, told, &instruments);
    let controller =
        Controller::start_with(client, clock, config, dialects, watchers, role, sources);
    end.await;
    tracing::info!("shutting down");
    triggers::stop_jobs(jobs).await;
    controller.hand_over(elections.stop()).await;
    if let Some(writing) = recording {
        writing.finish();
    }
    if let Some(serving) = serving {
        serving.stop();
    }
    admin.stop().await;
    Ok(())
}

fn announce(arguments: &Arguments, cluster: &connect::Cluster, admin: SocketAddr) {
    let (version, namespace) =
        (env!("CARGO_PKG_VERSION"), arguments.election.own_namespace(cluster));
    let (dry_run, manage) = (arguments.dry_run, arguments.manage.name());
    let server = &cluster.url;
    tracing::info!(version, %server, namespace, manage, dry_run, %admin, "started");
}
