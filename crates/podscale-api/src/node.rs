//! Nodes, as much of them as reaching their kubelets needs.

use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::serde_form::{list, null_default};

/// A core/v1 Node without what nobody here needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Which one it is.
    #[serde(deserialize_with = "null_default")]
    pub metadata: NodeMeta,
    /// What it says of itself.
    #[serde(deserialize_with = "null_default")]
    pub status: NodeStatus,
}

/// Which node it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeMeta {
    /// Unique in the cluster.
    pub name: Box<str>,
    /// What selectors look at.
    #[serde(skip_serializing_if = "Labels::is_empty", deserialize_with = "null_default")]
    pub labels: Labels,
    /// Which version of the object this is.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub resource_version: Box<str>,
}

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// Where it can be reached.
    #[serde(deserialize_with = "list")]
    pub addresses: Vec<NodeAddress>,
    /// The ports of what runs on it.
    #[serde(deserialize_with = "null_default")]
    pub daemon_endpoints: DaemonEndpoints,
    /// How it does.
    #[serde(deserialize_with = "list")]
    pub conditions: Vec<NodeCondition>,
}

/// One address of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeAddress {
    /// Which kind of address, such as `InternalIP`.
    pub r#type: Box<str>,
    /// The address.
    pub address: Box<str>,
}

/// The ports of what runs on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonEndpoints {
    /// That of its kubelet.
    #[serde(deserialize_with = "null_default")]
    pub kubelet_endpoint: Endpoint,
}

/// One port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Endpoint {
    /// Its number; 0 if unknown.
    pub port: i32,
}

/// One condition of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeCondition {
    /// Which one, such as `Ready`.
    pub r#type: Box<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Box<str>,
}

impl Node {
    /// Whether its kubelet says that it is ready.
    pub fn is_ready(&self) -> bool {
        let ready = |condition: &NodeCondition| *condition.r#type == *"Ready";
        self.status.conditions.iter().find(|c| ready(c)).is_some_and(|c| *c.status == *"True")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_with_whatever_it_has() {
        let text = r#"{"metadata":{"name":"n","labels":{"a":"b"},"resourceVersion":"7"},"spec":{"podCIDR":"x"},
            "status":{"addresses":[{"type":"InternalIP","address":"10.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":10250}},
            "conditions":[{"type":"Ready","status":"True","reason":"x"}]}}"#;
        let node: Node = serde_json::from_str(text).expect("a node");
        assert_eq!((&*node.metadata.name, node.metadata.labels.get("a")), ("n", Some("b")));
        assert_eq!(node.status.daemon_endpoints.kubelet_endpoint.port, 10250);
        assert!(node.is_ready());
        for text in ["{}", r#"{"metadata":null,"status":null}"#, r#"{"status":{"addresses":null}}"#]
        {
            let node: Node = serde_json::from_str(text).expect("a node");
            assert!(node.status.addresses.is_empty() && !node.is_ready());
        }
    }
}
