//! The flags about leader election, and taking part in it.

use clap::{ArgAction, Args};
use podscale_client::clock::Clock;
use podscale_client::connect::Cluster;
use podscale_client::election;
use podscale_client::election::candidate::{LeaseTimings, LeaseTimingsError};
use podscale_controller::controller::{Role, history_store};
use podscale_controller::metrics::Metrics;
use podscale_controller::settings::{name, namespace, period};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How long releasing the lease may take before it is left to expire.
const RELEASE: Duration = Duration::from_secs(3);

/// Flags about leader election.
#[derive(Clone, Debug, Args)]
#[group(id = "election")]
pub struct Arguments {
    /// Act only while holding a lease, so that several replicas can run.
    #[arg(
        long,
        value_name = "BOOL",
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        default_value_t = true,
        env = "PODSCALE_LEADER_ELECT"
    )]
    leader_elect: bool,

    /// How long a lease is valid without being renewed.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = period,
        allow_hyphen_values = true,
        default_value = "15s",
        env = "PODSCALE_LEADER_ELECT_LEASE_DURATION"
    )]
    leader_elect_lease_duration: Duration,

    /// How long the leader tries to renew its lease before it stops leading.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = period,
        allow_hyphen_values = true,
        default_value = "10s",
        env = "PODSCALE_LEADER_ELECT_RENEW_DEADLINE"
    )]
    leader_elect_renew_deadline: Duration,

    /// How long to wait between two attempts to acquire or renew the lease.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = period,
        allow_hyphen_values = true,
        default_value = "2s",
        env = "PODSCALE_LEADER_ELECT_RETRY_PERIOD"
    )]
    leader_elect_retry_period: Duration,

    /// The name of the lease; the names of the ConfigMaps with the histories begin with it.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = name,
        default_value = "podscale",
        env = "PODSCALE_LEADER_ELECT_RESOURCE_NAME"
    )]
    leader_elect_resource_name: String,

    /// The namespace of the lease and the histories; if not given, the one it runs in, or kube-system outside a
    /// cluster.
    #[arg(
        long,
        value_name = "NAMESPACE",
        value_parser = namespace,
        env = "PODSCALE_LEADER_ELECT_RESOURCE_NAMESPACE"
    )]
    leader_elect_resource_namespace: Option<String>,
}

/// The election, if there is one, while it goes on.
pub struct Elections {
    stop: watch::Sender<bool>,
    task: JoinSet<()>,
}

impl Elections {
    /// Releases the lease.
    pub async fn stop(mut self) {
        self.stop.send_replace(true);
        let release = async { while self.task.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(RELEASE, release).await;
    }
}

impl Arguments {
    /// Whether the flags make sense together.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), LeaseTimingsError> {
        self.lease_timings().check()
    }

    fn lease_timings(&self) -> LeaseTimings {
        LeaseTimings {
            lease: self.leader_elect_lease_duration,
            renew: self.leader_elect_renew_deadline,
            retry: self.leader_elect_retry_period,
        }
    }

    /// Where the lease and the histories are.
    pub fn own_namespace<'a>(&'a self, cluster: &'a Cluster) -> &'a str {
        self.leader_elect_resource_namespace.as_deref().unwrap_or(&cluster.namespace)
    }

    /// Takes part in the election, unless there is to be none.
    pub fn elect(
        &self,
        cluster: &Cluster,
        clock: Clock,
        metrics: &Metrics,
        dry_run: bool,
    ) -> (Elections, Role) {
        let (namespace, name) = (self.own_namespace(cluster), &self.leader_elect_resource_name);
        let histories =
            history_store::Config { namespace: namespace.to_owned(), name: name.clone() };
        let (stop, stopped) = watch::channel(false);
        let mut task = JoinSet::new();
        if dry_run || !self.leader_elect {
            let histories = Some(histories).filter(|_| !dry_run);
            let role = Role { histories, ..Role::alone() };
            return (Elections { stop, task }, role);
        }
        let config = election::Config {
            namespace: namespace.to_owned(),
            name: name.clone(),
            identity: election::identity().to_owned(),
            timings: self.lease_timings(),
        };
        let (elected, leading) = watch::channel(None);
        let (client, instruments) = (cluster.client.clone(), Arc::new(metrics.clone()));
        task.spawn(election::run(client, clock, config, instruments, elected, stopped));
        (Elections { stop, task }, Role { leading, histories: Some(histories) })
    }
}
