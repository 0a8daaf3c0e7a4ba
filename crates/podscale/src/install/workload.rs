//! The pods of the controller and what stands around them.

use super::{ADMIN_PORT, NAME, Options, labels, metadata};
use serde_json::{Value, json};

/// The user and group of the image: nobody in particular, never root.
const USER: u32 = 65532;

fn arguments(options: &Options) -> Vec<String> {
    let mut arguments = vec![
        "run".to_owned(),
        format!("--admin-address=0.0.0.0:{ADMIN_PORT}"),
        "--log-format=json".to_owned(),
    ];
    arguments.extend(options.run_flags());
    arguments
}

fn ports(options: &Options) -> Vec<Value> {
    let mut ports = vec![json!({"name": "admin", "containerPort": ADMIN_PORT})];
    let served = options.metrics.ports().into_iter();
    ports.extend(served.map(|(name, port)| json!({"name": name, "containerPort": port})));
    ports
}

pub(super) fn deployment(options: &Options) -> Value {
    let arguments = arguments(options);
    let ports = ports(options);
    let probe = |path: &str, failures: u32| {
        json!({
            "httpGet": {"path": path, "port": "admin"},
            "periodSeconds": 5, "timeoutSeconds": 3, "failureThreshold": failures,
        })
    };
    let mut ready = probe("/readyz", 1);
    // Nothing can be known before the first lists have been read.
    ready["initialDelaySeconds"] = 3.into();
    let container = json!({
        "name": NAME,
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "args": arguments,
        "ports": ports,
        "livenessProbe": probe("/healthz", 6),
        "readinessProbe": ready,
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi"},
            "limits": {"memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(&options.namespace),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": labels()},
            "template": {
                "metadata": {"labels": labels()},
                "spec": {
                    "serviceAccountName": NAME,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "terminationGracePeriodSeconds": 15,
                    // Two replicas on one node fall together.
                    "topologySpreadConstraints": [{
                        "maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": {"matchLabels": labels()},
                    }],
                    "containers": [container],
                },
            },
        },
    })
}

pub(super) fn service(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata(namespace),
        "spec": {
            "selector": labels(),
            "ports": [{"name": "admin", "port": ADMIN_PORT, "targetPort": "admin"}],
        },
    })
}

pub(super) fn disruption_budget(namespace: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata(namespace),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels()}},
    })
}
