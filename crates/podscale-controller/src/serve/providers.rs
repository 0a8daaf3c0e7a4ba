//! Custom and external metrics from Prometheus, by prometheus-adapter's rules.

use kube::Client;
use podscale_api::Selector;
use podscale_client::call::{self, About, CallError, query, segment};
use podscale_metrics::answer::{Answering, Refusal};
use podscale_metrics::custom::{
    CustomMetric, CustomMetrics, CustomRequest, CustomValue, DescribedObject, GroupResource,
    Objects,
};
use podscale_metrics::external::{ExternalMetrics, ExternalRequest, ExternalValue};
use podscale_metrics::rules::Resource;
use podscale_metrics::rules::catalog::Asked;
use podscale_metrics::rules::engine::{Engine, EngineError};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer of Prometheus serves others who ask the same.
const MAX_AGE: Duration = Duration::from_secs(1);
/// The most objects that one request is about; a query names each of them.
const MOST_OBJECTS: &str = "5000";

/// Metrics of objects.
pub struct RuledCustomMetrics {
    /// The rules, and Prometheus.
    pub engine: Arc<Engine>,
    /// Lists objects by their labels.
    pub client: Client,
}

/// Metrics that belong to no object.
pub struct RuledExternalMetrics(pub Arc<Engine>);

#[derive(Deserialize)]
struct List {
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Named,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl RuledCustomMetrics {
    /// The names of the objects that labels select.
    async fn names(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: &Selector,
    ) -> Result<Vec<String>, CallError> {
        let root = match &*resource.group {
            "" => format!("/api/{}", resource.version),
            group => format!("/apis/{group}/{}", resource.version),
        };
        let scope = namespace.map(|name| format!("/namespaces/{}", segment(name)));
        let query = query(&[("labelSelector", &selector.to_string()), ("limit", MOST_OBJECTS)]);
        let path = format!("{root}{}/{}{query}", scope.unwrap_or_default(), resource.plural);
        let name = resource.name();
        let list: List =
            call::get(&self.client, &path, About { resource: &name, name: "" }).await?;
        Ok(list.items.into_iter().map(|item| item.metadata.name).collect())
    }

    async fn answer(&self, request: &CustomRequest) -> Result<Vec<CustomValue>, Refusal> {
        let GroupResource { group, resource } = &request.resource;
        let resource = self.engine.resource(group, resource).ok_or_else(|| request.not_found())?;
        // What belongs to a namespace itself is asked for by its name.
        let namespace = request.namespace.as_deref().filter(|_| resource.namespaced);
        let names = match &request.objects {
            Objects::Named(name) => vec![name.clone()],
            Objects::Selected(selector) => {
                let names = self.names(&resource, namespace, selector).await;
                names.map_err(|error| {
                    Refusal::internal(&format!("unable to list matching resources: {error}"))
                })?
            }
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let selector = &request.metric_selector;
        let asked = Asked { resource: &resource, namespace, names: &names, selector };
        let values = self.engine.custom(&request.metric, asked, MAX_AGE).await;
        let values = values.map_err(|error| refusal(&error))?;
        let of = |name: &str| DescribedObject {
            kind: resource.kind.to_string(),
            api_version: format!("{}/{}", resource.group, resource.version),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        let value = |value: podscale_metrics::rules::values::ObjectValue| CustomValue {
            object: of(&value.name),
            time: value.time,
            window: None,
            value: value.value,
        };
        Ok(values.into_iter().map(value).collect())
    }
}

impl CustomMetrics for RuledCustomMetrics {
    fn metrics(&self) -> Vec<CustomMetric> {
        let known = self.engine.custom_metrics().into_iter();
        known
            .map(|known| CustomMetric {
                resource: GroupResource {
                    group: known.group.into(),
                    resource: known.resource.into(),
                },
                name: known.metric.into(),
                namespaced: known.namespaced,
            })
            .collect()
    }

    fn values<'a>(&'a self, request: &'a CustomRequest) -> Answering<'a, Vec<CustomValue>> {
        Box::pin(self.answer(request))
    }
}

impl ExternalMetrics for RuledExternalMetrics {
    fn metrics(&self) -> Vec<String> {
        self.0.external_metrics().into_iter().map(String::from).collect()
    }

    fn values<'a>(&'a self, request: &'a ExternalRequest) -> Answering<'a, Vec<ExternalValue>> {
        Box::pin(async move {
            let ExternalRequest { namespace, metric, selector } = request;
            let values = self.0.external(metric, namespace, selector, MAX_AGE).await;
            let value = |value: podscale_metrics::rules::values::ExternalValue| ExternalValue {
                labels: value.labels,
                time: value.time,
                window: None,
                value: value.value,
            };
            let values = values.map_err(|error| match error {
                EngineError::NoMetric { .. } => request.not_found(),
                other => refusal(&other),
            })?;
            Ok(values.into_iter().map(value).collect())
        })
    }
}

/// A failure in the form of the APIs: what there is not is not found, what cannot be asked is the
/// client's fault, and the rest is Prometheus'.
fn refusal(error: &EngineError) -> Refusal {
    match error {
        EngineError::NoMetric { .. } | EngineError::NoValue { .. } => {
            Refusal::no_metric(error.to_string())
        }
        EngineError::Query(_) => Refusal::bad_request(error.to_string()),
        EngineError::Prometheus(_) => Refusal::internal(&error.to_string()),
    }
}
