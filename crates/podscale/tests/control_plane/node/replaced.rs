//! `docs/replace.md` as it is written, on a real node: metrics-server is there, Podscale takes its place, then that of
//! prometheus-adapter, and each time everything goes back.

use super::super::aggregation::registrations;
use super::super::fixture::Workspace;
use super::super::harness::Harness;
use super::super::pipeline::{self, Prometheus};
use super::super::program::sum;
use super::agreement::until_agreed;
use super::cluster::{ADDRESS, Cluster, apply};
use super::document::Document;
use super::load::Load;
use super::machine::{run, script};
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::routing::get;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;

const PODSCALE: &str = env!("CARGO_BIN_EXE_podscale");
/// Where it is installed, as the page does.
const PLACE: &str = "podscale";
const NAME: &str = "web";
/// What the only pod burns; see [`super::load::TARGET`].
const BURNED: u64 = 58;
const RESOURCE: &str = "v1beta1.metrics.k8s.io";
const CUSTOM: &str = "v1beta1.custom.metrics.k8s.io";
const EXTERNAL: &str = "v1beta1.external.metrics.k8s.io";
/// What a prometheus-adapter is configured with.
const RULES: &str = r#"
rules:
- seriesQuery: shop_rps{namespace!="",pod!=""}
  resources: {template: <<.Resource>>}
  name: {as: rps}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
"#;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.on_node("node::replaced_as_documented", replaced)]
}

async fn replaced(cluster: Arc<Cluster>, space: Workspace) -> Result<()> {
    let archive = cluster.plane.folder().join("images/podscale.tar");
    run(Command::new(script("image/podscale")).arg(PODSCALE).arg(&archive))?;
    cluster.runtime.import(&archive)?;
    let _load = Load::start(&cluster, &space, NAME, BURNED).await?;
    space.until_pods(NAME, 1).await?;
    let with_prometheus = pipeline::possible();
    let ended = async {
        an_adapter_is_there(&cluster).await?;
        let mut document = Document::open(&cluster, "replace.md")?;
        document.follow("Before")?;
        instead_of_metrics_server(&cluster, &space, &document).await.context("metrics-server")?;
        match with_prometheus {
            Ok(()) => instead_of_the_adapter(&cluster, &space, &mut document).await?,
            Err(reason) => {
                ensure!(std::env::var("CI").as_deref() != Ok("true"), "{reason}");
                eprintln!("\n!! LEFT OUT: prometheus-adapter is not replaced: {reason}\n");
            }
        }
        document.follow("Both")?;
        let file = document.folder().join("podscale.yaml");
        let file = file.to_str().context("a path that is no text")?;
        cluster.ask(&["apply", "--dry-run=server", "--filename", file]).map(drop)
    };
    let ended = ended.await;
    // An APIService that nobody answers for keeps namespaces from going.
    for name in [CUSTOM, "v1beta2.custom.metrics.k8s.io", EXTERNAL] {
        let _ = registrations(&space.client()).delete(name, &DeleteParams::default()).await;
    }
    let logs = logs(&cluster);
    let _ = cluster.ask(&["delete", "namespace", PLACE, "monitoring", "--wait=false"]);
    let _ = cluster.ask(&["delete", "clusterrole,clusterrolebinding", PLACE]);
    ended.with_context(|| format!("the ends of its logs:\n{logs}"))
}

fn logs(cluster: &Cluster) -> String {
    let label = "app.kubernetes.io/name=podscale";
    let arguments = ["logs", "--namespace", PLACE, "--selector", label, "--tail=15", "--prefix"];
    cluster.ask(&arguments).unwrap_or_else(|error| error.to_string())
}

/// The objects of a prometheus-adapter that serves custom metrics; nobody asks it anything here.
async fn an_adapter_is_there(cluster: &Cluster) -> Result<()> {
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "adapter-config", "namespace": "monitoring"},
            "data": {"config.yaml": RULES}}),
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": CUSTOM},
            "spec": {"group": "custom.metrics.k8s.io", "version": "v1beta1",
                "insecureSkipTLSVerify": true, "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": {"name": "prometheus-adapter", "namespace": "monitoring"}}}),
    ];
    for object in objects {
        apply(&cluster.plane, &object).await?;
    }
    Ok(())
}

/// The Service that an APIService names, if there is such an APIService.
async fn server(space: &Workspace, name: &str) -> Result<Option<String>> {
    let object = registrations(&space.client()).get_opt(name).await?;
    Ok(object.and_then(|object| object.data["spec"]["service"]["name"].as_str().map(str::to_owned)))
}

