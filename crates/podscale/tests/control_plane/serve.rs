//! `podscale serve` behind the aggregation of a real kube-apiserver, and asked directly.

#[path = "serve/direct.rs"]
mod direct;
#[path = "serve/node.rs"]
pub mod node;

use super::aggregation::{self, until_available};
use super::binaries;
use super::fixture::api;
use super::harness::Harness;
use super::plane::ControlPlane;
use super::process::{Process, TIMEOUT, free_ports};
use super::program::Program;
use anyhow::{Context, Result, bail, ensure};
use kube::api::{Patch, PatchParams, PostParams};
use libtest_mimic::Trial;
use node::{Node, Used};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

pub const NAMESPACE: &str = "kube-system";
const SERVICE: &str = "podscale-metrics";
const ACCOUNT: &str = "podscale-serve";

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let folder = harness.folder().to_owned();
    vec![harness.independent("serve::resource_metrics", move |name| async move {
        let plane = ControlPlane::start(&folder.join(name)).await?;
        resource_metrics(&plane).await
    })]
}

async fn resource_metrics(plane: &ControlPlane) -> Result<()> {
    let used = || {
        let [namespace, pod, container] = ["default", "web", "app"].map(str::to_owned);
        vec![Used { namespace, pod, container, cores: 0.2495 }]
    };
    let node = Node::start(plane, "node-1", Box::new(used)).await?;
    node.pod("web", "app").await?;
    account(plane).await?;
    let ports: [u16; 2] = free_ports()?;
    let groups = [("metrics.k8s.io", "v1beta1")];
    announce(plane, ports[0], &groups).await?;
    let mut first = serve(plane, "serve-1", ports[0], &[]).await?;
    let through = async || -> Result<()> {
        until_available(&plane.client, &groups).await?;
        listed(plane).await?;
        kubectl_works(plane)?;
        direct::everybody(plane, ports[0]).await
    };
    let mut outcome = through().await;
    if outcome.is_ok() {
        outcome = beside_the_controller(plane, ports[1]).await;
    }
    let status = first.terminate().await?;
    outcome
        .with_context(|| format!("the log of podscale serve ends with\n{}", first.log_tail()))?;
    ensure!(status.success(), "podscale serve ended with {status}");
    Ok(())
}

/// The rights that `docs/serve.md` names, and no others.
pub async fn account(plane: &ControlPlane) -> Result<()> {
    let rbac = "rbac.authorization.k8s.io/v1";
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let subject = json!([{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}]);
    let role_ref = |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let objects = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}),
        json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": ACCOUNT}, "rules": [
            rule("", "nodes", &["list", "watch"]),
            rule("", "pods", &["list", "watch"]),
            rule("", "services", &["list"]),
            rule("", "nodes/metrics", &["get"]),
            rule("authentication.k8s.io", "tokenreviews", &["create"]),
            rule("authorization.k8s.io", "subjectaccessreviews", &["create"]),
            rule("apiregistration.k8s.io", "apiservices", &["get", "patch"]),
        ]}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": ACCOUNT},
            "roleRef": role_ref("ClusterRole", ACCOUNT), "subjects": subject}),
        json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": ACCOUNT},
            "rules": [rule("", "secrets", &["get", "create", "update"]),
                rule("", "configmaps", &["list", "watch"]),
                rule("", "events", &["create", "patch"])]}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": ACCOUNT},
            "roleRef": role_ref("Role", ACCOUNT), "subjects": subject}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": format!("{ACCOUNT}-trust")},
            "roleRef": role_ref("Role", "extension-apiserver-authentication-reader"), "subjects": subject}),
    ];
    for object in objects {
        create(plane, object).await?;
    }
    Ok(())
}

async fn create(plane: &ControlPlane, object: Value) -> Result<()> {
    let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
    let (version, kind) = (version.context("no version")?, kind.context("no kind")?);
    let namespace = (!kind.starts_with("Cluster")).then_some(NAMESPACE);
    let api = api(&plane.client, namespace, version, kind);
    let what = format!("creating {kind}");
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await.context(what)?;
    Ok(())
}

/// A Service that leads to this machine, and APIServices without a caBundle: Podscale puts it there.
pub async fn announce(plane: &ControlPlane, port: u16, groups: &[(&str, &str)]) -> Result<()> {
    let params = PatchParams::apply("test").force();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE},
        "spec": {"type": "ExternalName", "externalName": "localhost"}});
    let services = api(&plane.client, Some(NAMESPACE), "v1", "Service");
    services.patch(SERVICE, &params, &Patch::Apply(&service)).await?;
    let registrations = aggregation::registrations(&plane.client);
    for (group, version) in groups {
        let name = format!("{version}.{group}");
        let object = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": name},
            "spec": {"group": group, "version": version, "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port}}});
        registrations.patch(&name, &params, &Patch::Apply(&object)).await?;
    }
    Ok(())
}

