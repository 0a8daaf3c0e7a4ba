//! `external.metrics.k8s.io`: values from outside the cluster.

use super::MetricSource;
use super::answer::{Answer, Values};
use super::cache::Cache;
use super::question::{Question, series_query};
use super::server::Server;
use futures::FutureExt;
use futures::future::BoxFuture;
use podscale_api::metrics::ExternalMetricValue;
use podscale_client::call::{About, query, segment};
use podscale_client::clock::Clock;
use podscale_core::model::{Series, Source};
use std::time::Duration;

/// How long an answer is kept at most.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// The external metrics API.
pub(super) struct ExternalMetrics {
    server: Server,
    answers: Cache<String, Values<ExternalMetricValue>>,
}

impl ExternalMetrics {
    /// Reads through this server.
    pub(super) fn new(server: Server, clock: Clock) -> ExternalMetrics {
        ExternalMetrics { server, answers: Cache::new(clock, LONGEST_KEPT) }
    }

    async fn values(&self, question: Question<'_>, series: &Series) -> Values<ExternalMetricValue> {
        let query = query(&[("labelSelector", series_query(series)?)]);
        let path = format!(
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/{}{query}",
            segment(question.namespace),
            segment(&series.name)
        );
        let resource = format!("{}.external.metrics.k8s.io", series.name);
        let about = About { resource: &resource, name: "" };
        let fetch = || self.server.list(&path, about);
        let values = self.answers.get(path.clone(), question.max_age, fetch).await?;
        if values.iter().all(|value| *value.metric_name == *series.name) {
            return Ok(values);
        }
        // The server may answer with a name of its own.
        let named = |value: &ExternalMetricValue| ExternalMetricValue {
            metric_name: (&*series.name).into(),
            ..value.clone()
        };
        Ok(values.iter().map(named).collect())
    }
}

impl MetricSource for ExternalMetrics {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let Source::External(series) = question.metric else { return Answer::Nothing };
            self.values(question, series).await.map_or_else(Answer::Failed, Answer::External)
        }
        .boxed()
    }
}
