//! Targets of all kinds, and objects that come and go.

use super::fixture::{Fixture, api, autoscaler, load};
use super::harness::Harness;
use anyhow::{Result, ensure};
use kube::api::{DeleteParams, Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![
        harness.shared("targets::built_in_kinds", built_in_kinds),
        harness.shared("targets::custom_resource", custom_resource),
        harness.shared("targets::deleted_and_back", target_deleted),
        harness.shared("targets::autoscaler_recreated", autoscaler_recreated),
        harness.shared("targets::namespace_deleted", namespace_deleted),
        harness.shared("targets::two_autoscalers_of_one", two_autoscalers_of_one),
    ]
}

const HPA: (&str, &str) = ("autoscaling/v2", "HorizontalPodAutoscaler");

fn autoscaler_of(name: &str, version: &str, kind: &str) -> Value {
    let mut object = autoscaler(name, (1, 8), load(name), Value::Null);
    object["spec"]["scaleTargetRef"] = json!({"apiVersion": version, "kind": kind, "name": name});
    object
}

async fn built_in_kinds(fixture: Fixture) -> Result<()> {
    let template = |app: &str| {
        json!({"metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "app", "image": "none"}]}})
    };
    let kinds =
        [("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")];
    for (version, kind) in kinds {
        let name = kind.to_lowercase();
        let labels = json!({"app": name});
        let selector =
            if version == "v1" { labels.clone() } else { json!({"matchLabels": labels}) };
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name},
            "spec": {"replicas": 1, "selector": selector, "template": template(&name)}});
        fixture.create(object).await?;
        fixture.set_load(&name, 3.0);
        fixture.create(autoscaler_of(&name, version, kind)).await?;
    }
    for (version, kind) in kinds {
        let name = kind.to_lowercase();
        for (load, replicas) in [(3.0, 3), (2.0, 2)] {
            fixture.set_load(&name, load);
            fixture
                .until(&format!("replicas of {name}"), &Some(replicas), async || {
                    let object = fixture.api(version, kind).get(&name).await?;
                    Ok(object.data["spec"]["replicas"].as_i64())
                })
                .await?;
        }
    }
    Ok(())
}

/// The version of a kind of our own that has a scale.
pub const VERSION: &str = "test.podscale.dev/v1";

/// A kind that did not exist when the controller started, nor when its autoscaler was created.
async fn custom_resource(fixture: Fixture) -> Result<()> {
    fixture.set_load("ships", 4.0);
    fixture.create(autoscaler_of("ships", VERSION, "Fleet")).await?;
    fixture
        .until_message(
            "ships",
            "AbleToScale",
            "False FailedGetScale",
            "no matches for kind \"Fleet\" in group \"test.podscale.dev\"",
        )
        .await?;
    create_fleet(&fixture, "ships").await?;
    let status = |replicas: i64| json!({"status": {"replicas": replicas, "selector": "app=ships"}});
    for (load, replicas) in [(4.0, 4), (1.0, 1)] {
        fixture.set_load("ships", load);
        fixture
            .until("replicas of the fleet", &Some(replicas), async || {
                let object = fixture.api(VERSION, "Fleet").get("ships").await?;
                Ok(object.data["spec"]["replicas"].as_i64())
            })
            .await?;
        fixture.patch_status(VERSION, "Fleet", "ships", status(replicas)).await?;
    }
    Ok(())
}

