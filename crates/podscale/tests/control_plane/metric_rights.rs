//! The rights that `podscale install` asks for besides those of the controller, when metrics are read and served, and
//! the admission webhook: they are enough, and without any one of them something is refused that is named in the log or the answer.

use super::fixture::{Workspace, api};
use super::harness::Harness;
use super::installed::{LeftOut, apply, each_left_out, manifests, refusals};
use super::plane::ControlPlane;
use super::process::free_ports;
use super::program::{Program, QUICK};
use super::serve::node::{Node, Used};
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use http_body_util::BodyExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::{Client, Config};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::cell::Cell;
use std::path::PathBuf;

const NAMESPACE: &str = "podscale";
const RULES: &str = "metric-rules";
/// The binding with which it may read whom to trust.
const TRUST: (&str, &str) = ("podscale-authentication-reader", "kube-system");
/// Everything that can be read and served. Nobody answers for Prometheus, which needs no rights of Kubernetes.
const FLAGS: [&str; 5] = [
    "--resource-metrics=kubelet",
    "--serve-metrics=resource,custom,external",
    "--metric-rules=metric-rules",
    "--prometheus-url=http://127.0.0.1:9",
    "--webhook",
];

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let folder = harness.folder().to_owned();
    vec![harness.independent("rbac::exactly_those_for_metrics", move |name| async move {
        let plane = ControlPlane::start(&folder.join(name)).await?;
        exactly_those_for_metrics(&plane).await
    })]
}

/// Podscale as it is installed, and somebody who asks it.
struct Setup<'a> {
    plane: &'a ControlPlane,
    space: Workspace,
    manifests: Vec<Value>,
    kubeconfig: PathBuf,
    token: String,
    /// Each run has a log of its own.
    runs: Cell<u32>,
}

async fn exactly_those_for_metrics(plane: &ControlPlane) -> Result<()> {
    let used = || {
        let [namespace, pod, container] = ["default", "web", "app"].map(str::to_owned);
        vec![Used { namespace, pod, container, cores: 0.25 }]
    };
    let _node = Node::start_guarded(plane, "node-1", Box::new(used)).await?;
    let space = Workspace::open(plane.client.clone(), NAMESPACE).await?;
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": RULES},
        "data": {"config.yaml": "rules: []"}});
    space.create(config_map).await?;
    let manifests = manifests(NAMESPACE, &FLAGS)?;
    let kinds = ["Account", "Role", "Binding", "APIService", "Configuration"];
    let is_applied = |object: &&Value| {
        object["kind"].as_str().is_some_and(|kind| kinds.iter().any(|end| kind.ends_with(end)))
    };
    for object in manifests.iter().filter(is_applied) {
        apply(&plane.client, object).await?;
    }
    let setup = Setup {
        kubeconfig: plane.kubeconfig_of(NAMESPACE, "podscale").await?,
        token: plane.token_of(NAMESPACE, "podscale").await?,
        plane,
        space,
        manifests,
        runs: Cell::new(0),
    };
    for secret in [None, Some("nonsense")] {
        setup.all_are_enough(secret).await?;
    }
    for kind in ["ClusterRole", "Role"] {
        setup.each_is_needed(kind).await?;
    }
    setup.trust_is_needed().await
}

