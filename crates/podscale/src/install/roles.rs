//! What the controller may do, and nothing else.

use super::{NAME, Options, TriggerOptions, labels, metadata};
use podscale_api::{chpa, pod_autoscaler};
use serde_json::{Value, json};
use std::str::FromStr;

/// A resource whose scale may be set, such as `argoproj.io/rollouts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleResource {
    /// Its group; empty for Kubernetes' first one.
    pub group: String,
    /// Its name in paths, such as `rollouts`.
    pub resource: String,
}

impl FromStr for ScaleResource {
    type Err = String;

    fn from_str(text: &str) -> Result<ScaleResource, String> {
        let plain = |part: &str| {
            let letter =
                |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.*".contains(c);
            !part.is_empty() && part.chars().all(letter)
        };
        match text.split_once('/') {
            Some((group, resource)) if plain(group) && plain(resource) => {
                Ok(ScaleResource { group: group.to_owned(), resource: resource.to_owned() })
            }
            _ => Err("not a group and a resource such as argoproj.io/rollouts".to_owned()),
        }
    }
}

pub(super) fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// What it may do in all namespaces. Custom resources may be listed whether they are there or not: an
/// API server refuses what is not allowed before it says that it does not exist. What the original
/// CHPA controller has left takes more: the objects of its definition, which has no status subresource,
/// are written as a whole, and Deployments are taken out of the ownership of their CHPAs.
#[must_use]
pub fn cluster_rules(options: &Options) -> Vec<Value> {
    let autoscalers = "horizontalpodautoscalers";
    let mut rules = vec![
        rule("autoscaling", &[autoscalers], &["list", "watch"]),
        rule("autoscaling", &["horizontalpodautoscalers/status"], &["update"]),
        rule("", &["pods", "replicationcontrollers"], &["list", "watch"]),
        rule("apps", &["deployments", "replicasets", "statefulsets"], &["list", "watch"]),
        rule("", &["replicationcontrollers/scale"], &["get", "update"]),
        rule(
            "apps",
            &["deployments/scale", "replicasets/scale", "statefulsets/scale"],
            &["get", "update"],
        ),
        rule("", &["events"], &["create", "patch"]),
        rule("metrics.k8s.io", &["pods"], &["list"]),
        // The names of metrics are the names of resources there. Custom ones belong to an object, or to
        // all that are called `*`, so they are got; external ones belong to none, and are listed.
        rule("custom.metrics.k8s.io", &["*"], &["get"]),
        rule("external.metrics.k8s.io", &["*"], &["list"]),
    ];
    rules.push(rule(chpa::GROUP, &[chpa::PLURAL], &["list", "watch"]));
    rules.push(rule(chpa::GROUP, &[&format!("{}/status", chpa::PLURAL)], &["update"]));
    if options.original_chpas {
        rules.push(rule(chpa::GROUP, &[chpa::PLURAL], &["update"]));
        rules.push(rule("apps", &["deployments"], &["patch"]));
    }
    let (group, plural) = (pod_autoscaler::GROUP, pod_autoscaler::PLURAL);
    // By a list it is seen whether the cluster has them.
    rules.push(rule(group, &[plural], &["list"]));
    if options.crds {
        rules.push(rule(group, &[plural], &["watch"]));
        rules.push(rule(group, &[&format!("{plural}/status")], &["update"]));
    }
    if options.pod_deletion_cost {
        rules.push(rule("", &["pods"], &["patch"]));
    }
    for ScaleResource { group, resource } in &options.scales {
        rules.push(rule(group, &[&format!("{resource}/scale")], &["get", "update"]));
    }
    rules.extend(options.triggers.iter().flat_map(TriggerOptions::cluster_rules));
    rules.extend(options.metrics.cluster_rules());
    rules
}

/// What it may do in its own namespace.
#[must_use]
pub fn own_rules(options: &Options) -> Vec<Value> {
    let mut rules = vec![
        rule("coordination.k8s.io", &["leases"], &["create"]),
        json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "resourceNames": [NAME], "verbs": ["get", "list", "watch", "update"],
        }),
        rule("", &["configmaps"], &["get", "list", "create", "update"]),
    ];
    rules.extend(options.triggers.iter().flat_map(TriggerOptions::own_rules));
    rules.extend(options.metrics.own_rules());
    rules
}

pub(super) const GROUP: &str = "rbac.authorization.k8s.io";
pub(super) const VERSION: &str = "rbac.authorization.k8s.io/v1";

pub(super) fn cluster_role(options: &Options) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "ClusterRole",
        "metadata": {"name": NAME, "labels": labels()}, "rules": cluster_rules(options),
    })
}

pub(super) fn cluster_role_binding(namespace: &str) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME, "labels": labels()},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": NAME},
        "subjects": [subject(namespace)],
    })
}

pub(super) fn role(options: &Options) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "Role",
        "metadata": metadata(&options.namespace), "rules": own_rules(options),
    })
}

pub(super) fn role_binding(namespace: &str) -> Value {
    json!({
        "apiVersion": VERSION, "kind": "RoleBinding", "metadata": metadata(namespace),
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": NAME},
        "subjects": [subject(namespace)],
    })
}

pub(super) fn subject(namespace: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": NAME, "namespace": namespace})
}
