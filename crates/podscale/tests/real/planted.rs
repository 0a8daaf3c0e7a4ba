//! Looks for planted secrets wherever something can be read.

use super::cluster::Cluster;
use super::harness::{PLANTED, WRONG};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Objects of all kinds that a controller writes or reports on; Secrets themselves are left out.
const OBJECTS: [&str; 7] = [
    "/api/v1/configmaps",
    "/api/v1/events",
    "/api/v1/pods",
    "/apis/apps/v1/deployments",
    "/apis/events.k8s.io/v1/events",
    "/apis/keda.sh/v1alpha1/scaledobjects",
    "/apis/keda.sh/v1alpha1/triggerauthentications",
];

/// Checks that passwords and keys are in no output: objects, pages, explanations, the log, recordings.
pub(crate) async fn is_nowhere(cluster: Cluster, names: &[&str], keys: &[String]) {
    let mut outputs = Vec::new();
    for path in OBJECTS {
        outputs.push((path.to_owned(), cluster.get(path).await.to_string()));
    }
    for path in ["/metrics", "/api/autoscalers"] {
        let page = cluster.shown(path);
        assert!(page.contains(" 200 OK"), "{path}: {page}");
        outputs.push((path.to_owned(), page));
    }
    for name in names {
        for form in ["text", "json"] {
            let object = format!("default/{name}-0");
            let explained = cluster.command(&["explain", &object, "--output", form]);
            let text = [explained.stdout, explained.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(explained.status.success(), "explain {object}: {text}");
            outputs.push((format!("explain {object} as {form}"), text));
        }
    }
    let (before, written) = (outputs.len(), cluster.end());
    outputs.extend(written);
    assert!(names.is_empty() || outputs.len() > before + 1, "nothing was recorded");
    let encoded = |text: &str| STANDARD.encode(text);
    let mut planted: Vec<String> = keys.to_vec();
    for password in [PLANTED, WRONG] {
        let basic = encoded(&format!("admin:{password}"));
        let mut inside = encoded(password);
        // The end depends on what follows.
        inside.truncate(inside.len() - 4);
        planted.extend([password.to_owned(), inside, basic]);
    }
    for (name, text) in &outputs {
        assert!(!text.is_empty(), "{name} is empty");
        for secret in &planted {
            let place = text.find(secret.as_str());
            let around = place.map(|at| text[..at].lines().next_back().unwrap_or_default());
            assert!(around.is_none(), "{name} shows {secret:?} after {around:?}");
        }
    }
}
