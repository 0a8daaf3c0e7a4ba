//! Singlecloud's API on a real control plane, with the rights that `podscale install` gives it, beside a
//! prometheus-adapter that keeps the rules. With metrics that are served: `pipeline/named_metrics.rs`.

#[path = "singlecloud/docs.rs"]
mod docs;
#[path = "singlecloud/rights.rs"]
mod rights;

use super::fixture::{Workspace, api, deployment};
use super::harness::Harness;
use super::kubelet::Kubelet;
use super::plane::{Autoscaler, ControlPlane};
use super::process::{Process, free_ports};
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Client, Config};
use libtest_mimic::Trial;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Where Podscale would run, and its account is.
pub const HOME: &str = "kube-system";
const ADAPTER: &str = "monitor-prometheus-adapter";
const CONFIGURATION: &str =
    "resourceRules:\n  window: 5m\nrules:\n- seriesQuery: up\n  odd: true\n";

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let folder = harness.folder().to_owned();
    vec![harness.independent("singlecloud::beside_an_adapter", move |name| async move {
        let plane = ControlPlane::start(&folder.join(name)).await?;
        beside_an_adapter(&plane).await
    })]
}

/// Gives Podscale the rights that `podscale install` prints with some flags; the roles among them.
pub async fn install(plane: &ControlPlane, flags: &[&str]) -> Result<Vec<Value>> {
    let printed = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(["install", "--namespace", HOME, "--output", "json", "--singlecloud"])
        .args(flags)
        .output()?;
    let error = String::from_utf8_lossy(&printed.stderr);
    ensure!(printed.status.success(), "podscale install failed: {error}");
    let list: Value = serde_json::from_slice(&printed.stdout)?;
    let mut roles = Vec::new();
    for object in list["items"].as_array().context("no list")? {
        let kind = object["kind"].as_str().unwrap_or_default();
        if kind == "ServiceAccount" || kind.contains("Role") {
            apply(plane, object).await?;
        }
        if kind == "Role" || kind == "ClusterRole" {
            roles.push(object.clone());
        }
    }
    Ok(roles)
}

pub async fn apply(plane: &ControlPlane, object: &Value) -> Result<()> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("not a text");
    let (version, kind) = (text(&object["apiVersion"])?, text(&object["kind"])?);
    let name = text(&object["metadata"]["name"])?;
    let objects = api(&plane.client, object["metadata"]["namespace"].as_str(), &version, &kind);
    let params = PatchParams::apply("test").force();
    objects.patch(&name, &params, &Patch::Apply(object)).await?;
    Ok(())
}

/// Somebody who uses the API with a token.
pub struct Rest {
    client: Client,
    token: String,
    collection: String,
    authority: Vec<u8>,
}