impl Setup<'_> {
    /// An object of those that are installed.
    fn installed(&self, kind: &str) -> Result<&Value> {
        let is_it = |o: &&Value| o["kind"] == kind && o["metadata"]["name"] == "podscale";
        self.manifests.iter().find(is_it).with_context(|| format!("no {kind}"))
    }

    /// Starts it with the flags of its Deployment, on ports of its own.
    fn start(&self) -> Result<(Program, u16)> {
        let [port] = free_ports()?;
        let container = &self.installed("Deployment")?["spec"]["template"]["spec"]["containers"][0];
        let given = container["args"].as_array().context("no flags")?.iter();
        let given = given.filter_map(Value::as_str).filter(|flag| {
            *flag != "run"
                && !flag.starts_with("--admin-address")
                && !flag.starts_with("--log-format")
        });
        let port_flag = format!("--secure-port={port}");
        let own = [
            "--leader-elect=false",
            "--leader-elect-resource-namespace=podscale",
            "--metric-resolution=1s",
            "--bind-address=127.0.0.1",
            &port_flag,
        ];
        let flags: Vec<&str> = given.chain(QUICK).chain(own).collect();
        self.runs.update(|runs| runs + 1);
        let name = format!("podscale-{}", self.runs.get());
        Ok((Program::start(&name, self.plane.folder(), &self.kubeconfig, &flags)?, port))
    }

    /// What the Secret of the certificate holds before it starts; without one there is none.
    async fn set_secret(&self, text: Option<&str>) -> Result<()> {
        let secrets = self.space.api("v1", "Secret");
        let name = "podscale-serving";
        // There may be none.
        let _ = secrets.delete(name, &DeleteParams::default()).await;
        let Some(text) = text else { return Ok(()) };
        let keys = ["ca.crt", "ca.key", "tls.crt", "tls.key"];
        let data: serde_json::Map<String, Value> =
            keys.map(|key| (key.to_owned(), text.into())).into_iter().collect();
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": data});
        let params = PatchParams::apply("test").force();
        secrets.patch(name, &params, &Patch::Apply(&object)).await?;
        Ok(())
    }

    /// Asks for a metric of services, which there is not, with the token of its own account, which may. For that
    /// it must be allowed to find out who asks, what they may, and which services there are.
    async fn ask(&self, port: u16) -> Result<(u16, String)> {
        let mut config = Config::new(format!("https://127.0.0.1:{port}").parse()?);
        config.accept_invalid_certs = true;
        let path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/services/*/hits";
        let request = Request::get(path).header("authorization", format!("Bearer {}", self.token));
        let answer = Client::try_from(config)?.send(request.body(Body::empty())?).await?;
        let code = answer.status().as_u16();
        let body = answer.into_body().collect().await?.to_bytes();
        Ok((code, String::from_utf8_lossy(&body).into_owned()))
    }

    fn webhooks(&self) -> Api<DynamicObject> {
        let (version, kind) = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
        api(&self.plane.client, None, version, kind)
    }

    async fn all_are_enough(&self, secret: Option<&str>) -> Result<()> {
        self.set_secret(secret).await?;
        let (mut program, port) = self.start()?;
        let works = async || {
            let (code, body) = self.ask(port).await?;
            let nodes = program.metric("podscale_kubelet_nodes", "").await?;
            let loads = program.metric("podscale_metric_rules_loads_total", "ok").await?;
            Ok((code, body.contains("could not find the metric hits"), nodes, loads))
        };
        self.space.until("what is served and read", &(404, true, 1.0, 1.0), works).await?;
        let api_service = super::aggregation::registrations(&self.plane.client);
        self.space
            .until("whether each caBundle is written", &true, async || {
                let object = api_service.get("v1beta1.metrics.k8s.io").await?;
                let webhook = &self.webhooks().get("podscale").await?.data["webhooks"][0];
                let bundles =
                    [&object.data["spec"]["caBundle"], &webhook["clientConfig"]["caBundle"]];
                Ok(bundles.into_iter().all(Value::is_string))
            })
            .await?;
        let refused = refusals(&program).await?;
        let failed = program.metric("podscale_kubelet_scrapes_total", "failed").await?;
        ensure!((refused, failed) == (0.0, 0.0), "refused:\n{}", program.log_tail());
        program.stop().await?;
        ensure!(!program.log().contains("forbidden"), "{}", program.log_tail());
        Ok(())
    }

    /// Every right of a role that an installation without metrics does not have.
    async fn each_is_needed(&self, kind: &str) -> Result<()> {
        let role = self.installed(kind)?;
        let rules = role["rules"].as_array().context("a role without rules")?;
        let without = manifests(NAMESPACE, &[])?;
        let plain = without.iter().find(|object| object["kind"] == kind).context("no role")?;
        let plain = each_left_out(plain["rules"].as_array().context("a role without rules")?);
        let plain: Vec<String> = plain.iter().map(LeftOut::to_string).collect();
        for left_out in each_left_out(rules) {
            if plain.contains(&left_out.to_string()) {
                continue;
            }
            let mut less = role.clone();
            less["rules"] = Value::Array(left_out.rest.clone());
            apply(&self.plane.client, &less).await?;
            self.is_needed(&left_out).await.with_context(|| format!("without {left_out}"))?;
        }
        apply(&self.plane.client, role).await
    }

    async fn is_needed(&self, left_out: &LeftOut) -> Result<()> {
        // Only what is of no use is written over.
        let written_over = left_out.resource == "secrets" && left_out.verb == "update";
        self.set_secret(written_over.then_some("nonsense")).await?;
        let bundles = super::aggregation::registrations(&self.plane.client);
        if left_out.resource == "apiservices" {
            let patch = json!({"spec": {"caBundle": null}});
            let params = PatchParams::default();
            bundles.patch("v1beta1.metrics.k8s.io", &params, &Patch::Merge(&patch)).await?;
        }
        if left_out.resource == "validatingwebhookconfigurations" {
            let mut webhooks = self.webhooks().get("podscale").await?.data["webhooks"].clone();
            webhooks[0]["clientConfig"]["caBundle"] = Value::Null;
            let patch = json!({"webhooks": webhooks});
            self.webhooks()
                .patch("podscale", &PatchParams::default(), &Patch::Merge(&patch))
                .await?;
        }
        let words = match left_out.resource.as_str() {
            // Kubelets say no more than that.
            "nodes/metrics" => "answered 403 Forbidden".to_owned(),
            resource => format!("cannot {} resource \"{resource}\"", left_out.verb),
        };
        self.until_said(&words).await
    }

    /// Starts it, and waits until the log, or an answer, says this.
    async fn until_said(&self, words: &str) -> Result<()> {
        let (program, port) = self.start()?;
        let said = async || {
            let answer = self.ask(port).await.map(|(_, body)| body).unwrap_or_default();
            let plain = answer.replace("\\\"", "\"");
            Ok(program.log().contains(words) || plain.contains(words))
        };
        let what = format!("whether something says {words:?}");
        self.space.until(&what, &true, said).await.with_context(|| program.log_tail())
    }

    async fn trust_is_needed(&self) -> Result<()> {
        let (name, namespace) = TRUST;
        let version = "rbac.authorization.k8s.io/v1";
        let bindings = api(&self.plane.client, Some(namespace), version, "RoleBinding");
        bindings.delete(name, &DeleteParams::default()).await?;
        self.set_secret(None).await?;
        self.until_said("configmaps \"extension-apiserver-authentication\" is forbidden").await
    }
}
