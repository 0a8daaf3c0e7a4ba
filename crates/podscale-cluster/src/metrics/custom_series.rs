//! Custom metrics of the demo: the load model's series of pods, of the objects that stand for a
//! workload, and of namespaces.

use super::series::{Metric, series_labels};
use crate::load::{LoadModel, LoadState, WorkloadState};
use podscale_api::Selector;
use podscale_metrics::answer::{Answering, Refusal, decimal, selects};
use podscale_metrics::custom::{
    CustomMetric, CustomMetrics, CustomRequest, CustomValue, DescribedObject, GroupResource,
    Objects,
};
use std::future::ready;

/// A kind of object that series can be of: its resource as paths name it, its kind and version.
#[derive(Clone, Copy)]
struct Described {
    resource: &'static str,
    group: &'static str,
    kind: &'static str,
    api_version: &'static str,
}

const PODS: Described = Described { resource: "pods", group: "", kind: "Pod", api_version: "/v1" };
const NAMESPACES: Described =
    Described { resource: "namespaces", group: "", kind: "Namespace", api_version: "/v1" };
/// Objects that stand for the workload of the same name.
const OBJECTS: [Described; 5] = [
    Described { resource: "services", group: "", kind: "Service", api_version: "/v1" },
    of_apps("deployments", "Deployment"),
    of_apps("replicasets", "ReplicaSet"),
    of_apps("statefulsets", "StatefulSet"),
    Described {
        resource: "ingresses",
        group: "networking.k8s.io",
        kind: "Ingress",
        api_version: "networking.k8s.io/v1",
    },
];

const fn of_apps(resource: &'static str, kind: &'static str) -> Described {
    Described { resource, group: "apps", kind, api_version: "apps/v1" }
}

/// The series of a load model.
pub(super) struct LoadSeries(pub(super) LoadModel);

impl CustomMetrics for LoadSeries {
    fn metrics(&self) -> Vec<CustomMetric> {
        let all = [PODS].into_iter().chain(OBJECTS).chain([NAMESPACES]);
        let of = |described: Described| {
            Metric::ALL.map(|metric| CustomMetric {
                resource: GroupResource {
                    group: described.group.to_owned(),
                    resource: described.resource.to_owned(),
                },
                name: metric.name().to_owned(),
                namespaced: described.resource != NAMESPACES.resource,
            })
        };
        all.flat_map(of).collect()
    }

    fn values<'a>(&'a self, request: &'a CustomRequest) -> Answering<'a, Vec<CustomValue>> {
        Box::pin(ready(values(&self.0.state(), request)))
    }
}

fn values(state: &LoadState, request: &CustomRequest) -> Result<Vec<CustomValue>, Refusal> {
    let metric = Metric::named(&request.metric).ok_or_else(|| request.not_found())?;
    let found = match &request.namespace {
        None => of_namespaces(state, metric, request),
        Some(namespace) => of_objects(state, metric, namespace, request)?,
    };
    if found.is_empty() && matches!(request.objects, Objects::Named(_)) {
        return Err(request.not_found());
    }
    Ok(found)
}

fn of_objects(
    state: &LoadState,
    metric: Metric,
    namespace: &str,
    request: &CustomRequest,
) -> Result<Vec<CustomValue>, Refusal> {
    // The group may be left out where the resource is clear without it.
    let GroupResource { group, resource } = &request.resource;
    let is_it = |d: &Described| d.resource == resource && (group.is_empty() || d.group == group);
    let described = [PODS].into_iter().chain(OBJECTS).find(is_it);
    let described = described.ok_or_else(|| request.not_found())?;
    let workloads = workloads(state, namespace, &request.metric_selector);
    let item = |(name, value)| item(state, described, Some(namespace), name, value);
    Ok(if described.resource == PODS.resource {
        let pods = workloads.flat_map(|workload| pods_of(workload, metric, &request.objects));
        pods.map(item).collect()
    } else {
        let named = workloads.filter(|workload| match &request.objects {
            Objects::Named(name) => *workload.name == **name,
            Objects::Selected(_) => true,
        });
        named.map(|workload| item((&*workload.name, metric.of_workload(workload)))).collect()
    })
}

/// What the workloads of each namespace come to together.
fn of_namespaces(state: &LoadState, metric: Metric, request: &CustomRequest) -> Vec<CustomValue> {
    if request.resource.resource != NAMESPACES.resource {
        return Vec::new();
    }
    let mut names: Vec<&str> =
        state.workloads.iter().map(|workload| &*workload.namespace).collect();
    names.sort_unstable();
    names.dedup();
    if let Objects::Named(wanted) = &request.objects {
        names.retain(|name| name == wanted);
    }
    let value = |namespace: &str| {
        let workloads = workloads(state, namespace, &request.metric_selector);
        let values = workloads.map(|workload| metric.of_workload(workload));
        match metric {
            Metric::RequestsPerSecond | Metric::QueueLength => {
                values.reduce(|sum, value| sum + value)
            }
            // The slowest workload is what a namespace is as slow as.
            Metric::LatencySeconds => values.reduce(f64::max),
        }
    };
    let found = names.into_iter().filter_map(|name| Some((name, value(name)?)));
    found.map(|(name, value)| item(state, NAMESPACES, None, name, value)).collect()
}

fn workloads<'s>(
    state: &'s LoadState,
    namespace: &str,
    series: &Selector,
) -> impl Iterator<Item = &'s WorkloadState> {
    state.workloads.iter().filter(move |workload| {
        *workload.namespace == *namespace && selects(series, &series_labels(workload))
    })
}

fn pods_of<'s>(
    workload: &'s WorkloadState,
    metric: Metric,
    objects: &Objects,
) -> impl Iterator<Item = (&'s str, f64)> {
    let pods = workload.pods.iter().filter(move |pod| match objects {
        Objects::Named(name) => *pod.name == **name,
        Objects::Selected(selector) => selects(selector, &pod.labels),
    });
    pods.map(move |pod| (&*pod.name, metric.of_pod(workload, pod)))
}

fn item(
    state: &LoadState,
    described: Described,
    namespace: Option<&str>,
    name: &str,
    value: f64,
) -> CustomValue {
    CustomValue {
        object: DescribedObject {
            kind: described.kind.to_owned(),
            api_version: described.api_version.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        },
        time: state.time,
        window: Some(state.window),
        value: decimal(value),
    }
}
