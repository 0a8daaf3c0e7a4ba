//! Flags that say what a workload is like.

use crate::simulate::ModelOptions;
use clap::{Args, ValueEnum};
use podscale_controller::settings::{amount, duration, period, span, sync_period};
use podscale_core::Settings;
use podscale_sim::workload::Kind;
use std::time::Duration;

/// What the workload is like, where no scenario says it.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload and controller settings, which override the scenario's")]
pub(super) struct Model {
    /// Whether requests are answered directly or wait in a queue.
    #[arg(long, value_enum)]
    kind: Option<KindName>,

    /// The maximum number of requests per second that one pod serves.
    #[arg(long, value_name = "RPS", value_parser = amount)]
    rps_per_pod: Option<f64>,

    /// CPU time of one request, in milliseconds.
    #[arg(long, value_name = "MS", value_parser = amount)]
    cpu_ms_per_request: Option<f64>,

    /// How long a request takes on an idle pod.
    #[arg(long, value_name = "DURATION", value_parser = period)]
    latency: Option<Duration>,

    /// How long a request may take: ten times as long as on an idle pod, or 1m in a queue, if not given.
    #[arg(long, value_name = "DURATION", value_parser = period)]
    objective: Option<Duration>,

    /// From a pod's creation until its containers run.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    start_up: Option<Duration>,

    /// From running containers until the pod is ready.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    readiness: Option<Duration>,

    /// How often autoscalers decide.
    #[arg(long, value_name = "DURATION", value_parser = sync_period)]
    sync_period: Option<Duration>,

    /// How far the ratio of a metric to its target may deviate from 1 before the size changes.
    #[arg(long, value_name = "NUMBER", value_parser = amount, default_value = "0.1")]
    tolerance: f64,

    /// How far back recommendations can hold up a scale-down.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    downscale_stabilization: Duration,

    /// How long after a pod's start its cpu samples may be due to initialization.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    cpu_initialization_period: Duration,

    /// How long after its start an unready pod may count as never having been ready.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    initial_readiness_delay: Duration,

    /// How often pods are scraped.
    #[arg(long, value_name = "DURATION", value_parser = period)]
    metric_resolution: Option<Duration>,

    /// The share of scrapes that is lost, from 0 to 1.
    #[arg(long, value_name = "SHARE", value_parser = amount)]
    missing: Option<f64>,

    /// The time simulated in one step; longer is faster and coarser.
    #[arg(long, value_name = "DURATION", value_parser = period)]
    slot: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum KindName {
    /// Requests are answered directly.
    Service,
    /// Work waits in a queue.
    Consumer,
}

impl Model {
    /// What they say together.
    pub(super) fn options(&self) -> ModelOptions {
        let seconds = |duration: Option<Duration>| duration.map(|duration| duration.as_secs_f64());
        ModelOptions {
            kind: self.kind.map(|kind| match kind {
                KindName::Service => Kind::Service,
                KindName::Consumer => Kind::Consumer,
            }),
            rps_per_pod: self.rps_per_pod,
            cpu_ms_per_request: self.cpu_ms_per_request,
            latency_seconds: seconds(self.latency),
            objective_seconds: seconds(self.objective),
            start_up_seconds: seconds(self.start_up),
            readiness_seconds: seconds(self.readiness),
            sync_period_seconds: seconds(self.sync_period),
            resolution_seconds: seconds(self.metric_resolution),
            missing: self.missing,
            slot_seconds: seconds(self.slot),
            settings: Settings {
                tolerance: self.tolerance,
                downscale_stabilization: span(self.downscale_stabilization),
                cpu_initialization_period: span(self.cpu_initialization_period),
                initial_readiness_delay: span(self.initial_readiness_delay),
            },
            start: None,
        }
    }
}
