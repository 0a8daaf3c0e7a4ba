//! `custom.metrics.k8s.io` in the versions `v1beta1` and `v1beta2`: values of metrics that belong to
//! objects of the cluster, from whoever provides them.

use crate::answer::{Answering, Query, Refusal, group_document, seconds_text};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use jiff::Timestamp;
use podscale_api::selector::{Operator, Requirement};
use podscale_api::{Quantity, Selector};
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// The group.
pub const GROUP: &str = "custom.metrics.k8s.io";
/// Its versions; the first is preferred.
pub const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
/// Every object of a resource, in the place of a name.
const ALL: &str = "*";
/// The resource that stands for the namespace itself.
const NAMESPACES: &str = "namespaces";

/// A resource with its group, as paths write it: `pods`, `deployments.apps`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupResource {
    /// Its group; empty for the core group, and also where a request leaves it out.
    pub group: String,
    /// Its name.
    pub resource: String,
}

impl GroupResource {
    /// Reads `resource` or `resource.group`.
    #[must_use]
    pub fn read(text: &str) -> GroupResource {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        GroupResource { group: group.to_owned(), resource: resource.to_owned() }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(f, ".{}", self.group) }
    }
}

/// A metric that there is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomMetric {
    /// What its values belong to.
    pub resource: GroupResource,
    /// Its name.
    pub name: String,
    /// Whether the objects live in namespaces.
    pub namespaced: bool,
}

/// Which objects a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Objects {
    /// The one of this name.
    Named(String),
    /// All that these labels select.
    Selected(Selector),
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomRequest {
    /// The namespace of the objects; none for objects that have none.
    pub namespace: Option<String>,
    /// What kind of objects.
    pub resource: GroupResource,
    /// Which of them.
    pub objects: Objects,
    /// Which metric.
    pub metric: String,
    /// Which of its series.
    pub metric_selector: Selector,
}

impl CustomRequest {
    /// That there is no such metric, in upstream's words.
    #[must_use]
    pub fn not_found(&self) -> Refusal {
        let CustomRequest { metric, resource, .. } = self;
        let of = match &self.objects {
            Objects::Named(name) => format!(" {name}"),
            Objects::Selected(_) => String::new(),
        };
        Refusal::no_metric(format!(
            "the server could not find the metric {metric} for {resource}{of}"
        ))
    }
}

/// The object that a value belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedObject {
    /// Its kind.
    pub kind: String,
    /// Its API version; that of the core group has a slash before it, as upstream's servers write it.
    pub api_version: String,
    /// Its namespace, if it has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomValue {
    /// What it belongs to.
    pub object: DescribedObject,
    /// When it was measured.
    pub time: Timestamp,
    /// Over how long, if that is known.
    pub window: Option<Duration>,
    /// How much it is.
    pub value: Quantity,
}

/// Has metrics of objects.
pub trait CustomMetrics: Send + Sync + 'static {
    /// All metrics that are known, for discovery.
    fn metrics(&self) -> Vec<CustomMetric>;

    /// The values of a metric.
    fn values<'a>(&'a self, request: &'a CustomRequest) -> Answering<'a, Vec<CustomValue>>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1beta1,
    V1beta2,
}

impl Version {
    fn named(name: &str) -> Option<Version> {
        match name {
            "v1beta1" => Some(Version::V1beta1),
            "v1beta2" => Some(Version::V1beta2),
            _ => None,
        }
    }

    fn group_version(self) -> &'static str {
        match self {
            Version::V1beta1 => "custom.metrics.k8s.io/v1beta1",
            Version::V1beta2 => "custom.metrics.k8s.io/v1beta2",
        }
    }
}

/// Whom the router asks.
pub type Provider = Arc<dyn CustomMetrics>;

/// The API, as a router.
pub fn router(provider: Provider) -> Router {
    let objects =
        "/apis/custom.metrics.k8s.io/{version}/namespaces/{namespace}/{resource}/{name}/{metric}";
    let namespace = "/apis/custom.metrics.k8s.io/{version}/namespaces/{namespace}/metrics/{metric}";
    let cluster = "/apis/custom.metrics.k8s.io/{version}/{resource}/{name}/{metric}";
    Router::new()
        .route("/apis/custom.metrics.k8s.io", get(async || Json(group())))
        .route("/apis/custom.metrics.k8s.io/{version}", get(list_resources))
        .route(namespace, get(of_namespace))
        .route(objects, get(of_objects))
        .route(cluster, get(of_cluster))
        .with_state(provider)
}

/// The discovery document of the group.
#[must_use]
pub fn group() -> Value {
    group_document(GROUP, &VERSIONS)
}

