//! Objects that want something of their own: settings, an older version of their kind, or another
//! controller.

use super::fixture::{Fixture, autoscaler, load};
use super::harness::Harness;
use super::program::{Program, QUICK};
use anyhow::{Context, Result, ensure};
use kube::api::{Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![
        harness.shared("objects::annotations", annotations),
        harness.shared("objects::versions", versions),
        harness.apart("objects::conflict", conflict),
    ]
}

const HPA: (&str, &str) = ("autoscaling/v2", "HorizontalPodAutoscaler");

async fn annotations(fixture: Fixture) -> Result<()> {
    let all = [
        ("plain", json!({})),
        ("held", json!({"podscale.dev/downscale-stabilization": "1h"})),
        ("tolerant", json!({"podscale.dev/tolerance": "0.6"})),
        ("wrong", json!({"podscale.dev/tolerance": "much"})),
        ("excluded", json!({"podscale.dev/managed": "false"})),
    ];
    for (name, annotations) in &all {
        fixture.deployment(name, 4).await?;
        fixture.set_load(name, 4.0);
        let mut object = autoscaler(name, (1, 9), load(name), Value::Null);
        object["metadata"]["annotations"] = annotations.clone();
        fixture.create(object).await?;
    }
    for (name, _) in &all[..4] {
        fixture.until_seen(name, 4.0).await?;
    }
    for (name, _) in &all {
        fixture.set_load(name, 2.0);
    }
    fixture.until_replicas("plain", 2).await?;
    fixture.until_replicas("wrong", 2).await?;
    fixture.until_verdict("held", "AbleToScale", "True ScaleDownStabilized").await?;
    fixture.until_seen("tolerant", 2.0).await?;
    for name in ["held", "tolerant", "excluded"] {
        let replicas = fixture.replicas(name).await?;
        ensure!(replicas == 4, "{name} has {replicas} replicas");
    }
    let event = "Warning InvalidAnnotation annotation podscale.dev/tolerance";
    fixture.until_event("wrong", event).await?;
    let status = fixture.status("excluded").await?;
    ensure!(status["conditions"].is_null(), "an excluded object was managed: {status}");
    // An annotation that is taken away counts no more.
    let nothing = json!({"metadata": {"annotations": {"podscale.dev/tolerance": null}}});
    fixture.patch(HPA.0, HPA.1, "tolerant", nothing).await?;
    fixture.until_replicas("tolerant", 2).await
}

/// Both versions that the API server has are views of one stored object, and scale alike.
async fn versions(fixture: Fixture) -> Result<()> {
    use super::metrics::Usage;
    let target = |name: &str| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let old = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "old"}, "spec": {"minReplicas": 1, "maxReplicas": 9,
            "scaleTargetRef": target("old"), "targetCPUUtilizationPercentage": 50}});
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    let new = autoscaler("new", (1, 9), cpu, Value::Null);
    for (name, object) in [("old", old), ("new", new)] {
        fixture.deployment(name, 2).await?;
        fixture.metrics().set_usage(&fixture.namespace, name, "cpu", Usage::Total(200));
        fixture.create(object).await?;
    }
    let mut views = Vec::new();
    for name in ["old", "new"] {
        fixture.until_replicas(name, 4).await?;
        fixture
            .until(&format!("what {name} shows at last"), &json!(50), async || {
                let status = fixture.status(name).await?;
                Ok(status["currentMetrics"][0]["resource"]["current"]["averageUtilization"].clone())
            })
            .await?;
        let object = fixture.api("autoscaling/v1", "HorizontalPodAutoscaler").get(name).await?;
        ensure!(object.data["status"]["currentCPUUtilizationPercentage"] == 50, "{object:?}");
        let mut spec = fixture.api(HPA.0, HPA.1).get(name).await?.data["spec"].clone();
        spec["scaleTargetRef"]["name"] = Value::Null;
        let status = fixture.status(name).await?;
        let conditions = status["conditions"].as_array().context("no conditions")?;
        let reasons: Vec<Value> = conditions.iter().map(|c| c["reason"].clone()).collect();
        views.push(json!({"spec": spec, "metrics": status["currentMetrics"], "reasons": reasons}));
    }
    ensure!(views[0] == views[1], "{} and {}", views[0], views[1]);
    Ok(())
}

/// Somebody else writes the status whenever the controller has.
async fn conflict(fixture: Fixture) -> Result<()> {
    let only = format!("--namespaces={}", fixture.namespace);
    let flags: Vec<&str> = QUICK.into_iter().chain(["--leader-elect=false", &only]).collect();
    let plane = &fixture.environment.plane;
    let mut program =
        Program::start(&fixture.namespace, plane.folder(), &plane.kubeconfig, &flags)?;
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 3.0);
    fixture.autoscaler("web", (1, 9), load("web"), Value::Null).await?;
    fixture.until_replicas("web", 3).await?;
    let hpas = fixture.api(HPA.0, HPA.1);
    let mut number = 0_u32;
    fixture
        .until("whether the conflict is reported", &true, async || {
            if fixture.verdict("web", "podscale.dev/Conflict").await? == "True AnotherController" {
                return Ok(true);
            }
            // Metrics that change make the controller write, too.
            number += 1;
            fixture.set_load("web", 3.0 + f64::from(number % 2));
            let status = json!({"status": {"desiredReplicas": 1, "currentReplicas": number}});
            let params =
                PatchParams { field_manager: Some("rival".to_owned()), ..Default::default() };
            hpas.patch_status("web", &params, &Patch::Merge(&status)).await?;
            Ok(false)
        })
        .await?;
    fixture.until_event("web", "Warning AnotherController \"rival\" manages").await?;
    let version = async || {
        let version = hpas.get("web").await?.metadata.resource_version;
        Ok::<_, anyhow::Error>((version, fixture.replicas("web").await?))
    };
    let before = version().await?;
    let decided = program.decisions().await?;
    fixture.set_load("web", 8.0);
    fixture
        .until("whether it goes on to decide", &true, async || {
            Ok(program.decisions().await? >= decided + 3.0)
        })
        .await?;
    let after = version().await?;
    ensure!(before == after, "it goes on to write: {before:?}, {after:?}");
    program.stop().await
}
