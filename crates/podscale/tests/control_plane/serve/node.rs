//! A node that always uses one core and 1 GiB, and a quarter of a core and 64 MiB in each container.
//! kubectl rounds thousandths of a core up, so it is half of one less.

use crate::fixture::api;
use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use jiff::Timestamp;
use kube::Client;
use kube::api::{Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::json;
use std::fmt::Write;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Pods and their containers.
type Containers = Arc<Mutex<Vec<(String, String)>>>;

pub(super) struct Node {
    client: Client,
    name: String,
    containers: Containers,
    serving: JoinHandle<()>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Node {
    /// Registers a node and answers for its kubelet.
    pub(super) async fn start(client: &Client, name: &str) -> Result<Node> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let containers = Containers::default();
        let router = Router::new()
            .route("/metrics/resource", get(exposition))
            .with_state(Arc::clone(&containers));
        let serving = tokio::spawn(async move {
            // It ends with the node.
            let _ = axum::serve(listener, router).await;
        });
        let nodes = api(client, None, "v1", "Node");
        let object = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        nodes.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        let amounts = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
        let status = json!({"status": {"capacity": amounts, "allocatable": amounts,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}});
        nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await?;
        Ok(Node { client: client.clone(), name: name.to_owned(), containers, serving })
    }

    /// Creates a pod on this node that runs at once.
    pub(super) async fn pod(&self, name: &str, container: &str) -> Result<()> {
        let object = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"nodeName": self.name, "containers": [{"name": container, "image": "none"}]}});
        let pods = api(&self.client, Some("default"), "v1", "Pod");
        pods.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
        self.containers.lock().push((name.to_owned(), container.to_owned()));
        Ok(())
    }
}

async fn exposition(State(containers): State<Containers>) -> String {
    let ms = Timestamp::now().as_millisecond();
    let seconds = ms as f64 / 1000.0;
    let mut text = format!(
        "node_cpu_usage_seconds_total {} {ms}\n\
         node_memory_working_set_bytes {} {ms}\n",
        seconds * 0.9995,
        1u64 << 30
    );
    for (pod, container) in &*containers.lock() {
        let labels = format!("{{container=\"{container}\",namespace=\"default\",pod=\"{pod}\"}}");
        let _ = write!(
            text,
            "container_start_time_seconds{labels} 1000 {ms}\n\
             container_cpu_usage_seconds_total{labels} {} {ms}\n\
             container_memory_working_set_bytes{labels} {} {ms}\n",
            seconds * 0.2495,
            64u64 << 20
        );
    }
    text
}
