//! Two clusters for the same timelines: one has kube-controller-manager's autoscaler, the other one
//! Podscale, and neither has any other controller.

use super::super::fixture::api;
use super::super::plane::{Autoscaler, ControlPlane};
use super::super::process::TIMEOUT;
use super::super::program::{Program, sum};
use super::backend::Backend;
use super::workload::WIDGET_GROUP;
use anyhow::{Context, Result, bail};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

/// How often both controllers reconcile every autoscaler.
pub const PERIOD: Duration = Duration::from_secs(2);

/// For both controllers. Without stabilization unless an autoscaler asks for it, since what is held back
/// for seconds depends on the moment of a pass.
const FLAGS: [&str; 3] = [
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=0s",
    "--concurrent-horizontal-pod-autoscaler-syncs=20",
];
/// For Podscale alone: it is the only replica, and refreshes values as upstream does, in every pass.
const OWN_FLAGS: [&str; 2] = ["--leader-elect=false", "--status-refreshes-per-second=100000"];

const PASSES: &str = "horizontal_pod_autoscaler_controller_reconciliations_total";

/// A cluster and who scales in it.
pub struct Cluster {
    pub name: &'static str,
    pub plane: ControlPlane,
    pub backend: Backend,
    /// Podscale, unless it is kube-controller-manager.
    program: Option<Program>,
}

impl Cluster {
    async fn start(name: &'static str, folder: &Path) -> Result<Cluster> {
        let plane = ControlPlane::start(&folder.join(name)).await?;
        let backend = Backend::start(&plane.client, &plane.authority).await?;
        let cluster = Cluster { name, plane, backend, program: None };
        cluster.define_widgets().await?;
        Ok(cluster)
    }

    /// How many passes its controller has made.
    pub async fn passes(&self) -> Result<f64> {
        let text = match &self.program {
            Some(program) => program.metrics().await,
            None => self.plane.manager_metrics().await,
        };
        let text = text.with_context(|| {
            format!("the controller of {} does not answer:\n{}", self.name, self.log_tail())
        })?;
        Ok(sum(&text, PASSES, ""))
    }

    fn signal(&self, name: &str) -> Result<()> {
        match &self.program {
            Some(program) => program.signal(name),
            None => self.plane.signal_manager(name),
        }
    }

    /// The end of its controller's log.
    fn log_tail(&self) -> String {
        match &self.program {
            Some(program) => program.log_tail(),
            None => self.plane.manager_log_tail(),
        }
    }

    /// A custom resource whose scale has a selector of which the API server checks nothing.
    async fn define_widgets(&self) -> Result<()> {
        let integer = json!({"type": "integer"});
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {"replicas": integer}},
            "status": {"type": "object", "properties": {"replicas": integer,
                "selector": {"type": "string"}}}}});
        let version = json!({"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector"}}});
        let name = format!("widgets.{WIDGET_GROUP}");
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {"group": WIDGET_GROUP, "scope": "Namespaced", "versions": [version],
                "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"}}});
        let client = &self.plane.client;
        let definitions = api(client, None, "apiextensions.k8s.io/v1", "CustomResourceDefinition");
        let params = PatchParams::apply("test").force();
        definitions.patch(&name, &params, &Patch::Apply(&definition)).await?;
        let widgets = api(client, Some("default"), &format!("{WIDGET_GROUP}/v1"), "Widget");
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        while widgets.list(&ListParams::default()).await.is_err() {
            if tokio::time::Instant::now() > deadline {
                bail!("{}: Widgets are not served", self.name);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    }
}

/// Both clusters.
pub struct Clusters {
    pub upstream: Cluster,
    pub podscale: Cluster,
    /// Held by the one who has stopped the controllers.
    stopped: Mutex<()>,
}

impl Clusters {
    /// Starts both; the controllers only when everything that they discover is there.
    pub async fn start(folder: &Path) -> Result<Clusters> {
        let (upstream, podscale) =
            tokio::join!(Cluster::start("upstream", folder), Cluster::start("podscale", folder));
        let (upstream, mut podscale) = (upstream?, podscale?);
        upstream.plane.start_manager(Autoscaler::Only, &FLAGS).await?;
        let flags: Vec<&str> = FLAGS.into_iter().chain(OWN_FLAGS).collect();
        let plane = &podscale.plane;
        let program = Program::start("podscale", plane.folder(), &plane.kubeconfig, &flags)?;
        podscale.program = Some(program);
        let clusters = Clusters { upstream, podscale, stopped: Mutex::new(()) };
        for cluster in clusters.both() {
            let deadline = tokio::time::Instant::now() + TIMEOUT;
            while let Err(error) = cluster.passes().await {
                if tokio::time::Instant::now() > deadline {
                    return Err(error).context(format!("{} has no metrics", cluster.name));
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        Ok(clusters)
    }

    pub fn both(&self) -> [&Cluster; 2] {
        [&self.upstream, &self.podscale]
    }

    /// Stops both controllers until the guard is dropped, so that they see all changes of a step at
    /// once, whatever the moments of their passes.
    pub async fn stop_controllers(&self) -> Result<Stopped<'_>> {
        let guard = self.stopped.lock().await;
        let stopped = Stopped { clusters: self, _guard: guard };
        for cluster in self.both() {
            cluster.signal("STOP")?;
        }
        Ok(stopped)
    }
}

/// While this exists, both controllers are stopped.
pub struct Stopped<'a> {
    clusters: &'a Clusters,
    _guard: MutexGuard<'a, ()>,
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        for cluster in self.clusters.both() {
            // One that has ended is noticed when its metrics are read.
            let _ = cluster.signal("CONT");
        }
    }
}
