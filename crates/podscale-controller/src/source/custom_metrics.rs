//! `custom.metrics.k8s.io`: values of pods and of objects.

mod version;

use super::MetricSource;
use super::answer::{Answer, Values};
use super::cache::Cache;
use super::question::{Question, series_query};
use super::server::Server;
use futures::FutureExt;
use futures::future::BoxFuture;
use podscale_api::metrics::{MetricValue, ObjectReference};
use podscale_client::call::{About, query, segment};
use podscale_client::clock::Clock;
use podscale_client::discovery::{MapperError, RestMapper};
use podscale_core::model::{ObjectRef, Series, Source};
use std::sync::Arc;
use std::time::Duration;
use version::Versions;

/// How long an answer is kept at most.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// The custom metrics API.
pub(super) struct CustomMetrics {
    server: Server,
    mapper: RestMapper,
    versions: Versions,
    answers: Cache<Request, Values<MetricValue>>,
}

/// A path below the API's version, and whose values it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Request {
    path: String,
    resource: String,
    object: String,
}

impl CustomMetrics {
    /// Reads through this server.
    pub(super) fn new(server: Server, clock: Clock, mapper: RestMapper) -> CustomMetrics {
        let (versions, answers) = (Versions::new(clock), Cache::new(clock, LONGEST_KEPT));
        CustomMetrics { server, mapper, versions, answers }
    }

    async fn of_pods(&self, question: Question<'_>, series: &Series) -> Values<MetricValue> {
        let Question { namespace, pods, .. } = question;
        let query =
            query(&[("labelSelector", pods), ("metricLabelSelector", series_query(series)?)]);
        let path =
            format!("namespaces/{}/pods/*/{}{query}", segment(namespace), segment(&series.name));
        let request = Request { path, resource: "pods".to_owned(), object: "*".to_owned() };
        let values = self.read(request, question.max_age).await?;
        let meant = |value: &MetricValue| ObjectReference {
            kind: "Pod".into(),
            namespace: namespace.into(),
            name: value.described_object.name.clone(),
            api_version: "v1".into(),
        };
        Ok(as_asked(&values, series, meant))
    }

    async fn of_object(
        &self,
        question: Question<'_>,
        series: &Series,
        object: &ObjectRef,
    ) -> Values<MetricValue> {
        let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
        if &*object.kind == "Namespace" && group.is_empty() {
            return self.of_namespace(question, series).await;
        }
        let query = query(&[("metricLabelSelector", series_query(series)?)]);
        let resource = self.mapper.of_group(group, &object.kind).await;
        let resource = resource.map_err(|error| match error {
            MapperError::NoMatch { .. } => {
                let kind = kind_text(&object.kind, group);
                Arc::from(format!("unable to map kind {kind} to resource: {error}"))
            }
            MapperError::Call(error) => Arc::<str>::from(error.to_string()),
        })?;
        let namespace = segment(question.namespace);
        let scope =
            if resource.namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        let (qualified, of, name) =
            (resource.qualified(), segment(&object.name), segment(&series.name));
        let path = format!("{scope}{qualified}/{of}/{name}{query}");
        let request = Request { path, resource: qualified, object: object.name.to_string() };
        let values = self.read(request, question.max_age).await?;
        let meant = |_: &MetricValue| ObjectReference {
            kind: (&*object.kind).into(),
            name: (&*object.name).into(),
            api_version: (&*object.api_version).into(),
            namespace: question.namespace.into(),
        };
        Ok(as_asked(&values, series, meant))
    }

    /// A reference must not lead out of the namespace, so a Namespace is always the own one.
    async fn of_namespace(&self, question: Question<'_>, series: &Series) -> Values<MetricValue> {
        let query = query(&[("metricLabelSelector", series_query(series)?)]);
        let namespace = question.namespace;
        let path =
            format!("namespaces/{}/metrics/{}{query}", segment(namespace), segment(&series.name));
        let object = namespace.to_owned();
        let request = Request { path, resource: "metrics".to_owned(), object };
        let values = self.read(request, question.max_age).await?;
        let meant = |_: &MetricValue| ObjectReference {
            kind: "Namespace".into(),
            name: namespace.into(),
            ..ObjectReference::default()
        };
        Ok(as_asked(&values, series, meant))
    }

    async fn read(&self, request: Request, max_age: Duration) -> Values<MetricValue> {
        let version = self.versions.choose(self.server.client(), max_age).await?;
        let path = format!("/apis/custom.metrics.k8s.io/{version}/{}", request.path);
        let resource = format!("{}.custom.metrics.k8s.io", request.resource);
        let object = request.object.clone();
        let about = About { resource: &resource, name: &object };
        self.answers.get(request, max_age, || self.server.list(&path, about)).await
    }
}

impl MetricSource for CustomMetrics {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let values = match question.metric {
                Source::Pods(series) => self.of_pods(question, series).await,
                Source::Object { series, object } => self.of_object(question, series, object).await,
                _ => return Answer::Nothing,
            };
            values.map_or_else(Answer::Failed, Answer::Custom)
        }
        .boxed()
    }
}

/// The values as those of the metric and the objects that were asked for, whatever the server calls
/// them; it has applied the selector of series, so none is left to apply.
fn as_asked(
    values: &[MetricValue],
    series: &Series,
    meant: impl Fn(&MetricValue) -> ObjectReference,
) -> Arc<[MetricValue]> {
    let as_asked = |value: &MetricValue| {
        let mut asked = MetricValue { described_object: meant(value), ..value.clone() };
        asked.metric.name = (&*series.name).into();
        asked
    };
    values.iter().map(as_asked).collect()
}

/// A kind with its group, as upstream names it when it is not known.
fn kind_text(kind: &str, group: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}
