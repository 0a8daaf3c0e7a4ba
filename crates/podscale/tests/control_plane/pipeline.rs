//! kube-controller-manager's own autoscaler with `podscale serve` as the only server of metrics: cpu from a
//! kubelet, custom and external metrics from the real Prometheus, by rules in a ConfigMap.

#[path = "pipeline/load.rs"]
mod load;
#[path = "pipeline/named_metrics.rs"]
mod named_metrics;
#[path = "pipeline/prometheus.rs"]
mod prometheus;
#[path = "pipeline/resource_rules.rs"]
mod resource_rules;
#[path = "pipeline/validated.rs"]
mod validated;

pub use prometheus::{Prometheus, possible};

use super::aggregation::until_available;
use super::fixture::{Workspace, api, deployment};
use super::harness::Harness;
use super::kubelet::Kubelet;
use super::plane::{Autoscaler, ControlPlane};
use super::process::{Process, free_ports};
use super::program::QUICK;
use super::serve::{self, NAMESPACE, node::Node};
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use libtest_mimic::Trial;
use load::Load;
use serde_json::{Value, json};
use std::sync::Arc;

const NODE: &str = "node-1";
const RULES: &str = "metric-rules";

/// All that Podscale serves.
const GROUPS: [(&str, &str); 4] = [
    ("metrics.k8s.io", "v1beta1"),
    ("custom.metrics.k8s.io", "v1beta1"),
    ("custom.metrics.k8s.io", "v1beta2"),
    ("external.metrics.k8s.io", "v1beta1"),
];

/// As prometheus-adapter reads them; the list of external rules is at the end, so that it can go on.
const GOOD: &str = r#"
rules:
- seriesQuery: shop_rps{namespace!="",pod!=""}
  resources: {template: <<.Resource>>}
  name: {as: rps}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
- seriesQuery: shop_hits{namespace!="",service!=""}
  resources: {template: <<.Resource>>}
  name: {as: hits}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: shop_queue{namespace!=""}
  resources: {template: <<.Resource>>}
  name: {as: queue}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (queue)
"#;
const ADDED: &str = r#"
- seriesQuery: shop_queue{namespace!=""}
  resources: {template: <<.Resource>>}
  name: {as: longest_queue}
  metricsQuery: max(<<.Series>>{<<.LabelMatchers>>})
"#;
const WRONG: &str = r#"
rules:
- seriesQuery: shop_rps
  name: {matches: "("}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"#;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let folder = harness.folder().to_owned();
    let trial =
        harness.independent("pipeline::upstream_scales_by_podscale", move |name| async move {
            let plane = ControlPlane::start(&folder.join(name)).await?;
            upstream_scales(&plane).await
        });
    vec![trial, named_metrics::trial(harness), validated::trial(harness)]
}

