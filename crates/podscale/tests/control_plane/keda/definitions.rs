//! Our definitions of KEDA's kinds: every example is accepted, what KEDA's own definitions refuse is refused, and
//! kubectl shows KEDA's columns.

use super::super::fixture::Fixture;
use super::super::serve::kubectl;
use super::{apply, define, undefine};
use anyhow::{Result, ensure};
use serde_json::{Value, json};

/// Those that `podscale-api` reads and checks.
const EXAMPLES: &str = include_str!("../../../../podscale-api/src/keda/tests/examples.yaml");

pub async fn take_every_example(fixture: Fixture) -> Result<()> {
    let names = define(&fixture.environment.plane).await?;
    let examples =
        EXAMPLES.replace("namespace: shop", &format!("namespace: {}", fixture.namespace));
    // Nobody is here who would take it off before the definitions go.
    let examples = examples.replace("  finalizers: [finalizer.keda.sh]\n", "");
    let (ok, said) = apply(&fixture.environment.plane, &fixture.namespace, &examples)?;
    ensure!(ok && !said.contains("unknown field"), "{said}");
    columns(&fixture)?;
    refused(&fixture)?;
    undefine(&fixture, &names)
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
        let text = object(change.clone()).to_string();
        let (ok, said) = apply(&fixture.environment.plane, &fixture.namespace, &text)?;
        ensure!(!ok && said.contains(reason), "{change}: {said}");
    }
    Ok(())
}
