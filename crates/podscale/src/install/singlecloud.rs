//! What singlecloud's API needs in a cluster: the rights to write autoscalers, and those to change the
//! configuration of a prometheus-adapter where it keeps the rules.

use super::labels;
use super::roles::{GROUP, VERSION, rule, subject};
use podscale_controller::serve::rules::Location;
use serde_json::{Value, json};

/// The port of singlecloud's API in the pods and in the Service.
pub const SINGLECLOUD_PORT: u16 = 6444;
/// What the cluster is called in paths, if nobody says otherwise.
pub const DEFAULT_CLUSTER: &str = "local";
/// What the rights beside an adapter are called.
const ADAPTER_ROLE: &str = "podscale-singlecloud-adapter";

/// What can be chosen of singlecloud's API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinglecloudOptions {
    /// What the cluster is called in paths.
    pub cluster: String,
    /// The prometheus-adapter that keeps the rules, if it is not Podscale that answers for the metrics.
    pub adapter: Option<Location>,
}

impl Default for SinglecloudOptions {
    fn default() -> SinglecloudOptions {
        SinglecloudOptions { cluster: DEFAULT_CLUSTER.to_owned(), adapter: None }
    }
}

impl SinglecloudOptions {
    /// The flags of `podscale run`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![format!("--singlecloud-port={SINGLECLOUD_PORT}")];
        if self.cluster != DEFAULT_CLUSTER {
            arguments.push(format!("--singlecloud-cluster={}", self.cluster));
        }
        arguments.extend(self.adapter.iter().map(|adapter| {
            let key = adapter.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
            format!("--singlecloud-adapter={adapter}{key}")
        }));
        arguments
    }

    /// What must be allowed in all namespaces, besides what the controller may do.
    pub(super) fn cluster_rules(&self) -> Vec<Value> {
        let autoscalers = ["horizontalpodautoscalers"];
        let workloads = ["deployments", "statefulsets", "daemonsets"];
        vec![
            rule("autoscaling", &autoscalers, &["get", "create", "update", "delete"]),
            rule("apps", &workloads, &["get"]),
        ]
    }

    /// What must be allowed beside the adapter.
    pub(super) fn manifests(&self, namespace: &str) -> Vec<Value> {
        let Some(Location { namespace: place, name, .. }) = &self.adapter else {
            return Vec::new();
        };
        let metadata = json!({"name": ADAPTER_ROLE, "namespace": place, "labels": labels()});
        let rules = [
            json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [name],
                "verbs": ["get", "update"]}),
            rule("", &["pods"], &["delete"]),
        ];
        vec![
            json!({"apiVersion": VERSION, "kind": "Role", "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": VERSION, "kind": "RoleBinding", "metadata": metadata,
                "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": ADAPTER_ROLE},
                "subjects": [subject(namespace)],
            }),
        ]
    }
}
