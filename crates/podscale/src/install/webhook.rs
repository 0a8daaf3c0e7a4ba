//! What the admission webhook needs in a cluster: that the API server asks it, and the right to tell the API server
//! which certificate to trust.

use super::labels;
use super::metrics::{HTTPS_PORT, SERVICE};
use podscale_api::admission::{KINDS, WEBHOOK, review};
use podscale_controller::serve::webhook::{CONFIGURATION, PATH, TIMEOUT_SECONDS};
use serde_json::{Value, json};

/// What must be allowed in all namespaces.
pub(super) fn cluster_rule() -> Value {
    json!({
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["validatingwebhookconfigurations"],
        "resourceNames": [CONFIGURATION], "verbs": ["get", "patch"],
    })
}

/// Which objects the API server asks about. Where nobody answers, it stores them: the controller reports in a
/// condition what is wrong with them.
pub(super) fn configuration(namespace: &str) -> Value {
    let rules: Vec<Value> = KINDS
        .iter()
        .map(|kind| {
            json!({
                "apiGroups": [kind.group], "apiVersions": [kind.version],
                "operations": ["CREATE", "UPDATE"], "resources": [kind.plural],
                "scope": "Namespaced",
            })
        })
        .collect();
    let service = json!({
        "name": SERVICE, "namespace": namespace, "path": PATH, "port": HTTPS_PORT,
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION, "labels": labels()},
        "webhooks": [{
            "name": WEBHOOK,
            "admissionReviewVersions": [review::VERSION],
            "clientConfig": {"service": service},
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "rules": rules,
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_SECONDS,
        }],
    })
}