impl Rest {
    /// An account of a namespace that has one of Kubernetes' own roles there, such as `edit`.
    pub async fn open(
        plane: &ControlPlane,
        space: &Workspace,
        role: &str,
        port: u16,
    ) -> Result<Rest> {
        let (rbac, group) = ("rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io");
        let namespace = &space.namespace;
        let metadata = json!({"name": role, "namespace": namespace});
        apply(plane, &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
            .await?;
        let subject = json!({"kind": "ServiceAccount", "name": role, "namespace": namespace});
        let binding = json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [subject]});
        apply(plane, &binding).await?;
        until_allowed(plane, space, role).await?;
        let secrets = api(&plane.client, Some(HOME), "v1", "Secret");
        let secret = secrets.get("podscale-serving").await?;
        let pem = STANDARD.decode(secret.data["data"]["ca.crt"].as_str().context("no ca.crt")?)?;
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
        config.root_cert = Some(roots?.into_iter().map(|root| root.to_vec()).collect());
        config.tls_server_name = Some(format!("podscale-metrics.{HOME}.svc"));
        let root = format!("/apis/zcloud.cn/v1/clusters/local/namespaces/{namespace}");
        Ok(Rest {
            client: Client::try_from(config)?,
            token: plane.token_of(namespace, role).await?,
            collection: format!("{root}/horizontalpodautoscalers"),
            authority: pem,
        })
    }

    /// Who signed the certificate of the server.
    fn authority(&self) -> &[u8] {
        &self.authority
    }

    fn token(&self) -> &str {
        &self.token
    }

    /// The path of the namespace.
    fn root(&self) -> &str {
        self.collection.trim_end_matches("/horizontalpodautoscalers")
    }

    /// Sends a request about the autoscaler of that name, or about all if it has none.
    pub async fn send(&self, verb: &str, name: &str, body: &Value) -> Result<(u16, Value)> {
        let path = match name {
            "" => self.collection.clone(),
            name => format!("{}/{name}", self.collection),
        };
        self.send_to(verb, &path, body).await
    }

    pub async fn send_to(&self, verb: &str, path: &str, body: &Value) -> Result<(u16, Value)> {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder()
            .method(verb)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.token))
            .body(Body::from(body))?;
        let answer = self.client.send(request).await?;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((code, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    /// As [`Rest::send`], with the code that it must have.
    pub async fn expect(&self, verb: &str, name: &str, body: &Value, code: u16) -> Result<Value> {
        let (answered, answer) = self.send(verb, name, body).await?;
        ensure!(answered == code, "{verb} {name}: {answered} instead of {code}: {answer}");
        Ok(answer)
    }
}

/// A refusal would be remembered for a while, so nothing is asked before the API server knows the role.
async fn until_allowed(plane: &ControlPlane, space: &Workspace, account: &str) -> Result<()> {
    let (version, namespace) = ("authorization.k8s.io/v1", &space.namespace);
    let review = json!({"apiVersion": version, "kind": "SubjectAccessReview", "metadata": {}, "spec": {
        "user": format!("system:serviceaccount:{namespace}:{account}"),
        "resourceAttributes": {"namespace": namespace, "verb": "list", "group": "autoscaling",
            "resource": "horizontalpodautoscalers"}}});
    let reviews = api(&plane.client, None, version, "SubjectAccessReview");
    let what = format!("whether {account} may list autoscalers");
    space
        .until(&what, &json!(true), async || {
            let review = serde_json::from_value(review.clone())?;
            let answer = reviews.create(&PostParams::default(), &review).await?;
            Ok(answer.data["status"]["allowed"].clone())
        })
        .await
}

/// An autoscaler with a metric by name and labels.
pub fn autoscaler(kind: &str, name: &str, metric: &str, each: &str) -> Value {
    json!({"name": name, "scaleTargetKind": kind, "scaleTargetName": name,
        "minReplicas": 1, "maxReplicas": 9,
        "resourceMetrics": [
            {"resourceName": "cpu", "targetType": "AverageValue", "averageValue": "100m"},
            {"resourceName": "memory", "targetType": "Utilization", "averageUtilization": 200}],
        "customMetrics": [
            {"metricName": metric, "labels": {"view": "default"}, "averageValue": each}]})
}

/// The adapter, which keeps the rules.
struct Adapter {
    space: Workspace,
}

impl Adapter {
    async fn start(plane: &ControlPlane) -> Result<Adapter> {
        let space = Workspace::open(plane.client.clone(), "zcloud").await?;
        space
            .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ADAPTER},
                "data": {"config.yaml": CONFIGURATION}}))
            .await?;
        let mut object = deployment(ADAPTER, 2, &["app"]);
        object["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(0);
        space.create(object).await?;
        space.until_pods(ADAPTER, 2).await?;
        Ok(Adapter { space })
    }

    async fn text(&self) -> Result<String> {
        let map = self.space.api("v1", "ConfigMap").get(ADAPTER).await?;
        Ok(map.data["data"]["config.yaml"].as_str().context("no rules")?.to_owned())
    }

    async fn rules(&self) -> Result<Value> {
        Ok(serde_saphyr::from_str(&self.text().await?)?)
    }

    async fn pods(&self) -> Result<Vec<String>> {
        let pods = self.space.api("v1", "Pod").list(&ListParams::default()).await?;
        let mut uids: Vec<String> =
            pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
        uids.sort_unstable();
        Ok(uids)
    }
}

async fn beside_an_adapter(plane: &ControlPlane) -> Result<()> {
    plane.start_manager(Autoscaler::Off, &[]).await?;
    let _kubelet = Kubelet::start(&plane.client);
    let space = Workspace::open(plane.client.clone(), "shop").await?;
    let adapter = Adapter::start(plane).await?;
    let location = format!("--singlecloud-adapter=zcloud/{ADAPTER}");
    let roles = install(plane, &[&location]).await?;
    let [secure, port]: [u16; 2] = free_ports()?;
    let kubeconfig = plane.kubeconfig_of(HOME, "podscale").await?;
    let arguments = [
        "serve".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={secure}"),
        format!("--singlecloud-port={port}"),
        format!("--service-namespace={HOME}"),
        location,
    ];
    let program = Path::new(env!("CARGO_BIN_EXE_podscale"));
    let mut process = Process::start("serve", program, arguments, plane.folder())?;
    let ready = async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok();
    process.until_ready(ready).await?;
    let scenario = async {
        for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
            space.create(workload(kind)).await?;
        }
        rules_come_and_go(plane, &space, &adapter, port).await?;
        refused_half_way(plane, &space, &adapter, &roles, port).await?;
        docs::commands_work(plane, &space, port).await.context("docs/singlecloud.md")?;
        rights::each_is_needed(plane, &space, &roles, port).await
    };
    scenario.await.with_context(|| format!("podscale serve:\n{}", process.log_tail()))?;
    let status = process.terminate().await?;
    ensure!(status.success(), "podscale serve ended with {status}");
    Ok(())
}