/// Starts the program with some more flags, and waits until it is ready.
pub async fn serve(plane: &ControlPlane, name: &str, port: u16, flags: &[&str]) -> Result<Process> {
    let kubeconfig = plane.kubeconfig_of(NAMESPACE, ACCOUNT).await?;
    let arguments = [
        "serve".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--log-level=info,podscale=debug".to_owned(),
    ];
    let arguments = arguments.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned()));
    let program = Path::new(env!("CARGO_BIN_EXE_podscale"));
    let mut process = Process::start(name, program, arguments, plane.folder())?;
    let ready = async || {
        let asked = direct::Asked { port, path: "/readyz", ..direct::Asked::default() };
        asked.ask(plane).await.is_ok_and(|(code, _)| code == 200)
    };
    process.until_ready(ready).await?;
    Ok(process)
}

/// Waits until the metrics of the node come through the API server.
async fn listed(plane: &ControlPlane) -> Result<()> {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    loop {
        let (ok, text) = kubectl(plane, &["get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes"])?;
        let list: Value = serde_json::from_str(&text).unwrap_or_default();
        if ok && list["items"][0]["metadata"]["name"] == "node-1" {
            ensure!(list["kind"] == "NodeMetricsList", "{list}");
            return Ok(());
        }
        if tokio::time::Instant::now() > deadline {
            bail!("no metrics through the API server: {text}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn kubectl_works(plane: &ControlPlane) -> Result<()> {
    let cases: [(&[&str], &[&str]); 6] = [
        (&["top", "nodes", "--no-headers"], &["node-1", "1000m", "25%", "1024Mi", "12%"]),
        (&["top", "pods", "--no-headers"], &["web", "250m", "64Mi"]),
        (&["top", "pods", "--containers", "--no-headers"], &["web", "app", "250m", "64Mi"]),
        (&["get", "pods.metrics.k8s.io"], &["NAME", "CPU", "MEMORY", "WINDOW", "web"]),
        (
            &["explain", "podmetrics"],
            &["KIND:       PodMetrics", "containers\t<[]ContainerMetrics> -required-"],
        ),
        (&["explain", "nodemetrics.usage"], &["FIELD: usage <map[string]"]),
    ];
    for (arguments, parts) in cases {
        let (ok, text) = kubectl(plane, arguments)?;
        let missing = parts.iter().find(|part| !text.contains(**part));
        ensure!(ok && missing.is_none(), "kubectl {arguments:?} has no {missing:?}:\n{text}");
    }
    let (ok, text) = kubectl(
        plane,
        &["get", "--raw", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/none"],
    )?;
    let expected = "podmetrics.metrics.k8s.io \"default/none\" not found";
    ensure!(!ok && text.contains(expected), "{text}");
    Ok(())
}

/// A controller that serves as well shows a certificate of the same authority.
async fn beside_the_controller(plane: &ControlPlane, port: u16) -> Result<()> {
    let before = direct::authority(plane).await?;
    let (address, secure) = ("--bind-address=127.0.0.1", format!("--secure-port={port}"));
    let idle = ["--leader-elect=false", "--namespaces=nowhere"];
    let flags = [idle[0], idle[1], "--serve-metrics", address, &secure];
    let mut program = Program::quick("run-and-serve", plane, &flags)?;
    let asked = direct::Asked { port, path: "/readyz", ..direct::Asked::default() };
    until_ready(&asked, plane).await.with_context(|| program.log_tail())?;
    direct::everybody(plane, port).await?;
    ensure!(direct::authority(plane).await? == before, "it has another authority");
    program.stop().await
}

async fn until_ready(asked: &direct::Asked<'_>, plane: &ControlPlane) -> Result<()> {
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    loop {
        let answer = asked.ask(plane).await;
        if matches!(answer, Ok((200, _))) {
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < deadline, "not ready: {answer:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Whether kubectl ended well, and what it printed.
pub fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> Result<(bool, String)> {
    let output = Command::new(binaries::folder()?.join("kubectl"))
        .arg(format!("--kubeconfig={}", plane.kubeconfig.display()))
        .arg(format!("--cache-dir={}", plane.folder().join("kubectl-cache").display()))
        .args(arguments)
        .output()?;
    let text = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}
