//! `custom.metrics.k8s.io/v1beta1` and `v1beta2`: the load model's series of pods, of the objects
//! that stand for a workload, and of namespaces.

use super::series::{Metric, series_labels};
use crate::load::{LoadModel, LoadState, WorkloadState};
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use podscale_api::Selector;
use podscale_metrics::answer::{Query, Refusal, decimal, group_document, seconds_text, selects};
use serde_json::{Value, json};

/// The group.
pub const GROUP: &str = "custom.metrics.k8s.io";
/// Every object of a kind.
const ALL: &str = "*";

/// A kind of object that series can be of: its resource as paths name it, its kind and version.
#[derive(Clone, Copy)]
struct Described {
    resource: &'static str,
    kind: &'static str,
    api_version: &'static str,
}

const PODS: Described = Described { resource: "pods", kind: "Pod", api_version: "/v1" };
const NAMESPACES: Described =
    Described { resource: "namespaces", kind: "Namespace", api_version: "/v1" };
/// Objects that stand for the workload of the same name.
const OBJECTS: [Described; 5] = [
    Described { resource: "services", kind: "Service", api_version: "/v1" },
    Described { resource: "deployments.apps", kind: "Deployment", api_version: "apps/v1" },
    Described { resource: "replicasets.apps", kind: "ReplicaSet", api_version: "apps/v1" },
    Described { resource: "statefulsets.apps", kind: "StatefulSet", api_version: "apps/v1" },
    Described {
        resource: "ingresses.networking.k8s.io",
        kind: "Ingress",
        api_version: "networking.k8s.io/v1",
    },
];

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

/// The API, as a router.
pub fn router(model: LoadModel) -> Router {
    Router::new()
        .route("/apis/custom.metrics.k8s.io", get(group))
        .route("/apis/custom.metrics.k8s.io/{version}", get(resources))
        .route("/apis/custom.metrics.k8s.io/{version}/namespaces/{namespace}/metrics/{metric}", get(of_namespace))
        .route("/apis/custom.metrics.k8s.io/{version}/namespaces/{namespace}/{resource}/{name}/{metric}", get(of_objects))
        .with_state(model)
}

async fn group() -> Json<Value> {
    Json(group_document(GROUP, &["v1beta2", "v1beta1"]))
}

async fn resources(Path(version): Path<String>) -> Response {
    let Some(version) = Version::named(&version) else {
        return Refusal::no_path().into_response();
    };
    let all = [PODS].into_iter().chain(OBJECTS).chain([NAMESPACES]);
    let of = |described: Described| {
        Metric::ALL.map(|metric| {
            json!({
                "name": format!("{}/{}", described.resource, metric.name()), "singularName": "",
                "namespaced": described.resource != NAMESPACES.resource,
                "kind": "MetricValueList", "verbs": ["get"],
            })
        })
    };
    let resources: Vec<Value> = all.flat_map(of).collect();
    let document = json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version.group_version(),
        "resources": resources,
    });
    Json(document).into_response()
}

async fn of_objects(
    State(model): State<LoadModel>,
    Path((version, namespace, resource, name, metric)): Path<(
        String,
        String,
        String,
        String,
        String,
    )>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(version) = Version::named(&version) else {
        return Refusal::no_path().into_response();
    };
    let question = Question { version, namespace: &namespace, name: &name, metric: &metric };
    question.answer(&model.state(), &resource, &Query::read(query.as_deref())).into_response()
}

async fn of_namespace(
    State(model): State<LoadModel>,
    Path((version, namespace, metric)): Path<(String, String, String)>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(version) = Version::named(&version) else {
        return Refusal::no_path().into_response();
    };
    let question = Question { version, namespace: &namespace, name: &namespace, metric: &metric };
    question.of_namespace(&model.state(), &Query::read(query.as_deref())).into_response()
}

struct Question<'a> {
    version: Version,
    namespace: &'a str,
    name: &'a str,
    metric: &'a str,
}

