//! A cluster of one real node: a control plane with its scheduler, containerd, the kubelet and
//! metrics-server.

use super::super::binaries;
use super::super::fixture::api;
use super::super::plane::{Autoscaler, ControlPlane};
use super::super::process::{Process, free_ports};
use super::machine::{Machine, run};
use super::runtime::Runtime;
use anyhow::{Context, Result};
use base64::Engine;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// The node's name.
pub const NODE: &str = "test-node";
/// The node's address, which cannot be a loopback address; see `e2e/node/machine`. The kubelet's port
/// there is the usual one, 10250.
pub const ADDRESS: &str = "10.213.2.1";
/// Where pods expect the API server.
const SERVICE: &str = "10.213.0.1";

/// A running cluster. What it consists of ends in this order, and leaves nothing behind.
pub struct Cluster {
    kubelet: Mutex<Option<Process>>,
    metrics: Mutex<Option<Process>>,
    _scheduler: Process,
    _entrance: Entrance,
    pub plane: ControlPlane,
    pub runtime: Runtime,
    _machine: Machine,
}

/// Leads from the address of the Service `kubernetes` to the API server, as kube-proxy would.
struct Entrance(AbortHandle);

impl Drop for Entrance {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Cluster {
    /// Starts everything, and waits until the node is ready and its metrics are served.
    pub async fn start(folder: &Path) -> Result<Cluster> {
        let machine = Machine::claim(folder)?;
        std::fs::create_dir_all(folder)?;
        let runtime = Runtime::start(folder).await?;
        let plane = ControlPlane::start_for_node(folder, SERVICE).await?;
        plane.start_manager(Autoscaler::Off, &[]).await?;
        let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig.display());
        let scheduler = binaries::program("kube-scheduler")?;
        let flags = [&*kubeconfig, "--leader-elect=false", "--secure-port=0"];
        let scheduler = Process::start("kube-scheduler", &scheduler, flags, folder)?;
        let entrance = open_entrance(plane.port()).await?;
        prepare_kubelet(&plane, &runtime)?;
        let cluster = Cluster {
            kubelet: Mutex::default(),
            metrics: Mutex::default(),
            _scheduler: scheduler,
            _entrance: entrance,
            plane,
            runtime,
            _machine: machine,
        };
        cluster.start_kubelet().await?;
        *cluster.metrics.lock() = Some(start_metrics_server(&cluster.plane).await?);
        Ok(cluster)
    }

    /// Starts the kubelet, and waits until it has reported that the node is ready.
    pub async fn start_kubelet(&self) -> Result<()> {
        let folder = self.plane.folder();
        let file = |name: &str| folder.join(name).display().to_string();
        let arguments = [
            format!("CONTAINERD_ADDRESS={}", self.runtime.socket().display()),
            binaries::program("kubelet")?.display().to_string(),
            format!("--config={}", file("kubelet.json")),
            format!("--kubeconfig={}", file("node.kubeconfig")),
            format!("--root-dir={}", file("kubelet")),
            format!("--cert-dir={}", file("kubelet/pki")),
            format!("--hostname-override={NODE}"),
            format!("--node-ip={ADDRESS}"),
            "--housekeeping-interval=1s".to_owned(),
        ];
        let before = self.ready_since().await;
        let mut process = Process::start("kubelet", Path::new("env"), arguments, folder)?;
        process.until_ready(async || self.ready_since().await > before).await?;
        *self.kubelet.lock() = Some(process);
        Ok(())
    }

    /// Asks the kubelet to end; its pods go on.
    pub async fn stop_kubelet(&self) -> Result<()> {
        let process = self.kubelet.lock().take();
        process.context("the kubelet does not run")?.terminate().await?;
        Ok(())
    }

    /// When the kubelet last said that the node is ready; nothing is earlier than any time.
    async fn ready_since(&self) -> Option<Timestamp> {
        let nodes = Api::<Node>::all(self.plane.client.clone());
        let status = nodes.get(NODE).await.ok()?.status?;
        let mut conditions = status.conditions?.into_iter();
        let ready = conditions.find(|c| c.type_ == "Ready" && c.status == "True")?;
        Some(ready.last_heartbeat_time?.0)
    }

    /// kubectl as the administrator.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(binaries::program("kubectl")?);
        command.env("KUBECONFIG", &self.plane.kubeconfig).args(arguments);
        Ok(command)
    }

    /// What kubectl prints.
    pub fn ask(&self, arguments: &[&str]) -> Result<String> {
        run(&mut self.kubectl(arguments)?)
    }

    /// What `kubectl top pods` shows in a namespace: each pod's CPU in thousandths of a core. Whoever serves
    /// `metrics.k8s.io` answers.
    pub fn top_pods(&self, namespace: &str) -> Result<Vec<(String, u64)>> {
        let table = self.ask(&["top", "pods", "--namespace", namespace, "--no-headers"])?;
        let row = |line: &str| {
            let mut fields = line.split_whitespace();
            let (name, cpu) = (fields.next()?, fields.next()?.strip_suffix('m')?);
            Some((name.to_owned(), cpu.parse().ok()?))
        };
        let rows = table.lines().map(|line| row(line).with_context(|| format!("a row {line:?}")));
        rows.collect()
    }

    /// The state of all pods, for those who look at a failure.
    pub fn describe(&self) -> String {
        let kubelet = self.kubelet.lock().as_ref().map(Process::log).unwrap_or_default();
        let errors: Vec<&str> = kubelet.lines().filter(|line| line.starts_with('E')).collect();
        let errors = errors[errors.len().saturating_sub(10)..].join("\n");
        let ask =
            |arguments: &[&str]| self.ask(arguments).unwrap_or_else(|error| error.to_string());
        let pods = ask(&["get", "pods", "--all-namespaces", "--output=wide"]);
        let events = ask(&["get", "events", "--all-namespaces", "--field-selector=type=Warning"]);
        format!("{pods}\n{events}\nthe kubelet's last errors:\n{errors}")
    }
}

