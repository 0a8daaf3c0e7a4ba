//! Reads the three metrics APIs through the API server: in bulk, and once for all who ask within a
//! few seconds.

mod cache;

use crate::clock::Clock;
use crate::meters::{Meters, Source};
use crate::watch::call::{self, About, CallError, query, segment};
use crate::watch::kinds::{KindError, Kinds};
use cache::Cache;
use kube::Client;
use podscale_api::hpa::v2::{HorizontalPodAutoscaler, MetricIdentifier, MetricSpec, metric_type};
use podscale_api::metrics::{ExternalMetricValue, MetricValue, ObjectReference, PodMetrics};
use podscale_api::selector::LabelSelector;
use serde::Deserialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How old an answer may be to be given to somebody else; far less than a period.
const FRESH: Duration = Duration::from_secs(3);
/// How long the choice of a version of the custom metrics API stands.
const VERSION_FRESH: Duration = Duration::from_secs(600);
/// The versions of the custom metrics API, the better one first.
const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

/// What one metric's source answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What the pods of the namespace use.
    Resource(Arc<[PodMetrics]>),
    /// Values of pods or of an object.
    Custom(Arc<[MetricValue]>),
    /// Values from outside the cluster.
    External(Arc<[ExternalMetricValue]>),
    /// Nothing, since the metric cannot be asked for.
    Nothing,
    /// The source could not be read, and why.
    Failed(Arc<str>),
}

type Values<T> = Result<Arc<[T]>, Arc<str>>;

/// Reads metrics; shared by all who decide.
pub struct Scraper {
    client: Client,
    kinds: Kinds,
    meters: Meters,
    resource: Cache<String, Values<PodMetrics>>,
    custom: Cache<CustomQuestion, Values<MetricValue>>,
    external: Cache<String, Values<ExternalMetricValue>>,
    custom_version: Cache<(), &'static str>,
}

/// A path below the custom metrics API's version, and whose values they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CustomQuestion {
    path: String,
    resource: String,
    object: String,
}

/// A list of the metrics APIs.
#[derive(Deserialize)]
struct List<T> {
    items: Option<Vec<T>>,
}

impl Scraper {
    /// Reads through this API server.
    #[must_use]
    pub fn new(client: Client, clock: Clock, kinds: Kinds, meters: Meters) -> Scraper {
        Scraper {
            client,
            kinds,
            meters,
            resource: Cache::new(clock, FRESH),
            custom: Cache::new(clock, FRESH),
            external: Cache::new(clock, FRESH),
            custom_version: Cache::new(clock, VERSION_FRESH),
        }
    }

