//! A control plane of its own with one of the two that are compared: KEDA's operator, with its metrics server and the
//! cluster's own autoscaler, or Podscale.

use super::super::super::keda_programs::{Keda, define, definitions};
use super::super::super::kubelet::Kubelet;
use super::super::super::plane::{Autoscaler, ControlPlane};
use super::super::super::program::Program;
use super::server::Server;
use anyhow::{Result, bail};
use podscale_api::crds;
use serde_json::json;
use std::path::Path;

/// For both of those who scale, so that both hold a smaller size back for as long.
const FLAGS: [&str; 3] = [
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=5s",
    "--concurrent-horizontal-pod-autoscaler-syncs=20",
];

/// Who scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Keda,
    Podscale,
}

/// A control plane, who scales in it, and the server that triggers ask.
pub struct Side {
    scales: Scales,
    pub kubelet: Kubelet,
    pub server: Server,
    pub plane: ControlPlane,
}

enum Scales {
    Keda(Keda),
    Podscale(Program),
}

impl Side {
    /// Starts all of it in a folder; the kinds are KEDA's own for KEDA, and ours for us.
    pub async fn start(who: Who, folder: &Path) -> Result<Side> {
        let plane = ControlPlane::start(folder).await?;
        let (kubelet, server) = (Kubelet::start(&plane.client), Server::start().await?);
        let scales = match who {
            Who::Keda => {
                define(&plane, &definitions())?;
                plane.start_manager(Autoscaler::On, &FLAGS).await?;
                Scales::Keda(Keda::start(&plane).await?)
            }
            Who::Podscale => {
                let file = folder.join("crds.json");
                let items = crds::keda::definitions();
                let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
                std::fs::write(&file, list.to_string())?;
                define(&plane, &file)?;
                plane.start_manager(Autoscaler::Off, &[]).await?;
                let own = ["--triggers", "--leader-elect=false"];
                let flags: Vec<&str> = FLAGS.into_iter().chain(own).collect();
                Scales::Podscale(Program::start("podscale", folder, &plane.kubeconfig, &flags)?)
            }
        };
        Ok(Side { scales, kubelet, server, plane })
    }

    /// Ends who scales; Podscale has to end gracefully.
    pub async fn stop(mut self) -> Result<()> {
        match &mut self.scales {
            Scales::Podscale(program) => program.stop().await,
            Scales::Keda(_) => Ok(()),
        }
    }

    /// KEDA's programs, where it scales.
    pub fn keda(&mut self) -> Result<&mut Keda> {
        match &mut self.scales {
            Scales::Keda(keda) => Ok(keda),
            Scales::Podscale(_) => bail!("KEDA does not run here"),
        }
    }

    /// KEDA was started again.
    pub fn again(&mut self, keda: Keda) {
        self.scales = Scales::Keda(keda);
    }

    /// The end of the log of who scales.
    pub fn log_tail(&self) -> String {
        match &self.scales {
            Scales::Podscale(program) => program.log_tail(),
            Scales::Keda(keda) => keda.log_tail(),
        }
    }
}
