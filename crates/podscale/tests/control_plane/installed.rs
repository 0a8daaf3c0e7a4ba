//! The rights that `podscale install` asks for: they are enough, and without any one of them, each verb
//! of each resource, something is refused that the controller wants to do.

use super::chpa;
use super::fixture::{Fixture, api, autoscaler};
use super::harness::Harness;
use super::metrics::Usage;
use super::program::{Program, QUICK};
use super::targets::{VERSION, create_fleet};
use anyhow::{Context, Result, ensure};
use kube::Client;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use libtest_mimic::Trial;
use podscale_api::pod_autoscaler::{API_VERSION as PA_VERSION, KIND as PA_KIND, crd};
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;
use std::process::Command;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.alone("rbac::exactly_those_installed", exactly_those_installed)]
}

/// The CHPA, and its Deployment.
const CHPA: &str = "chpa";
/// The PodAutoscaler, and its Deployment.
const BUSY: &str = "busy";

/// Targets that need all rights between them: their kinds and metrics.
fn workloads() -> [(&'static str, &'static str, &'static str, Value); 4] {
    let average = json!({"type": "AverageValue", "averageValue": "1"});
    let described = json!({"apiVersion": "v1", "kind": "Service", "name": "front"});
    [
        (
            "apps/v1",
            "Deployment",
            "deployments",
            json!({"type": "Resource", "resource": {"name": "cpu", "target": average}}),
        ),
        (
            "apps/v1",
            "ReplicaSet",
            "replicasets",
            json!({"type": "External", "external": {"metric": {"name": "queue"}, "target": average}}),
        ),
        (
            "apps/v1",
            "StatefulSet",
            "statefulsets",
            json!({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": average}}),
        ),
        (
            "v1",
            "ReplicationController",
            "replicationcontrollers",
            json!({"type": "Object", "object": {"metric": {"name": "hits"}, "target": average,
                "describedObject": described}}),
        ),
    ]
}

/// Sets all metrics so that every target gets this size.
fn want(fixture: &Fixture, replicas: i64) {
    let (metrics, namespace) = (fixture.metrics(), &fixture.namespace);
    let total = Usage::Total(1000 * replicas);
    metrics.set_usage(namespace, "deployments", "cpu", total);
    metrics.set_usage(namespace, BUSY, "cpu", total);
    metrics.set_usage(namespace, "statefulsets", "rps", total);
    metrics.set_external(namespace, "queue", &[(&[], 1000 * replicas)]);
    metrics.set_object(namespace, "services/front", "hits", 1000 * replicas);
}

async fn create_workloads(fixture: &Fixture) -> Result<()> {
    want(fixture, 2);
    for (version, kind, name, metric) in workloads() {
        let labels = json!({"app": name});
        let selector =
            if version == "v1" { labels.clone() } else { json!({"matchLabels": labels}) };
        let template = json!({"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": "none"}]}});
        fixture
            .create(json!({"apiVersion": version, "kind": kind, "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": selector, "template": template}}))
            .await?;
        // The second one's target is not there: the API server is asked for it, and an event is
        // written that happens again and again.
        for (target, own) in [(name, name.to_owned()), ("lost", format!("lost-{name}"))] {
            fixture
                .create(json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": own}, "spec": {"minReplicas": 1, "maxReplicas": 4,
                    "metrics": [metric],
                    "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": target}}}))
                .await?;
        }
    }
    create_fleet(fixture, "fleets").await?;
    let queue = json!({"type": "External", "external": {"metric": {"name": "queue"},
        "target": {"type": "AverageValue", "averageValue": "1"}}});
    let mut object = autoscaler("fleets", (1, 4), json!([queue]), Value::Null);
    object["spec"]["scaleTargetRef"] =
        json!({"apiVersion": VERSION, "kind": "Fleet", "name": "fleets"});
    fixture.create(object).await?;
    create_chpa(fixture).await?;
    create_pod_autoscaler(fixture).await
}

