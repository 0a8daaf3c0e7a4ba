//! Singlecloud's API for autoscalers, on a port of its own: what clients write becomes native autoscalers,
//! and rules for the metrics that these name by labels.
//!
//! Whoever may do something with native autoscalers may do it here ([`request`]). A change that fails
//! half-way is rolled back ([`change`]), and what belongs to a workload goes with it ([`follow`]).

mod adapter;
mod answer;
mod change;
mod follow;
mod front;
mod native;
mod picker;
mod request;

use super::authenticate::Authenticator;
use super::authorize::Authorizer;
use super::rules::Location;
use crate::metrics::Metrics;
use adapter::Adapter;
use axum::Router;
use follow::Followed;
use front::Front;
use kube::Client;
use podscale_client::instrument::Instruments;
use podscale_metrics::rules::engine::Engine;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// How singlecloud's API is served.
#[derive(Clone)]
pub struct Options {
    /// Where, with TLS.
    pub address: SocketAddr,
    /// What the cluster is called in paths.
    pub cluster: String,
    /// What becomes of the rules for metrics.
    pub rules: Rules,
}

/// What becomes of the rules for metrics.
#[derive(Clone)]
pub enum Rules {
    /// Nobody answers for such metrics, so autoscalers cannot have them.
    None,
    /// They are answered for here, from the moment that an autoscaler names them.
    Served(Arc<Engine>),
    /// They are kept in the ConfigMap of a prometheus-adapter, whose pods are restarted.
    Adapter(Location),
}

/// Changes autoscalers and what belongs to them. Clones share everything.
#[derive(Clone)]
struct Autoscalers(Arc<Inner>);

struct Inner {
    client: Client,
    rules: Rules,
    adapter: Option<Adapter>,
    /// Held by whoever changes something: the next one decides on what this one left.
    changing: Mutex<()>,
}

impl Autoscalers {
    fn new(client: Client, rules: Rules) -> Autoscalers {
        let adapter = match &rules {
            Rules::Adapter(location) => {
                Some(Adapter { client: client.clone(), location: location.clone() })
            }
            Rules::None | Rules::Served(_) => None,
        };
        Autoscalers(Arc::new(Inner { client, rules, adapter, changing: Mutex::new(()) }))
    }
}

/// The routes of the API, and what goes on behind them for as long as `tasks` live.
pub(super) fn start(
    options: Options,
    client: Client,
    guards: (Authenticator, Authorizer),
    metrics: Metrics,
    tasks: &mut JoinSet<()>,
) -> Router {
    let Options { cluster, rules, .. } = options;
    let autoscalers = Autoscalers::new(client.clone(), rules);
    let instruments: Instruments = Arc::new(metrics.clone());
    Followed::new(autoscalers.clone()).start(&client, &instruments, tasks);
    let (authenticator, authorizer) = guards;
    let front = Front::new(authenticator, authorizer, metrics, cluster, autoscalers);
    front.router()
}