async fn open_entrance(port: u16) -> Result<Entrance> {
    let listener = TcpListener::bind((SERVICE, 443)).await?;
    let task = tokio::spawn(async move {
        while let Ok((mut outside, _)) = listener.accept().await {
            tokio::spawn(async move {
                if let Ok(mut inside) = TcpStream::connect(("127.0.0.1", port)).await {
                    // Who goes away is no matter.
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                }
            });
        }
    });
    Ok(Entrance(task.abort_handle()))
}

/// Writes what the kubelet is given: who it is, and its configuration.
fn prepare_kubelet(plane: &ControlPlane, runtime: &Runtime) -> Result<()> {
    let (folder, authority) = (plane.folder(), &plane.authority);
    let name = format!("system:node:{NODE}");
    authority.sign_for(&name, Some("system:nodes"), &[])?.write(folder, "node")?;
    authority.sign(NODE, &[ADDRESS])?.write(folder, "kubelet")?;
    plane.kubeconfig_signed("node")?;
    let file = |name: &str| -> PathBuf { folder.join(name) };
    let configuration = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "address": ADDRESS, "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": false}, "webhook": {"enabled": true},
            "x509": {"clientCAFile": file("ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": file("kubelet.crt"), "tlsPrivateKeyFile": file("kubelet.key"),
        "containerRuntimeEndpoint": format!("unix://{}", runtime.socket().display()),
        "cgroupDriver": "cgroupfs", "failCgroupV1": false, "failSwapOn": false,
        "makeIPTablesUtilChains": false, "resolvConf": "",
        // The disks of test machines may be fuller than a node's should be.
        "evictionHard": {"nodefs.available": "0%", "nodefs.inodesFree": "0%",
            "imagefs.available": "0%", "imagefs.inodesFree": "0%", "memory.available": "50Mi"},
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": file("kubelet/logs"),
        "maxPods": 50,
    });
    std::fs::write(file("kubelet.json"), configuration.to_string())?;
    Ok(())
}

/// The name under which the API server reaches metrics-server, and in which namespace.
const METRICS: (&str, &str) = ("metrics-server", "kube-system");

/// Starts metrics-server, and waits until the API server serves its metrics of the node.
async fn start_metrics_server(plane: &ControlPlane) -> Result<Process> {
    let [port] = free_ports()?;
    let folder = plane.folder();
    let host = format!("{}.{}.svc", METRICS.0, METRICS.1);
    plane.authority.sign(METRICS.0, &[&*host])?.write(folder, METRICS.0)?;
    let (folder_name, kubeconfig) = (folder.display(), plane.kubeconfig.display());
    let arguments = [
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        format!("--bind-address={ADDRESS}"),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={folder_name}/{}.crt", METRICS.0),
        format!("--tls-private-key-file={folder_name}/{}.key", METRICS.0),
        format!("--kubelet-certificate-authority={folder_name}/ca.crt"),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        // It accepts no shorter one, and no timeout that is not shorter.
        "--metric-resolution=10s".to_owned(),
        "--kubelet-request-timeout=5s".to_owned(),
    ];
    let program = binaries::program(METRICS.0)?;
    let mut process = Process::start(METRICS.0, &program, arguments, folder)?;
    register_metrics_server(plane, port).await?;
    let metrics = api(&plane.client, None, "metrics.k8s.io/v1beta1", "Node");
    // It is available before it has seen anything twice.
    process.until_ready(async || metrics.get(NODE).await.is_ok()).await?;
    Ok(process)
}

async fn register_metrics_server(plane: &ControlPlane, port: u16) -> Result<()> {
    let (name, namespace) = METRICS;
    let bundle = base64::engine::general_purpose::STANDARD.encode(&plane.authority.pem);
    let metadata = json!({"name": name, "namespace": namespace,
        "labels": {"kubernetes.io/service-name": name}});
    let ports = json!([{"name": "https", "port": port, "protocol": "TCP"}]);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"clusterIP": "None", "ports": ports}});
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": metadata, "addressType": "IPv4", "ports": ports,
        "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": true}}]});
    let (group, version) = ("metrics.k8s.io", "v1beta1");
    let registered = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{version}.{group}")},
        "spec": {"group": group, "version": version, "caBundle": bundle,
            "groupPriorityMinimum": 100, "versionPriority": 100,
            "service": {"name": name, "namespace": namespace, "port": port}}});
    for object in [service, slice, registered] {
        apply(plane, &object).await?;
    }
    Ok(())
}

/// Applies an object as the administrator.
pub async fn apply(plane: &ControlPlane, object: &Value) -> Result<()> {
    let text = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let namespace = object["metadata"]["namespace"].as_str();
    let objects = api(&plane.client, namespace, &version, &kind);
    let params = PatchParams::apply("test").force();
    objects.patch(&text(&object["metadata"]["name"]), &params, &Patch::Apply(object)).await?;
    Ok(())
}
