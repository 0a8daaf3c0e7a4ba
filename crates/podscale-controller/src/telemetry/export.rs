//! Sets telemetry up: the layers that listen in the program, and the thread that sends.

use super::Outcomes;
use super::pipeline::Pipelines;
use super::settings::{Sampling, Settings, settings};
use super::{Arguments, BoxedLayer, TelemetryError};
use crate::controller::observer::Observer;
use crate::metrics::Metrics;
use futures::future::{BoxFuture, join_all};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{Context, KeyValue};
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use podscale_client::election;
use podscale_client::instrument::SPAN_TARGET;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Layer;

/// How long what is left may take to be sent at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The name of the service and of the instrumentation scope.
pub(super) const NAME: &str = "podscale";

/// What is sent to a collector, if anything is.
#[derive(Default)]
pub struct Telemetry {
    tracer: Option<SdkTracerProvider>,
    logger: Option<SdkLoggerProvider>,
    thread: Option<(watch::Sender<bool>, JoinHandle<()>)>,
}

impl Telemetry {
    /// Begins to send, if a collector is named by flag or environment.
    ///
    /// # Errors
    /// What was asked for cannot be done.
    pub fn start(arguments: &Arguments, metrics: &Metrics) -> Result<Telemetry, TelemetryError> {
        let environment = |name: &str| std::env::var(name).ok();
        Telemetry::begin(settings(arguments.endpoint(), environment)?, metrics)
    }

    fn begin(settings: Settings, metrics: &Metrics) -> Result<Telemetry, TelemetryError> {
        let mut telemetry = Telemetry::default();
        if settings == Settings::default() {
            return Ok(telemetry);
        }
        let (finish, asked) = watch::channel(false);
        let resource = resource();
        let pipelines = Pipelines::new(&resource, metrics, asked.clone());
        let mut tasks: Vec<BoxFuture<'static, ()>> = Vec::new();
        if let Some((to, batches)) = settings.traces {
            let (queue, task) = pipelines.spans(to, batches)?;
            tasks.push(task);
            let builder = SdkTracerProvider::builder().with_span_processor(queue);
            let builder = builder.with_sampler(sampler(settings.sampling));
            telemetry.tracer = Some(builder.with_resource(resource.clone()).build());
        }
        if let Some((to, batches)) = settings.logs {
            let (queue, task) = pipelines.logs(to, batches)?;
            tasks.push(task);
            let builder = SdkLoggerProvider::builder().with_log_processor(queue);
            telemetry.logger = Some(builder.with_resource(resource).build());
        }
        if let Some((to, interval)) = settings.metrics {
            tasks.push(pipelines.metrics(to, interval)?);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| cannot_start(&error))?;
        let thread = std::thread::Builder::new().name("telemetry".to_owned());
        let thread = thread.spawn(move || work(runtime, tasks, asked));
        telemetry.thread = Some((finish, thread.map_err(|error| cannot_start(&error))?));
        Ok(telemetry)
    }

    /// What listens to spans and log lines; lines are filtered as those of the log.
    #[must_use]
    pub fn layers(&self, filter: impl Fn() -> EnvFilter) -> Vec<BoxedLayer> {
        let spans = self.tracer.as_ref().map(|provider| {
            let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(NAME));
            let layer = layer.with_location(false).with_threads(false).with_target(false);
            let layer = layer.with_tracked_inactivity(false).with_level(false);
            let own = filter_fn(|metadata| metadata.is_span() && metadata.target() == SPAN_TARGET);
            layer.with_filter(own).boxed()
        });
        let lines = self.logger.as_ref().map(|provider| {
            OpenTelemetryTracingBridge::new(provider).with_filter(filter()).boxed()
        });
        spans.into_iter().chain(lines).collect()
    }

    /// Records decisions on spans, if spans are sent.
    #[must_use]
    pub fn observer(&self) -> Option<Arc<dyn Observer>> {
        self.tracer.as_ref().map(|_| Arc::new(Outcomes) as Arc<dyn Observer>)
    }

    /// Sends what is left, within a bounded time, and ends.
    pub fn finish(self) {
        if let Some((finish, thread)) = self.thread {
            finish.send_replace(true);
            // It bounds its own time; if it panicked there is nothing left to send.
            let _ = thread.join();
        }
    }
}

fn sampler(sampling: Sampling) -> Sampler {
    let root = Sampler::TraceIdRatioBased(sampling.ratio);
    if sampling.is_parent_based { Sampler::ParentBased(Box::new(root)) } else { root }
}

/// What the thread runs.
fn work(runtime: Runtime, tasks: Vec<BoxFuture<'static, ()>>, mut asked: watch::Receiver<bool>) {
    // Log records of sending itself are not sent: each would cause others.
    let _quiet = Context::enter_telemetry_suppressed_scope();
    runtime.block_on(async {
        let late = async {
            let _ = asked.wait_for(|asked| *asked).await;
            tokio::time::sleep(FLUSH_TIMEOUT).await;
        };
        tokio::select! {
            _ = join_all(tasks) => {}
            () = late => {}
        }
    });
    // A DNS lookup that is still under way is not waited for.
    runtime.shutdown_background();
}

fn cannot_start(error: &std::io::Error) -> TelemetryError {
    TelemetryError { origin: "telemetry".to_owned(), problem: format!("cannot start: {error}") }
}

/// What describes the program; the environment goes before.
fn resource() -> Resource {
    let own = [
        KeyValue::new("service.name", NAME),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("service.instance.id", election::identity()),
    ];
    let builder = Resource::builder_empty().with_attributes(own);
    let builder = builder.with_detector(Box::new(TelemetryResourceDetector));
    let builder = builder.with_detector(Box::new(EnvResourceDetector::new()));
    match std::env::var("OTEL_SERVICE_NAME") {
        Ok(name) if !name.is_empty() => builder.with_service_name(name).build(),
        _ => builder.build(),
    }
}
