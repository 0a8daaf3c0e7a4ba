//! Which workload a pod belongs to.

use crate::nodes::pod::Facts;
use podscale_api::Labels;
use std::collections::BTreeMap;

/// What makes a pod one of a workload's.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    namespace: Box<str>,
    name: Box<str>,
    selector: Labels,
}

impl Claim {
    /// Claims pods by labels or, without any, by owner.
    pub(super) fn new(namespace: &str, name: &str, selector: &BTreeMap<String, String>) -> Claim {
        let selector = selector.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        Claim { namespace: namespace.into(), name: name.into(), selector: selector.collect() }
    }

    /// Whether the pod is the workload's.
    pub(super) fn takes(&self, pod: &Facts) -> bool {
        if *self.namespace != *pod.namespace {
            return false;
        }
        if !self.selector.is_empty() {
            return self.selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value));
        }
        let Some((kind, owner)) = &pod.owner else {
            return false;
        };
        *self.name == **owner || deployment(kind, owner, &pod.labels) == Some(&*self.name)
    }
}

/// The name of the Deployment whose ReplicaSet owns a pod: the ReplicaSet's without the hash.
fn deployment<'a>(kind: &str, owner: &'a str, labels: &Labels) -> Option<&'a str> {
    let hash = labels.get("pod-template-hash").filter(|_| kind == "ReplicaSet")?;
    owner.strip_suffix(hash)?.strip_suffix('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::pod::WirePod;
    use serde_json::json;

    fn check(selector: &[(&str, &str)], kind: &str, owner: &str, expected: bool) {
        let wire: WirePod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u",
                "labels": {"app": "web", "pod-template-hash": "5d9f"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "o", "controller": true}]},
            "spec": {"nodeName": "n"},
        }))
        .unwrap();
        let selector = selector.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let claim = Claim::new("shop", "web", &selector);
        let facts = Facts::read(&wire).unwrap();
        assert_eq!(claim.takes(&facts), expected, "{selector:?} {kind}/{owner}");
        assert!(!Claim::new("other", "web", &selector).takes(&facts), "another namespace");
    }

    #[test]
    fn pods_are_claimed_by_labels_or_by_owner() {
        check(&[("app", "web")], "ReplicaSet", "x", true);
        check(&[("app", "web"), ("tier", "1")], "ReplicaSet", "web-5d9f", false);
        check(&[], "ReplicaSet", "web-5d9f", true);
        check(&[], "ReplicaSet", "web", true);
        check(&[], "ReplicaSet", "web-two-5d9f", false);
        check(&[], "StatefulSet", "web", true);
        check(&[], "StatefulSet", "web-5d9f", false);
    }
}
