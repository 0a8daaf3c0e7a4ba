//! Reads the three metrics APIs through the API server: in bulk, and once for all who ask within a
//! few seconds.

mod cache;
mod gate;
mod usage;
mod version;

use crate::clock::Clock;
use crate::meters::{Meters, Source};
use crate::watch::call::{self, About, CallError, query, segment};
use crate::watch::kinds::{KindError, Kinds};
use cache::Cache;
use gate::Gate;
use kube::Client;
use podscale_api::hpa::v2::{HorizontalPodAutoscaler, MetricIdentifier, MetricSpec, metric_type};
use podscale_api::metrics::{ExternalMetricValue, MetricValue, ObjectReference, PodMetrics};
use podscale_api::selector::LabelSelector;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::{Duration, Instant};
use usage::Usages;
use version::Versions;

/// How long an answer is kept at most.
const KEPT: Duration = Duration::from_secs(60);

/// What one metric's source answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// What the target's pods use.
    Resource(Arc<[Arc<PodMetrics>]>),
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
    usages: Usages,
    gates: Gates,
    custom: Cache<CustomQuestion, Values<MetricValue>>,
    external: Cache<String, Values<ExternalMetricValue>>,
    custom_versions: Versions,
}

/// A path below the custom metrics API's version, and whose values they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CustomQuestion {
    path: String,
    resource: String,
    object: String,
}

/// The ways to the three sources.
#[derive(Default)]
struct Gates {
    resource: Gate,
    custom: Gate,
    external: Gate,
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
            usages: Usages::new(clock),
            gates: Gates::default(),
            custom: Cache::new(clock, KEPT),
            external: Cache::new(clock, KEPT),
            custom_versions: Versions::new(clock),
        }
    }

    /// What the source of one metric says, as it said to somebody else if that is still fresh.
    /// `selector` is that of the target's pods.
    pub async fn read(
        &self,
        hpa: &HorizontalPodAutoscaler,
        metric: &MetricSpec,
        selector: &str,
        fresh: Duration,
    ) -> Answer {
        let namespace = &hpa.metadata.namespace;
        // Most read what pods use and wait for one list together: each of them should be small.
        let answer = match metric.r#type.as_str() {
            metric_type::RESOURCE | metric_type::CONTAINER_RESOURCE => {
                return match self.usage(namespace, fresh).await {
                    Ok(usage) => Answer::Resource(usage.of_pods(namespace, selector)),
                    Err(failure) => Answer::Failed(failure.text),
                };
            }
            metric_type::PODS => match &metric.pods {
                Some(source) => {
                    Box::pin(self.of_pods(namespace, &source.metric, selector, fresh)).await
                }
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
                    Box::pin(self.of_object(&object, &source.metric, fresh)).await
                }
                None => return Answer::Nothing,
            },
            metric_type::EXTERNAL => match &metric.external {
                Some(source) => {
                    let values = self.external_values(namespace, &source.metric, fresh).await;
                    return values.map_or_else(Answer::Failed, Answer::External);
                }
                None => return Answer::Nothing,
            },
            _ => return Answer::Nothing,
        };
        answer.map_or_else(Answer::Failed, Answer::Custom)
    }

    /// What pods use: one call serves every autoscaler of a namespace, or of all.
    async fn usage(&self, namespace: &str, fresh: Duration) -> usage::Read {
        let fetch = |namespace: Option<Box<str>>| async move {
            let of = namespace.as_deref();
            let place = of.map(|n| format!("namespaces/{}/", segment(n))).unwrap_or_default();
            let path = format!("/apis/metrics.k8s.io/v1beta1/{place}pods");
            let about = About { resource: "pods.metrics.k8s.io", name: "" };
            match self.ask::<usage::List>(Source::Resource, &path, about).await {
                Ok(list) => Ok(Arc::new(list.usage(of))),
                Err(error) => {
                    let forbidden = error.code() == Some(403);
                    Err(usage::Failure { text: error.to_string().into(), forbidden })
                }
            }
        };
        self.usages.get(namespace, fresh, fetch).await
    }

    async fn of_pods(
        &self,
        namespace: &str,
        metric: &MetricIdentifier,
        selector: &str,
        fresh: Duration,
    ) -> Values<MetricValue> {
        let query =
            query(&[("labelSelector", selector), ("metricLabelSelector", &selector_text(metric)?)]);
        let path =
            format!("namespaces/{}/pods/*/{}{query}", segment(namespace), segment(&metric.name));
        let resource = "pods".to_owned();
        let values =
            self.custom(CustomQuestion { path, resource, object: "*".to_owned() }, fresh).await?;
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
        fresh: Duration,
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
            let values = self.custom(question.clone(), fresh).await?;
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
        let values =
            self.custom(CustomQuestion { path, resource: qualified, object }, fresh).await?;
        Ok(as_asked(&values, metric, meant))
    }

    async fn custom(&self, question: CustomQuestion, fresh: Duration) -> Values<MetricValue> {
        let version = self.custom_versions.choose(&self.client, fresh).await?;
        let path = format!("/apis/custom.metrics.k8s.io/{version}/{}", question.path);
        let resource = format!("{}.custom.metrics.k8s.io", question.resource);
        let object = question.object.clone();
        let fetch = || async {
            let about = About { resource: &resource, name: &object };
            let list = self.list(Source::Custom, &path, about).await;
            list.map(Arc::from).map_err(|error| Arc::from(error.to_string()))
        };
        self.custom.get(question, fresh, fetch).await
    }

    async fn external_values(
        &self,
        namespace: &str,
        metric: &MetricIdentifier,
        fresh: Duration,
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
            let list = self.list(Source::External, &path, about).await;
            list.map(Arc::from).map_err(|error| Arc::from(error.to_string()))
        };
        let values = self.external.get(path.clone(), fresh, fetch).await?;
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

    async fn list<T: DeserializeOwned>(
        &self,
        source: Source,
        path: &str,
        about: About<'_>,
    ) -> Result<Vec<T>, CallError> {
        let list: List<T> = self.ask(source, path, about).await?;
        Ok(list.items.unwrap_or_default())
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        source: Source,
        path: &str,
        about: About<'_>,
    ) -> Result<T, CallError> {
        let gate = match source {
            Source::Resource => &self.gates.resource,
            Source::Custom => &self.gates.custom,
            Source::External => &self.gates.external,
        };
        let began = Instant::now();
        let answer = gate.ask(call::get_large(&self.client, path, about, &gate.size)).await;
        self.meters.source_answered(source, answer.is_ok(), began.elapsed());
        gate.tell(source.name(), answer.as_ref().err());
        answer
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
