//! Nodes and pods in the form of the API. They are written as they are found: a list of all pods of a large
//! cluster is tens of megabytes, of which there is no second copy in memory.

use super::{FoundNode, FoundPod, VERSION};
use crate::answer::{bytes, cores, seconds_text, window_text};
use crate::store::Used;
use axum::Json;
use axum::response::{IntoResponse, Response};
use podscale_api::Labels;
use serde::ser::{Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a, T> {
    kind: &'a str,
    api_version: &'a str,
    metadata: NoMetadata,
    items: T,
}

#[derive(serde::Serialize)]
struct NoMetadata {}

/// The forms of what was found, each made when it is written.
struct Items<'a, T, F>(&'a [T], F);

impl<'a, T, S: Serialize, F: Fn(&'a T) -> S> Serialize for Items<'a, T, F> {
    fn serialize<R: Serializer>(&self, serializer: R) -> Result<R::Ok, R::Error> {
        serializer.collect_seq(self.0.iter().map(&self.1))
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    creation_timestamp: String,
    #[serde(skip_serializing_if = "Labels::is_empty")]
    labels: &'a Labels,
}

type Containers<'a> = Items<'a, (Arc<str>, Used), fn(&'a (Arc<str>, Used)) -> ContainerItem<'a>>;

#[derive(serde::Serialize)]
struct PodItem<'a> {
    metadata: Metadata<'a>,
    timestamp: String,
    window: String,
    containers: Containers<'a>,
}

#[derive(serde::Serialize)]
struct ContainerItem<'a> {
    name: &'a str,
    usage: Usage,
}

#[derive(serde::Serialize)]
struct NodeItem<'a> {
    metadata: Metadata<'a>,
    timestamp: String,
    window: String,
    usage: Usage,
}

#[derive(serde::Serialize)]
struct Usage {
    cpu: String,
    memory: String,
}

impl Usage {
    fn of(used: &Used) -> Usage {
        Usage { cpu: cores(used.cpu_nanos), memory: bytes(used.memory_bytes) }
    }
}

impl<'a> ContainerItem<'a> {
    fn of((name, used): &'a (Arc<str>, Used)) -> ContainerItem<'a> {
        ContainerItem { name, usage: Usage::of(used) }
    }
}

impl<'a> PodItem<'a> {
    fn of(pod: &'a FoundPod) -> PodItem<'a> {
        let time = seconds_text(pod.used.time);
        PodItem {
            metadata: Metadata {
                name: &pod.key.1,
                namespace: Some(&pod.key.0),
                creation_timestamp: time.clone(),
                labels: &pod.labels,
            },
            timestamp: time,
            window: window_text(pod.used.window),
            containers: Items(&pod.used.containers, ContainerItem::of),
        }
    }
}

impl<'a> NodeItem<'a> {
    fn of(node: &'a FoundNode) -> NodeItem<'a> {
        let time = seconds_text(node.used.time);
        NodeItem {
            metadata: Metadata {
                name: &node.name,
                namespace: None,
                creation_timestamp: time.clone(),
                labels: &node.labels,
            },
            timestamp: time,
            window: window_text(node.used.window),
            usage: Usage::of(&node.used),
        }
    }
}

/// A list of pods; its items do not repeat what kind they are of.
pub(super) fn pod_list(pods: &[FoundPod]) -> Response {
    list("PodMetricsList", Items(pods, PodItem::of))
}

/// A list of nodes, as that of pods.
pub(super) fn node_list(nodes: &[FoundNode]) -> Response {
    list("NodeMetricsList", Items(nodes, NodeItem::of))
}

fn list(kind: &str, items: impl Serialize) -> Response {
    let metadata = NoMetadata {};
    Json(List { kind, api_version: VERSION, metadata, items }).into_response()
}

/// One pod by itself.
pub(super) fn pod_object(pod: &FoundPod) -> Value {
    object("PodMetrics", PodItem::of(pod))
}

/// One node by itself.
pub(super) fn node_object(node: &FoundNode) -> Value {
    object("NodeMetrics", NodeItem::of(node))
}

fn object(kind: &str, item: impl Serialize) -> Value {
    // All keys are text, so this cannot fail.
    let mut object = serde_json::to_value(item).unwrap_or_default();
    object["kind"] = kind.into();
    object["apiVersion"] = VERSION.into();
    object
}
