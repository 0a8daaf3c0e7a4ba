//! What must be in a cluster for the controller to run there, as plain objects. The Helm chart is
//! held against these by a test.

pub mod metrics;
mod roles;
pub mod singlecloud;
mod triggers;
mod webhook;
mod workload;

pub use metrics::MetricOptions;
pub use roles::{ScaleResource, cluster_rules, own_rules};
pub use singlecloud::SinglecloudOptions;
pub use triggers::TriggerOptions;

use podscale_api::crds;
use serde_json::{Value, json};

/// What everything is called.
pub const NAME: &str = "podscale";
/// The port of metrics, probes and the dashboard in the pods.
pub const ADMIN_PORT: u16 = 9090;

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The namespace it runs in.
    pub namespace: String,
    /// The image it runs from.
    pub image: String,
    /// How many replicas; one leads.
    pub replicas: u32,
    /// Flags of `podscale run`, besides those that are always given.
    pub arguments: Vec<String>,
    /// Resources of targets that it may scale, besides those of Kubernetes.
    pub scales: Vec<ScaleResource>,
    /// Whether there are CHPAs that the original controller has managed; see [`cluster_rules`].
    pub original_chpas: bool,
    /// What is read and served of metrics.
    pub metrics: MetricOptions,
    /// Whether the kinds of autoscalers that are Podscale's own are defined and managed; with triggers, those that
    /// KEDA's definitions would define as well.
    pub crds: bool,
    /// Whether pods may be given a deletion cost, so that busy ones go last.
    pub pod_deletion_cost: bool,
    /// Objects with triggers, if they are managed.
    pub triggers: Option<TriggerOptions>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            namespace: NAME.to_owned(),
            image: concat!("podscale:", env!("CARGO_PKG_VERSION")).to_owned(),
            replicas: 2,
            arguments: Vec::new(),
            scales: Vec::new(),
            original_chpas: false,
            metrics: MetricOptions::default(),
            crds: false,
            pod_deletion_cost: false,
            triggers: None,
        }
    }
}

impl Options {
    /// The flags of `podscale run` that can be chosen.
    #[must_use]
    pub fn run_flags(&self) -> Vec<String> {
        let mut flags = self.metrics.arguments(&self.namespace);
        flags.extend(self.triggers.iter().flat_map(TriggerOptions::arguments));
        flags.extend(self.arguments.iter().cloned());
        flags
    }
}

/// All objects, in an order in which they can be created.
#[must_use]
pub fn manifests(options: &Options) -> Vec<Value> {
    let namespace = &options.namespace;
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": namespace,
            "labels": {
                "app.kubernetes.io/name": NAME,
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        }}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(namespace)}),
        roles::cluster_role(options),
        roles::cluster_role_binding(namespace),
        roles::role(options),
        roles::role_binding(namespace),
        workload::deployment(options),
        workload::service(namespace),
        workload::disruption_budget(namespace),
    ];
    objects.extend(options.metrics.manifests(namespace));
    objects.extend(options.triggers.iter().flat_map(|triggers| triggers.manifests(namespace)));
    if options.crds {
        // Before all that may be about them.
        let of_triggers = options.triggers.iter().flat_map(|_| crds::keda::definitions());
        objects.splice(0..0, crds::all().into_iter().chain(of_triggers));
    }
    objects
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME})
}

fn metadata(namespace: &str) -> Value {
    json!({"name": NAME, "namespace": namespace, "labels": labels()})
}

#[cfg(test)]
mod tests;
