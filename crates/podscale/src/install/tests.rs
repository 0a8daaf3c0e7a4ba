use super::*;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Kubernetes' own types must take every field.
fn check<T: DeserializeOwned + Serialize>(manifest: &Value) {
    let typed: T = serde_json::from_value(manifest.clone()).expect("a manifest of its kind");
    assert_eq!(serde_json::to_value(&typed).expect("JSON"), *manifest);
}

#[test]
fn every_manifest_is_one_of_kubernetes() {
    let scales = vec!["argoproj.io/rollouts".parse().expect("a resource")];
    for manifest in manifests(&Options { scales, ..Options::default() }) {
        match manifest["kind"].as_str().expect("a kind") {
            "Namespace" => check::<Namespace>(&manifest),
            "ServiceAccount" => check::<ServiceAccount>(&manifest),
            "ClusterRole" => check::<ClusterRole>(&manifest),
            "ClusterRoleBinding" => check::<ClusterRoleBinding>(&manifest),
            "Role" => check::<Role>(&manifest),
            "RoleBinding" => check::<RoleBinding>(&manifest),
            "Deployment" => check::<Deployment>(&manifest),
            "Service" => check::<Service>(&manifest),
            "PodDisruptionBudget" => check::<PodDisruptionBudget>(&manifest),
            other => panic!("what is a {other}?"),
        }
    }
}

#[test]
fn nothing_is_allowed_that_would_let_it_read_secrets_or_write_anything_else() {
    let scales = ["argoproj.io/rollouts".parse().expect("a resource")];
    for rule in cluster_rules(&scales) {
        let list = |field: &str| rule[field].as_array().expect("a list").clone();
        let metrics =
            list("apiGroups").iter().all(|g| g.as_str().is_some_and(|g| g.contains("metrics")));
        for resource in list("resources") {
            let resource = resource.as_str().expect("a name");
            assert!(metrics || !resource.contains('*'), "{rule}");
            assert_ne!(resource, "secrets");
            for verb in list("verbs") {
                let writes = ["create", "update", "patch", "delete"]
                    .contains(&verb.as_str().expect("a verb"));
                let may = ["/scale", "/status"].iter().any(|end| resource.ends_with(end))
                    || resource == "events";
                assert!(!writes || may, "{rule}");
            }
        }
    }
}
