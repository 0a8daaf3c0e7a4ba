//! Where the kubelet of a node is, by what the node says of itself.

use crate::kubelet::{PORT, Scheme, Target};
use podscale_api::node::Node;

/// The kinds of addresses that nodes have, in the order in which they are usually tried.
pub const PREFERRED_TYPES: [&str; 3] = ["InternalIP", "ExternalIP", "Hostname"];

/// How kubelets are addressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addressing {
    /// Which kinds of addresses to use, the best first.
    pub types: Vec<String>,
    /// The port of all kubelets, whatever their nodes say.
    pub port: Option<u16>,
    /// Whether to speak TLS.
    pub scheme: Scheme,
}

impl Default for Addressing {
    fn default() -> Addressing {
        let types = PREFERRED_TYPES.map(str::to_owned).into();
        Addressing { types, port: None, scheme: Scheme::Https }
    }
}

impl Addressing {
    /// Where a node's kubelet is; nothing if it has no address of these kinds.
    #[must_use]
    pub fn target(&self, node: &Node) -> Option<Target> {
        let of_type = |kind: &String| {
            let mut addresses = node.status.addresses.iter();
            addresses.find(|address| *address.r#type == **kind && !address.address.is_empty())
        };
        let host = self.types.iter().find_map(of_type)?.address.clone();
        let stated = node.status.daemon_endpoints.kubelet_endpoint.port;
        let stated = u16::try_from(stated).ok().filter(|port| *port != 0);
        let port = self.port.or(stated).unwrap_or(PORT);
        Some(Target { scheme: self.scheme, host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_address_of_a_node_is_taken() {
        let node = r#"{"metadata":{"name":"n"},"status":{"addresses":[{"type":"Hostname","address":"n.example"},
            {"type":"InternalIP","address":"10.0.0.1"},{"type":"InternalIP","address":"fd00::1"}],
            "daemonEndpoints":{"kubeletEndpoint":{"Port":10300}}}}"#;
        let node: Node = serde_json::from_str(node).unwrap();
        let types = |types: &[&str]| types.iter().map(|kind| (*kind).to_owned()).collect();
        let usual = Addressing::default();
        for (addressing, expected) in [
            (usual.clone(), Some("https://10.0.0.1:10300")),
            (
                Addressing { types: types(&["ExternalIP", "Hostname"]), ..usual.clone() },
                Some("https://n.example:10300"),
            ),
            (Addressing { types: types(&["ExternalIP"]), ..usual.clone() }, None),
            (
                Addressing { port: Some(10255), scheme: Scheme::Http, ..usual },
                Some("http://10.0.0.1:10255"),
            ),
        ] {
            let target = addressing.target(&node).map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected);
        }
        let bare: Node = serde_json::from_str(
            r#"{"metadata":{"name":"n"},"status":{"addresses":[{"type":"InternalIP","address":"fd00::1"}],"conditions":null}}"#,
        )
        .unwrap();
        let target = Addressing::default().target(&bare).unwrap();
        assert_eq!(target.to_string(), "https://[fd00::1]:10250");
    }
}