impl Question<'_> {
    fn answer(
        &self,
        state: &LoadState,
        resource: &str,
        query: &Query,
    ) -> Result<Json<Value>, Refusal> {
        let selector = query.selector("labelSelector")?;
        let series = query.selector("metricLabelSelector")?;
        // The group may be left out where the resource is clear without it.
        let short = |described: &&Described| described.resource.split('.').next() == Some(resource);
        let kinds = || [PODS].into_iter().chain(OBJECTS);
        let described = kinds()
            .find(|described| described.resource == resource)
            .or_else(|| kinds().find(|described| short(&described)));
        let (Some(described), Some(metric)) = (described, Metric::named(self.metric)) else {
            return Err(self.missing(resource));
        };
        let workloads = self.workloads(state, &series);
        let found: Vec<(&str, f64)> = if described.resource == PODS.resource {
            let of = |workload| pods_of(workload, metric, &selector);
            workloads.flat_map(of).filter(|(name, _)| self.wants(name)).collect()
        } else {
            let named = workloads.filter(|workload| self.wants(&workload.name));
            named.map(|workload| (&*workload.name, metric.of_workload(workload))).collect()
        };
        if found.is_empty() && self.name != ALL {
            return Err(self.missing(resource));
        }
        let item = |(name, value)| self.item(state, described, name, value);
        Ok(self.list(found.into_iter().map(item).collect()))
    }

    fn of_namespace(&self, state: &LoadState, query: &Query) -> Result<Json<Value>, Refusal> {
        let series = query.selector("metricLabelSelector")?;
        let metric = Metric::named(self.metric).ok_or_else(|| self.missing("namespaces"))?;
        let values: Vec<f64> =
            self.workloads(state, &series).map(|workload| metric.of_workload(workload)).collect();
        let value = match metric {
            _ if values.is_empty() => return Err(self.missing("namespaces")),
            Metric::RequestsPerSecond | Metric::QueueLength => values.iter().sum(),
            // The slowest workload is what a namespace is as slow as.
            Metric::LatencySeconds => values.iter().copied().fold(0.0, f64::max),
        };
        Ok(self.list(vec![self.item(state, NAMESPACES, self.namespace, value)]))
    }

    fn workloads<'s>(
        &self,
        state: &'s LoadState,
        series: &Selector,
    ) -> impl Iterator<Item = &'s WorkloadState> {
        state.workloads.iter().filter(move |workload| {
            *workload.namespace == *self.namespace && selects(series, &series_labels(workload))
        })
    }

    fn wants(&self, name: &str) -> bool {
        self.name == ALL || self.name == name
    }

    fn missing(&self, resource: &str) -> Refusal {
        let of = if self.name == ALL { String::new() } else { format!(" {}", self.name) };
        let metric = self.metric;
        Refusal::no_metric(format!(
            "the server could not find the metric {metric} for {resource}{of}"
        ))
    }

    fn list(&self, items: Vec<Value>) -> Json<Value> {
        Json(json!({
            "kind": "MetricValueList", "apiVersion": self.version.group_version(), "metadata": {},
            "items": items,
        }))
    }

    fn item(&self, state: &LoadState, described: Described, name: &str, value: f64) -> Value {
        let mut object = json!({
            "kind": described.kind, "name": name, "apiVersion": described.api_version,
        });
        if described.resource != NAMESPACES.resource {
            object["namespace"] = self.namespace.into();
        }
        let (time, window) = (seconds_text(state.time), state.window.as_secs().max(1));
        match self.version {
            Version::V1beta1 => json!({
                "describedObject": object, "metricName": self.metric, "timestamp": time,
                "window": window, "value": decimal(value), "selector": null,
            }),
            Version::V1beta2 => json!({
                "describedObject": object, "metric": {"name": self.metric, "selector": null},
                "timestamp": time, "windowSeconds": window, "value": decimal(value),
            }),
        }
    }
}

fn pods_of<'s>(
    workload: &'s WorkloadState,
    metric: Metric,
    selector: &Selector,
) -> impl Iterator<Item = (&'s str, f64)> {
    let pods = workload.pods.iter().filter(move |pod| selects(selector, &pod.labels));
    pods.map(move |pod| (&*pod.name, metric.of_pod(workload, pod)))
}
