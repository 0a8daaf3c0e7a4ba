//! Podscale itself in pods: its image, manifests, probes and rights, and what `kubectl port-forward`
//! leads to; installed with `podscale install` and with the Helm chart.

use super::super::fixture::Workspace;
use super::super::harness::Harness;
use super::super::process::{Process, free_ports};
use super::super::program::sum;
use super::cluster::Cluster;
use super::load::Load;
use super::machine::{run, script};
use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use libtest_mimic::Trial;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PODSCALE: &str = env!("CARGO_BIN_EXE_podscale");
/// Names what the image is made from, if not what the tests are built with.
const STATIC_BINARY: &str = "PODSCALE_STATIC_BINARY";
/// Where it is installed, as the documentation does.
const PLACE: &str = "podscale";
const NAME: &str = "web";
/// What makes passes of seconds.
const FLAGS: [&str; 2] = [
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=1s",
];
/// Loads for one pod and for two; see [`super::load::TARGET`].
const ONE: u64 = 30;
const TWO: u64 = 100;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.on_node("node::in_pods", in_pods)]
}

async fn in_pods(cluster: Arc<Cluster>, space: Workspace) -> Result<()> {
    let archive = cluster.plane.folder().join("images/podscale.tar");
    let binary = std::env::var_os(STATIC_BINARY).unwrap_or_else(|| PODSCALE.into());
    run(Command::new(script("image/podscale")).arg(binary).arg(&archive))?;
    cluster.runtime.import(&archive)?;
    let load = Load::start(&cluster, &space, NAME, TWO).await?;
    space.until_pods(NAME, 1).await?;
    let installed = Installed { cluster: &cluster, space: &space };
    let ended = async {
        by_manifests(&installed, &load).await.context("installed with podscale install")?;
        by_helm(&installed, &load).await.context("installed with helm")
    };
    let ended = ended.await;
    ended.with_context(|| format!("the ends of its logs:\n{}", installed.logs()))
}

async fn by_manifests(installed: &Installed<'_>, load: &Load) -> Result<()> {
    let Installed { cluster, space } = installed;
    pipe(cluster, &["apply", "--filename=-"])?;
    installed.until_two_are_ready().await?;
    space.until_replicas(NAME, 2).await?;
    let leader = installed.leader().await?;
    seen_through_port_forward(installed, &leader).await?;
    installed.nothing_went_wrong(&leader).await?;

    cluster.ask(&[
        "delete",
        "pod",
        &leader,
        "--namespace",
        PLACE,
        "--grace-period=0",
        "--force",
    ])?;
    let other = installed.until_another_leads(&leader).await?;
    load.set(ONE);
    space.until_replicas(NAME, 1).await.context("with another leader")?;
    installed.until_two_are_ready().await?;
    installed.nothing_went_wrong(&other).await?;
    pipe(cluster, &["delete", "--filename=-"])?;
    installed.until_gone().await
}

async fn by_helm(installed: &Installed<'_>, load: &Load) -> Result<()> {
    let Installed { cluster, space } = installed;
    let named = std::env::var_os("HELM").unwrap_or_else(|| "helm".into());
    if Command::new(&named).arg("version").output().is_err() {
        ensure!(std::env::var("CI").as_deref() != Ok("true"), "there is no helm");
        eprintln!("\n!! LEFT OUT: the Helm chart on a real node: there is no helm\n");
        return Ok(());
    }
    let helm = |arguments: &[&str]| {
        let mut command = Command::new(&named);
        command.env("KUBECONFIG", &cluster.plane.kubeconfig);
        run(command.args(arguments).args(["--namespace", PLACE, "--wait", "--timeout=100s"]))
    };
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/podscale");
    let chart = chart.to_str().context("a chart whose path is no text")?;
    let flags = format!("arguments={{{}}}", FLAGS.join(","));
    helm(&["install", PLACE, chart, "--create-namespace", "--set", &flags])?;
    installed.until_two_are_ready().await?;
    let leader = installed.leader().await?;
    load.set(TWO);
    space.until_replicas(NAME, 2).await?;
    installed.nothing_went_wrong(&leader).await?;
    helm(&["uninstall", PLACE])?;
    cluster.ask(&["delete", "namespace", PLACE])?;
    installed.until_gone().await
}

/// `podscale install | kubectl …`
fn pipe(cluster: &Cluster, arguments: &[&str]) -> Result<()> {
    let flags = FLAGS.map(|flag| format!("--run-flag={flag}"));
    let mut install = Command::new(PODSCALE);
    let mut install = install.arg("install").args(flags).stdout(Stdio::piped()).spawn()?;
    let printed = install.stdout.take().context("no output")?;
    run(cluster.kubectl(arguments)?.stdin(printed))?;
    ensure!(install.wait()?.success(), "podscale install failed");
    Ok(())
}