async fn is_served_by(space: &Workspace, name: &str, service: Option<&str>) -> Result<()> {
    let found = server(space, name).await?;
    ensure!(found.as_deref() == service, "{name} is served by {found:?} and not by {service:?}");
    Ok(())
}

async fn instead_of_metrics_server(
    cluster: &Cluster,
    space: &Workspace,
    document: &Document<'_>,
) -> Result<()> {
    let before = registrations(&space.client()).get(RESOURCE).await?.data["spec"].clone();
    document.follow("metrics-server")?;
    is_served_by(space, RESOURCE, Some("podscale-metrics")).await?;
    let spec = registrations(&space.client()).get(RESOURCE).await?.data["spec"].clone();
    let trusts = spec["caBundle"].is_string() && spec["insecureSkipTLSVerify"] != true;
    ensure!(trusts && spec["caBundle"] != before["caBundle"], "whom is trusted: {spec}");
    let pods = space.api("v1", "Pod").list(&ListParams::default().labels("app=web")).await?;
    let pod = pods.items.first().context("there is no pod")?.name_any();
    until_agreed(cluster, space, &pod).await?;
    every_replica_serves(cluster, space).await?;
    until_agreed(cluster, space, &pod).await.context("after the leader was killed")?;
    document.follow("Back")?;
    is_served_by(space, RESOURCE, Some("metrics-server")).await?;
    is_served_by(space, EXTERNAL, None).await?;
    let back = registrations(&space.client()).get(RESOURCE).await?.data["spec"].clone();
    ensure!(back == before, "{back} is not what it was: {before}");
    until_agreed_by_metrics_server(cluster, space).await
}

/// metrics-server scrapes at its own moments, so only its shape is compared.
async fn until_agreed_by_metrics_server(cluster: &Cluster, space: &Workspace) -> Result<()> {
    let shown = async || Ok(cluster.top_pods(&space.namespace)?.len());
    space.until("how many pods kubectl top shows", &1, shown).await
}

/// Both replicas scrape, one of them leads, and when that is killed the other one answers.
async fn every_replica_serves(cluster: &Cluster, space: &Workspace) -> Result<()> {
    let pods = Api::<Pod>::namespaced(space.client(), PLACE);
    let mut leaders = Vec::new();
    let replicas = pods.list(&ListParams::default()).await?.items;
    let running = replicas.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let mut serving = 0;
    for pod in running {
        let name = pod.name_any();
        let path = format!("/api/v1/namespaces/{PLACE}/pods/{name}:9090/proxy/metrics");
        let metrics = cluster.ask(&["get", "--raw", &path])?;
        ensure!(sum(&metrics, "podscale_kubelet_nodes", "") == 1.0, "{name} scrapes nothing");
        serving += 1;
        if sum(&metrics, "podscale_leader", "") == 1.0 {
            leaders.push(name);
        }
    }
    ensure!(serving == 2 && leaders.len() == 1, "{serving} replicas serve, {leaders:?} lead");
    let leader = &leaders[0];
    let now = ["delete", "pod", leader, "--namespace", PLACE, "--grace-period=0", "--force"];
    cluster.ask(&now).map(drop)
}

async fn instead_of_the_adapter(
    cluster: &Cluster,
    space: &Workspace,
    document: &mut Document<'_>,
) -> Result<()> {
    let pods = space.api("v1", "Pod").list(&ListParams::default().labels("app=web")).await?;
    let pod = pods.items.first().context("there is no pod")?.name_any();
    let series = format!("shop_rps{{namespace=\"{}\",pod=\"{pod}\"}} 7\n", space.namespace);
    let router = Router::new().route("/metrics", get(async move || series.clone()));
    let prometheus = Prometheus::start_at(ADDRESS, cluster.plane.folder(), router).await?;
    let address = ("http://prometheus.monitoring:9090".to_owned(), prometheus.url.clone());
    document.substitutions.push(address);
    document.follow("prometheus-adapter").context("prometheus-adapter")?;
    is_served_by(space, CUSTOM, Some("podscale-metrics")).await?;
    is_served_by(space, RESOURCE, Some("metrics-server")).await?;
    let path = format!(
        "/apis/custom.metrics.k8s.io/v1beta2/namespaces/{}/pods/{pod}/rps",
        space.namespace
    );
    let value = async || {
        let list: Value = serde_json::from_str(&cluster.ask(&["get", "--raw", &path])?)?;
        Ok(list["items"][0]["value"].clone())
    };
    space.until("the value of a custom metric", &json!("7"), value).await?;
    document.follow("Back")?;
    is_served_by(space, CUSTOM, Some("prometheus-adapter")).await?;
    is_served_by(space, EXTERNAL, None).await?;
    is_served_by(space, RESOURCE, Some("metrics-server")).await
}