/// The workloads, with the metric of each and what one replica of it is meant to do.
fn workloads() -> [(&'static str, f64, Value); 4] {
    let each = json!({"type": "AverageValue", "averageValue": "10"});
    [
        // Half of the 100m that each pod requests.
        (
            "cpu",
            0.05,
            json!({"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}),
        ),
        ("rps", 10.0, json!({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": each}})),
        (
            "hits",
            10.0,
            json!({"type": "Object", "object": {"metric": {"name": "hits"}, "target": each,
                "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"}}}),
        ),
        (
            "queue",
            10.0,
            json!({"type": "External", "external": {"target": each, "metric": {"name": "queue",
                "selector": {"matchLabels": {"queue": "mail"}}}}}),
        ),
    ]
}

async fn upstream_scales(plane: &ControlPlane) -> Result<()> {
    let space = Workspace::open(plane.client.clone(), "shop").await?;
    let load = Arc::new(Load::new(Kubelet::start(&plane.client), &space.namespace));
    let burn = Arc::clone(&load);
    let _node = Node::start(plane, NODE, Box::new(move || burn.used("cpu"))).await?;
    let mut prometheus = Prometheus::start(plane, Arc::clone(&load)).await?;
    write_rules(plane, GOOD).await?;
    serve::account(plane).await?;
    let [port] = free_ports()?;
    serve::announce(plane, port, &GROUPS).await?;
    let url = format!("--prometheus-url={}", prometheus.url);
    let rules = format!("--metric-rules-configmap={NAMESPACE}/{RULES}");
    let flags = ["--serve=resource,custom,external", "--metric-resolution=1s", &url, &rules];
    let mut program = serve::serve(plane, "serve", port, &flags).await?;
    let scenario = async {
        until_available(&plane.client, &GROUPS).await?;
        up_and_down(plane, &space, &load).await?;
        described(plane, &space).await?;
        rules_change(plane, &space, &load).await.context("while the rules change")?;
        rules_go(plane, &space, &load, &program).await.context("while there are no rules")?;
        prometheus_restarts(&space, &load, &mut prometheus).await.context("while it restarts")
    };
    if let Err(error) = scenario.await {
        let (state, ours) = (space.describe().await, program.log_tail());
        let theirs = plane.manager_log_tail();
        let logs = format!("{state}\npodscale serve:\n{ours}\nkube-controller-manager:\n{theirs}");
        return Err(error.context(logs));
    }
    let status = program.terminate().await?;
    ensure!(status.success(), "podscale serve ended with {status}");
    let by_rules = resource_rules::upstream_scales(plane, &space, &load, port, &flags).await;
    by_rules.context("with cpu and memory from Prometheus")
}

/// Work for so many replicas. It is a little less than they are meant for: usage is rounded up to
/// thousandths, and the replicas that it needs to whole ones.
fn work(replicas: i32, each: f64) -> f64 {
    (f64::from(replicas) - 0.2) * each
}

/// Each workload is given work for two replicas, for five and for one.
async fn up_and_down(plane: &ControlPlane, space: &Workspace, load: &Load) -> Result<()> {
    // Nobody renews the node, and its pods are to stay.
    let without = "--controllers=-node-lifecycle-controller,-taint-eviction-controller";
    let flags: Vec<&str> = QUICK.into_iter().chain([without]).collect();
    plane.start_manager(Autoscaler::On, &flags).await?;
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
        "spec": {"ports": [{"port": 80}]}});
    space.create(service).await?;
    for (name, each, metric) in workloads() {
        load.set(name, work(2, each));
        let mut object = deployment(name, 2, &["app"]);
        let pod = &mut object["spec"]["template"]["spec"];
        pod["nodeName"] = json!(NODE);
        // They end at once when they are deleted.
        pod["terminationGracePeriodSeconds"] = json!(0);
        space.create(object).await?;
        space.autoscaler(name, (1, 9), json!([metric]), Value::Null).await?;
    }
    for (name, ..) in workloads() {
        space.until_verdict(name, "ScalingActive", "True ValidMetricFound").await?;
        space.until_replicas(name, 2).await?;
    }
    for replicas in [5_i32, 1] {
        for (name, each, _) in workloads() {
            load.set(name, work(replicas, each));
        }
        for (name, ..) in workloads() {
            space.until_replicas(name, replicas.into()).await?;
            space.until_pods(name, replicas).await?;
        }
    }
    Ok(())
}

/// Rules that are wrong are reported, and the last good ones stay in use until there are better ones.
async fn rules_change(plane: &ControlPlane, space: &Workspace, load: &Load) -> Result<()> {
    write_rules(plane, WRONG).await?;
    let events = api(&plane.client, Some(NAMESPACE), "v1", "Event");
    let about = format!("involvedObject.kind=ConfigMap,involvedObject.name={RULES}");
    let about = ListParams::default().fields(&about);
    let reason = json!("InvalidMetricRules");
    space
        .until("the reason of the ConfigMap's event", &Some(reason), async || {
            let events = events.list(&about).await?;
            Ok(events.items.first().map(|event| event.data["reason"].clone()))
        })
        .await?;
    all_follow(space, load, 3).await?;
    write_rules(plane, &format!("{}{}", GOOD.trim_end(), ADDED)).await?;
    let path = format!(
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/longest_queue",
        space.namespace
    );
    space
        .until("the value of a new metric", &json!("1k"), async || {
            let request = Request::get(&path).body(Vec::new())?;
            let list: Value = plane.client.request(request).await?;
            Ok(list["items"][0]["value"].clone())
        })
        .await
}

/// All workloads are given work for so many replicas, and get them.
async fn all_follow(space: &Workspace, load: &Load, replicas: i32) -> Result<()> {
    for (name, each, _) in workloads() {
        load.set(name, work(replicas, each));
    }
    for (name, ..) in workloads() {
        space.until_replicas(name, replicas.into()).await?;
    }
    Ok(())
}

/// The API server passes on what these metrics are, as soon as it has heard of them. Their names are in no
/// document, so `kubectl explain` cannot be asked for one.
async fn described(plane: &ControlPlane, space: &Workspace) -> Result<()> {
    for (document, words) in [
        ("/openapi/v3/apis/external.metrics.k8s.io/v1beta1", "ExternalMetricValueList"),
        ("/openapi/v3/apis/custom.metrics.k8s.io/v1beta2", "MetricValueList"),
    ] {
        let arguments = &["get", "--raw", document];
        let said = async || {
            let (ok, text) = serve::kubectl(plane, arguments)?;
            Ok(if ok && text.contains(words) { Ok(()) } else { Err(text) })
        };
        space.until(&format!("kubectl {arguments:?}"), &Ok(()), said).await?;
    }
    Ok(())
}

/// A ConfigMap that is deleted takes no metric with it, and one that comes back is used.
async fn rules_go(
    plane: &ControlPlane,
    space: &Workspace,
    load: &Load,
    program: &Process,
) -> Result<()> {
    let config_maps = api(&plane.client, Some(NAMESPACE), "v1", "ConfigMap");
    config_maps.delete(RULES, &DeleteParams::default()).await?;
    let words = "the rules for metrics cannot be read; the last ones stay in use";
    let said = async || Ok(program.log().contains(words));
    space.until("whether it says that there is no ConfigMap", &true, said).await?;
    all_follow(space, load, 4).await?;
    write_rules(plane, GOOD).await?;
    all_follow(space, load, 2).await
}

/// Only what Prometheus measures waits for it.
async fn prometheus_restarts(
    space: &Workspace,
    load: &Load,
    prometheus: &mut Prometheus,
) -> Result<()> {
    prometheus.kill();
    for (name, reason) in [
        ("rps", "False FailedGetPodsMetric"),
        ("hits", "False FailedGetObjectMetric"),
        ("queue", "False FailedGetExternalMetric"),
    ] {
        space.until_verdict(name, "ScalingActive", reason).await?;
    }
    for replicas in [4, 3, 5] {
        load.set("cpu", work(replicas, 0.05));
        space.until_replicas("cpu", replicas.into()).await?;
        space.until_pods("cpu", replicas).await?;
    }
    for (name, ..) in workloads().into_iter().filter(|(name, ..)| *name != "cpu") {
        ensure!(space.replicas(name).await? == 2, "{name} was scaled without a value");
    }
    prometheus.start_again().await?;
    all_follow(space, load, 3).await
}

async fn write_rules(plane: &ControlPlane, text: &str) -> Result<()> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": RULES},
        "data": {"config.yaml": text}});
    let config_maps = api(&plane.client, Some(NAMESPACE), "v1", "ConfigMap");
    let params = PatchParams::apply("test").force();
    config_maps.patch(RULES, &params, &Patch::Apply(&object)).await?;
    Ok(())
}
