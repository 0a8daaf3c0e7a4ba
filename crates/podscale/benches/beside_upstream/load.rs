//! The autoscalers, their targets and pods, and what the pods use.

use super::kubelet::Kubelet;
use super::metrics::{Metrics, Usage};
use super::plane::ControlPlane;
use anyhow::Result;
use axum::http::Request;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How many autoscalers share a namespace, if not all do.
const PER_NAMESPACE: usize = 20;
/// How many objects are created at the same time.
const CREATED_AT_ONCE: usize = 32;
/// What each pod requests and uses on average, in thousandths of a core.
const REQUEST: i64 = 1000;
pub const USED: i64 = 500;
/// How often the metrics change.
const CHANGE: Duration = Duration::from_secs(5);

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
}

/// A cluster full of autoscalers; what their pods use changes until this is dropped.
pub struct Load {
    pub places: Places,
    pub metrics: Metrics,
    held: Held,
    changing: JoinHandle<()>,
}

/// Those that keep what was set for them.
type Held = Arc<Mutex<HashSet<usize>>>;

impl Drop for Load {
    fn drop(&mut self) {
        self.changing.abort();
    }
}

impl Load {
    pub async fn start(plane: &ControlPlane, places: Places, steady: bool) -> Result<Load> {
        let kubelet = Kubelet::start(&plane.client);
        let metrics = Metrics::start(&plane.client, &plane.authority, kubelet.clone()).await?;
        let namespaces =
            if places.one_namespace { 1 } else { places.count.div_ceil(PER_NAMESPACE) };
        for number in 0..namespaces {
            let object = json!({"metadata": {"name": format!("load-{number}")}});
            send(&plane.client, "POST", "/api/v1/namespaces", &object).await?;
        }
        let numbers = stream::iter(0..places.count);
        let creations = numbers.map(|number| create(&plane.client, places.place(number)));
        creations.buffer_unordered(CREATED_AT_ONCE).try_collect::<()>().await?;
        while kubelet.running(None).len() < 2 * places.count {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let held = Held::default();
        let changing = change(metrics.clone(), places, steady, Arc::clone(&held));
        let changing = tokio::spawn(changing);
        Ok(Load { places, metrics, held, changing })
    }

    /// Sets what the pods of one autoscaler use from now on.
    pub fn set(&self, number: usize, used: i64) {
        let mut held = self.held.lock();
        held.insert(number);
        let Place { namespace, name } = self.places.place(number);
        self.metrics.set_usage(&namespace, &name, "cpu", Usage::Each(used));
    }
}

/// A set that nobody manages, its two pods, and its autoscaler.
async fn create(client: &Client, place: Place) -> Result<()> {
    let Place { namespace, name } = &place;
    let labels = json!({"app": name});
    let spec = json!({"containers": [{"name": "app", "image": "none",
        "resources": {"requests": {"cpu": format!("{REQUEST}m")}}}]});
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
    let set = json!({"metadata": {"name": name}, "spec": {"replicas": 2,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": spec}}});
    let mut set = send(client, "POST", &sets, &set).await?;
    set["status"] = json!({"replicas": 2});
    send(client, "PUT", &format!("{sets}/{name}/status"), &set).await?;
    for number in 0..2 {
        let metadata = json!({"name": format!("{name}-{number}"), "labels": labels});
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

/// Moves the usage of all pods to and fro by up to three percent, which nobody scales for.
async fn change(metrics: Metrics, places: Places, steady: bool, held: Held) {
    for round in 0i64.. {
        for (wave, number) in (0i64..).zip(0..places.count) {
            let wave = if steady { 0 } else { (wave * 7 + round * 11) % 31 - 15 };
            let Place { namespace, name } = places.place(number);
            let held = held.lock();
            if !held.contains(&number) {
                metrics.set_usage(&namespace, &name, "cpu", Usage::Each(USED + wave));
            }
        }
        tokio::time::sleep(CHANGE).await;
    }
}
