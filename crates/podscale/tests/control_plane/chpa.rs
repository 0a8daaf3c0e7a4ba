//! CHPAs: the end-to-end scenarios of the original controller, on its definition and on ours, and what
//! it did to Deployments.

use super::fixture::{Fixture, api, autoscaler, deployment, load};
use super::harness::Harness;
use super::metrics::Usage;
use anyhow::{Context, Result, ensure};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use libtest_mimic::Trial;
use podscale_api::chpa::{API_VERSION, KIND, RESOURCE};
use podscale_api::crds;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

/// One scenario: all of them share the definition.
pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.shared("chpa::scenarios", scenarios)]
}

const LABEL: &str = "suite=chpa-test";

async fn scenarios(fixture: Fixture) -> Result<()> {
    define(&fixture, &original_definition()).await?;
    on_the_original_definition(&fixture).await?;
    // As in a migration: the objects stay, and the controller runs.
    define(&fixture, &crds::chpa::definition()).await?;
    on_our_definition(&fixture).await?;
    tokio::try_join!(
        min_replicas_auto_increase(&fixture),
        raise_to_max(&fixture),
        raise_to_max_fast(&fixture),
        incorrect_spec(&fixture),
        fix_incorrect_spec(&fixture),
        same_target(&fixture),
        owner(&fixture),
    )?;
    columns(&fixture)?;
    clean_up(&fixture).await
}

/// The original definition as a cluster of today takes it: without a status subresource, columns and
/// defaults.
pub fn original_definition() -> Value {
    let mut definition = crds::chpa::definition();
    let version = &mut definition["spec"]["versions"][0];
    if let Some(version) = version.as_object_mut() {
        version.remove("subresources");
        version.remove("additionalPrinterColumns");
    }
    let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    for field in spec.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        if let Some(field) = field.as_object_mut() {
            field.remove("default");
        }
    }
    definition
}

/// Puts a definition in place, and waits until its subresources are served, or no more.
pub async fn define(fixture: &Fixture, definition: &Value) -> Result<()> {
    let definitions =
        api(&fixture.client(), None, "apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let params = PatchParams::apply("test").force();
    definitions.patch(RESOURCE, &params, &Patch::Apply(definition)).await?;
    let has_status = definition["spec"]["versions"][0]["subresources"]["status"].is_object();
    let served = format!("{}/status", podscale_api::chpa::PLURAL);
    fixture
        .until("whether chpas/status is served", &Some(has_status), async || {
            let list = fixture.client().list_api_group_resources(API_VERSION).await?;
            let names: Vec<&str> = list.resources.iter().map(|r| r.name.as_str()).collect();
            Ok(names.contains(&podscale_api::chpa::PLURAL).then(|| names.contains(&&*served)))
        })
        .await
}

fn chpas(fixture: &Fixture) -> Api<DynamicObject> {
    fixture.api(API_VERSION, KIND)
}

/// A Deployment of one replica and the label of this suite.
async fn target(fixture: &Fixture, name: &str) -> Result<()> {
    let mut object = deployment(name, 1, &["app"]);
    object["metadata"]["labels"] = json!({"suite": "chpa-test"});
    fixture.create(object).await?;
    fixture.until_pods(name, 1).await
}

fn cpu() -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 80}}])
}

/// A metric whose type is not that of its body.
fn incorrect() -> Value {
    json!([{"type": "Pods", "resource": {"name": "cpu", "targetAverageUtilization": 80}}])
}

/// A CHPA as those tests have them: windows of ten seconds, 80 % of the requested cpu.
async fn create(fixture: &Fixture, name: &str, target: &str, spec: Value) -> Result<()> {
    let mut object = json!({"apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": name, "labels": {"suite": "chpa-test"}},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": target}, "maxReplicas": 8,
            "downscaleForbiddenWindowSeconds": 10, "upscaleForbiddenWindowSeconds": 10,
            "scaleUpLimitFactor": 2, "scaleUpLimitMinimum": 4, "metrics": cpu()}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    fixture.create(object).await?;
    Ok(())
}

/// Each pod uses ten times the cpu that it requests, or none.
fn set_busy(fixture: &Fixture, target: &str, busy: bool) {
    let usage = Usage::Each(if busy { 1000 } else { 0 });
    fixture.metrics().set_usage(&fixture.namespace, target, "cpu", usage);
}

