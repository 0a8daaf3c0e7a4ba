//! What the metrics pipeline needs in a cluster: the Service and the APIServices of the metrics APIs that
//! are served, and exactly the rights for what is read and served.

use super::roles::rule;
use super::singlecloud::{SINGLECLOUD_PORT, SinglecloudOptions};
use super::{NAME, labels, webhook};
use podscale_controller::settings::{MetricsApi, ResourceMetrics};
use podscale_metrics::{custom, external, resource};
use serde_json::{Value, json};

/// What the Service of the metrics APIs is called.
pub const SERVICE: &str = "podscale-metrics";
/// The Secret with the certificate that all replicas show.
pub const SERVING_SECRET: &str = "podscale-serving";
/// The port of the metrics APIs in the pods.
pub const SERVING_PORT: u16 = 6443;

/// By this component APIServices can be left out, until there is somebody who serves.
const METRICS_API: &str = "metrics-api";
/// The port at which the API server finds the metrics APIs and the admission webhook.
pub(super) const HTTPS_PORT: u16 = 443;
const API_REGISTRATION: &str = "apiregistration.k8s.io";

/// The group of an API and its versions.
fn versions(api: MetricsApi) -> (&'static str, &'static [&'static str]) {
    match api {
        MetricsApi::Resource => (resource::GROUP, &resource::VERSIONS),
        MetricsApi::Custom => (custom::GROUP, &custom::VERSIONS),
        MetricsApi::External => (external::GROUP, &external::VERSIONS),
    }
}

/// What is read and served of metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricOptions {
    /// Where cpu and memory come from.
    pub resource: ResourceMetrics,
    /// Which metrics APIs are served.
    pub serve: Vec<MetricsApi>,
    /// The address of Prometheus, if it is asked.
    pub prometheus_url: Option<String>,
    /// The ConfigMap, beside the pods, with the rules by which Prometheus is asked.
    pub rules: Option<String>,
    /// Singlecloud's API for autoscalers, if it is served.
    pub singlecloud: Option<SinglecloudOptions>,
    /// Whether the admission webhook is served, on the port of the metrics APIs.
    pub webhook: bool,
}

impl MetricOptions {
    /// Whether anything is served.
    #[must_use]
    pub(super) fn serves(&self) -> bool {
        self.is_asked_by_users() || self.webhook
    }

    /// Whether anything is served for which it matters who asks.
    fn is_asked_by_users(&self) -> bool {
        !self.serve.is_empty() || self.singlecloud.is_some()
    }

    /// The ports of what is served, by name.
    pub(super) fn ports(&self) -> Vec<(&'static str, u16)> {
        let metrics = self.serves().then_some(("metrics", SERVING_PORT));
        let singlecloud = self.singlecloud.as_ref().map(|_| ("singlecloud", SINGLECLOUD_PORT));
        metrics.into_iter().chain(singlecloud).collect()
    }

    fn serves_resource(&self) -> bool {
        self.serve.contains(&MetricsApi::Resource)
    }

    fn reads_kubelets(&self) -> bool {
        self.resource == ResourceMetrics::Kubelet
            || self.serves_resource() && self.resource != ResourceMetrics::Prometheus
    }

