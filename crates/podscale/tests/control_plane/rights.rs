//! What the controller does when it may not do something.

use super::metrics::Usage;
use super::program::{Program, QUICK};
use super::room::{Room, api, load};
use super::stage::Theatre;
use anyhow::Result;
use kube::api::{DeleteParams, Patch, PatchParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};

pub fn trials(theatre: &Theatre) -> Vec<Trial> {
    vec![
        theatre.alone("rights::no_scale", no_scale),
        theatre.alone("rights::no_metrics", no_metrics),
        theatre.alone("rights::no_autoscalers", no_autoscalers),
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

/// Gives an account of the room's namespace these rights, everywhere.
async fn allow(room: &Room, rules: Vec<Value>) -> Result<()> {
    let (name, client) = (&room.namespace, room.client());
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
async fn start_without(room: &Room, missing: &str, verb: &str) -> Result<Program> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "limited"}});
    room.create(account).await?;
    let speaks = |rule: &Value, field: &str, word: &str| rule[field].to_string().contains(word);
    let is_left_out = |rule: &Value| {
        let subject = speaks(rule, "apiGroups", missing) || speaks(rule, "resources", missing);
        subject && speaks(rule, "verbs", verb)
    };
    let mut rules = everything();
    rules.retain(|rule| !is_left_out(rule));
    anyhow::ensure!(rules.len() < everything().len(), "no rule speaks of {missing} and {verb}");
    allow(room, rules).await?;
    let plane = &room.stage.plane;
    let kubeconfig = plane.kubeconfig_of(&room.namespace, "limited").await?;
    let flags: Vec<&str> = QUICK.into_iter().chain(["--leader-elect=false"]).collect();
    Program::start(&room.namespace, plane.folder(), &kubeconfig, &flags)
}

/// Grants what was missing, and takes everything away when it has worked.
async fn end(room: &Room, mut program: Program) -> Result<()> {
    program.stop().await?;
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        let roles = api(&room.client(), None, "rbac.authorization.k8s.io/v1", kind);
        roles.delete(&room.namespace, &DeleteParams::default()).await?;
    }
    Ok(())
}

fn user(room: &Room) -> String {
    format!("User \"system:serviceaccount:{}:limited\"", room.namespace)
}

async fn no_scale(room: Room) -> Result<()> {
    let program = start_without(&room, "*/scale", "update").await?;
    room.deployment("web", 2).await?;
    room.set_load("web", 3.0);
    room.autoscaler("web", (1, 9), load("web"), Value::Null).await?;
    let says = format!(
        "deployments.apps \"web\" is forbidden: {} cannot update resource \"deployments/scale\" in \
         API group \"apps\" in the namespace \"{}\"",
        user(&room),
        room.namespace
    );
    room.until_message("web", "AbleToScale", "False FailedUpdateScale", &says).await?;
    let event = "Warning FailedRescale New size: 3; reason: external metric web(nil) above target; \
        error: deployments.apps \"web\" is forbidden";
    room.until_event("web", event).await?;
    allow(&room, everything()).await?;
    room.until_replicas("web", 3).await?;
    end(&room, program).await
}

async fn no_metrics(room: Room) -> Result<()> {
    let program = start_without(&room, "metrics.k8s.io", "list").await?;
    room.deployment("web", 2).await?;
    room.metrics().set_usage(&room.namespace, "web", "cpu", Usage::Total(200));
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    room.autoscaler("web", (1, 9), cpu, Value::Null).await?;
    let says = format!("is forbidden: {} cannot list resource \"pods\"", user(&room));
    let verdict = "False FailedGetResourceMetric";
    room.until_message("web", "ScalingActive", verdict, &says).await?;
    room.until_event("web", "Warning FailedGetResourceMetric ").await?;
    allow(&room, everything()).await?;
    room.until_replicas("web", 4).await?;
    end(&room, program).await
}

/// Without the right to read autoscalers nothing can be written anywhere but to the log.
async fn no_autoscalers(room: Room) -> Result<()> {
    let program = start_without(&room, "horizontalpodautoscalers", "list").await?;
    room.deployment("web", 2).await?;
    room.set_load("web", 3.0);
    room.autoscaler("web", (1, 9), load("web"), Value::Null).await?;
    let says = "horizontalpodautoscalers.autoscaling is forbidden";
    room.until("whether the log tells", &true, async || Ok(program.said().contains(says))).await?;
    anyhow::ensure!(room.replicas("web").await? == 2, "it scaled what it may not read");
    allow(&room, everything()).await?;
    room.until_replicas("web", 3).await?;
    end(&room, program).await
}