/// A PodAutoscaler, by which busy pods go last.
async fn create_pod_autoscaler(fixture: &Fixture) -> Result<()> {
    apply(&fixture.client(), &crd::definition()).await?;
    fixture.deployment(BUSY, 2).await?;
    let metrics = json!([{"type": "Resource", "name": "cpu", "resource": {"name": "cpu",
        "target": {"type": "AverageValue", "averageValue": "1"}}}]);
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
    let mut object = autoscaler(BUSY, (1, 4), metrics, behavior);
    (object["apiVersion"], object["kind"]) = (PA_VERSION.into(), PA_KIND.into());
    object["spec"]["podDeletionCost"] = json!({"metric": "cpu"});
    fixture
        .until("whether podautoscalers are served", &true, async || {
            let list = fixture.client().list_api_group_resources(PA_VERSION).await;
            Ok(list.is_ok_and(|list| !list.resources.is_empty()))
        })
        .await?;
    fixture.create(object).await?;
    Ok(())
}

/// A CHPA as the original controller has left it: without a status subresource, with a Deployment of
/// its own.
async fn create_chpa(fixture: &Fixture) -> Result<()> {
    chpa::define(fixture, &chpa::original_definition()).await?;
    fixture.deployment(CHPA, 2).await?;
    let queue = json!({"type": "External", "external":
        {"metricName": "queue", "targetAverageValue": "1"}});
    fixture
        .create(json!({"apiVersion": "autoscalers.postmates.com/v1beta1", "kind": "CHPA",
            "metadata": {"name": CHPA}, "spec": {"maxReplicas": 4, "metrics": [queue],
                "downscaleForbiddenWindowSeconds": 1, "upscaleForbiddenWindowSeconds": 1,
                "scaleTargetRef": {"kind": "Deployment", "name": CHPA}}}))
        .await?;
    chpa::own(fixture, CHPA).await
}

async fn until_all_have(fixture: &Fixture, replicas: i64) -> Result<()> {
    let kinds = workloads().map(|(version, kind, name, _)| (version, kind, name));
    let others = [
        (VERSION, "Fleet", "fleets"),
        ("apps/v1", "Deployment", CHPA),
        ("apps/v1", "Deployment", BUSY),
    ];
    for (version, kind, name) in kinds.into_iter().chain(others) {
        fixture
            .until(&format!("replicas of {name}"), &Some(replicas), async || {
                let object = fixture.api(version, kind).get(name).await?;
                Ok(object.data["spec"]["replicas"].as_i64())
            })
            .await?;
    }
    Ok(())
}

/// What `podscale install` prints, for a namespace.
pub fn manifests(namespace: &str, flags: &[&str]) -> Result<Vec<Value>> {
    let printed = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(["install", "--namespace", namespace, "--output", "json"])
        .args(flags)
        .output()?;
    ensure!(printed.status.success(), "podscale install failed");
    let list: Value = serde_json::from_slice(&printed.stdout)?;
    list["items"].as_array().cloned().context("no list of manifests")
}

/// Applies one of them.
pub async fn apply(client: &Client, object: &Value) -> Result<()> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("not a text");
    let (version, kind) = (text(&object["apiVersion"])?, text(&object["kind"])?);
    let name = text(&object["metadata"]["name"])?;
    let objects = api(client, object["metadata"]["namespace"].as_str(), &version, &kind);
    let params = PatchParams::apply("test").force();
    objects.patch(&name, &params, &Patch::Apply(object)).await?;
    Ok(())
}

fn start(fixture: &Fixture, kubeconfig: &Path) -> Result<Program> {
    let namespace = format!("--leader-elect-resource-namespace={}", fixture.namespace);
    let flags: Vec<&str> = QUICK.into_iter().chain([namespace.as_str()]).collect();
    Program::start(&fixture.namespace, fixture.environment.plane.folder(), kubeconfig, &flags)
}

/// How many of its requests the API server has refused.
pub async fn refusals(program: &Program) -> Result<f64> {
    program.metric("podscale_api_requests_total", "code=\"403\"").await
}

