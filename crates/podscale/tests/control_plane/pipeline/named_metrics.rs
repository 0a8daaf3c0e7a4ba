//! Autoscalers of singlecloud's API whose metrics, by name and labels, Podscale itself answers for: it
//! decides, serves the metrics and the API in one process, with the rights that `podscale install` gives it.

use super::load::Load;
use super::prometheus::Prometheus;
use super::{GROUPS, NODE, work};
use crate::aggregation::until_available;
use crate::fixture::{Workspace, deployment};
use crate::harness::Harness;
use crate::kubelet::Kubelet;
use crate::plane::{Autoscaler, ControlPlane};
use crate::process::free_ports;
use crate::program::{Program, QUICK};
use crate::serve;
use crate::serve::node::{Node, Used};
use crate::singlecloud::{HOME, Rest, autoscaler, install};
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "named";
const ALIAS: &str = "shop_qps_d2f0592e2b8c_shop_named";

pub fn trial(harness: &Harness) -> Trial {
    let folder = harness.folder().to_owned();
    harness.independent("pipeline::singlecloud_by_named_metrics", move |name| async move {
        let plane = ControlPlane::start(&folder.join(name)).await?;
        named_metrics(&plane).await
    })
}

async fn named_metrics(plane: &ControlPlane) -> Result<()> {
    // Nobody renews the node, and its pods are to stay.
    let without = "--controllers=-node-lifecycle-controller,-taint-eviction-controller";
    plane.start_manager(Autoscaler::Off, &[without]).await?;
    let space = Workspace::open(plane.client.clone(), "shop").await?;
    let load = Arc::new(Load::new(Kubelet::start(&plane.client), &space.namespace));
    let pods = Arc::clone(&load);
    // Each pod uses a tenth of the cpu that is meant for it; thousandths are rounded up.
    let idle = |used: Used| Used { cores: 0.0095, ..used };
    let usage = move || -> Vec<Used> { pods.used(NAME).into_iter().map(idle).collect() };
    let _node = Node::start(plane, NODE, Box::new(usage)).await?;
    let prometheus = Prometheus::start(plane, Arc::clone(&load)).await?;
    let url = format!("--prometheus-url={}", prometheus.url);
    install(plane, &["--serve-metrics=resource,custom,external", &url]).await?;
    let [secure, port]: [u16; 2] = free_ports()?;
    serve::announce(plane, secure, &GROUPS).await?;
    let own = [
        "--serve-metrics".to_owned(),
        "--serve=resource,custom,external".to_owned(),
        "--metric-resolution=1s".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={secure}"),
        format!("--service-namespace={HOME}"),
        format!("--leader-elect-resource-namespace={HOME}"),
        format!("--singlecloud-port={port}"),
        url,
    ];
    let flags: Vec<&str> = QUICK.into_iter().chain(own.iter().map(String::as_str)).collect();
    let kubeconfig = plane.kubeconfig_of(HOME, "podscale").await?;
    let mut program = Program::start("run", plane.folder(), &kubeconfig, &flags)?;
    let scenario = async {
        until_available(&plane.client, &GROUPS).await?;
        let editor = Rest::open(plane, &space, "edit", port).await?;
        up_and_down(&space, &load, &editor).await?;
        all_of_it_goes(plane, &space, &editor).await
    };
    if let Err(error) = scenario.await {
        let (state, log) = (space.describe().await, program.log_tail());
        return Err(error.context(format!("{state}\npodscale run:\n{log}")));
    }
    program.stop().await
}

async fn create_workload(space: &Workspace) -> Result<()> {
    let mut object = deployment(NAME, 2, &["app"]);
    let pod = &mut object["spec"]["template"]["spec"];
    pod["nodeName"] = json!(NODE);
    // They end at once when they are deleted.
    pod["terminationGracePeriodSeconds"] = json!(0);
    space.create(object).await?;
    space.until_pods(NAME, 2).await
}

async fn up_and_down(space: &Workspace, load: &Load, editor: &Rest) -> Result<()> {
    load.set(NAME, work(2, 10.0));
    create_workload(space).await?;
    let body = autoscaler("deployment", NAME, "shop_qps", "10");
    editor.expect("POST", "", &body, 201).await?;
    let hpa = space.api("autoscaling/v2", "HorizontalPodAutoscaler").get(NAME).await?;
    let named = &hpa.data["spec"]["metrics"][2]["pods"]["metric"]["name"];
    ensure!(*named == *ALIAS, "{named}");
    space.until_verdict(NAME, "ScalingActive", "True ValidMetricFound").await?;
    for replicas in [5_i32, 1, 3] {
        load.set(NAME, work(replicas, 10.0));
        space.until_replicas(NAME, replicas.into()).await?;
        space.until_pods(NAME, replicas).await?;
    }
    let shown = "what each metric shows";
    let expected = json!({"replicas": 3, "cpu": "10m", "memory": 100, "qps": "shop_qps"});
    space
        .until(shown, &expected, async || {
            let seen = editor.expect("GET", NAME, &Value::Null, 200).await?;
            let (status, metrics) = (&seen["status"], &seen["status"]["currentMetrics"]);
            Ok(json!({"replicas": status["currentReplicas"],
                "cpu": metrics["resourceMetrics"][0]["averageValue"],
                "memory": metrics["resourceMetrics"][1]["averageUtilization"],
                "qps": metrics["customMetrics"][0]["metricName"]}))
        })
        .await?;
    // Half as many are needed if each does twice as much.
    load.set(NAME, work(6, 10.0));
    space.until_replicas(NAME, 6).await?;
    let mut change = editor.expect("GET", NAME, &Value::Null, 200).await?;
    change["customMetrics"][0]["averageValue"] = json!("20");
    editor.expect("PUT", NAME, &change, 200).await?;
    space.until_replicas(NAME, 3).await
}

/// Whether the metric can be asked for.
async fn is_served(plane: &ControlPlane) -> Result<bool> {
    let path = format!("/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/*/{ALIAS}");
    let answer = plane.client.request::<Value>(Request::get(path).body(Vec::new())?).await;
    match answer {
        // Where there are no pods there is nothing to ask Prometheus for.
        Ok(list) => Ok(list["items"].as_array().is_some_and(|items| !items.is_empty())),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error).context("the metric"),
    }
}

async fn all_of_it_goes(plane: &ControlPlane, space: &Workspace, editor: &Rest) -> Result<()> {
    let hpas = space.api("autoscaling/v2", "HorizontalPodAutoscaler");
    let gone = async || -> Result<bool> {
        Ok(hpas.get_opt(NAME).await?.is_none() && !is_served(plane).await?)
    };
    ensure!(is_served(plane).await?, "the metric is not served");
    editor.expect("DELETE", NAME, &Value::Null, 202).await?;
    space.until("whether everything is gone", &true, async || gone().await).await?;
    let body = autoscaler("deployment", NAME, "shop_qps", "10");
    editor.expect("POST", "", &body, 201).await?;
    space
        .until("whether the metric is served again", &true, async || is_served(plane).await)
        .await?;
    space.delete("apps/v1", "Deployment", NAME).await?;
    space.until("whether everything is gone with the workload", &true, async || gone().await).await
}
