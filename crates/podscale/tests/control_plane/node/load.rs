//! A Deployment whose pods burn real CPU: all of them together as much as the test says, each its part
//! of it, as behind a load balancer.

use super::super::fixture::{Workspace, autoscaler};
use super::cluster::Cluster;
use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::AbortHandle;

/// What one pod is meant to burn, in thousandths of a core.
pub const TARGET: u64 = 60;

/// The load of a Deployment of the same name; it is shared out until this is dropped.
pub struct Load {
    folder: PathBuf,
    total: Arc<AtomicU64>,
    pods: Api<Pod>,
    selector: ListParams,
    task: AbortHandle,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Load {
    /// Makes the Deployment of one pod and its autoscaler, which allows up to six.
    pub async fn start(
        cluster: &Cluster,
        space: &Workspace,
        name: &str,
        total: u64,
    ) -> Result<Load> {
        let folder = cluster.plane.folder().join(format!("load-{}-{name}", space.namespace));
        std::fs::create_dir_all(&folder)?;
        write_share(&folder, total)?;
        let pods = Api::<Pod>::namespaced(space.client(), &space.namespace);
        let selector = ListParams::default().labels(&format!("app={name}"));
        let total = Arc::new(AtomicU64::new(total));
        let share_out =
            share_out(pods.clone(), selector.clone(), folder.clone(), Arc::clone(&total));
        let task = tokio::spawn(share_out).abort_handle();
        space.create(deployment(name, &folder)).await?;
        let percent = json!({"type": "Utilization", "averageUtilization": TARGET});
        let cpu = json!([{"type": "Resource", "resource": {"name": "cpu", "target": percent}}]);
        space.create(autoscaler(name, (1, 6), cpu, Value::Null)).await?;
        Ok(Load { folder, total, pods, selector, task })
    }

    /// How much all pods burn together from now on, in thousandths of a core.
    pub fn set(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Makes the container of a pod do something: `exit` or `eat`; see `e2e/node/burn`.
    pub fn order(&self, what: &str, pod: &str) -> Result<()> {
        Ok(std::fs::write(self.folder.join(format!("{what}.{pod}")), "")?)
    }

    /// The pods that are to stay.
    pub async fn pods(&self) -> Result<Vec<Pod>> {
        staying(&self.pods, &self.selector).await
    }

    /// How the only container of a pod last ended, and whether it is ready again.
    pub async fn last_end(&self, pod: &str) -> Result<(bool, Option<String>, Option<i32>)> {
        let status = self.pods.get(pod).await?.status.context("a pod without status")?;
        let containers = status.container_statuses.unwrap_or_default();
        let container: ContainerStatus = containers.into_iter().next().unwrap_or_default();
        let ended = container.last_state.and_then(|state| state.terminated);
        let code = ended.as_ref().map(|ended| ended.exit_code);
        Ok((container.ready, ended.and_then(|ended| ended.reason), code))
    }
}

async fn staying(pods: &Api<Pod>, selector: &ListParams) -> Result<Vec<Pod>> {
    let mut all = pods.list(selector).await?.items;
    all.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    Ok(all)
}

/// Gives every pod its part of the total, over and over.
async fn share_out(pods: Api<Pod>, selector: ListParams, folder: PathBuf, total: Arc<AtomicU64>) {
    loop {
        if let Ok(pods) = staying(&pods, &selector).await {
            let count = u64::try_from(pods.len()).unwrap_or(u64::MAX).max(1);
            // A folder that is gone belongs to a test that has ended.
            let _ = write_share(&folder, total.load(Ordering::Relaxed) / count);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Replaces the file, so that nobody reads half of it.
fn write_share(folder: &Path, share: u64) -> Result<()> {
    let new = folder.join("share.new");
    std::fs::write(&new, format!("{share}\n"))?;
    Ok(std::fs::rename(new, folder.join("share"))?)
}

fn deployment(name: &str, folder: &Path) -> Value {
    let container = json!({"name": "burn", "image": "podscale.test/burn:1", "imagePullPolicy": "Never",
        "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}, "limits": {"memory": "48Mi"}},
        "volumeMounts": [{"name": "load", "mountPath": "/load"}]});
    let spec = json!({"automountServiceAccountToken": false, "terminationGracePeriodSeconds": 1,
        "containers": [container], "volumes": [{"name": "load", "hostPath": {"path": folder}}]});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec}}})
}
