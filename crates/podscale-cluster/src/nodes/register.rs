//! Makes the nodes known to the API server and keeps telling it that they are alive.

use super::NodeInfo;
use super::status::seconds;
use crate::call::{CallError, call};
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use podscale_client::clock::Clock;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tracing::{info, warn};

/// How often a node says that it is alive.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(10);
const LEASES: &str = "kube-node-lease";
const LEASE_SECONDS: i32 = 40;
const MAX_CALLS: usize = 16;
const VERSION: &str = "v1.37.0";

/// Creates the node objects, or makes those that exist what they should be.
pub(super) async fn register(
    client: &Client,
    clock: &Clock,
    nodes: &[Arc<NodeInfo>],
) -> Result<(), CallError> {
    let api: Api<Node> = Api::all(client.clone());
    let mut all = Vec::with_capacity(nodes.len());
    for info in nodes {
        all.push(register_one(&api, clock, info));
    }
    let mut calls = futures::stream::iter(all).buffer_unordered(MAX_CALLS);
    while let Some(result) = calls.next().await {
        result?;
    }
    Ok(())
}

async fn register_one(api: &Api<Node>, clock: &Clock, info: &NodeInfo) -> Result<(), CallError> {
    let what = || format!("registering node {}", info.name);
    let now = clock.now();
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": &*info.name, "labels": labels(info)},
        "spec": {"podCIDR": info.pod_cidr, "podCIDRs": [info.pod_cidr], "providerID": format!("podscale://{}", info.name)},
        "status": status(info, now),
    });
    let node: Node = serde_json::from_value(object).map_err(|error| CallError::Api {
        what: what(),
        source: Box::new(kube::Error::SerdeError(error)),
    })?;
    match call(what, api.create(&PostParams::default(), &node)).await {
        Ok(_) => {}
        Err(error) if error.code() == Some(409) => {
            let patch = Patch::Merge(json!({"metadata": {"labels": labels(info)}}));
            call(what, api.patch(&info.name, &PatchParams::default(), &patch)).await?;
        }
        Err(error) => return Err(error),
    }
    report(api, info, now).await
}

/// Writes a node's whole status.
async fn report(api: &Api<Node>, info: &NodeInfo, now: Timestamp) -> Result<(), CallError> {
    let patch = Patch::Strategic(json!({"status": status(info, now)}));
    let what = || format!("writing the status of node {}", info.name);
    call(what, api.patch_status(&info.name, &PatchParams::default(), &patch)).await.map(drop)
}

fn labels(info: &NodeInfo) -> Value {
    json!({
        "kubernetes.io/hostname": &*info.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    })
}

fn status(info: &NodeInfo, now: Timestamp) -> Value {
    let resources = json!({
        "cpu": format!("{}m", info.size.cpu_millis),
        "memory": format!("{}Ki", info.size.memory_bytes / 1024),
        "pods": info.size.pods.to_string(),
        "ephemeral-storage": "100Gi",
    });
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": seconds(now), "lastTransitionTime": seconds(now),
        })
    };
    json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [
            {"type": "InternalIP", "address": info.kubelet.ip().to_string()},
            {"type": "Hostname", "address": &*info.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": info.kubelet.port()}},
        "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "osImage": "Podscale simulated node",
            "kernelVersion": "simulated", "containerRuntimeVersion": "podscale://1", "kubeletVersion": VERSION,
            "kubeProxyVersion": "", "machineID": &*info.name, "systemUUID": &*info.name, "bootID": &*info.name,
        },
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
        ],
    })
}

/// Renews the leases of all running nodes again and again, and says that a node is ready where the
/// API server has come to think otherwise. `beat_now` starts the next round at once.
pub(super) async fn heartbeats(
    client: Client,
    clock: Clock,
    nodes: Vec<Arc<NodeInfo>>,
    beat_now: Arc<Notify>,
) {
    let by_name: HashMap<&str, &NodeInfo> =
        nodes.iter().map(|info| (&*info.name, &**info)).collect();
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let api: Api<Node> = Api::all(client);
    loop {
        let mut alive = Vec::with_capacity(nodes.len());
        for info in &nodes {
            if info.running() {
                alive.push(renew(&leases, &clock, info));
            }
        }
        let mut renewals = futures::stream::iter(alive).buffer_unordered(MAX_CALLS);
        while let Some(result) = renewals.next().await {
            if let Err(error) = result {
                warn!(%error, "a heartbeat failed");
            }
        }
        if let Err(error) = correct(&api, &clock, &by_name).await {
            warn!(%error, "a heartbeat failed");
        }
        tokio::select! {
            () = clock.sleep(HEARTBEAT) => {}
            () = beat_now.notified() => {}
        }
    }
}

/// Reports every running node that is not known as ready.
async fn correct(
    api: &Api<Node>,
    clock: &Clock,
    nodes: &HashMap<&str, &NodeInfo>,
) -> Result<(), CallError> {
    let list = call(|| "listing nodes".to_owned(), api.list(&ListParams::default())).await?;
    for node in list {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let Some(info) = nodes.get(name).filter(|info| info.running()) else {
            continue;
        };
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        if !conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True") {
            info!(node = name, "is ready again");
            report(api, info, clock.now()).await?;
        }
    }
    Ok(())
}

async fn renew(leases: &Api<Lease>, clock: &Clock, info: &NodeInfo) -> Result<(), CallError> {
    let what = || format!("renewing the lease of node {}", info.name);
    let renewed = format!("{:.6}", clock.now());
    let patch = Patch::Merge(json!({"spec": {"renewTime": renewed}}));
    match call(what, leases.patch(&info.name, &PatchParams::default(), &patch)).await {
        Err(error) if error.code() == Some(404) => {}
        result => return result.map(drop),
    }
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": &*info.name, "namespace": LEASES},
        "spec": {"holderIdentity": &*info.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": renewed},
    });
    let lease: Lease = serde_json::from_value(lease).map_err(|error| CallError::Api {
        what: what(),
        source: Box::new(kube::Error::SerdeError(error)),
    })?;
    call(what, leases.create(&PostParams::default(), &lease)).await.map(drop)
}