/// A Fleet of two, and its kind if it is not there yet.
pub async fn create_fleet(fixture: &Fixture, name: &str) -> Result<()> {
    let integer = json!({"type": "integer"});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": integer}},
        "status": {"type": "object", "properties": {"replicas": integer,
            "selector": {"type": "string"}}}}});
    let version = json!({"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}, "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector"}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "fleets.test.podscale.dev"},
        "spec": {"group": "test.podscale.dev", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "Fleet", "plural": "fleets", "singular": "fleet"}}});
    let definitions =
        api(&fixture.client(), None, "apiextensions.k8s.io/v1", "CustomResourceDefinition");
    let params = PatchParams::apply("test").force();
    definitions.patch("fleets.test.podscale.dev", &params, &Patch::Apply(&definition)).await?;
    let fleet = json!({"apiVersion": VERSION, "kind": "Fleet", "metadata": {"name": name},
        "spec": {"replicas": 2}});
    fixture
        .until("whether a fleet can be made", &true, async || {
            Ok(fixture.create(fleet.clone()).await.is_ok())
        })
        .await?;
    let status = json!({"status": {"replicas": 2, "selector": format!("app={name}")}});
    fixture.patch_status(VERSION, "Fleet", name, status).await
}

async fn target_deleted(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 2.0);
    fixture.autoscaler("web", (1, 8), load("web"), Value::Null).await?;
    fixture.until_seen("web", 2.0).await?;
    fixture.delete("apps/v1", "Deployment", "web").await?;
    fixture
        .until_message(
            "web",
            "AbleToScale",
            "False FailedGetScale",
            "the HPA controller was unable to get the target's current scale: \
         deployments.apps \"web\" not found",
        )
        .await?;
    fixture.until_event("web", "Warning FailedGetScale deployments.apps \"web\" not found").await?;
    fixture.set_load("web", 3.0);
    fixture.deployment("web", 1).await?;
    fixture.until_replicas("web", 3).await
}

/// Another object of the same name does not inherit what the policies of the first had spent.
async fn autoscaler_recreated(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 6.0);
    let policies = json!([{"type": "Pods", "value": 1, "periodSeconds": 1800}]);
    let behavior = json!({"scaleUp": {"policies": policies}});
    fixture.autoscaler("web", (1, 8), load("web"), behavior.clone()).await?;
    fixture.until_replicas("web", 3).await?;
    fixture.until_verdict("web", "ScalingLimited", "True ScaleUpLimit").await?;
    fixture.delete(HPA.0, HPA.1, "web").await?;
    fixture.autoscaler("web", (1, 8), load("web"), behavior).await?;
    fixture.until_replicas("web", 4).await?;
    fixture.until_verdict("web", "ScalingLimited", "True ScaleUpLimit").await
}

async fn namespace_deleted(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 3.0);
    fixture.autoscaler("web", (1, 8), load("web"), Value::Null).await?;
    fixture.until_replicas("web", 3).await?;
    let namespaces = api(&fixture.client(), None, "v1", "Namespace");
    namespaces.delete(&fixture.namespace, &DeleteParams::default()).await?;
    fixture
        .until("whether the namespace is gone", &true, async || {
            Ok(namespaces.get_opt(&fixture.namespace).await?.is_none())
        })
        .await?;
    // The same again works as at first.
    let object = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": fixture.namespace}});
    fixture.create(object).await?;
    fixture.deployment("web", 1).await?;
    fixture.autoscaler("web", (1, 8), load("web"), Value::Null).await?;
    fixture.until_replicas("web", 3).await
}

async fn two_autoscalers_of_one(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    fixture.set_load("a", 5.0);
    fixture.set_load("b", 5.0);
    for name in ["a", "b"] {
        let mut object = autoscaler_of(name, "apps/v1", "Deployment");
        object["spec"]["scaleTargetRef"]["name"] = json!("web");
        fixture.create(object).await?;
    }
    for name in ["a", "b"] {
        let says = "are controlled by more than one HPA";
        let verdict = "False AmbiguousSelector";
        fixture.until_message(name, "ScalingActive", verdict, says).await?;
    }
    let replicas = fixture.replicas("web").await?;
    // The first to come may have scaled before the second one was there.
    ensure!([2, 4].contains(&replicas), "{replicas} replicas");
    fixture.delete(HPA.0, HPA.1, "b").await?;
    fixture.set_load("a", 3.0);
    fixture.until_replicas("web", 3).await
}