fn workload(kind: &str) -> Value {
    let mut object = deployment("web", 1, &["app"]);
    object["kind"] = json!(kind);
    match kind {
        "StatefulSet" => object["spec"]["serviceName"] = json!("web"),
        "DaemonSet" => drop(object["spec"].as_object_mut().map(|spec| spec.remove("replicas"))),
        _ => {}
    }
    // Those of one name have pods of their own.
    let labels = json!({"app": kind.to_lowercase()});
    object["spec"]["selector"]["matchLabels"] = labels.clone();
    object["spec"]["template"]["metadata"]["labels"] = labels;
    object
}

async fn rules_come_and_go(
    plane: &ControlPlane,
    space: &Workspace,
    adapter: &Adapter,
    port: u16,
) -> Result<()> {
    let editor = Rest::open(plane, space, "edit", port).await?;
    let viewer = Rest::open(plane, space, "view", port).await?;
    let body = autoscaler("deployment", "web", "qps", "2000");
    let refusal = viewer.expect("POST", "", &body, 403).await?;
    ensure!(refusal["code"] == "PermissionDenied", "{refusal}");
    let before = adapter.pods().await?;
    let created = editor.expect("POST", "", &body, 201).await?;
    let alias = "qps_d2f0592e2b8c_shop_web";
    let text = adapter.text().await?;
    ensure!(text.contains(alias) && text.contains("odd: true"), "{text}");
    let hpas = space.api("autoscaling/v2", "HorizontalPodAutoscaler");
    let hpa = hpas.get("web").await?;
    let named = &hpa.data["spec"]["metrics"][2]["pods"]["metric"]["name"];
    ensure!(*named == *alias, "{named}");
    let restarted = "whether the adapter's pods are others";
    space
        .until(restarted, &true, async || {
            let after = adapter.pods().await?;
            Ok(after.len() == before.len() && !after.iter().any(|uid| before.contains(uid)))
        })
        .await?;
    let seen = viewer.expect("GET", "web", &Value::Null, 200).await?;
    ensure!(seen["customMetrics"] == created["customMetrics"], "{seen}");
    let mut change = seen.clone();
    change["customMetrics"][0]["labels"]["view"] = json!("other");
    editor.expect("PUT", "web", &change, 200).await?;
    ensure!(!adapter.text().await?.contains(alias), "the old rule is still there");
    editor.expect("DELETE", "web", &Value::Null, 202).await?;
    let left = adapter.text().await?;
    ensure!(!left.contains("_shop_web") && left.contains("window: 5m"), "{left}");
    // And what belongs to a workload goes with it.
    editor.expect("POST", "", &body, 201).await?;
    space.delete("apps/v1", "Deployment", "web").await?;
    space
        .until("whether everything is gone with the workload", &true, async || {
            let gone = hpas.get_opt("web").await?.is_none();
            Ok(gone && !adapter.text().await?.contains(alias))
        })
        .await?;
    space.create(workload("Deployment")).await?;
    Ok(())
}

/// With real refusals: the right to write the ConfigMap is missing, or the autoscaler is invalid.
async fn refused_half_way(
    plane: &ControlPlane,
    space: &Workspace,
    adapter: &Adapter,
    roles: &[Value],
    port: u16,
) -> Result<()> {
    let editor = Rest::open(plane, space, "edit", port).await?;
    let hpas = space.api("autoscaling/v2", "HorizontalPodAutoscaler");
    let before = adapter.rules().await?;
    let untouched = async || -> Result<()> {
        ensure!(hpas.get_opt("web").await?.is_none(), "there is an autoscaler");
        let left = adapter.rules().await?;
        ensure!(left == before, "something is left: {left}");
        Ok(())
    };
    let role = roles.iter().find(|role| role["metadata"]["namespace"] == "zcloud");
    let role = role.context("no role beside the adapter")?;
    let mut less = role.clone();
    less["rules"][0]["verbs"] = json!(["get"]);
    apply(plane, &less).await?;
    let body = autoscaler("deployment", "web", "qps", "2000");
    space
        .until("whether the ConfigMap cannot be written", &true, async || {
            let (code, answer) = editor.send("POST", "", &body).await?;
            if code == 201 {
                // The right was not gone yet.
                editor.expect("DELETE", "web", &Value::Null, 202).await?;
            }
            let text = answer["message"].as_str().unwrap_or_default();
            Ok(code == 422 && text.contains("cannot update resource \"configmaps\""))
        })
        .await?;
    apply(plane, role).await?;
    untouched().await?;
    let mut wrong = body.clone();
    wrong["minReplicas"] = json!(20);
    space
        .until("whether the autoscaler is refused", &true, async || {
            let (code, answer) = editor.send("POST", "", &wrong).await?;
            let text = answer["message"].as_str().unwrap_or_default();
            Ok(code == 422 && text.contains("must be greater than or equal to `minReplicas`"))
        })
        .await?;
    untouched().await
}
