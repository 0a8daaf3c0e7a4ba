//! What every cluster has from the start.

use serde_json::{Value, json};

use crate::server::{ApiServer, Config};
use crate::write::{Write, create::create};

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

impl ApiServer {
    /// A server with nothing in it but the namespaces and objects that every cluster has.
    pub fn new(config: Config) -> Self {
        let server = Self::empty(config);
        populate(&server);
        server
    }
}

/// Creates the namespaces and the service of the API server itself.
fn populate(server: &ApiServer) {
    for name in NAMESPACES {
        put(server, "namespaces", "", json!({ "metadata": { "name": name } }));
    }
    let service = json!({
        "metadata": {
            "name": "kubernetes",
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "clusterIP": "10.96.0.1",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443 }],
        },
    });
    put(server, "services", "default", service);
}

fn put(server: &ApiServer, plural: &str, namespace: &str, mut object: Value) {
    let Some(served) = server.inner.registry().find("", "v1", plural) else { return };
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), Value::from(served.info.api_version()));
        fields.insert("kind".to_owned(), Value::from(served.info.kind.as_str()));
    }
    let write = Write {
        server: &server.inner,
        served: &served,
        namespace,
        manager: "kube-apiserver",
        dry_run: false,
    };
    // The store is empty, so nothing can be in the way.
    let _ = create(&write, object);
}