    /// The flags of `podscale run`.
    pub(super) fn arguments(&self, namespace: &str) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.resource != ResourceMetrics::default() {
            arguments.push(format!("--resource-metrics={}", self.resource.name()));
        }
        arguments.extend(self.prometheus_url.iter().map(|url| format!("--prometheus-url={url}")));
        let rules = self.rules.iter();
        arguments.extend(rules.map(|name| format!("--metric-rules-configmap={namespace}/{name}")));
        if !self.serve.is_empty() {
            let apis: Vec<&str> = self.serve.iter().map(|api| api.name()).collect();
            arguments.push("--serve-metrics".to_owned());
            arguments.push(format!("--serve={}", apis.join(",")));
        }
        if self.serves() {
            arguments.push(format!("--service-namespace={namespace}"));
        }
        if self.webhook {
            arguments.push("--webhook".to_owned());
        }
        arguments.extend(self.singlecloud.iter().flat_map(SinglecloudOptions::arguments));
        arguments
    }

    /// What must be allowed in all namespaces.
    pub(super) fn cluster_rules(&self) -> Vec<Value> {
        let mut rules = Vec::new();
        if self.reads_kubelets() || self.serves_resource() {
            rules.push(rule("", &["nodes"], &["list", "watch"]));
        }
        if self.reads_kubelets() {
            rules.push(rule("", &["nodes/metrics"], &["get"]));
        }
        if self.is_asked_by_users() {
            rules.push(rule("authentication.k8s.io", &["tokenreviews"], &["create"]));
            rules.push(rule("authorization.k8s.io", &["subjectaccessreviews"], &["create"]));
        }
        if !self.serve.is_empty() {
            rules.push(json!({
                "apiGroups": [API_REGISTRATION], "resources": ["apiservices"],
                "resourceNames": self.api_service_names(), "verbs": ["get", "patch"],
            }));
        }
        if self.webhook {
            rules.push(webhook::cluster_rule());
        }
        if self.serve.contains(&MetricsApi::Custom) {
            // Objects are found by their labels. Pods may be listed anyway.
            rules.push(rule("", &["services"], &["list"]));
        }
        rules.extend(self.singlecloud.iter().flat_map(SinglecloudOptions::cluster_rules));
        rules
    }

    /// What must be allowed in the own namespace.
    pub(super) fn own_rules(&self) -> Vec<Value> {
        let mut rules = Vec::new();
        if self.serves() {
            rules.push(rule("", &["secrets"], &["create"]));
            rules.push(json!({
                "apiGroups": [""], "resources": ["secrets"],
                "resourceNames": [SERVING_SECRET], "verbs": ["get", "update"],
            }));
        }
        if let Some(name) = &self.rules {
            rules.push(json!({
                "apiGroups": [""], "resources": ["configmaps"],
                "resourceNames": [name], "verbs": ["watch"],
            }));
        }
        rules
    }

    fn api_service_names(&self) -> Vec<String> {
        let named = |(group, version): (&str, &str)| format!("{version}.{group}");
        self.groups().map(named).collect()
    }

    fn groups(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.serve.iter().flat_map(|api| {
            let (group, versions) = versions(*api);
            versions.iter().map(move |version| (group, *version))
        })
    }

    /// The objects besides those of the controller.
    pub(super) fn manifests(&self, namespace: &str) -> Vec<Value> {
        if !self.serves() {
            return Vec::new();
        }
        let mut objects = vec![self.service(namespace)];
        if self.is_asked_by_users() {
            objects.push(authentication_reader(namespace));
        }
        if self.webhook {
            objects.push(webhook::configuration(namespace));
        }
        objects.extend(self.singlecloud.iter().flat_map(|api| api.manifests(namespace)));
        if self.serves_resource() {
            objects.push(metrics_reader());
        }
        let mut labels = labels();
        labels["app.kubernetes.io/component"] = METRICS_API.into();
        objects.extend(self.groups().map(|(group, version)| {
            json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": format!("{version}.{group}"), "labels": labels},
                "spec": {
                    "group": group, "version": version,
                    "groupPriorityMinimum": 100, "versionPriority": 100,
                    // Whoever served before may have been trusted blindly.
                    "insecureSkipTLSVerify": false,
                    "service": {"name": SERVICE, "namespace": namespace, "port": HTTPS_PORT},
                },
            })
        }));
        objects
    }

    fn service(&self, namespace: &str) -> Value {
        let port = |(name, port): (&str, u16)| {
            let port = if port == SERVING_PORT { HTTPS_PORT } else { port };
            json!({"name": name, "port": port, "targetPort": name})
        };
        let ports: Vec<Value> = self.ports().into_iter().map(port).collect();
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": namespace, "labels": labels()},
            "spec": {"selector": labels(), "ports": ports},
        })
    }
}

/// The role is there in every cluster: it allows to read how the API server shows itself to the servers
/// behind it.
fn authentication_reader(namespace: &str) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {
            "name": "podscale-authentication-reader", "namespace": "kube-system", "labels": labels(),
        },
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io", "kind": "Role",
            "name": "extension-apiserver-authentication-reader",
        },
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    })
}

/// Whoever may view workloads may see what they use.
fn metrics_reader() -> Value {
    let mut labels = labels();
    for role in ["admin", "edit", "view"] {
        labels[format!("rbac.authorization.k8s.io/aggregate-to-{role}")] = "true".into();
    }
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "podscale-metrics-reader", "labels": labels},
        "rules": [rule("metrics.k8s.io", &["pods", "nodes"], &["get", "list"])],
    })
}
