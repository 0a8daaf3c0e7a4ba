//! Our definitions of KEDA's kinds on a real control plane: every example is accepted, what KEDA's own
//! definitions refuse is refused, and kubectl shows KEDA's columns.

use super::fixture::Fixture;
use super::harness::Harness;
use super::serve::kubectl;
use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use podscale_api::crds;
use serde_json::{Value, json};

/// Those that `podscale-api` reads and checks.
const EXAMPLES: &str = include_str!("../../../podscale-api/src/keda/tests/examples.yaml");

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.alone("keda::definitions_take_every_example", definitions_take_every_example)]
}

/// Applies a file with kubectl; whether that went well, and what it said.
fn apply(fixture: &Fixture, text: &str) -> Result<(bool, String)> {
    let plane = &fixture.environment.plane;
    let file = plane.folder().join("keda.yaml");
    std::fs::write(&file, text)?;
    kubectl(plane, &["apply", "--filename", file.to_str().context("UTF-8")?])
}

async fn definitions_take_every_example(fixture: Fixture) -> Result<()> {
    let plane = &fixture.environment.plane;
    let definitions = crds::keda::definitions();
    let mut names: Vec<String> = Vec::new();
    for definition in &definitions {
        let (ok, said) = apply(&fixture, &definition.to_string())?;
        ensure!(ok, "{said}");
        let name = definition["metadata"]["name"].as_str().context("a name")?;
        names.push(format!("customresourcedefinition/{name}"));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let established = [&["wait", "--for=condition=Established", "--timeout=60s"], &*names].concat();
    let (ok, said) = kubectl(plane, &established)?;
    ensure!(ok, "{said}");

    let examples =
        EXAMPLES.replace("namespace: shop", &format!("namespace: {}", fixture.namespace));
    let (ok, said) = apply(&fixture, &examples)?;
    ensure!(ok && !said.contains("unknown field"), "{said}");
    columns(&fixture)?;
    refused(&fixture)?;

    let (ok, said) = kubectl(plane, &[&["delete", "--timeout=60s"], &*names].concat())?;
    ensure!(ok, "{said}");
    Ok(())
}

fn columns(fixture: &Fixture) -> Result<()> {
    for (kind, header) in [
        (
            "so",
            "NAME SCALETARGETKIND SCALETARGETNAME MIN MAX READY ACTIVE FALLBACK PAUSED TRIGGERS \
             AUTHENTICATIONS AGE",
        ),
        ("sj", "NAME MIN MAX READY ACTIVE PAUSED TRIGGERS AUTHENTICATIONS AGE"),
        ("ta", "NAME PODIDENTITY SECRET ENV VAULTADDRESS"),
        ("cta", "NAME PODIDENTITY SECRET ENV VAULTADDRESS"),
    ] {
        let arguments = ["get", kind, "--namespace", &fixture.namespace];
        let (ok, said) = kubectl(&fixture.environment.plane, &arguments)?;
        let first = said.lines().next().unwrap_or_default();
        let words: Vec<&str> = first.split_whitespace().collect();
        ensure!(ok && words.join(" ") == header, "{kind}: {said}");
    }
    Ok(())
}

fn refused(fixture: &Fixture) -> Result<()> {
    let queue = json!([{"type": "redis", "metadata": {"listName": "jobs"}}]);
    let object = |change: Value| {
        let mut spec = json!({"scaleTargetRef": {"name": "web"}, "triggers": queue});
        for (field, value) in change.as_object().into_iter().flatten() {
            spec[field] = value.clone();
        }
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
            "metadata": {"name": "refused", "namespace": fixture.namespace}, "spec": spec})
    };
    for (change, reason) in [
        (
            json!({"minReplicaCount": 5, "maxReplicaCount": 4}),
            "minReplicaCount must be less than or equal to maxReplicaCount",
        ),
        (json!({"minReplicaCount": 101}), "minReplicaCount must be less than or equal to"),
        (
            json!({"pollingInterval": 0}),
            "spec.pollingInterval in body should be greater than or equal to 1",
        ),
        (json!({"triggers": []}), "spec.triggers in body should have at least 1 items"),
        (
            json!({"triggers": [{"type": "redis", "metadata": {"listLength": 5}}]}),
            "spec.triggers[0].metadata.listLength",
        ),
        (
            json!({"fallback": {"failureThreshold": 1, "replicas": 1, "behavior": "none"}}),
            "spec.fallback.behavior: Unsupported value: \"none\"",
        ),
    ] {
        let (ok, said) = apply(fixture, &object(change.clone()).to_string())?;
        ensure!(!ok && said.contains(reason), "{change}: {said}");
    }
    Ok(())
}
