//! The rights that `podscale install --triggers` asks for: they are enough, and without any one of them, each verb of
//! each resource, something is refused that the controller wants to do.

use super::super::fixture::{Fixture, Workspace, deployment};
use super::super::installed::{apply, each_left_out, manifests, refusals};
use super::super::program::{Program, QUICK};
use super::queue::Queue;
use super::{KIND, VERSION, define, undefine};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::path::Path;

const WORD: &str = "a-word";
const ROLES: [&str; 2] = ["ClusterRole", "Role"];

pub async fn exactly_those_installed(fixture: Fixture) -> Result<()> {
    let names = define(&fixture.environment.plane).await?;
    let shop = Workspace::open(fixture.client(), &format!("{}-shop", fixture.namespace)).await?;
    let only_there = format!("--trigger-namespaces={}", shop.namespace);
    let installed = manifests(&fixture.namespace, &["--triggers", &only_there])?;
    let without = manifests(&fixture.namespace, &[])?;
    let accounts = ["ServiceAccount", "ClusterRoleBinding", "RoleBinding"];
    for object in &installed {
        if ROLES.iter().chain(&accounts).any(|kind| object["kind"] == *kind) {
            apply(&fixture.client(), object).await?;
        }
    }
    let plane = &fixture.environment.plane;
    let kubeconfig = plane.kubeconfig_of(&fixture.namespace, "podscale").await?;
    let queue = Queue::start(WORD).await?;
    create(&fixture, &shop, &queue).await?;
    let run =
        Run { fixture: &fixture, shop: &shop, queue: &queue, kubeconfig: &kubeconfig, only_there };
    run.all_are_enough().await?;
    let before = allowed(&without);
    for role in installed.iter().filter(|object| ROLES.iter().any(|kind| object["kind"] == *kind)) {
        run.each_is_needed(role, &before).await?;
    }
    for object in shop.api(VERSION, KIND).list(&kube::api::ListParams::default()).await? {
        let name = object.metadata.name.context("a name")?;
        shop.patch(VERSION, KIND, &name, json!({"metadata": {"finalizers": null}})).await?;
    }
    shop.close().await;
    undefine(&fixture, &names)
}

/// The verbs that roles allow, with the resources and groups.
fn allowed(manifests: &[Value]) -> Vec<(String, String, String)> {
    let mut all = Vec::new();
    for role in manifests.iter().filter(|object| ROLES.iter().any(|kind| object["kind"] == *kind)) {
        let rules = role["rules"].as_array().cloned().unwrap_or_default();
        let left_out = each_left_out(&rules).into_iter();
        all.extend(left_out.map(|one| (one.verb, one.resource, one.group)));
    }
    all
}

