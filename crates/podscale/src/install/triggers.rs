//! What objects with triggers take: KEDA's kinds, and the credentials that their triggers refer to.

use super::labels;
use super::roles::{GROUP, VERSION, rule, subject};
use podscale_api::keda::{self, authentication, scaled_job, scaled_object};
use podscale_controller::settings::TriggerMode;
use serde_json::{Value, json};

/// What everything is called that is made in the namespaces of objects with triggers.
const IN_NAMESPACES: &str = "podscale-triggers";

/// Objects with triggers that are managed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriggerOptions {
    /// The namespaces whose Secrets and ConfigMaps may be read; all if there are none.
    pub namespaces: Vec<String>,
    /// Who decides how many replicas an active target has.
    pub mode: TriggerMode,
}

impl TriggerOptions {
    /// The flags of `podscale run`.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut flags = vec!["--triggers".to_owned()];
        if !self.namespaces.is_empty() {
            flags.push(format!("--trigger-namespaces={}", self.namespaces.join(",")));
        }
        if self.mode != TriggerMode::default() {
            flags.push(format!("--trigger-mode={}", self.mode.name()));
        }
        flags
    }

    /// What it may do in all namespaces. Credentials are only got, never listed or watched. Objects are patched for
    /// their label and finalizer; targets, and ScaledJobs, are got for the environment of their containers. Jobs are
    /// what ScaledJobs make; whoever makes them with an owner that cannot go before them must be allowed to change what
    /// that waits for.
    pub(super) fn cluster_rules(&self) -> Vec<Value> {
        let (objects, jobs) = (scaled_object::PLURAL, scaled_job::PLURAL);
        let statuses = [objects, jobs].map(|plural| format!("{plural}/status"));
        let finalizers = format!("{jobs}/finalizers");
        let mut rules = vec![
            rule(keda::GROUP, &[objects, jobs], &["list", "watch", "patch"]),
            rule(keda::GROUP, &statuses.each_ref().map(String::as_str), &["update"]),
            rule(keda::GROUP, &[jobs], &["get"]),
            rule(keda::GROUP, &[&finalizers], &["update"]),
            rule("batch", &["jobs"], &["list", "watch", "create", "delete"]),
            rule(
                keda::GROUP,
                &[authentication::PLURAL, authentication::CLUSTER_PLURAL],
                &["list", "watch"],
            ),
            rule("apps", &["deployments", "statefulsets"], &["get"]),
            rule("discovery.k8s.io", &["endpointslices"], &["list"]),
        ];
        if self.mode == TriggerMode::Hpa {
            // Those that stand beside objects.
            let verbs = ["get", "create", "update", "delete"];
            rules.push(rule("autoscaling", &["horizontalpodautoscalers"], &verbs));
            // Where it is checked who may keep an object from being deleted before what belongs to it.
            rules.push(rule(keda::GROUP, &[&format!("{objects}/finalizers")], &["update"]));
        }
        if self.namespaces.is_empty() {
            rules.push(credentials());
        }
        rules
    }

    /// What it may do in its own namespace, where those are that ClusterTriggerAuthentications refer to, if it may not
    /// do so everywhere. ConfigMaps may be got there anyway.
    pub(super) fn own_rules(&self) -> Vec<Value> {
        if self.namespaces.is_empty() { Vec::new() } else { vec![rule("", &["secrets"], &["get"])] }
    }

    /// Roles in the namespaces whose credentials may be read.
    pub(super) fn manifests(&self, own_namespace: &str) -> Vec<Value> {
        let in_namespace = |namespace: &String| {
            let metadata =
                json!({"name": IN_NAMESPACES, "namespace": namespace, "labels": labels()});
            [
                json!({"apiVersion": VERSION, "kind": "Role", "metadata": metadata,
                    "rules": [credentials()]}),
                json!({"apiVersion": VERSION, "kind": "RoleBinding", "metadata": metadata,
                    "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": IN_NAMESPACES},
                    "subjects": [subject(own_namespace)]}),
            ]
        };
        self.namespaces.iter().flat_map(in_namespace).collect()
    }
}

fn credentials() -> Value {
    rule("", &["secrets", "configmaps"], &["get"])
}