async fn until_condition(fixture: &Fixture, name: &str, kind: &str, expected: &str) -> Result<()> {
    let what = format!("{kind} of CHPA {name}");
    fixture
        .until(&what, &expected.to_owned(), async || {
            let object = chpas(fixture).get(name).await?;
            let all = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = all.into_iter().find(|c| c["type"] == kind).unwrap_or_default();
            let field = |name: &str| found[name].as_str().unwrap_or("none").to_owned();
            Ok(format!("{} {}", field("status"), field("reason")))
        })
        .await
}

/// The status is stored with the object, and that leads to nothing else.
async fn on_the_original_definition(fixture: &Fixture) -> Result<()> {
    target(fixture, "old").await?;
    set_busy(fixture, "old", true);
    create(fixture, "old", "old", json!({"maxReplicas": 4})).await?;
    fixture.until_replicas("old", 4).await?;
    fixture.metrics().set_usage(&fixture.namespace, "old", "cpu", Usage::Each(80));
    fixture.until_pods("old", 4).await?;
    until_condition(fixture, "old", "AbleToScale", "True ReadyForNewScale").await?;
    let shown = "whether the last values are shown";
    fixture
        .until(shown, &json!(80), async || {
            let status = &chpas(fixture).get("old").await?.data["status"];
            Ok(status["currentMetrics"][0]["resource"]["currentAverageUtilization"].clone())
        })
        .await?;
    let before = chpas(fixture).get("old").await?;
    ensure!(before.data["status"]["observedGeneration"].is_null(), "{:?}", before.data);
    ensure!(before.data["spec"]["tolerance"].is_null(), "the spec is as it was");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = chpas(fixture).get("old").await?;
    let versions = (&before.metadata.resource_version, &after.metadata.resource_version);
    ensure!(versions.0 == versions.1, "written without a reason: {versions:?}: {:?}", after.data);
    Ok(())
}

async fn on_our_definition(fixture: &Fixture) -> Result<()> {
    set_busy(fixture, "old", false);
    fixture.until_replicas("old", 1).await?;
    fixture
        .until("whether the generation is observed", &true, async || {
            let object = chpas(fixture).get("old").await?;
            Ok(object.data["status"]["observedGeneration"].as_i64() == object.metadata.generation)
        })
        .await
}

async fn min_replicas_auto_increase(fixture: &Fixture) -> Result<()> {
    target(fixture, "min").await?;
    set_busy(fixture, "min", false);
    create(fixture, "min", "min", json!({"minReplicas": 2, "maxReplicas": 3})).await?;
    fixture.until_replicas("min", 2).await
}

async fn raise_to_max(fixture: &Fixture) -> Result<()> {
    target(fixture, "max").await?;
    set_busy(fixture, "max", true);
    create(fixture, "max", "max", json!({})).await?;
    fixture.until_replicas("max", 4).await?;
    until_condition(fixture, "max", "AbleToScale", "False BackoffBoth").await?;
    fixture.until_replicas("max", 8).await?;
    set_busy(fixture, "max", false);
    fixture.until_replicas("max", 1).await?;
    let fields = "involvedObject.name=max,involvedObject.kind=CHPA";
    let expected = [
        "New size: 4; reason: cpu resource utilization (percentage of request) above target",
        "New size: 8; reason: cpu resource utilization (percentage of request) above target",
        "New size: 1; reason: All metrics below target",
    ];
    // Events are sent a moment after what they tell of.
    fixture
        .until("which events are missing", &Vec::new(), async || {
            let list = ListParams::default().fields(fields);
            let events = fixture.api("v1", "Event").list(&list).await?;
            let told = |text: &&&str| events.iter().any(|event| event.data["message"] == **text);
            Ok(expected.iter().filter(|text| !told(text)).copied().collect::<Vec<&str>>())
        })
        .await
}

async fn raise_to_max_fast(fixture: &Fixture) -> Result<()> {
    target(fixture, "fast").await?;
    set_busy(fixture, "fast", true);
    create(fixture, "fast", "fast", json!({"scaleUpLimitFactor": 10})).await?;
    fixture
        .until("the first size of fast", &true, async || Ok(fixture.replicas("fast").await? != 1))
        .await?;
    let first = fixture.replicas("fast").await?;
    ensure!(first == 8, "it goes to {first} first");
    set_busy(fixture, "fast", false);
    fixture.until_replicas("fast", 1).await
}

async fn incorrect_spec(fixture: &Fixture) -> Result<()> {
    target(fixture, "incorrect").await?;
    set_busy(fixture, "incorrect", true);
    create(fixture, "incorrect", "incorrect", json!({"metrics": incorrect()})).await?;
    until_condition(fixture, "incorrect", "AbleToScale", "False FailedSpecCheck").await?;
    create(fixture, "correct", "incorrect", json!({"maxReplicas": 4})).await?;
    fixture.until_replicas("incorrect", 4).await?;
    set_busy(fixture, "incorrect", false);
    fixture.until_replicas("incorrect", 1).await
}