async fn exactly_those_installed(fixture: Fixture) -> Result<()> {
    let client = fixture.client();
    let more = [
        "--scale",
        "test.podscale.dev/fleets",
        "--original-chpas",
        "--crds",
        "--pod-deletion-cost",
    ];
    let manifests = manifests(&fixture.namespace, &more)?;
    let of_kind =
        |kind: &'static str| manifests.iter().filter(move |object| object["kind"] == kind);
    for kind in ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"] {
        for object in of_kind(kind) {
            apply(&client, object).await?;
        }
    }
    let account = of_kind("ServiceAccount").next().context("no account")?;
    let account = account["metadata"]["name"].as_str().context("an account without a name")?;
    let kubeconfig = fixture.environment.plane.kubeconfig_of(&fixture.namespace, account).await?;
    create_workloads(&fixture).await?;
    all_are_enough(&fixture, &kubeconfig).await?;
    for kind in ["ClusterRole", "Role"] {
        for role in of_kind(kind) {
            each_is_needed(&fixture, &kubeconfig, role).await?;
        }
    }
    Ok(())
}

async fn all_are_enough(fixture: &Fixture, kubeconfig: &Path) -> Result<()> {
    let mut program = start(fixture, kubeconfig)?;
    for replicas in [3, 2, 3] {
        want(fixture, replicas);
        until_all_have(fixture, replicas).await?;
        delete_all(fixture, "v1", "ConfigMap").await?;
    }
    for (_, _, name, _) in workloads() {
        fixture.until_event(name, "Normal SuccessfulRescale New size: 2").await?;
        fixture.until_event(&format!("lost-{name}"), "Warning FailedGetScale ").await?;
    }
    chpa::until_released(fixture, CHPA).await?;
    let refused = refusals(&program).await?;
    ensure!(refused == 0.0, "{refused} requests were refused:\n{}", program.log_tail());
    program.stop().await?;
    ensure!(!program.log().contains("forbidden"), "{}", program.log_tail());
    Ok(())
}

/// One verb of one resource, and the rules without it.
pub struct LeftOut {
    pub verb: String,
    pub resource: String,
    pub group: String,
    pub rest: Vec<Value>,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} in {:?}", self.verb, self.resource, self.group)
    }
}

/// The rules without one verb of one resource, for each of them.
pub fn each_left_out(rules: &[Value]) -> Vec<LeftOut> {
    let words = |rule: &Value, field: &str| rule[field].as_array().cloned().unwrap_or_default();
    let without = |all: &[Value], one: &Value| -> Vec<Value> {
        all.iter().filter(|word| *word != one).cloned().collect()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        let (resources, verbs) = (words(rule, "resources"), words(rule, "verbs"));
        for resource in &resources {
            for verb in &verbs {
                let mut rest: Vec<Value> = rules.to_vec();
                rest.remove(number);
                let others = [
                    (without(&resources, resource), verbs.clone()),
                    (vec![resource.clone()], without(&verbs, verb)),
                ];
                for (resources, verbs) in others {
                    if !resources.is_empty() && !verbs.is_empty() {
                        let mut part = rule.clone();
                        (part["resources"], part["verbs"]) = (resources.into(), verbs.into());
                        rest.push(part);
                    }
                }
                let (verb, resource, group) =
                    (text(verb), text(resource), text(&rule["apiGroups"][0]));
                all.push(LeftOut { verb, resource, group, rest });
            }
        }
    }
    all
}

async fn delete_all(fixture: &Fixture, version: &str, kind: &str) -> Result<()> {
    let objects = fixture.api(version, kind);
    objects.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    Ok(())
}

async fn each_is_needed(fixture: &Fixture, kubeconfig: &Path, role: &Value) -> Result<()> {
    let rules = role["rules"].as_array().context("a role without rules")?;
    ensure!(!rules.is_empty(), "a role without rules");
    for left_out in each_left_out(rules) {
        let mut less = role.clone();
        less["rules"] = Value::Array(left_out.rest.clone());
        apply(&fixture.client(), &less).await?;
        // What an earlier run left would make some rights unnecessary.
        delete_all(fixture, "coordination.k8s.io/v1", "Lease").await?;
        let program = start(fixture, kubeconfig)?;
        let mut replicas = 2;
        let what = format!("whether something is refused without {left_out}");
        fixture
            .until(&what, &true, async || {
                // Sizes that change, and a memory that goes astray, need all that a controller ever does.
                replicas = 5 - replicas;
                want(fixture, replicas);
                delete_all(fixture, "v1", "ConfigMap").await?;
                chpa::own(fixture, CHPA).await?;
                Ok(refusals(&program).await? > 0.0)
            })
            .await?;
    }
    apply(&fixture.client(), role).await
}
