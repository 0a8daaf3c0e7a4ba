//! Where the values of metrics come from. A metric of the model asks a question; the registry finds
//! the source that answers it; a source answers all who ask the same with one call, and shields
//! itself from a server that does not answer with a circuit breaker.
//!
//! A new source is one file here and one line in [`Sources`].

mod answer;
mod cache;
mod circuit_breaker;
mod custom_metrics;
mod decode;
mod external_metrics;
mod interests;
mod kubelet;
mod namespaces;
mod prometheus;
mod prometheus_query;
mod question;
mod refresh;
mod resource_metrics;
mod server;
mod subscriptions;
#[cfg(test)]
mod tests;
mod trigger;

pub(crate) use answer::Answer;
pub use prometheus_query::{Probe, PrometheusServers};
pub(crate) use question::Question;
pub(crate) use refresh::Refreshing;
pub(crate) use subscriptions::{Announcements, News, Notifier, Topic, Unseen, notifications};

use crate::kubelets::Kubelets;
use crate::metrics::Metrics;
use crate::pods::Pods;
use crate::spans;
use crate::triggers::Triggers;
use decode::Codec;
use futures::future::BoxFuture;
use kube::Client;
use podscale_client::clock::Clock;
use podscale_client::discovery::RestMapper;
use podscale_core::model::Source;
use podscale_metrics::rules::engine::Engine;
use std::sync::Arc;

/// Into how many parts a sync period is divided for the age of answers: an answer may be used again
/// within one part. The objects of one moment share answers, those of the next do not.
pub(crate) const FRESHNESS_PARTS: u32 = 8;

/// Answers questions about metrics.
pub(crate) trait MetricSource: Send + Sync {
    /// What the source says now, or said to somebody else a moment ago.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer>;

    /// What a new answer to this question is announced under, if the source announces any.
    fn topic(&self, _question: &Question<'_>) -> Option<Topic> {
        None
    }
}

/// Finds the source of a metric.
#[derive(Clone)]
pub(crate) struct Sources {
    /// What pods and containers use.
    pub(crate) resource: Arc<dyn MetricSource>,
    /// Values of pods and of objects.
    pub(crate) custom: Arc<dyn MetricSource>,
    /// Values from outside the cluster.
    pub(crate) external: Arc<dyn MetricSource>,
    /// Queries that specs bring along.
    pub(crate) queries: Arc<dyn MetricSource>,
    /// Event sources, where objects with triggers are managed.
    pub(crate) triggers: Option<Arc<dyn MetricSource>>,
}

impl Sources {
    /// The three metrics APIs of Kubernetes, through the API server.
    pub(crate) fn metrics_apis(
        client: &Client,
        clock: Clock,
        mapper: RestMapper,
        metrics: &Metrics,
    ) -> Sources {
        let server =
            |name, codec| server::Server::new(name, codec, client.clone(), metrics.clone());
        let resource = server("resource", Codec::Typed { kind: Some("PodMetricsList") });
        let custom = server("custom", Codec::Dynamic { kind: "MetricValueList" });
        let external = server("external", Codec::Typed { kind: None });
        let queries =
            prometheus_query::PrometheusQueries::new(Arc::default(), clock, metrics.clone());
        Sources {
            resource: Arc::new(resource_metrics::ResourceMetrics::new(resource, clock)),
            custom: Arc::new(custom_metrics::CustomMetrics::new(custom, clock, mapper)),
            external: Arc::new(external_metrics::ExternalMetrics::new(external, clock)),
            queries: Arc::new(queries),
            triggers: None,
        }
    }

    /// Reads what pods use from kubelets instead, and announces new samples.
    pub(crate) fn read_kubelets(
        &mut self,
        kubelets: Arc<Kubelets>,
        pods: Arc<Pods>,
        clock: Clock,
        notifier: Notifier,
    ) {
        let source = kubelet::KubeletMetrics::new(kubelets, pods, clock, notifier);
        self.resource = Arc::new(source);
    }

    /// Asks Prometheus what pods use instead; again and again, to announce what is new, if it is said how
    /// often.
    pub(crate) fn read_prometheus(
        &mut self,
        engine: Arc<Engine>,
        pods: Arc<Pods>,
        clock: Clock,
        metrics: &Metrics,
        refreshing: Option<Refreshing>,
    ) {
        let usage =
            Arc::new(prometheus::PrometheusUsage::new(engine, pods, clock, metrics.clone()));
        if let Some(refreshing) = refreshing {
            refreshing.follow(&usage);
        }
        self.resource = usage;
    }

    /// Asks these servers the queries that specs bring along; again and again, to announce what is new, if
    /// it is said how often.
    pub(crate) fn ask_servers(
        &mut self,
        servers: Arc<PrometheusServers>,
        clock: Clock,
        metrics: &Metrics,
        refreshing: Option<Refreshing>,
    ) {
        let queries =
            Arc::new(prometheus_query::PrometheusQueries::new(servers, clock, metrics.clone()));
        if let Some(refreshing) = refreshing {
            refreshing.follow(&queries);
        }
        self.queries = queries;
    }

    /// Polls triggers, and announces what their sources say by themselves.
    pub(crate) fn poll_triggers(
        &mut self,
        triggers: Arc<Triggers>,
        notifier: &Notifier,
        metrics: &Metrics,
    ) {
        let (notifier, reported) = (notifier.clone(), Arc::clone(&triggers));
        metrics.show_triggers(move || reported.report());
        triggers.report_pushes(Box::new(move |topic| notifier.announce([Topic(topic)])));
        self.triggers = Some(Arc::new(trigger::TriggerPolls::new(triggers, metrics.clone())));
    }

    /// The source that answers for a metric, if any does.
    pub(crate) fn find(&self, metric: &Source) -> Option<&dyn MetricSource> {
        match metric {
            Source::Resource { .. } | Source::ContainerResource { .. } => Some(&*self.resource),
            Source::Pods(_) | Source::Object { .. } => Some(&*self.custom),
            Source::External(_) => Some(&*self.external),
            Source::Prometheus(_) => Some(&*self.queries),
            Source::Trigger(_) => self.triggers.as_deref(),
            Source::Unknown { .. } => None,
        }
    }

    /// The answer to a question, within a span that shows how long it took.
    pub(crate) async fn ask(&self, question: Question<'_>) -> Answer {
        match self.find(question.metric) {
            Some(source) => {
                spans::read_metric(question.metric, source.ask(question), Answer::failure).await
            }
            None => Answer::Nothing,
        }
    }
}