async fn fix_incorrect_spec(fixture: &Fixture) -> Result<()> {
    target(fixture, "fixed").await?;
    set_busy(fixture, "fixed", true);
    create(fixture, "fixed", "fixed", json!({"metrics": incorrect(), "maxReplicas": 4})).await?;
    until_condition(fixture, "fixed", "AbleToScale", "False FailedSpecCheck").await?;
    fixture.patch(API_VERSION, KIND, "fixed", json!({"spec": {"metrics": cpu()}})).await?;
    fixture.until_replicas("fixed", 4).await?;
    set_busy(fixture, "fixed", false);
    fixture.until_replicas("fixed", 1).await
}

/// An HPA that has the same target is not fought, whoever manages it.
async fn same_target(fixture: &Fixture) -> Result<()> {
    target(fixture, "shared").await?;
    let mut hpa = autoscaler("shared", (1, 2), load("shared"), Value::Null);
    hpa["metadata"]["annotations"] = json!({"podscale.dev/managed": "false"});
    fixture.create(hpa).await?;
    create(fixture, "shared", "shared", json!({"minReplicas": 3})).await?;
    until_condition(fixture, "shared", "podscale.dev/Conflict", "True TargetTaken").await?;
    let replicas = fixture.replicas("shared").await?;
    ensure!(replicas == 1, "it was given {replicas} replicas");
    fixture.delete("autoscaling/v2", "HorizontalPodAutoscaler", "shared").await?;
    fixture.until_replicas("shared", 3).await
}

/// A Deployment that the original controller has made the property of its CHPA.
async fn owner(fixture: &Fixture) -> Result<()> {
    target(fixture, "owned").await?;
    set_busy(fixture, "owned", false);
    create(fixture, "owned", "owned", json!({})).await?;
    own(fixture, "owned").await?;
    until_released(fixture, "owned").await
}

/// Makes a Deployment the property of the CHPA of its name, as the original controller does.
pub async fn own(fixture: &Fixture, name: &str) -> Result<()> {
    let uid = chpas(fixture).get(name).await?.metadata.uid.context("no uid")?;
    let owner = json!([{"apiVersion": API_VERSION, "kind": KIND, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true}]);
    let owners = json!({"metadata": {"ownerReferences": owner}});
    fixture.patch("apps/v1", "Deployment", name, owners).await
}

/// Waits until a Deployment belongs to nobody.
pub async fn until_released(fixture: &Fixture, name: &str) -> Result<()> {
    fixture
        .until(&format!("whether {name} belongs to nobody"), &true, async || {
            let object = fixture.api("apps/v1", "Deployment").get(name).await?;
            Ok(object.metadata.owner_references.unwrap_or_default().is_empty())
        })
        .await
}

/// What `kubectl get` shows.
fn columns(fixture: &Fixture) -> Result<()> {
    let kubectl = super::binaries::folder()?.join("kubectl");
    let kubeconfig = format!("--kubeconfig={}", fixture.environment.plane.kubeconfig.display());
    let answer = Command::new(kubectl)
        .args([&*kubeconfig, "-n", &fixture.namespace, "get", "chpa", "min"])
        .output()?;
    let text = String::from_utf8_lossy(&answer.stdout);
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let names = ["NAME", "DEPLOYMENT", "MINPODS", "MAXPODS", "REPLICAS", "DESIRED", "ABLE", "AGE"];
    ensure!(lines.next().as_deref() == Some(&names), "{answer:?}");
    let row = lines.next().unwrap_or_default();
    ensure!(row.get(..6) == Some(&["min", "min", "2", "3", "2", "2"]), "{row:?}");
    Ok(())
}

/// By label; the Deployments outlive their CHPAs.
async fn clean_up(fixture: &Fixture) -> Result<()> {
    let (all, delete) = (ListParams::default().labels(LABEL), DeleteParams::background());
    let deployments = fixture.api("apps/v1", "Deployment");
    let count = deployments.list(&all).await?.items.len();
    for (objects, what) in [(chpas(fixture), "CHPAs"), (deployments.clone(), "Deployments")] {
        let left = deployments.list(&all).await?.items.len();
        ensure!(left == count, "{left} of {count} Deployments are left");
        objects.delete_collection(&delete, &all).await?;
        fixture
            .until(&format!("how many {what} are left"), &0, async || {
                Ok(objects.list(&all).await?.items.len())
            })
            .await?;
    }
    Ok(())
}
