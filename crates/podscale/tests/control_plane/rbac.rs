//! What the controller does when it may not do something.

use super::fixture::{Fixture, api, load};
use super::harness::Harness;
use super::metrics::Usage;
use super::program::{Program, QUICK};
use anyhow::Result;
use kube::api::{DeleteParams, Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![
        harness.alone("rbac::no_scale", no_scale),
        harness.alone("rbac::no_metrics", no_metrics),
        harness.alone("rbac::no_autoscalers", no_autoscalers),
    ]
}

/// Everything that a controller may want to do.
fn everything() -> Vec<Value> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let read = ["get", "list", "watch"];
    let write = ["get", "list", "watch", "create", "update", "patch"];
    vec![
        rule("autoscaling", &["horizontalpodautoscalers"], &read),
        rule("autoscaling", &["horizontalpodautoscalers/status"], &["update", "patch"]),
        rule("*", &["*/scale"], &["get"]),
        rule("*", &["*/scale"], &["update", "patch"]),
        rule("", &["pods", "replicationcontrollers"], &read),
        rule("apps", &["deployments", "replicasets", "statefulsets"], &read),
        rule("metrics.k8s.io", &["*"], &read),
        rule("custom.metrics.k8s.io", &["*"], &read),
        rule("external.metrics.k8s.io", &["*"], &read),
        rule("", &["events"], &["create", "patch", "update"]),
        rule("events.k8s.io", &["events"], &["create", "patch", "update"]),
        rule("coordination.k8s.io", &["leases"], &write),
        rule("", &["configmaps"], &write),
    ]
}

/// Gives an account of the fixture's namespace these rights, everywhere.
pub async fn allow(fixture: &Fixture, rules: Vec<Value>) -> Result<()> {
    let (name, client) = (&fixture.namespace, fixture.client());
    let params = PatchParams::apply("test").force();
    let version = "rbac.authorization.k8s.io/v1";
    let role = json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name},
        "rules": rules});
    api(&client, None, version, "ClusterRole").patch(name, &params, &Patch::Apply(&role)).await?;
    let binding = json!({"apiVersion": version, "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "limited", "namespace": name}]});
    let bindings = api(&client, None, version, "ClusterRoleBinding");
    bindings.patch(name, &params, &Patch::Apply(&binding)).await?;
    Ok(())
}

/// Starts the controller with all rights but those of which a rule says `missing`.
async fn start_without(fixture: &Fixture, missing: &str, verb: &str) -> Result<Program> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "limited"}});
    fixture.create(account).await?;
    let speaks = |rule: &Value, field: &str, word: &str| rule[field].to_string().contains(word);
    let is_left_out = |rule: &Value| {
        let subject = speaks(rule, "apiGroups", missing) || speaks(rule, "resources", missing);
        subject && speaks(rule, "verbs", verb)
    };
    let mut rules = everything();
    rules.retain(|rule| !is_left_out(rule));
    anyhow::ensure!(rules.len() < everything().len(), "no rule speaks of {missing} and {verb}");
    allow(fixture, rules).await?;
    let plane = &fixture.environment.plane;
    let kubeconfig = plane.kubeconfig_of(&fixture.namespace, "limited").await?;
    let flags: Vec<&str> = QUICK.into_iter().chain(["--leader-elect=false"]).collect();
    Program::start(&fixture.namespace, plane.folder(), &kubeconfig, &flags)
}

/// Grants what was missing, and takes everything away when it has worked.
pub async fn end(fixture: &Fixture, mut program: Program) -> Result<()> {
    program.stop().await?;
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        let roles = api(&fixture.client(), None, "rbac.authorization.k8s.io/v1", kind);
        roles.delete(&fixture.namespace, &DeleteParams::default()).await?;
    }
    Ok(())
}

fn user(fixture: &Fixture) -> String {
    format!("User \"system:serviceaccount:{}:limited\"", fixture.namespace)
}

async fn no_scale(fixture: Fixture) -> Result<()> {
    let program = start_without(&fixture, "*/scale", "update").await?;
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 3.0);
    fixture.autoscaler("web", (1, 9), load("web"), Value::Null).await?;
    let says = format!(
        "deployments.apps \"web\" is forbidden: {} cannot update resource \"deployments/scale\" in \
         API group \"apps\" in the namespace \"{}\"",
        user(&fixture),
        fixture.namespace
    );
    fixture.until_message("web", "AbleToScale", "False FailedUpdateScale", &says).await?;
    let event = "Warning FailedRescale New size: 3; reason: external metric web(nil) above target; \
        error: deployments.apps \"web\" is forbidden";
    fixture.until_event("web", event).await?;
    allow(&fixture, everything()).await?;
    fixture.until_replicas("web", 3).await?;
    end(&fixture, program).await
}

async fn no_metrics(fixture: Fixture) -> Result<()> {
    let program = start_without(&fixture, "metrics.k8s.io", "list").await?;
    fixture.deployment("web", 2).await?;
    fixture.metrics().set_usage(&fixture.namespace, "web", "cpu", Usage::Total(200));
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    fixture.autoscaler("web", (1, 9), cpu, Value::Null).await?;
    let says = format!("is forbidden: {} cannot list resource \"pods\"", user(&fixture));
    let verdict = "False FailedGetResourceMetric";
    fixture.until_message("web", "ScalingActive", verdict, &says).await?;
    fixture.until_event("web", "Warning FailedGetResourceMetric ").await?;
    allow(&fixture, everything()).await?;
    fixture.until_replicas("web", 4).await?;
    end(&fixture, program).await
}

/// Without the right to read autoscalers nothing can be written anywhere but to the log.
async fn no_autoscalers(fixture: Fixture) -> Result<()> {
    let program = start_without(&fixture, "horizontalpodautoscalers", "list").await?;
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 3.0);
    fixture.autoscaler("web", (1, 9), load("web"), Value::Null).await?;
    let says = "horizontalpodautoscalers.autoscaling is forbidden";
    fixture
        .until("whether the log has it", &true, async || Ok(program.log().contains(says)))
        .await?;
    anyhow::ensure!(fixture.replicas("web").await? == 2, "it scaled what it may not read");
    allow(&fixture, everything()).await?;
    fixture.until_replicas("web", 3).await?;
    end(&fixture, program).await
}