/// Objects that need all rights between them.
async fn create(fixture: &Fixture, shop: &Workspace, queue: &Queue) -> Result<()> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "words"},
        "stringData": {"token": WORD}});
    fixture.create(secret.clone()).await?;
    shop.create(secret).await?;
    shop.create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"},
        "data": {"user": "nobody"}}))
        .await?;
    let token = json!([{"parameter": "token", "name": "words", "key": "token"}]);
    let user = json!([{"parameter": "username", "name": "words", "key": "user"}]);
    let authentication = |kind: &str, name: &str, spec: Value| json!({"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec});
    let namespaced = "TriggerAuthentication";
    let stored = json!({"secretTargetRef": token, "configMapTargetRef": user});
    shop.create(authentication(namespaced, "stored", stored)).await?;
    let variable = json!({"env": [{"parameter": "token", "name": "TOKEN"}]});
    shop.create(authentication(namespaced, "variable", variable)).await?;
    let shared =
        authentication("ClusterTriggerAuthentication", "shared", json!({"secretTargetRef": token}));
    apply(&fixture.client(), &shared).await?;
    for name in ["web", "set", "shared", "endpoints"] {
        let mut workload = deployment(name, 1, &["app"]);
        workload["spec"]["template"]["spec"]["containers"][0]["env"] =
            json!([{"name": "TOKEN", "value": WORD}]);
        if name == "set" {
            (workload["kind"], workload["spec"]["serviceName"]) =
                ("StatefulSet".into(), name.into());
        }
        shop.create(workload).await?;
    }
    let by_word = |reference: Value| {
        json!({"type": "metrics-api", "authenticationRef": reference, "metadata": {"url": queue.url(),
            "valueLocation": "queue", "targetValue": "10", "authMode": "bearer"}})
    };
    let of_service = format!("http://front.{}:80/stats", shop.namespace);
    let endpoints = json!({"type": "metrics-api", "metadata": {"url": of_service,
        "valueLocation": "queue", "targetValue": "10", "aggregateFromKubeServiceEndpoints": "true"}});
    for (name, kind, triggers) in [
        (
            "web",
            "Deployment",
            json!([by_word(json!({"name": "stored"})), by_word(json!({"name": "variable"}))]),
        ),
        ("set", "StatefulSet", json!([by_word(json!({"name": "variable"}))])),
        (
            "shared",
            "Deployment",
            json!([by_word(json!({"name": "shared", "kind": "ClusterTriggerAuthentication"}))]),
        ),
        ("endpoints", "Deployment", json!([endpoints])),
    ] {
        shop.create(json!({"apiVersion": VERSION, "kind": KIND, "metadata": {"name": name},
            "spec": {"scaleTargetRef": {"name": name, "kind": kind}, "pollingInterval": 1,
                "minReplicaCount": 1, "maxReplicaCount": 4, "triggers": triggers,
                "advanced": {"horizontalPodAutoscalerConfig": {"behavior":
                    {"scaleDown": {"stabilizationWindowSeconds": 0}}}}}}))
            .await?;
    }
    Ok(())
}

/// What every run has.
struct Run<'a> {
    fixture: &'a Fixture,
    shop: &'a Workspace,
    queue: &'a Queue,
    kubeconfig: &'a Path,
    only_there: String,
}

impl Run<'_> {
    fn start(&self) -> Result<Program> {
        let more = ["--leader-elect=false", "--triggers", &self.only_there];
        let own = format!("--leader-elect-resource-namespace={}", self.fixture.namespace);
        let flags: Vec<&str> = QUICK.into_iter().chain(more).chain([own.as_str()]).collect();
        let folder = self.fixture.environment.plane.folder();
        Program::start(&self.fixture.namespace, folder, self.kubeconfig, &flags)
    }

    async fn all_are_enough(&self) -> Result<()> {
        let mut program = self.start()?;
        for (length, replicas) in [(30, 3), (20, 2), (30, 3)] {
            self.queue.set(length);
            for (kind, name) in
                [("Deployment", "web"), ("StatefulSet", "set"), ("Deployment", "shared")]
            {
                let what = format!("replicas of {kind} {name}");
                self.shop
                    .until(&what, &Some(replicas), async || {
                        let object = self.shop.api("apps/v1", kind).get(name).await?;
                        Ok(object.data["spec"]["replicas"].as_i64())
                    })
                    .await?;
            }
        }
        let refused = refusals(&program).await?;
        ensure!(refused == 0.0, "{refused} requests were refused:\n{}", program.log_tail());
        program.stop().await
    }

    async fn each_is_needed(
        &self,
        role: &Value,
        before: &[(String, String, String)],
    ) -> Result<()> {
        let rules = role["rules"].as_array().context("a role without rules")?;
        for left_out in each_left_out(rules) {
            let key = (left_out.verb.clone(), left_out.resource.clone(), left_out.group.clone());
            if before.contains(&key) && role["metadata"]["name"] != "podscale-triggers" {
                continue;
            }
            let mut less = role.clone();
            less["rules"] = Value::Array(left_out.rest.clone());
            apply(&self.fixture.client(), &less).await?;
            let program = self.start()?;
            let mut length = 20;
            let what = format!("whether something is refused without {left_out}");
            self.shop
                .until(&what, &true, async || {
                    // Values that change, and a finalizer that goes astray, need all that a controller ever does.
                    length = 50 - length;
                    self.queue.set(length);
                    let bare = json!({"metadata": {"finalizers": null, "labels": null}});
                    self.shop.patch(VERSION, KIND, "web", bare).await?;
                    Ok(refusals(&program).await? > 0.0)
                })
                .await?;
        }
        apply(&self.fixture.client(), role).await
    }
}
