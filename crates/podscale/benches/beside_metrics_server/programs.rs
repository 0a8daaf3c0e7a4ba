//! The programs that are compared, and how each is started.

use super::aggregation;
use super::binaries;
use super::plane::ControlPlane;
use super::process::{Process, free_ports};
use anyhow::Result;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::path::Path;
use std::time::Duration;

/// A program that collects metrics.
pub struct Contender {
    /// What it calls itself when it asks.
    pub name: &'static str,
    /// How it is started, with how often it asks each kubelet.
    pub start: fn(&ControlPlane, Duration) -> Result<Serving>,
}

/// A program that serves `metrics.k8s.io`.
pub struct Serving {
    pub process: Process,
    pub port: u16,
}

pub const CONTENDERS: [Contender; 2] = [
    Contender { name: "metrics-server", start: start_metrics_server },
    Contender { name: "podscale", start: start_podscale },
];

impl Serving {
    /// Asks it, as the administrator.
    pub async fn client(&self, plane: &ControlPlane) -> Result<Client> {
        let path = plane.kubeconfig_at(&format!("at-{}", self.port), self.port)?;
        let config = Kubeconfig::read_from(path)?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }
}

/// Flags that all understand: where to serve, with which certificate, and how to read kubelets.
fn flags(plane: &ControlPlane, name: &str, resolution: Duration) -> Result<(Vec<String>, u16)> {
    let [port] = free_ports()?;
    let folder = plane.folder();
    plane.authority.sign(name, &[&aggregation::host(), "127.0.0.1"])?.write(folder, name)?;
    let (folder, kubeconfig) = (folder.display(), plane.kubeconfig.display());
    let flags = vec![
        format!("--kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={folder}/{name}.crt"),
        format!("--tls-private-key-file={folder}/{name}.key"),
        "--kubelet-insecure-tls".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--metric-resolution={}s", resolution.as_secs()),
    ];
    Ok((flags, port))
}

pub fn start_metrics_server(plane: &ControlPlane, resolution: Duration) -> Result<Serving> {
    let name = "metrics-server";
    let (mut arguments, port) = flags(plane, name, resolution)?;
    let kubeconfig = plane.kubeconfig.display();
    arguments.extend([
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--kubelet-use-node-status-port".to_owned(),
        // It must be shorter than the resolution, which may be 10 s.
        "--kubelet-request-timeout=9s".to_owned(),
    ]);
    let program = binaries::program(name)?;
    let process = Process::start(name, &program, arguments, plane.folder())?;
    Ok(Serving { process, port })
}

fn start_podscale(plane: &ControlPlane, resolution: Duration) -> Result<Serving> {
    let name = "podscale";
    let (flags, port) = flags(plane, name, resolution)?;
    let arguments = std::iter::once("serve".to_owned()).chain(flags);
    let program = Path::new(env!("CARGO_BIN_EXE_podscale"));
    let process = Process::start(name, program, arguments, plane.folder())?;
    Ok(Serving { process, port })
}
