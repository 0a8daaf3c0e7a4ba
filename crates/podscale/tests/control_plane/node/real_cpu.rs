//! `podscale run` scales a Deployment on CPU that its pods really burn, and keeps its size right while
//! containers, pods and the kubelet come and go.

use super::super::fixture::Workspace;
use super::super::harness::Harness;
use super::super::process::TIMEOUT;
use super::super::program::Program;
use super::cluster::Cluster;
use super::load::Load;
use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use libtest_mimic::Trial;
use std::sync::Arc;
use std::time::Duration;

/// Where cpu comes from, and the flags that say so.
const SOURCES: [(&str, &[&str]); 2] =
    [("api", &[]), ("kubelet", &["--resource-metrics=kubelet", "--metric-resolution=5s"])];

/// Passes of seconds, but the usual patience with new pods: until their samples are whole, those of the
/// old ones still show the load that they have handed over. A size is kept for as long as one sample.
const FLAGS: [&str; 3] = [
    "--leader-elect=false",
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=10s",
];

const NAME: &str = "web";
/// What four pods have to do, and one. With four it is on target: as long as nothing new is known of some
/// of them, those that remain are no reason to change anything.
const FOUR: u64 = 232;
const ONE: u64 = 30;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let trial = |(source, flags): (&str, &'static [&'static str])| {
        let name = format!("node::real_cpu_by_{source}");
        harness.on_node(&name, move |cluster, space| real_cpu(cluster, space, flags))
    };
    SOURCES.into_iter().map(trial).collect()
}

async fn real_cpu(cluster: Arc<Cluster>, space: Workspace, flags: &[&str]) -> Result<()> {
    let load = Load::start(&cluster, &space, NAME, ONE).await?;
    space.until_pods(NAME, 1).await?;
    let flags: Vec<&str> = FLAGS.iter().chain(flags).copied().collect();
    let plane = &cluster.plane;
    let mut program = Program::start(&space.namespace, plane.folder(), &plane.kubeconfig, &flags)?;
    let ended = up_and_down(&cluster, &space, &load, &program).await;
    ended.with_context(|| format!("the end of its log:\n{}", program.log_tail()))?;
    program.stop().await
}

async fn up_and_down(
    cluster: &Cluster,
    space: &Workspace,
    load: &Load,
    program: &Program,
) -> Result<()> {
    until_usage(space, ONE).await.context("at rest")?;
    ensure!(space.replicas(NAME).await? == 1, "it is scaled without a reason");
    load.set(FOUR);
    space.until_replicas(NAME, 4).await.context("after the load rose")?;
    space.until_pods(NAME, 4).await?;
    until_usage(space, FOUR / 4).await.context("with four pods")?;
    until_top_shows(cluster, space, 4, FOUR / 4).await?;
    let generation = generation(space).await?;

    containers_end(space, load).await.context("containers that end")?;
    cluster.stop_kubelet().await?;
    cluster.start_kubelet().await?;
    a_pod_is_deleted(space, load).await.context("a pod that is deleted")?;
    until_usage(space, FOUR / 4).await.context("after all this")?;
    until_decided(program, 15.0).await?;
    let unchanged = (4, generation);
    let now = (space.replicas(NAME).await?, self::generation(space).await?);
    ensure!(now == unchanged, "size and generation are {now:?} instead of {unchanged:?}");

    load.set(ONE);
    space.until_replicas(NAME, 1).await.context("after the load fell")?;
    space.until_pods(NAME, 1).await?;
    until_usage(space, ONE).await.context("with one pod again")?;
    until_decided(program, 5.0).await?;
    ensure!(space.replicas(NAME).await? == 1, "it does not stay at one pod");
    Ok(())
}

/// Every change of a size counts here, even one that was taken back.
async fn generation(space: &Workspace) -> Result<Option<i64>> {
    Ok(space.api("apps/v1", "Deployment").get(NAME).await?.metadata.generation)
}

/// One container fails, another one is killed for its memory. Both start again.
async fn containers_end(space: &Workspace, load: &Load) -> Result<()> {
    let pods = load.pods().await?;
    let ends = [("exit", Some("Error"), Some(1)), ("eat", Some("OOMKilled"), Some(137))];
    for (pod, (order, ..)) in pods.iter().zip(ends) {
        load.order(order, &pod.name_any())?;
    }
    for (pod, (order, reason, code)) in pods.iter().zip(ends) {
        let expected = (true, reason.map(str::to_owned), code);
        let what = format!("how the container told to {order} ended");
        space.until(&what, &expected, async || load.last_end(&pod.name_any()).await).await?;
    }
    Ok(())
}

async fn a_pod_is_deleted(space: &Workspace, load: &Load) -> Result<()> {
    let pods = load.pods().await?;
    let pod = pods.last().context("there are no pods")?.name_any();
    space.delete("v1", "Pod", &pod).await?;
    space.until_pods(NAME, 4).await
}

/// Waits until the autoscaler shows what each pod burns, within a tenth.
async fn until_usage(space: &Workspace, expected: u64) -> Result<()> {
    let what = format!("whether each pod is seen to burn about {expected}m");
    space
        .until(&what, &Ok(()), async || {
            let status = space.status(NAME).await?;
            let shown = &status["currentMetrics"][0]["resource"]["current"]["averageValue"];
            let shown = shown.as_str().unwrap_or_default().to_owned();
            let number = shown.strip_suffix('m').and_then(|number| number.parse::<u64>().ok());
            let near = number.is_some_and(|number| number.abs_diff(expected) * 10 <= expected);
            Ok(if near { Ok(()) } else { Err(shown) })
        })
        .await
}

/// Waits until `kubectl top` shows so many pods, and each within a tenth.
async fn until_top_shows(
    cluster: &Cluster,
    space: &Workspace,
    pods: usize,
    expected: u64,
) -> Result<()> {
    space
        .until("whether kubectl top shows what the pods burn", &Ok(()), async || {
            let shown = cluster.top_pods(&space.namespace)?;
            let near = |(_, cpu): &(String, u64)| cpu.abs_diff(expected) * 10 <= expected;
            let right = shown.len() == pods && shown.iter().all(near);
            Ok(if right { Ok(()) } else { Err(shown) })
        })
        .await
}

async fn until_decided(program: &Program, times: f64) -> Result<()> {
    let enough = program.decisions().await? + times;
    let decided = async {
        while program.decisions().await? < enough {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    };
    tokio::time::timeout(TIMEOUT, decided).await.context("it decides no more")?
}