    /// What the source of one metric says. `selector` is that of the target's pods.
    pub async fn read(
        &self,
        hpa: &HorizontalPodAutoscaler,
        metric: &MetricSpec,
        selector: &str,
    ) -> Answer {
        let namespace = &hpa.metadata.namespace;
        let answer = match metric.r#type.as_str() {
            metric_type::RESOURCE | metric_type::CONTAINER_RESOURCE => {
                return self
                    .pod_metrics(namespace)
                    .await
                    .map_or_else(Answer::Failed, Answer::Resource);
            }
            metric_type::PODS => match &metric.pods {
                Some(source) => self.of_pods(namespace, &source.metric, selector).await,
                None => return Answer::Nothing,
            },
            metric_type::OBJECT => match &metric.object {
                Some(source) => {
                    let object = &source.described_object;
                    let object = ObjectReference {
                        kind: object.kind.as_str().into(),
                        name: object.name.as_str().into(),
                        api_version: object.api_version.as_str().into(),
                        namespace: namespace.as_str().into(),
                    };
                    self.of_object(&object, &source.metric).await
                }
                None => return Answer::Nothing,
            },
            metric_type::EXTERNAL => match &metric.external {
                Some(source) => {
                    let values = self.external_values(namespace, &source.metric).await;
                    return values.map_or_else(Answer::Failed, Answer::External);
                }
                None => return Answer::Nothing,
            },
            _ => return Answer::Nothing,
        };
        answer.map_or_else(Answer::Failed, Answer::Custom)
    }

    /// What all pods of a namespace use: one call serves every autoscaler there.
    async fn pod_metrics(&self, namespace: &str) -> Values<PodMetrics> {
        let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{}/pods", segment(namespace));
        let about = About { resource: "pods.metrics.k8s.io", name: "" };
        let fetch = || async { self.list(Source::Resource, &path, about).await };
        self.resource.get(namespace.to_owned(), fetch).await
    }

    async fn of_pods(
        &self,
        namespace: &str,
        metric: &MetricIdentifier,
        selector: &str,
    ) -> Values<MetricValue> {
        let query =
            query(&[("labelSelector", selector), ("metricLabelSelector", &selector_text(metric)?)]);
        let path =
            format!("namespaces/{}/pods/*/{}{query}", segment(namespace), segment(&metric.name));
        let resource = "pods".to_owned();
        let values = self.custom(CustomQuestion { path, resource, object: "*".to_owned() }).await?;
        let meant = |value: &MetricValue| ObjectReference {
            kind: "Pod".into(),
            namespace: namespace.into(),
            name: value.described_object.name.clone(),
            api_version: "v1".into(),
        };
        Ok(as_asked(&values, metric, meant))
    }

    async fn of_object(
        &self,
        object: &ObjectReference,
        metric: &MetricIdentifier,
    ) -> Values<MetricValue> {
        let query = query(&[("metricLabelSelector", &selector_text(metric)?)]);
        let (namespace, name) = (segment(&object.namespace), segment(&metric.name));
        let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
        let meant = |_: &MetricValue| object.clone();
        if &*object.kind == "Namespace" && group.is_empty() {
            let path = format!("namespaces/{namespace}/metrics/{name}{query}");
            let object = object.namespace.to_string();
            let question = CustomQuestion { path, resource: "metrics".to_owned(), object };
            let meant = |_: &MetricValue| ObjectReference {
                kind: "Namespace".into(),
                name: question.object.as_str().into(),
                ..ObjectReference::default()
            };
            let values = self.custom(question.clone()).await?;
            return Ok(as_asked(&values, metric, meant));
        }
        let resource =
            self.kinds.of_group(group, &object.kind).await.map_err(|error| match error {
                KindError::NoMatch { .. } => {
                    Arc::from(format!("unable to map kind {}: {error}", kind_text(object, group)))
                }
                KindError::Call(error) => Arc::<str>::from(error.to_string()),
            })?;
        let place =
            if resource.namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        let (qualified, of) = (resource.qualified(), segment(&object.name));
        let path = format!("{place}{qualified}/{of}/{name}{query}");
        let object = object.name.to_string();
        let values = self.custom(CustomQuestion { path, resource: qualified, object }).await?;
        Ok(as_asked(&values, metric, meant))
    }

    async fn custom(&self, question: CustomQuestion) -> Values<MetricValue> {
        let version = self.custom_version.get((), || self.custom_version()).await;
        let path = format!("/apis/custom.metrics.k8s.io/{version}/{}", question.path);
        let resource = format!("{}.custom.metrics.k8s.io", question.resource);
        let object = question.object.clone();
        let fetch = || async {
            let about = About { resource: &resource, name: &object };
            self.list(Source::Custom, &path, about).await
        };
        self.custom.get(question, fetch).await
    }

    /// The best version that is served; the best of all if that cannot be told.
    async fn custom_version(&self) -> &'static str {
        let about = About { resource: "", name: "" };
        let path = "/apis/custom.metrics.k8s.io";
        let group: Result<serde_json::Value, CallError> =
            call::get(&self.client, path, about).await;
        let served = |wanted: &&&str| {
            let versions = group.as_ref().ok()?.get("versions")?.as_array()?;
            let is_it = |v: &serde_json::Value| v.get("version")?.as_str().map(|v| v == **wanted);
            versions.iter().any(|v| is_it(v) == Some(true)).then_some(())
        };
        let best = CUSTOM_VERSIONS.iter().find(|version| served(version).is_some());
        best.copied().unwrap_or(CUSTOM_VERSIONS[0])
    }

    async fn external_values(
        &self,
        namespace: &str,
        metric: &MetricIdentifier,
    ) -> Values<ExternalMetricValue> {
        let query = query(&[("labelSelector", &selector_text(metric)?)]);
        let path = format!(
            "/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/{}{query}",
            segment(namespace),
            segment(&metric.name)
        );
        let resource = format!("{}.external.metrics.k8s.io", metric.name);
        let fetch = || async {
            let about = About { resource: &resource, name: "" };
            self.list(Source::External, &path, about).await
        };
        let values = self.external.get(path.clone(), fetch).await?;
        // The source may answer with a name of its own.
        let named = |value: &ExternalMetricValue| ExternalMetricValue {
            metric_name: metric.name.as_str().into(),
            ..value.clone()
        };
        if values.iter().all(|value| *value.metric_name == *metric.name) {
            return Ok(values);
        }
        Ok(values.iter().map(named).collect())
    }

    async fn list<T: serde::de::DeserializeOwned>(
        &self,
        source: Source,
        path: &str,
        about: About<'_>,
    ) -> Values<T> {
        let began = Instant::now();
        let list: Result<List<T>, CallError> = call::get(&self.client, path, about).await;
        self.meters.source_answered(source, list.is_ok(), began.elapsed());
        let list = list.map_err(|error| Arc::from(error.to_string()))?;
        Ok(list.items.unwrap_or_default().into())
    }
}

/// The values as those of the metric and the objects that were asked for, whatever the source calls
/// them; it has applied the selector of series, so none is left to apply.
fn as_asked(
    values: &[MetricValue],
    metric: &MetricIdentifier,
    meant: impl Fn(&MetricValue) -> ObjectReference,
) -> Arc<[MetricValue]> {
    let as_asked = |value: &MetricValue| {
        let mut asked = MetricValue { described_object: meant(value), ..value.clone() };
        asked.metric.name = metric.name.as_str().into();
        asked
    };
    values.iter().map(as_asked).collect()
}

/// The selector of a metric's series as text; a selector that cannot be used is reported by the
/// core, and nothing is read for it.
fn selector_text(metric: &MetricIdentifier) -> Result<String, Arc<str>> {
    let selector = metric.selector.as_ref().map(LabelSelector::to_selector).transpose();
    let selector = selector.map_err(|error| Arc::from(error.to_string()))?;
    Ok(selector.map(|selector| selector.to_string()).unwrap_or_default())
}

/// A kind with its group, as upstream names it when it is not known.
fn kind_text(object: &ObjectReference, group: &str) -> String {
    if group.is_empty() { object.kind.to_string() } else { format!("{}.{group}", object.kind) }
}

#[cfg(test)]
mod tests;