/// The metrics as discovery lists them.
#[must_use]
pub fn resources(provider: &dyn CustomMetrics) -> Vec<Value> {
    let mut metrics = provider.metrics();
    metrics.sort();
    metrics.dedup();
    let resource = |metric: CustomMetric| {
        json!({
            "name": format!("{}/{}", metric.resource, metric.name), "singularName": "",
            "namespaced": metric.namespaced, "kind": "MetricValueList", "verbs": ["get"],
        })
    };
    metrics.into_iter().map(resource).collect()
}

async fn list_resources(
    State(provider): State<Provider>,
    Path(version): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let version = Version::named(&version).ok_or_else(Refusal::no_path)?;
    Ok(Json(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version.group_version(),
        "resources": resources(&*provider),
    })))
}

async fn of_objects(
    State(provider): State<Provider>,
    Path((version, namespace, resource, name, metric)): Path<(
        String,
        String,
        String,
        String,
        String,
    )>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Query::read(query.as_deref());
    let asked = Asked { version, namespace: Some(namespace), resource, name, metric };
    answer(&*provider, asked, &query).await.into_response()
}

async fn of_cluster(
    State(provider): State<Provider>,
    Path((version, resource, name, metric)): Path<(String, String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Query::read(query.as_deref());
    let asked = Asked { version, namespace: None, resource, name, metric };
    answer(&*provider, asked, &query).await.into_response()
}

async fn of_namespace(
    State(provider): State<Provider>,
    Path((version, name, metric)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Query::read(query.as_deref());
    let resource = NAMESPACES.to_owned();
    let asked = Asked { version, namespace: None, resource, name, metric };
    answer(&*provider, asked, &query).await.into_response()
}

/// The parts of a path.
struct Asked {
    version: String,
    namespace: Option<String>,
    resource: String,
    name: String,
    metric: String,
}

async fn answer(
    provider: &dyn CustomMetrics,
    asked: Asked,
    query: &Query,
) -> Result<Json<Value>, Refusal> {
    let version = Version::named(&asked.version).ok_or_else(Refusal::no_path)?;
    let selector = query.selector("labelSelector")?;
    let objects = match asked.name.as_str() {
        ALL => Objects::Selected(selector),
        _ => Objects::Named(asked.name),
    };
    let request = CustomRequest {
        namespace: asked.namespace,
        resource: GroupResource::read(&asked.resource),
        objects,
        metric: asked.metric,
        metric_selector: query.selector("metricLabelSelector")?,
    };
    let values = provider.values(&request).await?;
    let selector = selector_object(&request.metric_selector);
    let item = |value: &CustomValue| item(version, &request.metric, &selector, value);
    let items: Vec<Value> = values.iter().map(item).collect();
    Ok(Json(json!({
        "kind": "MetricValueList", "apiVersion": version.group_version(), "metadata": {},
        "items": items,
    })))
}

fn item(version: Version, metric: &str, selector: &Value, value: &CustomValue) -> Value {
    let DescribedObject { kind, api_version, namespace, name } = &value.object;
    let mut object = json!({"kind": kind, "name": name, "apiVersion": api_version});
    if let Some(namespace) = namespace {
        object["namespace"] = namespace.as_str().into();
    }
    let mut item = json!({
        "describedObject": object, "timestamp": seconds_text(value.time),
        "value": value.value.to_string(),
    });
    let window = value.window.map(|window| window.as_secs().max(1));
    match version {
        Version::V1beta1 => {
            item["metricName"] = metric.into();
            item["selector"] = selector.clone();
            if let Some(seconds) = window {
                item["window"] = seconds.into();
            }
        }
        Version::V1beta2 => {
            item["metric"] = json!({"name": metric, "selector": selector});
            if let Some(seconds) = window {
                item["windowSeconds"] = seconds.into();
            }
        }
    }
    item
}

/// A selector as the object that stands for it; null if it selects everything.
fn selector_object(selector: &Selector) -> Value {
    if selector.requirements().is_empty() {
        return Value::Null;
    }
    let (mut labels, mut expressions) = (Map::new(), Vec::new());
    for requirement in selector.requirements() {
        let key = requirement.key();
        match (requirement.operator(), requirement.values().next()) {
            (Operator::Equals | Operator::DoubleEquals, Some(value)) => {
                labels.insert(key.to_owned(), value.into());
            }
            _ => expressions.push(expression(requirement)),
        }
    }
    let mut object = Map::new();
    if !labels.is_empty() {
        object.insert("matchLabels".to_owned(), labels.into());
    }
    if !expressions.is_empty() {
        object.insert("matchExpressions".to_owned(), expressions.into());
    }
    object.into()
}

fn expression(requirement: &Requirement) -> Value {
    let operator = match requirement.operator() {
        Operator::Equals | Operator::DoubleEquals | Operator::In => "In",
        Operator::NotEquals | Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
        Operator::GreaterThan => "Gt",
        Operator::LessThan => "Lt",
    };
    let mut object = json!({"key": requirement.key(), "operator": operator});
    let values: Vec<&str> = requirement.values().collect();
    if !values.is_empty() {
        object["values"] = values.into();
    }
    object
}