/// The dashboard, `top` and `explain`, as the documentation says.
async fn seen_through_port_forward(installed: &Installed<'_>, pod: &str) -> Result<()> {
    let Installed { cluster, space } = installed;
    let [port] = free_ports()?;
    let kubectl = super::super::binaries::program("kubectl")?;
    let kubeconfig = format!("--kubeconfig={}", cluster.plane.kubeconfig.display());
    let (pod, ports) = (format!("pod/{pod}"), format!("{port}:9090"));
    let arguments = [&*kubeconfig, "--namespace", PLACE, "port-forward", &pod, &ports];
    let folder = cluster.plane.folder();
    let mut forward = Process::start("port-forward", &kubectl, arguments, folder)?;
    forward.until_ready(async || get(port, "/").await.is_ok()).await?;
    let page = get(port, "/").await?;
    ensure!(page.starts_with("HTTP/1.0 200") && page.contains("<title>"), "not a page: {page}");
    let admin = format!("--admin=http://127.0.0.1:{port}");
    let ask = |arguments: &[&str]| run(Command::new(PODSCALE).args(arguments).arg(&admin));
    let autoscaler = format!("{}/{NAME}", space.namespace);
    let table = ask(&["top"])?;
    let row = |line: &str| line.starts_with(&*space.namespace) && line.contains("Deployment/web");
    ensure!(table.lines().any(row), "{autoscaler} is not in the table:\n{table}");
    let words = ask(&["explain", &autoscaler])?;
    ensure!(words.contains(&autoscaler) && words.contains("cpu"), "not explained:\n{words}");
    Ok(())
}

async fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Podscale as it runs in the cluster.
struct Installed<'a> {
    cluster: &'a Cluster,
    space: &'a Workspace,
}

impl Installed<'_> {
    async fn pods(&self) -> Result<Vec<Pod>> {
        let pods = Api::<Pod>::namespaced(self.space.client(), PLACE);
        let mut pods = pods.list(&ListParams::default()).await?.items;
        pods.retain(|pod| pod.metadata.deletion_timestamp.is_none());
        Ok(pods)
    }

    async fn until_two_are_ready(&self) -> Result<()> {
        let ready = async || {
            let mut ready = 0;
            for pod in self.pods().await? {
                let conditions = pod.status.and_then(|status| status.conditions);
                let mut conditions = conditions.unwrap_or_default().into_iter();
                ready += i32::from(conditions.any(|c| c.type_ == "Ready" && c.status == "True"));
            }
            Ok(ready)
        };
        self.space.until("ready pods of Podscale", &2, ready).await
    }

    /// The pod that leads: what is before the underscore in the lease.
    async fn leader(&self) -> Result<String> {
        let leases = Api::<Lease>::namespaced(self.space.client(), PLACE);
        let lease = leases.get("podscale").await?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        Ok(holder.split_once('_').context("nobody holds the lease")?.0.to_owned())
    }

    async fn until_another_leads(&self, than: &str) -> Result<String> {
        let other = async || Ok(self.leader().await? != than);
        self.space.until("whether another pod leads", &true, other).await?;
        let leader = self.leader().await?;
        let pods = self.pods().await?;
        ensure!(
            pods.iter().any(|pod| pod.name_any() == leader),
            "{leader} leads, but is not there"
        );
        Ok(leader)
    }

    /// No container was started again, and nothing was refused to the leader.
    async fn nothing_went_wrong(&self, leader: &str) -> Result<()> {
        for pod in self.pods().await? {
            let name = pod.name_any();
            let containers = pod.status.and_then(|status| status.container_statuses);
            let restarts: i32 = containers.iter().flatten().map(|one| one.restart_count).sum();
            ensure!(restarts == 0, "{name} was started {restarts} times again");
        }
        let path = format!("/api/v1/namespaces/{PLACE}/pods/{leader}:9090/proxy/metrics");
        let metrics = self.cluster.ask(&["get", "--raw", &path])?;
        let requests = |labels: &str| sum(&metrics, "podscale_api_requests_total", labels);
        ensure!(requests("") > 0.0, "the leader counts no requests:\n{metrics}");
        ensure!(requests("code=\"403\"") == 0.0, "something was refused:\n{metrics}");
        Ok(())
    }

    async fn until_gone(&self) -> Result<()> {
        let namespaces = Api::<Namespace>::all(self.space.client());
        let gone = async || Ok(namespaces.get_opt(PLACE).await?.is_none());
        self.space.until("whether the namespace is gone", &true, gone).await?;
        let left =
            self.cluster.ask(&["get", "clusterroles,clusterrolebindings", "--output=name"])?;
        if let Some(left) = left.lines().find(|name| name.ends_with("/podscale")) {
            bail!("{left} is left");
        }
        Ok(())
    }

    fn logs(&self) -> String {
        let label = "app.kubernetes.io/name=podscale";
        let arguments =
            ["logs", "--namespace", PLACE, "--selector", label, "--tail=15", "--prefix"];
        self.cluster.ask(&arguments).unwrap_or_else(|error| error.to_string())
    }
}
