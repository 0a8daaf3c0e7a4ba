//! How long a change at a kubelet takes to reach the scale of the target, beside kube-controller-manager
//! with metrics-server.

use super::aggregation;
use super::autoscalers::{PODS, Places};
use super::kubelet::Kubelet;
use super::kubelets::Kubelets;
use super::latency;
use super::objects::create_nodes;
use super::plane::{Autoscaler, ControlPlane};
use super::process::TIMEOUT;
use super::program::Program;
use super::programs::{Serving, start_metrics_server};
use super::usage::Changing;
use anyhow::{Context, Result};
use axum::http::Request;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Over how many nodes the pods are spread.
const NODES: usize = 100;
const GROUP: [(&str, &str); 1] = [("metrics.k8s.io", "v1beta1")];

/// How often kubelets are asked by whom: metrics-server for kube-controller-manager, or Podscale for itself.
enum Controller {
    Upstream(Duration),
    Podscale(Duration),
}

const CONTROLLERS: [(&str, Controller); 3] = [
    (
        "kube-controller-manager, metrics-server every 15 s",
        Controller::Upstream(Duration::from_secs(15)),
    ),
    (
        "kube-controller-manager, metrics-server every 10 s",
        Controller::Upstream(Duration::from_secs(10)),
    ),
    ("podscale, kubelets every second", Controller::Podscale(Duration::from_secs(1))),
];

/// As in the other comparison: nothing holds it back but its period.
const TUNED: [&str; 3] = [
    "--kube-api-qps=100000",
    "--kube-api-burst=100000",
    "--concurrent-horizontal-pod-autoscaler-syncs=50",
];

/// All controllers, one after the other, on one cluster of so many autoscalers.
pub async fn compare(count: usize, only: Option<&str>, folder: &Path) -> Result<()> {
    let plane = ControlPlane::start(folder).await?;
    let places = Places { count, one_namespace: false };
    let changing = Changing::new(places, NODES);
    let kubelets = Kubelets::start(&plane.authority, changing.usage()).await?;
    create_nodes(&plane, NODES, kubelets.port).await?;
    let pods = Kubelet::start(&plane.client);
    places.create(&plane.client).await?;
    while pods.running(None).len() < PODS * count {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for (turn, (name, controller)) in CONTROLLERS.iter().enumerate() {
        if only.is_some_and(|only| !name.starts_with(only)) {
            continue;
        }
        let double = |number: usize| changing.double(number);
        match controller {
            Controller::Upstream(resolution) => {
                let _serving = serve(&plane, *resolution).await?;
                plane.start_manager(Autoscaler::Only, &TUNED).await?;
                until_active(&plane, count).await.with_context(|| plane.manager_log_tail())?;
                latency::measure(name, turn, &plane, places, double).await?;
                plane.stop_manager();
                aggregation::unregister(&plane.client, "v1beta1.metrics.k8s.io").await?;
            }
            Controller::Podscale(resolution) => {
                let resolution = format!("--metric-resolution={}s", resolution.as_secs());
                let flags = [
                    "--leader-elect=false",
                    "--resource-metrics=kubelet",
                    "--kubelet-insecure-tls",
                    &resolution,
                ];
                let mut program = Program::start("podscale", folder, &plane.kubeconfig, &flags)?;
                until_active(&plane, count).await.with_context(|| program.log_tail())?;
                latency::measure(name, turn, &plane, places, double).await?;
                program.stop().await?;
            }
        }
    }
    Ok(())
}

/// metrics-server, behind the API server's aggregation.
async fn serve(plane: &ControlPlane, resolution: Duration) -> Result<Serving> {
    let mut serving = start_metrics_server(plane, resolution)?;
    let client = serving.client(plane).await?;
    let ready = async || match Request::get("/livez").body(Vec::new()) {
        Ok(request) => client.request_text(request).await.is_ok(),
        Err(_) => false,
    };
    serving.process.until_ready(ready).await?;
    aggregation::register(&plane.client, serving.port, &plane.authority.pem, &GROUP).await?;
    Ok(serving)
}

/// Waits until all autoscalers have metrics.
async fn until_active(plane: &ControlPlane, count: usize) -> Result<()> {
    let active = |autoscaler: &&Value| {
        let conditions = autoscaler["status"]["conditions"].as_array();
        conditions.is_some_and(|conditions| {
            let active = |c: &Value| c["type"] == "ScalingActive" && c["status"] == "True";
            conditions.iter().any(active)
        })
    };
    let wait = async {
        loop {
            let path = "/apis/autoscaling/v2/horizontalpodautoscalers";
            let list: Value = plane.client.request(Request::get(path).body(Vec::new())?).await?;
            let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
            if items.iter().filter(active).count() == count {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.context("not all autoscalers have metrics")?
}
