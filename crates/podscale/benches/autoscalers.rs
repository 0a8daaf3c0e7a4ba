//! The autoscalers of a benchmark, with their targets and pods.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

use anyhow::Result;
use axum::http::Request;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use serde_json::{Value, json};

/// How many autoscalers share a namespace, if not all do.
const PER_NAMESPACE: usize = 20;
/// How many objects are created at the same time.
const CREATED_AT_ONCE: usize = 32;
/// How many pods each target has.
pub const PODS: usize = 2;
/// What each pod requests and uses on average, in thousandths of a core.
const REQUEST: i64 = 1000;
pub const USED: i64 = 500;

/// Which autoscalers there are.
#[derive(Clone, Copy)]
pub struct Places {
    pub count: usize,
    pub one_namespace: bool,
}

/// Where an autoscaler is, and the name of it, its target and its application.
pub struct Place {
    pub namespace: String,
    pub name: String,
}

impl Places {
    pub fn place(self, number: usize) -> Place {
        let namespace = if self.one_namespace { 0 } else { number / PER_NAMESPACE };
        Place { namespace: format!("load-{namespace}"), name: format!("web-{number}") }
    }

    /// Creates all of them.
    pub async fn create(self, client: &Client) -> Result<()> {
        let namespaces = if self.one_namespace { 1 } else { self.count.div_ceil(PER_NAMESPACE) };
        for number in 0..namespaces {
            let object = json!({"metadata": {"name": format!("load-{number}")}});
            send(client, "POST", "/api/v1/namespaces", &object).await?;
        }
        let numbers = stream::iter(0..self.count);
        let creations = numbers.map(|number| create(client, self.place(number)));
        creations.buffer_unordered(CREATED_AT_ONCE).try_collect::<()>().await
    }
}

impl Place {
    /// The name of one of its pods.
    pub fn pod(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }
}

/// A set that nobody manages, its pods, and its autoscaler.
async fn create(client: &Client, place: Place) -> Result<()> {
    let Place { namespace, name } = &place;
    let labels = json!({"app": name});
    let spec = json!({"containers": [{"name": "app", "image": "none",
        "resources": {"requests": {"cpu": format!("{REQUEST}m")}}}]});
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
    let set = json!({"metadata": {"name": name}, "spec": {"replicas": PODS,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec}}});
    let mut set = send(client, "POST", &sets, &set).await?;
    set["status"] = json!({"replicas": PODS});
    send(client, "PUT", &format!("{sets}/{name}/status"), &set).await?;
    for number in 0..PODS {
        let metadata = json!({"name": place.pod(number), "labels": labels});
        let pod = json!({"metadata": metadata, "spec": spec});
        send(client, "POST", &format!("/api/v1/namespaces/{namespace}/pods"), &pod).await?;
    }
    let hpa = json!({"metadata": {"name": name}, "spec": {"minReplicas": 2, "maxReplicas": 10,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name},
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
    let path = format!("/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers");
    send(client, "POST", &path, &hpa).await?;
    Ok(())
}

pub async fn send(client: &Client, verb: &str, path: &str, object: &Value) -> Result<Value> {
    let request = Request::builder().method(verb).uri(path);
    let request = request.header("content-type", "application/json");
    Ok(client.request(request.body(serde_json::to_vec(object)?)?).await?)
}
