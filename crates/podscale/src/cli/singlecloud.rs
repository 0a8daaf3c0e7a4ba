//! The flags about singlecloud's API, which `podscale serve` and `podscale run` share.

use clap::Args;
use podscale_controller::serve::rules::Location;
use podscale_controller::serve::singlecloud::{Options, Rules};
use podscale_metrics::rules::engine::Engine;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Flags about singlecloud's API.
#[derive(Clone, Debug, Args)]
#[group(id = "singlecloud")]
#[command(next_help_heading = "Singlecloud")]
pub struct Arguments {
    /// Serve singlecloud's API for autoscalers on this port, with TLS. No metrics API is then served, unless
    /// --serve is given.
    #[arg(long, value_name = "PORT", env = "PODSCALE_SINGLECLOUD_PORT")]
    singlecloud_port: Option<u16>,

    /// The cluster's name in the paths of singlecloud's API.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = cluster,
        default_value = "local",
        env = "PODSCALE_SINGLECLOUD_CLUSTER"
    )]
    singlecloud_cluster: String,

    /// Maintain the metric rules in this ConfigMap of a prometheus-adapter, and restart the pods of the
    /// Deployment of the same name when they change, instead of serving these metrics here.
    #[arg(
        long,
        value_name = "NAMESPACE/NAME[/KEY]",
        requires = "singlecloud_port",
        env = "PODSCALE_SINGLECLOUD_ADAPTER"
    )]
    singlecloud_adapter: Option<Location>,
}

/// What a cluster is called in paths.
fn cluster(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if text.is_empty() || !text.chars().all(plain) {
        return Err("not a name of letters, digits, dashes and underscores".to_owned());
    }
    Ok(text.to_owned())
}

impl Arguments {
    /// Whether the API is served.
    #[must_use]
    pub fn is_given(&self) -> bool {
        self.singlecloud_port.is_some()
    }

    /// How to serve it, if it is: with metrics that this engine can answer for, if there is one.
    #[must_use]
    pub fn options(&self, address: IpAddr, engine: Option<Arc<Engine>>) -> Option<Options> {
        let rules = match (&self.singlecloud_adapter, engine) {
            (Some(location), _) => Rules::Adapter(location.clone()),
            (None, Some(engine)) => Rules::Served(engine),
            (None, None) => Rules::None,
        };
        self.singlecloud_port.map(|port| Options {
            address: SocketAddr::new(address, port),
            cluster: self.singlecloud_cluster.clone(),
            rules,
        })
    }
}
