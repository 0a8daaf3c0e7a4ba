//! The nodes, and the pods on them, as the API server knows them.

use super::kubelets::address;
use super::plane::ControlPlane;
use super::process::TIMEOUT;
use super::usage::{STEADY_PODS, steady_pod};
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// How many nodes are written to the API server at the same time.
const CONCURRENT_WRITES: usize = 16;
/// How many objects etcd takes in one transaction, and how many of those it is given at the same time.
const IN_A_TRANSACTION: usize = 128;
const CONCURRENT_TRANSACTIONS: usize = 4;

/// Every node has a loopback address of its own and the same port.
pub async fn create_nodes(plane: &ControlPlane, count: usize, port: u16) -> Result<()> {
    let nodes = Api::<Node>::all(plane.client.clone());
    stream::iter(0..count)
        .map(|number| {
            let nodes = nodes.clone();
            async move {
                let node: Node =
                    serde_json::from_value(json!({"apiVersion": "v1", "kind": "Node",
                    "metadata": {"name": format!("node-{number}")},
                    "status": {
                        "addresses": [{"type": "InternalIP", "address": address(number)}],
                        "conditions": [{"type": "Ready", "status": "True"}],
                        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}))?;
                nodes.create(&PostParams::default(), &node).await.map(drop)?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(CONCURRENT_WRITES)
        .try_collect::<()>()
        .await
        .with_context(|| format!("cannot make {count} nodes"))
}

/// Puts the pods of so many nodes where the API server keeps them: to create each by a request would take
/// longer than everything else together.
pub async fn put_pods(plane: &ControlPlane, nodes: usize) -> Result<()> {
    let all: Vec<(usize, usize)> =
        (0..nodes).flat_map(|node| (0..STEADY_PODS).map(move |pod| (node, pod))).collect();
    let etcd = plane.etcd()?;
    let transactions = stream::iter(all.chunks(IN_A_TRANSACTION)).map(|some| {
        let etcd = etcd.clone();
        async move {
            let puts: Vec<Value> = some.iter().map(|(node, pod)| put(*node, *pod)).collect();
            let body = serde_json::to_vec(&json!({"success": puts}))?;
            let answer: Value = etcd.request(Request::post("/v3/kv/txn").body(body)?).await?;
            ensure!(answer["succeeded"] == true, "etcd refuses pods: {answer}");
            anyhow::Ok(())
        }
    });
    transactions.buffer_unordered(CONCURRENT_TRANSACTIONS).try_collect::<()>().await?;
    // The API server follows etcd, and may be behind.
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let first = Request::get("/api/v1/pods?limit=1").body(Vec::new())?;
        let list: Value = plane.client.request(first).await?;
        let others = &list["metadata"]["remainingItemCount"];
        if *others == all.len() - 1 {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the API server knows {others} other pods: {list}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn put(node: usize, pod: usize) -> Value {
    let (namespace, name) = steady_pod(node, pod);
    let time = "2026-01-01T00:00:00Z";
    let object = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": time,
            "uid": format!("00000000-0000-4000-8000-{:012x}", node * STEADY_PODS + pod),
            "labels": {"app": "web", "pod-template-hash": "7d4b9c6f5d"}},
        "spec": {"nodeName": format!("node-{node}"), "containers": [{"name": "app", "image": "none",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]},
        "status": {"phase": "Running", "startTime": time, "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": time}]}});
    let key = STANDARD.encode(format!("/registry/pods/{namespace}/{name}"));
    json!({"requestPut": {"key": key, "value": STANDARD.encode(object.to_string())}})
}
