//! `podscale serve`: the metrics APIs, without the controller.

use super::serving::{self, Failure};
use super::{conclude, logs, pipeline, print_error, signal};
use clap::{Args, ValueEnum};
use podscale_controller::metrics::Metrics;
use podscale_controller::settings::ResourceMetrics;
use podscale_controller::telemetry::{self, Telemetry, TelemetryError};
use std::path::PathBuf;
use std::process::ExitCode;

/// Serve the metrics APIs of a cluster.
///
/// Serves metrics.k8s.io (the usage of pods and nodes, read from the kubelets or from Prometheus) and custom
/// and external metrics (from Prometheus, by prometheus-adapter's rules, and from other servers), over TLS and
/// behind the API server's aggregation layer, in place of metrics-server and prometheus-adapter. Flags that
/// these have keep their names. Other flags serve an admission webhook for autoscalers, and singlecloud's API.
/// SIGTERM and Ctrl-C shut it down gracefully.
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

    /// Where the cpu and memory of metrics.k8s.io come from.
    #[arg(long, value_enum, default_value_t, env = "PODSCALE_RESOURCE_METRICS")]
    resource_metrics: ServedMetrics,

    #[command(flatten)]
    serving: serving::Arguments,

    #[command(flatten)]
    pipeline: pipeline::Arguments,

    #[command(flatten)]
    log: logs::Arguments,

    #[command(flatten)]
    telemetry: telemetry::Arguments,
}

/// Where what is served of cpu and memory comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ServedMetrics {
    /// From the kubelets, scraped directly.
    #[default]
    Kubelet,
    /// From Prometheus, by the resourceRules of the rules, or without them from the series of kubelets as they
    /// are usually scraped.
    Prometheus,
}

impl ServedMetrics {
    fn source(self) -> ResourceMetrics {
        match self {
            ServedMetrics::Kubelet => ResourceMetrics::Kubelet,
            ServedMetrics::Prometheus => ResourceMetrics::Prometheus,
        }
    }
}

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
enum ServeFailure {
    #[error(transparent)]
    Log(#[from] logs::LogError),
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
    #[error(transparent)]
    Serving(#[from] Failure),
    #[error("cannot start: {0}")]
    Runtime(#[from] std::io::Error),
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    if let Err(wrong) = check(arguments) {
        print_error(wrong);
        return ExitCode::from(2);
    }
    conclude(start(arguments))
}

fn check(arguments: &Arguments) -> Result<(), ServeFailure> {
    arguments.telemetry.check()?;
    let prometheus = arguments.pipeline.has_prometheus()
        || arguments.resource_metrics == ServedMetrics::Prometheus;
    arguments.pipeline.check(prometheus).map_err(Failure::from)?;
    arguments.serving.check_alone(&arguments.pipeline)?;
    Ok(arguments.serving.check_rules(&arguments.pipeline)?)
}

fn start(arguments: &Arguments) -> Result<(), ServeFailure> {
    let metrics = Metrics::new();
    let telemetry = Telemetry::start(&arguments.telemetry, &metrics)?;
    arguments.log.start(&telemetry)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(serve(arguments, metrics));
    telemetry.finish();
    Ok(done?)
}

async fn serve(arguments: &Arguments, metrics: Metrics) -> Result<(), Failure> {
    let end = signal::end();
    tokio::pin!(end);
    let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
    let (pipeline, resource) = (&arguments.pipeline, arguments.resource_metrics.source());
    // Asked to end while it starts, it ends as well.
    let running = tokio::select! {
        biased;
        () = &mut end => return Ok(()),
        running = arguments.serving.start(kubeconfig, context, pipeline, resource, metrics) => running?,
    };
    end.await;
    tracing::info!("ending");
    running.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn what_is_served_must_come_from_somewhere() {
        let prometheus = "--prometheus-url=http://p";
        for (line, problem) in [
            ("--serve=resource".to_owned(), None),
            (format!("--serve=custom {prometheus} --metric-rules=x"), None),
            (format!("--serve=custom {prometheus} --singlecloud-port=1"), None),
            ("--webhook".to_owned(), None),
            ("--webhook --serve=resource --plain-address=[::]:8080".to_owned(), None),
            (
                "--webhook --plain-address=[::]:8080".to_owned(),
                Some("--plain-address has no effect without resource in --serve"),
            ),
            ("--serve=custom".to_owned(), Some("--serve custom: nothing says where")),
            (format!("--serve=custom {prometheus}"), Some("--serve custom: nothing says which")),
            (
                format!("--serve=external {prometheus}"),
                Some("--serve external: nothing says which"),
            ),
        ] {
            let words = ["serve"].into_iter().chain(line.split(' '));
            let parsed = Line::try_parse_from(words).expect(&line);
            let found = check(&parsed.arguments).err().map(|error| error.to_string());
            let fits = match (&found, problem) {
                (Some(found), Some(problem)) => found.contains(problem),
                (found, problem) => found.is_none() && problem.is_none(),
            };
            assert!(fits, "{line}: {found:?}");
        }
    }
}
