//! The pipelines of spans, log records and metrics from the program to a collector.

use super::TelemetryError;
use super::batch::{Losses, Queue, queue};
use super::export::NAME;
use super::points::{Points, Times};
use super::send::Sender;
use super::settings::{BatchSettings, Destination};
use crate::metrics::Metrics;
use futures::FutureExt;
use futures::future::BoxFuture;
use opentelemetry::logs::LogRecord;
use opentelemetry::{Context, InstrumentationScope};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope as Scope;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource as Described;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema as Attributes;
use opentelemetry_proto::transform::logs::tonic::group_logs_by_resource_and_scope;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::{LogBatch, LogProcessor, SdkLogRecord};
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use prost::Message;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// A log record in its queue.
pub(super) type Record = (SdkLogRecord, InstrumentationScope);

/// A queue, and the task that empties it.
type Pipeline<T> = (Queue<T>, BoxFuture<'static, ()>);

/// Makes the pipelines.
pub(super) struct Pipelines {
    resource: Arc<Attributes>,
    metrics: Metrics,
    finish: watch::Receiver<bool>,
}

impl Pipelines {
    pub(super) fn new(
        resource: &Resource,
        metrics: &Metrics,
        finish: watch::Receiver<bool>,
    ) -> Pipelines {
        Pipelines { resource: Arc::new(resource.into()), metrics: metrics.clone(), finish }
    }

    /// The pipeline of spans.
    pub(super) fn spans(
        &self,
        to: Destination,
        settings: BatchSettings,
    ) -> Result<Pipeline<SpanData>, TelemetryError> {
        let resource = Arc::clone(&self.resource);
        self.batches(to, settings, move |spans| {
            let resource_spans = group_spans_by_resource_and_scope(spans, &resource);
            ExportTraceServiceRequest { resource_spans }.encode_to_vec()
        })
    }

    /// The pipeline of log records.
    pub(super) fn logs(
        &self,
        to: Destination,
        settings: BatchSettings,
    ) -> Result<Pipeline<Record>, TelemetryError> {
        let resource = Arc::clone(&self.resource);
        self.batches(to, settings, move |records: Vec<Record>| {
            let records: Vec<_> = records.iter().map(|(record, scope)| (record, scope)).collect();
            let batch = LogBatch::new(&records);
            let resource_logs = group_logs_by_resource_and_scope(&batch, &resource);
            ExportLogsServiceRequest { resource_logs }.encode_to_vec()
        })
    }

    fn batches<T: Send + 'static>(
        &self,
        to: Destination,
        settings: BatchSettings,
        encode: impl Fn(Vec<T>) -> Vec<u8> + Send + 'static,
    ) -> Result<Pipeline<T>, TelemetryError> {
        let (mut losses, sender) = (self.losses(&to), Sender::new(to)?);
        let (queue, mut batches) = queue(settings);
        let mut finish = self.finish.clone();
        let task = async move {
            while let Some(batch) = batches.next(&mut finish).await {
                let items = u64::try_from(batch.len()).unwrap_or(u64::MAX);
                let result = sender.send(encode(batch)).await;
                losses.sent(items, batches.overflow(), &result);
            }
        };
        Ok((queue, task.boxed()))
    }

    /// Sends the metrics, again and again.
    pub(super) fn metrics(
        &self,
        to: Destination,
        interval: Duration,
    ) -> Result<BoxFuture<'static, ()>, TelemetryError> {
        let (mut losses, sender) = (self.losses(&to), Sender::new(to)?);
        let (resource, metrics) = (Arc::clone(&self.resource), self.metrics.clone());
        let (mut finish, began) = (self.finish.clone(), nanos_now());
        let task = async move {
            let mut last = false;
            while !last {
                tokio::select! {
                    biased;
                    _ = finish.wait_for(|finish| *finish) => last = true,
                    () = tokio::time::sleep(interval) => {}
                }
                let report = report(&metrics, &resource, Times { began, now: nanos_now() });
                let result = sender.send(report).await;
                losses.sent(1, 0, &result);
            }
        };
        Ok(task.boxed())
    }

    fn losses(&self, to: &Destination) -> Losses {
        Losses::new(to.signal, to.url.to_string(), self.metrics.clone())
    }
}

/// All metrics as one message.
fn report(metrics: &Metrics, resource: &Attributes, times: Times) -> Vec<u8> {
    let scope = Scope {
        name: NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..Scope::default()
    };
    let mut points = Points::new(times);
    metrics.visit(&mut points);
    let of_scope =
        ScopeMetrics { scope: Some(scope), metrics: points.finish(), schema_url: String::new() };
    let described = Described { attributes: resource.attributes.0.clone(), ..Described::default() };
    let of_resource = ResourceMetrics {
        resource: Some(described),
        scope_metrics: vec![of_scope],
        schema_url: resource.schema_url.clone().unwrap_or_default(),
    };
    ExportMetricsServiceRequest { resource_metrics: vec![of_resource] }.encode_to_vec()
}

fn nanos_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

impl SpanProcessor for Queue<SpanData> {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            self.put(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl LogProcessor for Queue<Record> {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        let mut record = record.clone();
        record.set_timestamp(SystemTime::now());
        // Otherwise it would be a place in the source.
        record.set_event_name("");
        self.put((record, scope.clone()));
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}
