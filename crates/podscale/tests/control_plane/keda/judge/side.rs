//! A control plane of its own with one of the two that are compared: KEDA's operator, with its metrics server and the
//! cluster's own autoscaler, or Podscale.

use super::super::super::aggregation;
use super::super::super::fixture::Workspace;
use super::super::super::kubelet::Kubelet;
use super::super::super::plane::{Autoscaler, ControlPlane};
use super::super::super::process::{Process, free_ports};
use super::super::super::program::Program;
use super::super::super::serve::kubectl;
use super::scenario::folder;
use super::server::Server;
use anyhow::{Context, Result, ensure};
use podscale_api::crds;
use serde_json::json;
use std::path::{Path, PathBuf};

/// For both of those who scale, so that both hold a smaller size back for as long.
const FLAGS: [&str; 3] = [
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=5s",
    "--concurrent-horizontal-pod-autoscaler-syncs=20",
];
const EXTERNAL: (&str, &str) = ("external.metrics.k8s.io", "v1beta1");

/// Who scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Keda,
    Podscale,
}

/// A control plane, who scales in it, and the server that triggers ask.
pub struct Side {
    pub who: Who,
    pub plane: ControlPlane,
    pub kubelet: Kubelet,
    pub server: Server,
    programs: Vec<Process>,
    podscale: Option<Program>,
}

impl Side {
    /// Starts all of it in a folder.
    pub async fn start(who: Who, folder: &Path) -> Result<Side> {
        let plane = ControlPlane::start(folder).await?;
        let (kubelet, server) = (Kubelet::start(&plane.client), Server::start().await?);
        let (programs, podscale) = (Vec::new(), None);
        let mut side = Side { who, plane, kubelet, server, programs, podscale };
        side.define()?;
        match who {
            Who::Keda => side.start_keda().await?,
            Who::Podscale => side.start_podscale().await?,
        }
        Ok(side)
    }

    /// Defines KEDA's kinds: its own definitions for KEDA, ours for us.
    fn define(&self) -> Result<()> {
        let file = match self.who {
            Who::Keda => programs().join("crds.yaml"),
            Who::Podscale => {
                let file = self.plane.folder().join("crds.json");
                let items = crds::keda::definitions();
                let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
                std::fs::write(&file, list.to_string())?;
                file
            }
        };
        let file = file.to_str().context("UTF-8")?;
        for arguments in [
            &["apply", "--server-side", "--filename", file][..],
            &["wait", "--for=condition=Established", "--timeout=60s", "--filename", file],
        ] {
            let (ok, said) = kubectl(&self.plane, arguments)?;
            ensure!(ok, "{said}");
        }
        Ok(())
    }

    async fn start_podscale(&mut self) -> Result<()> {
        self.plane.start_manager(Autoscaler::Off, &[]).await?;
        let own = ["--triggers", "--leader-elect=false"];
        let flags: Vec<&str> = FLAGS.into_iter().chain(own).collect();
        let plane = &self.plane;
        let program = Program::start("podscale", plane.folder(), &plane.kubeconfig, &flags)?;
        self.podscale = Some(program);
        Ok(())
    }

    async fn start_keda(&mut self) -> Result<()> {
        self.plane.start_manager(Autoscaler::On, &FLAGS).await?;
        Workspace::open(self.plane.client.clone(), "keda").await?;
        let keys = self.plane.folder().join("keda");
        std::fs::create_dir_all(&keys)?;
        let hosts = ["localhost", "127.0.0.1", &aggregation::host()];
        let authority = &self.plane.authority;
        authority.sign("keda", &hosts)?.write(&keys, "tls")?;
        std::fs::write(keys.join("ca.crt"), &authority.pem)?;
        let [metrics, health, service, served, adapter] = free_ports()?;
        let directory = format!("--cert-dir={}", keys.display());
        // The limits of its client, of its reconciles too, are for clusters: here many objects change at once.
        let limits = ["--kube-api-qps=500", "--kube-api-burst=1000"].map(str::to_owned);
        let mut operator = self.begin(
            "operator",
            &limits
                .clone()
                .into_iter()
                .chain([
                    directory.clone(),
                    format!("--metrics-bind-address=127.0.0.1:{metrics}"),
                    format!("--health-probe-bind-address=127.0.0.1:{health}"),
                    format!("--metrics-service-bind-address=127.0.0.1:{service}"),
                ])
                .collect::<Vec<_>>(),
        )?;
        operator.until_ready(async || listens(service).await).await?;
        let kubeconfig = self.plane.kubeconfig.display();
        let mut adapter_flags: Vec<String> = [
            "kubeconfig",
            "lister-kubeconfig",
            "authentication-kubeconfig",
            "authorization-kubeconfig",
        ]
        .map(|flag| format!("--{flag}={kubeconfig}"))
        .into();
        adapter_flags.extend(limits);
        adapter_flags.extend([
            directory,
            format!("--tls-cert-file={}/tls.crt", keys.display()),
            format!("--tls-private-key-file={}/tls.key", keys.display()),
            format!("--metrics-service-address=localhost:{service}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={adapter}"),
            format!("--port={served}"),
        ]);
        let mut server = self.begin("adapter", &adapter_flags)?;
        server.until_ready(async || listens(adapter).await).await?;
        self.programs.extend([operator, server]);
        let authority = &self.plane.authority.pem;
        aggregation::register(&self.plane.client, adapter, authority, &[EXTERNAL]).await
    }

    /// Starts one of KEDA's programs.
    fn begin(&self, name: &str, flags: &[String]) -> Result<Process> {
        let kubeconfig = format!("KUBECONFIG={}", self.plane.kubeconfig.display());
        let program = programs().join("bin").join(name).display().to_string();
        let environment = [
            kubeconfig,
            "KEDA_CLUSTER_OBJECT_NAMESPACE=keda".to_owned(),
            "POD_NAMESPACE=keda".to_owned(),
            "WATCH_NAMESPACE=".to_owned(),
            "KEDA_SCALEDOBJECT_CTRL_MAX_RECONCILES=20".to_owned(),
            "KEDA_SCALEDJOB_CTRL_MAX_RECONCILES=20".to_owned(),
            program,
        ];
        let all = environment.iter().chain(flags);
        Process::start(name, Path::new("/usr/bin/env"), all, self.plane.folder())
    }

    /// Ends who scales; Podscale has to end gracefully.
    pub async fn stop(mut self) -> Result<()> {
        match &mut self.podscale {
            Some(podscale) => podscale.stop().await,
            None => Ok(()),
        }
    }

    /// The ends of the logs.
    pub fn log_tail(&self) -> String {
        let podscale = self.podscale.iter().map(Program::log_tail);
        podscale.chain(self.programs.iter().map(Process::log_tail)).collect()
    }
}

/// Where `e2e/keda/build` puts KEDA.
fn programs() -> PathBuf {
    folder().join("../../target/keda")
}

async fn listens(port: u16) -> bool {
    tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}
