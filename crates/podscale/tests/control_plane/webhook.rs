//! The admission webhook on a real control plane, with the rights that `podscale install` gives it: what makes no sense
//! is refused, and everything else goes on, also while Podscale is down and when its certificate changes.

use super::fixture::{Workspace, api};
use super::harness::Harness;
use super::installed::{apply, manifests, refusals};
use super::plane::ControlPlane;
use super::process::free_ports;
use super::program::{Program, QUICK};
use super::serve::kubectl;
use anyhow::{Context, Result, ensure};
use kube::api::DeleteParams;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const NAMESPACE: &str = "podscale";
const VERSION: &str = "admissionregistration.k8s.io/v1";
const KIND: &str = "ValidatingWebhookConfiguration";
/// The expression that makes no sense, on the page.
const MISTYPED: &str = "cpu.ratio > 0.8";

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let folder = harness.folder().to_owned();
    vec![harness.independent("webhook::refuses_what_makes_no_sense", move |name| async move {
        let plane = ControlPlane::start(&folder.join(name)).await?;
        Setup::new(&plane).await?.scenario().await
    })]
}

/// Podscale as it is installed with the webhook.
struct Setup<'a> {
    plane: &'a ControlPlane,
    space: Workspace,
    kubeconfig: PathBuf,
    port: u16,
    page: String,
}

/// The block of a page in a language that begins with these words.
fn block<'p>(page: &'p str, language: &str, begin: &str) -> Result<&'p str> {
    let marker = format!("```{language}\n{begin}");
    let at = page.find(&marker).with_context(|| format!("no block with {begin}"))?;
    let text = &page[at + language.len() + 4..];
    Ok(text.split("```").next().unwrap_or_default())
}

