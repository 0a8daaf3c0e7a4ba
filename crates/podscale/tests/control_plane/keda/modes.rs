//! The two ways between one replica and the maximum, on the same queue: with the HPA controller of the real
//! kube-controller-manager, which reads triggers through the API server's aggregation, and without. The sizes are the
//! same, and what `podscale install` allows is enough.

use super::super::aggregation::until_available;
use super::super::fixture::{Workspace, deployment};
use super::super::harness::Harness;
use super::super::installed::{apply as install, manifests, refusals};
use super::super::kubelet::Kubelet;
use super::super::plane::{Autoscaler, ControlPlane};
use super::super::process::free_ports;
use super::super::program::{Program, QUICK};
use super::super::serve::{NAMESPACE, announce, kubectl};
use super::queue::Queue;
use super::{KIND, VERSION, apply, consumer, define, until};
use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use serde_json::{Value, json};

const WORD: &str = "a-word";
const EXTERNAL: (&str, &str) = ("external.metrics.k8s.io", "v1beta1");

pub fn trial(harness: &Harness) -> Trial {
    let folder = harness.folder().to_owned();
    harness.independent("keda::the_same_sizes_with_hpas", move |name| async move {
        let plane = ControlPlane::start(&folder.join(name)).await?;
        the_same_sizes_with_hpas(&plane).await
    })
}

async fn the_same_sizes_with_hpas(plane: &ControlPlane) -> Result<()> {
    plane.start_manager(Autoscaler::On, &QUICK).await?;
    let _kubelet = Kubelet::start(&plane.client);
    define(plane).await?;
    let space = Workspace::open(plane.client.clone(), "modes").await?;
    let queue = Queue::start(WORD).await?;
    space.create(deployment("consumer", 0, &["app"])).await?;
    let mut objects = consumer(&queue, WORD);
    let spec = &mut objects["items"][2]["spec"];
    spec["fallback"] = json!({"failureThreshold": 1, "replicas": 3});
    objects["items"][2]["metadata"]["annotations"] = json!({"podscale.dev/managed": "true"});
    let (ok, said) = apply(plane, &space.namespace, &objects.to_string())?;
    ensure!(ok, "{said}");

    let with_hpas =
        ["--triggers", "--manage=annotated", "--trigger-mode=hpa", "--serve-metrics=external"];
    let mut program = start_installed(plane, &with_hpas).await?;
    until_available(&plane.client, &[EXTERNAL]).await.with_context(|| program.log_tail())?;
    let outcome = with_hpa(&space, &queue).await;
    let log = || format!("{}\n{}", program.log_tail(), plane.manager_log_tail());
    outcome.with_context(log)?;
    ensure!(refusals(&program).await? == 0.0, "{}", program.log());
    program.stop().await?;

    let mut program = start_installed(plane, &["--triggers", "--manage=annotated"]).await?;
    until(&space, "podscale.dev/Conflict", "True TargetTaken").await?;
    let ours = ["delete", "hpa", "--all-namespaces", "-l", "app.kubernetes.io/managed-by=podscale"];
    let (ok, said) = kubectl(plane, &ours)?;
    ensure!(ok && said.contains("keda-hpa-consumer"), "{said}");
    let outcome = sizes(&space, &queue).await;
    outcome.with_context(|| program.log_tail())?;
    let status = space.api(VERSION, KIND).get("consumer").await?.data["status"].clone();
    ensure!(status["hpaName"].is_null(), "{status}");
    ensure!(refusals(&program).await? == 0.0, "{}", program.log());
    program.stop().await
}

/// Starts it with the rights and flags that are installed, on ports of its own.
pub async fn start_installed(plane: &ControlPlane, flags: &[&str]) -> Result<Program> {
    let installed = manifests(NAMESPACE, flags)?;
    let kinds = ["Account", "Role", "Binding"];
    for object in &installed {
        if object["kind"].as_str().is_some_and(|kind| kinds.iter().any(|end| kind.ends_with(end))) {
            install(&plane.client, object).await?;
        }
    }
    let [port] = free_ports()?;
    let serves = flags.iter().any(|flag| flag.contains("serve"));
    if serves {
        announce(plane, port, &[EXTERNAL]).await?;
    }
    let is_workload = |object: &&Value| object["kind"] == "Deployment";
    let workload = installed.iter().find(is_workload).context("no Deployment")?;
    let given = &workload["spec"]["template"]["spec"]["containers"][0]["args"];
    let given = given.as_array().context("no flags")?.iter().filter_map(Value::as_str);
    let others = ["run", "--admin-address", "--log-format"];
    let given = given.filter(|flag| !others.iter().any(|other| flag.starts_with(other)));
    let port = format!("--secure-port={port}");
    let own = ["--leader-elect=false", "--leader-elect-resource-namespace=kube-system"];
    let serving = ["--bind-address=127.0.0.1", &port];
    let serving = if serves { &serving[..] } else { &[] };
    let all: Vec<&str> = given.chain(QUICK).chain(own).chain(serving.iter().copied()).collect();
    let kubeconfig = plane.kubeconfig_of(NAMESPACE, "podscale").await?;
    Program::start("podscale", plane.folder(), &kubeconfig, &all)
}

async fn with_hpa(space: &Workspace, queue: &Queue) -> Result<()> {
    sizes(space, queue).await?;
    let hpa =
        space.api("autoscaling/v2", "HorizontalPodAutoscaler").get("keda-hpa-consumer").await?;
    let metric = &hpa.data["spec"]["metrics"][0]["external"]["metric"];
    ensure!(metric["name"] == "s0-metric-api-queue", "{metric}");
    let status = space.api(VERSION, KIND).get("consumer").await?.data["status"].clone();
    ensure!(status["hpaName"] == "keda-hpa-consumer", "{status}");
    until(space, "HPAActive", "True ScalingDisabled").await
}

/// From zero over several sizes, through a failure of the source that the fallback answers, back to zero.
async fn sizes(space: &Workspace, queue: &Queue) -> Result<()> {
    for (length, replicas) in [(0, 0), (37, 4), (12, 2), (95, 6), (25, 3)] {
        queue.set(length);
        settled(space, replicas).await.with_context(|| format!("a queue of {length}"))?;
    }
    queue.set(60);
    settled(space, 6).await?;
    queue.accept("another-word");
    settled(space, 3).await.context("the fallback")?;
    until(space, "Fallback", "True FallbackExists").await?;
    queue.accept(WORD);
    settled(space, 6).await.context("after the fallback")?;
    until(space, "Fallback", "False NoFallbackFound").await?;
    queue.set(0);
    settled(space, 0).await.context("an empty queue")
}

/// Waits until the consumer has a size, and so many pods.
async fn settled(space: &Workspace, replicas: i32) -> Result<()> {
    space.until_replicas("consumer", i64::from(replicas)).await?;
    space.until_pods("consumer", replicas).await
}
