//! `podscale adopt` where kube-controller-manager's own autoscaler runs, as it does on managed clusters: the
//! size jumps neither when a PodAutoscaler takes the place of its HPA nor on the way back.

use super::fixture::{Fixture, load};
use super::harness::Harness;
use super::plane::Autoscaler;
use super::pod_autoscaler::{KIND, VERSION, apply, shown};
use super::program::{Program, QUICK};
use super::serve::kubectl;
use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use podscale_api::pod_autoscaler::crd;
use serde_json::{Value, json};
use std::process::Command;

/// One may add a pod in ten minutes and has done so, the other one is held by what it asked for lately.
const APPS: [&str; 2] = ["paced", "held"];

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.alone("adopted::beside_kube_controller_manager", beside)]
}

/// Runs `podscale adopt` with these arguments; what it says.
pub fn adopt(fixture: &Fixture, arguments: &[&str]) -> Result<String> {
    let kubeconfig = format!("--kubeconfig={}", fixture.environment.plane.kubeconfig.display());
    let answer = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(["adopt", &kubeconfig])
        .args(arguments)
        .output()?;
    ensure!(answer.status.success(), "{answer:?}");
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
}

async fn beside(fixture: Fixture) -> Result<()> {
    let plane = &fixture.environment.plane;
    let (ok, text) = apply(&fixture, &crd::definition())?;
    ensure!(ok, "{text}");
    allow_upstream(&fixture).await?;
    plane.start_manager(Autoscaler::On, &QUICK).await?;
    let done = there_and_back(&fixture).await;
    plane.start_manager(Autoscaler::Off, &[]).await?;
    let name = "podautoscalers.podscale.dev";
    let (ok, text) = kubectl(plane, &["delete", "customresourcedefinition", name])?;
    ensure!(ok, "{text}");
    done
}

/// Another scenario takes upstream's rights away outside of its own namespaces.
async fn allow_upstream(fixture: &Fixture) -> Result<()> {
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "upstream"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
            "name": "system:controller:horizontal-pod-autoscaler"},
        "subjects": [{"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler",
            "namespace": "kube-system"}]});
    fixture.create(binding).await.map(drop)
}

/// How often the spec of each Deployment was written: a size that jumps and comes back counts as well.
async fn generations(fixture: &Fixture) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    for name in APPS {
        let object = fixture.api("apps/v1", "Deployment").get(name).await?;
        found.push(object.metadata.generation.context("no generation")?);
    }
    Ok(found)
}

/// Waits until a condition of an object says why.
async fn until_reason(
    fixture: &Fixture,
    (resource, name): (&str, &str),
    condition: &str,
    expected: &str,
) -> Result<()> {
    let path = format!("jsonpath={{.status.conditions[?(@.type==\"{condition}\")].reason}}");
    let what = format!("{condition} of {resource} {name}");
    fixture
        .until(&what, &expected.to_owned(), async || {
            shown(fixture, &["get", resource, name, "--output", &path])
        })
        .await
}

async fn set_up(fixture: &Fixture) -> Result<()> {
    let policy = json!({"type": "Pods", "value": 1, "periodSeconds": 600});
    let paced = json!({"scaleUp": {"policies": [policy]}});
    let held = json!({"scaleDown": {"stabilizationWindowSeconds": 600}});
    for (name, wanted, behavior) in [("paced", 5.0, paced), ("held", 3.0, held)] {
        fixture.deployment(name, 1).await?;
        fixture.set_load(name, wanted);
        fixture.autoscaler(name, (1, 8), load(name), behavior).await?;
    }
    fixture.until_replicas("paced", 2).await?;
    fixture.until_event("paced", "Normal SuccessfulRescale New size: 2").await?;
    fixture.until_replicas("held", 3).await?;
    fixture.set_load("held", 1.0);
    until_reason(fixture, ("hpa", "held"), "AbleToScale", "ScaleDownStabilized").await?;
    until_reason(fixture, ("hpa", "paced"), "ScalingLimited", "ScaleUpLimit").await
}

async fn there_and_back(fixture: &Fixture) -> Result<()> {
    let plane = &fixture.environment.plane;
    set_up(fixture).await?;
    let flags: Vec<&str> =
        QUICK.into_iter().chain(["--leader-elect=false", "--manage=annotated"]).collect();
    let mut program = Program::start("adopted", plane.folder(), &plane.kubeconfig, &flags)?;
    let before = generations(fixture).await?;
    let all = ["--all", "--namespace", &fixture.namespace];
    let said = adopt(fixture, &all)?;
    ensure!(
        said.contains("paced: a PodAutoscaler has taken the place of the HPA, with the"),
        "{said}"
    );
    until_reason(fixture, ("pa", "paced"), "ScalingLimited", "ScaleUpLimit").await?;
    until_reason(fixture, ("pa", "held"), "AbleToScale", "ScaleDownStabilized").await?;
    let after = generations(fixture).await?;
    ensure!(before == after, "adopted: written {before:?} times, then {after:?}");
    // Upstream does not know what was done meanwhile: it may add its one pod again, if it wants to.
    fixture.set_load("paced", 2.0);
    until_reason(fixture, ("pa", "paced"), "ScalingLimited", "DesiredWithinRange").await?;
    let edit: Value = json!({"spec": {"maxReplicas": 9}});
    fixture.patch(VERSION, KIND, "paced", edit).await?;
    let place = format!("{}/paced", fixture.namespace);
    ensure!(adopt(fixture, &[&place, "--undo"]).is_err(), "the edit is lost");
    adopt(fixture, &[&place, "--undo", "--force"])?;
    adopt(fixture, &[&["--undo"], &all[..]].concat())?;
    until_reason(fixture, ("hpa", "held"), "AbleToScale", "ScaleDownStabilized").await?;
    until_reason(fixture, ("hpa", "paced"), "ScalingActive", "ValidMetricFound").await?;
    let back = generations(fixture).await?;
    ensure!(before == back, "undone: written {before:?} times, then {back:?}");
    program.stop().await
}
