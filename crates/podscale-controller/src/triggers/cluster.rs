//! What triggers ask of the cluster: pods that a selector finds, and endpoints of Services.

use crate::pods::Pods;
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use podscale_api::Selector;
use podscale_api::pod::PodPhase;
use podscale_client::call::{self, About, query, segment};
use podscale_scalers::{Cluster, Endpoint, PodPlace};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// The label of an EndpointSlice that names its Service.
const SERVICE: &str = "kubernetes.io/service-name";

/// The cluster as the controller knows it.
pub(super) struct KnownCluster {
    client: Client,
    pods: Arc<OnceLock<Arc<Pods>>>,
}

impl KnownCluster {
    /// Pods come from the store, which is there once the controller has started; the rest is asked for.
    pub(super) fn new(client: Client, pods: Arc<OnceLock<Arc<Pods>>>) -> KnownCluster {
        KnownCluster { client, pods }
    }
}

impl Cluster for KnownCluster {
    fn pods<'a>(
        &'a self,
        namespace: &'a str,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodPlace>, String>> {
        let Some(pods) = self.pods.get() else {
            let unknown = "the pods of the cluster are not known yet".to_owned();
            return std::future::ready(Err(unknown)).boxed();
        };
        let found = pods.select(namespace, selector);
        let place = |pod: &Arc<podscale_api::pod::Pod>| {
            let node = &pod.spec.node_name;
            let ended = matches!(pod.status.phase, Some(PodPhase::Succeeded | PodPhase::Failed));
            PodPlace { node: (!node.is_empty()).then(|| Arc::from(&**node)), ended }
        };
        std::future::ready(Ok(found.iter().map(place).collect())).boxed()
    }

    fn endpoints<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Endpoint>, String>> {
        async move {
            let selector = format!("{SERVICE}={service}");
            let path = format!(
                "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices{}",
                segment(namespace),
                query(&[("labelSelector", selector.as_str())])
            );
            let about = About { resource: "endpointslices.discovery.k8s.io", name: "" };
            let slices: Slices = call::get(&self.client, &path, about)
                .await
                .map_err(|error| format!("the endpoints of Service {service:?}: {error}"))?;
            Ok(ready(slices))
        }
        .boxed()
    }
}

/// As much of a list of EndpointSlices as is needed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Slices {
    items: Vec<Slice>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Slice {
    endpoints: Option<Vec<Address>>,
    ports: Option<Vec<Port>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address {
    addresses: Vec<String>,
    conditions: Conditions,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Port {
    port: Option<u16>,
}

/// The endpoints that are ready, each address once with the ports of all of its slices. One that does not say is
/// ready.
fn ready(slices: Slices) -> Vec<Endpoint> {
    let mut found: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for Slice { endpoints, ports } in slices.items {
        let ports: Vec<u16> = ports.into_iter().flatten().filter_map(|port| port.port).collect();
        let is_ready = |endpoint: &Address| endpoint.conditions.ready.unwrap_or(true);
        for endpoint in endpoints.into_iter().flatten().filter(is_ready) {
            for address in endpoint.addresses {
                let known = found.entry(address).or_default();
                let new = ports.iter().filter(|port| !known.contains(port)).copied();
                let new: Vec<u16> = new.collect();
                known.extend(new);
            }
        }
    }
    found.into_iter().map(|(address, ports)| Endpoint { address, ports }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn endpoints_that_are_ready_are_found_once() {
        let slices = json!({"items": [
            {"endpoints": [{"addresses": ["10.0.0.2"], "conditions": {"ready": true}},
                {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
                {"addresses": ["10.0.0.1"]}], "ports": [{"port": 80}, {"name": "odd"}]},
            {"endpoints": [{"addresses": ["10.0.0.2"], "conditions": {}}],
                "ports": [{"port": 81}, {"port": 80}]},
            {"endpoints": null, "ports": null},
        ]});
        let found = ready(serde_json::from_value(slices).expect("slices"));
        let endpoint = |address: &str, ports: &[u16]| Endpoint {
            address: address.into(),
            ports: ports.into(),
        };
        assert_eq!(found, [endpoint("10.0.0.1", &[80]), endpoint("10.0.0.2", &[80, 81])]);
    }
}
