//! `podscale demo`: a cluster in one process, scaled while one watches.

use super::{conclude, print, signal};
use crate::demo::decision_log::DecisionLog;
use crate::demo::{Config, Demo, DemoError, PLAIN};
use crate::scenario::{self, Scenario, ScenarioError};
use clap::{Args, ValueEnum};
use podscale_client::clock::Clock;
use podscale_cluster::metrics::prometheus;
use podscale_cluster::nodes::{KubeletPort, address::MAX_NODES};
use podscale_controller::settings::duration;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Watch autoscaling happen, with nothing installed.
///
/// Starts a small Kubernetes cluster in this process, runs sample workloads under a load that rises, spikes and
/// falls, scales them, and shows what happens: in a web page, in a log of decisions and their reasons, and to
/// your own kubectl. Nothing leaves this machine. Stop it with Ctrl-C.
///
/// Exit codes: 0 after a graceful shutdown, 1 if it could not start, 2 for a usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What to show: a built-in scenario (tour, queue, triggers, jobs) or a scenario file.
    #[arg(long, value_name = "NAME|FILE", default_value = scenario::DEFAULT, env = "PODSCALE_SCENARIO")]
    scenario: String,

    /// The speed as a multiple of real time; the scenario's own speed if not given.
    #[arg(long, value_name = "FACTOR", value_parser = speed, env = "PODSCALE_SPEED")]
    speed: Option<f64>,

    /// The dashboard's port on loopback; 0 takes any free one.
    #[arg(long, value_name = "PORT", default_value_t = 8700, env = "PODSCALE_PORT")]
    port: u16,

    /// How long to run, such as 90s or 5m, in real time; until Ctrl-C if not given.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    duration: Option<Duration>,

    /// The number of nodes; the scenario's if not given.
    #[arg(long, value_name = "N", value_parser = nodes)]
    nodes: Option<usize>,

    /// Generate no load; set it yourself with calls to the dashboard's /load.
    #[arg(long)]
    no_load: bool,

    /// The port of the simulated kubelets, each on its own loopback address 127.0.1.N; 0 takes any free ports.
    /// If not given, 10250, or any free ports if that cannot be used.
    #[arg(long, value_name = "PORT")]
    kubelet_port: Option<u16>,

    /// Where the controller reads the cpu and memory of pods.
    #[arg(long, value_enum, default_value_t, env = "PODSCALE_RESOURCE_METRICS")]
    resource_metrics: DemoMetrics,

    /// Where to write the kubeconfig; in a new temporary folder if not given.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Also serve autoscaling/v2beta1 and v2beta2, which Kubernetes 1.25 and 1.26 removed, with the deprecation
    /// warnings they had.
    #[arg(long)]
    removed_autoscaling_versions: bool,
}

/// Where the demo's controller reads cpu and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum DemoMetrics {
    /// From the cluster's metrics.k8s.io.
    Api,
    /// From its kubelets, scraped directly.
    #[default]
    Kubelet,
}

fn speed(text: &str) -> Result<f64, String> {
    let (least, most) = (Clock::SPEEDS.start(), Clock::SPEEDS.end());
    match text.parse::<f64>() {
        Ok(speed) if Clock::SPEEDS.contains(&speed) => Ok(speed),
        _ => Err(format!("not a number between {least} and {most}")),
    }
}

fn nodes(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(nodes) if (1..=MAX_NODES).contains(&nodes) => Ok(nodes),
        _ => Err(format!("not a number between 1 and {MAX_NODES}")),
    }
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Demo(#[from] DemoError),
    #[error("cannot start: {0}")]
    Runtime(io::Error),
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    conclude(show(arguments))
}

fn show(arguments: &Arguments) -> Result<(), Failure> {
    let mut scenario = Scenario::load(&arguments.scenario)?;
    if arguments.no_load {
        scenario = scenario.without_load();
    }
    let mut config = Config::of(scenario);
    config.speed = arguments.speed.unwrap_or(config.speed);
    config.nodes = arguments.nodes.unwrap_or(config.nodes);
    config.port = arguments.port;
    config.kubelet_port =
        arguments.kubelet_port.map_or_else(KubeletPort::default, KubeletPort::Required);
    config.read_kubelets = arguments.resource_metrics == DemoMetrics::Kubelet;
    config.kubeconfig.clone_from(&arguments.kubeconfig);
    config.removed_autoscaling_versions = arguments.removed_autoscaling_versions;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::Runtime)?;
    runtime.block_on(watch(config, arguments.duration))
}

async fn watch(config: Config, duration: Option<Duration>) -> Result<(), Failure> {
    let (title, speed) = (describe(&config.scenario), config.speed);
    let example = config.scenario.workloads.first().map(|w| format!("{}/{}", w.namespace, w.name));
    print(&format!("{title}, at {speed} times real time\nstarting the cluster …\n"));
    let clock = Clock::fast(jiff::Timestamp::now(), speed);
    let log = Arc::new(DecisionLog::new(clock, io::stdout()));
    let observer = Arc::clone(&log);
    // It can be interrupted while it starts as well.
    let end = signal::end();
    tokio::pin!(end);
    let demo = tokio::select! {
        biased;
        () = &mut end => return Ok(()),
        demo = Demo::start(config, vec![observer]) => demo?,
    };
    log.open(&banner(&demo, example.as_deref()));
    tokio::select! {
        biased;
        () = &mut end => {}
        () = pause(duration) => {}
    }
    print("\nshutting down …\n");
    demo.stop().await;
    Ok(())
}

/// Where everything is; `example` is a workload whose load can be set.
fn banner(demo: &Demo, example: Option<&str>) -> String {
    let page = demo.dashboard_url();
    let mut text = format!(
        "\n  dashboard   {page}\n  kubectl     export KUBECONFIG={}\n",
        demo.kubeconfig().display()
    );
    if let Some(workload) = example {
        text += &format!(
            "  load        curl -X PUT {page}load/{workload} -H 'content-type: application/json' \
             -d '{{\"rps\": 200}}'\n"
        );
    }
    let plain = PLAIN.trim_start_matches('/');
    text += &format!("  metrics     curl {page}{plain}/namespaces/all-namespaces/pods\n");
    let config = prometheus::CONFIG.trim_start_matches('/');
    text += &format!(
        "  prometheus  curl -so prometheus.yml {page}{config} && prometheus --config.file=prometheus.yml\n"
    );
    if let Some(notice) = demo.kubelet_notice() {
        text += &format!("\n  {notice}\n");
    }
    text + "\n  Ctrl-C ends it. Times below are the cluster's, since the start.\n"
}

fn describe(scenario: &Scenario) -> String {
    if scenario.description.is_empty() {
        scenario.name.clone()
    } else {
        format!("{}: {}", scenario.name, scenario.description)
    }
}

async fn pause(duration: Option<Duration>) {
    match duration {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}