impl<'a> Setup<'a> {
    async fn new(plane: &'a ControlPlane) -> Result<Setup<'a>> {
        let space = Workspace::open(plane.client.clone(), NAMESPACE).await?;
        let [port] = free_ports()?;
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "podscale-metrics", "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost"}});
        apply(&plane.client, &service).await?;
        for mut object in manifests(NAMESPACE, &["--webhook", "--crds"])? {
            let kind = object["kind"].as_str().unwrap_or_default();
            let ends = ["Account", "Role", "Binding", "Definition", "Configuration"];
            if kind == KIND {
                // Nothing forwards port 443 to the program here.
                object["webhooks"][0]["clientConfig"]["service"]["port"] = json!(port);
            } else if !ends.iter().any(|end| kind.ends_with(end)) {
                continue;
            }
            apply(&plane.client, &object).await?;
        }
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/webhook.md");
        let kubeconfig = plane.kubeconfig_of(NAMESPACE, "podscale").await?;
        Ok(Setup { plane, space, kubeconfig, port, page: std::fs::read_to_string(page)? })
    }

    fn start(&self, name: &str) -> Result<Program> {
        let port = format!("--secure-port={}", self.port);
        let own = [
            "--webhook",
            "--service-namespace=podscale",
            "--leader-elect-resource-namespace=podscale",
            "--bind-address=127.0.0.1",
            &port,
        ];
        let flags: Vec<&str> = QUICK.into_iter().chain(own).collect();
        Program::start(name, self.plane.folder(), &self.kubeconfig, &flags)
    }

    /// Applies a manifest with kubectl; whether that went well, and what it said.
    fn apply(&self, manifest: &str, flags: &[&str]) -> Result<(bool, String)> {
        let file = self.plane.folder().join("applied.yaml");
        std::fs::write(&file, manifest)?;
        let file = file.to_str().context("UTF-8")?;
        kubectl(self.plane, &[&["apply", "--filename", file][..], flags].concat())
    }

    /// Waits until a manifest is refused; nothing is stored meanwhile.
    async fn until_refused(&self, manifest: &str) -> Result<()> {
        let refused = async || Ok(!self.apply(manifest, &["--dry-run=server"])?.0);
        self.space.until("whether it is refused", &true, refused).await
    }

    async fn bundle(&self) -> Result<Value> {
        let object = api(&self.plane.client, None, VERSION, KIND).get("podscale").await?;
        Ok(object.data["webhooks"][0]["clientConfig"]["caBundle"].clone())
    }

    async fn scenario(&self) -> Result<()> {
        let bad = block(&self.page, "yaml", "# web.yaml")?;
        let good = bad.replace(MISTYPED, "max(cpu, currentReplicas * cpu.ratio)");
        let good = good.replace("8 o'clock", "0 8 * * *");
        let mut program = self.start("podscale-1")?;
        let judged = async {
            self.until_refused(bad).await?;
            self.says_what_is_documented(bad, &good)?;
            self.asks_about_chpas_and_changes(bad).await
        };
        judged.await.with_context(|| format!("podscale:\n{}", program.log_tail()))?;
        ensure!(program.log().contains("refused: PodAutoscaler.podscale.dev"), "not in the log");
        let answered = program.metric("podscale_serve_requests_total", "admission.k8s.io").await?;
        ensure!(answered > 0.0 && refusals(&program).await? == 0.0, "{}", program.log_tail());
        program.stop().await?;
        self.goes_on_while_it_is_down(bad).await?;
        let mut program = self.start("podscale-2")?;
        let back = async {
            self.until_refused(bad.replace("name: web\n", "name: other\n").as_str()).await?;
            self.what_was_stored_can_be_handled(bad)?;
            self.outlives_its_certificate(bad).await
        };
        back.await.with_context(|| format!("podscale:\n{}", program.log_tail()))?;
        program.stop().await
    }

    /// The commands of the page print what stands there.
    fn says_what_is_documented(&self, bad: &str, good: &str) -> Result<()> {
        let fixed = block(&self.page, "yaml", "# fixed.yaml")?;
        for (file, manifest) in [("web.yaml", bad), ("fixed.yaml", fixed)] {
            let command = format!("$ kubectl apply -f {file}\n");
            let printed = block(&self.page, "console", &command)?;
            let expected = printed.strip_prefix(&command).context("no command")?;
            let (ok, text) = self.apply(manifest, &[])?;
            // Of two streams, either may come first.
            let lines = |text: &str| {
                let mut lines: Vec<String> = text.lines().map(|l| l.trim().to_owned()).collect();
                lines.sort_unstable();
                lines
            };
            ensure!(ok == (file == "fixed.yaml"), "{file}: {text}");
            ensure!(lines(&text) == lines(expected), "{file}:\n{text}\nand not\n{expected}");
        }
        let (ok, text) = self.apply(good, &[])?;
        ensure!(ok && text.contains("podautoscaler.podscale.dev/web created"), "{text}");
        Ok(())
    }

    async fn asks_about_chpas_and_changes(&self, bad: &str) -> Result<()> {
        let (ok, text) = self.apply(bad, &[])?;
        ensure!(!ok && text.contains("the expression must be a number"), "a change: {text}");
        let chpa =
            block(&self.page, "yaml", "# fixed.yaml")?.replace("type: Resource", "type: Pods");
        let (ok, text) = self.apply(&chpa, &[])?;
        let expected = "spec.metrics[0].type: metric.Pods is nil while metric.Type is 'Pods'";
        ensure!(!ok && text.contains(expected), "{text}");
        // Its own status is written all the time.
        let pas =
            api(&self.plane.client, Some("default"), "podscale.dev/v1alpha1", "PodAutoscaler");
        self.space
            .until("whether the controller writes the status", &true, async || {
                Ok(pas.get("web").await?.data["status"]["conditions"].is_array())
            })
            .await
    }

    async fn goes_on_while_it_is_down(&self, bad: &str) -> Result<()> {
        let (ok, text) = self.apply(bad, &[])?;
        ensure!(ok && text.contains("podautoscaler.podscale.dev/web configured"), "{text}");
        Ok(())
    }

    /// A spec that was stored unasked does not keep anybody from handling the object.
    fn what_was_stored_can_be_handled(&self, bad: &str) -> Result<()> {
        let spec = r#"{"spec": {"maxReplicas": 8}}"#;
        let cases: [(&[&str], bool, &str); 3] = [
            (&["label", "pa", "web", "team=shop"], true, "labeled"),
            (&["patch", "pa", "web", "--type=merge", "--patch", spec], false, "must be a number"),
            (&["delete", "pa", "web"], true, "deleted"),
        ];
        for (arguments, expected, words) in cases {
            let (ok, text) = kubectl(self.plane, arguments)?;
            ensure!(ok == expected && text.contains(words), "kubectl {arguments:?}: {text}");
        }
        let (ok, text) = self.apply(bad, &[])?;
        ensure!(!ok, "it is stored again: {text}");
        Ok(())
    }

    /// Without its Secret it makes another authority, which the API server learns of.
    async fn outlives_its_certificate(&self, bad: &str) -> Result<()> {
        let before = self.bundle().await?;
        ensure!(before.is_string(), "no caBundle");
        let secrets = self.space.api("v1", "Secret");
        secrets.delete("podscale-serving", &DeleteParams::default()).await?;
        self.space
            .until("whether another authority is published", &true, async || {
                let now = self.bundle().await?;
                Ok(now.is_string() && now != before)
            })
            .await?;
        self.until_refused(bad).await
    }
}
